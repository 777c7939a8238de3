package local

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"

	"github.com/landfast/landfast/internal/blob"
)

// Rewrite implements [blob.Deferrer]. A symbolic link in the file's place is replaced, not what it leads to.
func (s *Store) Rewrite(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	t, err := s.open(ctx, scope, location)
	if err != nil {
		return fmt.Errorf("rewrite: %w", err)
	}
	defer t.in.Close()
	if err := s.rewrite(t, data); err != nil {
		return fmt.Errorf("rewrite %s: %w", location, createNamed(err, location))
	}
	return nil
}

func (s *Store) rewrite(t target, data []byte) error {
	dir, err := s.openDir(t)
	if err != nil {
		return err
	}
	defer dir.Close()
	temporary := blob.TemporaryPrefix + rand.Text() + blob.TemporarySuffix
	f, err := s.write(dir.in, temporary, data)
	if err != nil {
		return err
	}
	if err := s.finish(f); err != nil {
		s.discard(dir.in, temporary)
		return err
	}
	if err := s.sys.rename(dir.in, temporary, filepath.Base(t.path)); err != nil {
		s.discard(dir.in, temporary)
		return err
	}
	if err := s.sys.syncDir(dir.self); err != nil {
		return fmt.Errorf("the file's name could not be made durable: %w", err)
	}
	return nil
}
