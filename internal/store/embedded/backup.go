package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a copy of the store to the new file dest: a moment's state, whole
// and consistent, while reads and writes go on. It is durable and only its owner
// can read it. An existing file is refused and left alone; after an error dest
// is not there.
func (s *Store) Backup(ctx context.Context, dest string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.read(ctx, func(c *conn) error {
		finished := make(chan struct{})
		defer close(finished)
		go func() { // so that Close waits for the end of this copy only, not for the copy
			select {
			case <-s.queue.closing:
				cancel()
			case <-finished:
			}
		}()
		return backup(ctx, c, dest)
	})
	if err != nil {
		return fmt.Errorf("embedded: back up %s to %s: %w", s.path, dest, err)
	}
	return nil
}

// backup claims dest, fills a file beside it, and renames: whoever finds dest
// not empty finds all of it.
func backup(ctx context.Context, c *conn, dest string) (err error) {
	claim, err := os.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w; choose a new file in a directory that exists and in which this user may write", err)
	}
	if err := claim.Close(); err != nil {
		return errors.Join(err, os.Remove(dest))
	}
	part, err := os.CreateTemp(filepath.Dir(dest), filepath.Base(dest)+".part-*") // its mode is 0600
	if err != nil {
		return errors.Join(err, os.Remove(dest))
	}
	defer func() {
		part.Close() // a second time where all went well
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()), os.Remove(dest))
		}
	}()
	// VACUUM INTO takes an empty file, and leaves it to us to make it durable.
	if _, err := c.one.ExecContext(ctx, "VACUUM INTO ?", part.Name()); err != nil {
		return err
	}
	if err := errors.Join(part.Sync(), part.Close()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), dest); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dest))
}
