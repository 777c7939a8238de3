package embedded

import (
	"context"
	"errors"
	"fmt"
)

// Backup writes a copy of the store at path, as [Store.Backup] does, for a process
// that does not have it open. It reads only: a store that another process has
// open goes on meanwhile, and one of an older or newer schema is copied as it is.
func Backup(ctx context.Context, path, dest string) error {
	c, err := dial(path, true)
	if err == nil {
		err = errors.Join(backupCatalog(ctx, c, dest), c.close())
	}
	if err != nil {
		return fmt.Errorf("embedded: back up %s to %s: %w", path, dest, explain(err))
	}
	return nil
}

// backupCatalog copies nothing that is not a catalog.
func backupCatalog(ctx context.Context, c *conn, dest string) error {
	var id int
	if _, err := c.first("PRAGMA application_id", nil, &id); err != nil {
		return err
	}
	if id != applicationID {
		return fmt.Errorf("%w: its application id is %d", ErrNotCatalog, id)
	}
	return backup(ctx, c, dest)
}
