package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/landfast/landfast/internal/store/embedded"
)

// Backup writes a copy of the catalog in a data directory to the new file dest:
// one moment's state, whether or not a server runs on it meanwhile. An existing
// file is refused. The files of tables are not in it; they are never changed, only
// added and deleted, so that a copy of them made after this one fits it.
func Backup(ctx context.Context, data, dest string) error {
	dir, err := resolve(data)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, catalogFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no catalog in %s; name the data directory of a server with --data (a catalog in PostgreSQL is backed up with pg_dump)", dir)
	} else if err != nil {
		return fmt.Errorf("%w; run the backup as the user that serves the catalog", err)
	}
	if _, err := os.Lstat(dest); err == nil {
		return fmt.Errorf("%s exists; nothing was written: choose a new file", dest)
	}
	if err := embedded.Backup(ctx, path, dest); err != nil {
		return err
	}
	return nil
}
