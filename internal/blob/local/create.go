package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/landfast/landfast/internal/blob"
)

// Create implements [blob.Store].
func (s *Store) Create(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	t, err := s.open(ctx, scope, location)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	defer t.in.Close()
	if err := s.create(ctx, t, data); err != nil {
		return fmt.Errorf("create %s: %w", location, createNamed(err, location))
	}
	return nil
}

// createNamed is named for Create, to which a missing file is nothing that its caller could act on.
func createNamed(err error, location string) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return &blob.LocationError{
			Location: location, Err: blob.ErrBelowFile,
			Problem: "a part of its path is no directory", Remedy: "choose a location that does not lie below a file",
		}
	}
	if err := named(err, location); !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	return fmt.Errorf("its directory cannot be made or used: %v", err)
}

func (s *Store) create(ctx context.Context, t target, data []byte) error {
	dir, err := s.openDir(t)
	if err != nil {
		return err
	}
	defer dir.Close()
	temporary := blob.TemporaryPrefix + rand.Text() + blob.TemporarySuffix
	if err := s.writeDurably(dir.in, temporary, data); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		s.discard(dir.in, temporary)
		return err
	}
	return s.publish(dir, temporary, filepath.Base(t.path))
}

// writeDurably makes a file of these bytes, or none.
func (s *Store) writeDurably(in *os.Root, name string, data []byte) (err error) {
	f, err := s.sys.create(in, name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.discard(in, name)
		}
	}()
	if err := s.sys.write(f, data); err != nil {
		f.Close()
		return err
	}
	// After a failed sync the kernel may have dropped the pages and forgotten the error, so a second sync
	// would prove nothing. The file has no name yet that anybody knows: it goes, and the upload has failed.
	if err := s.sys.sync(f); err != nil {
		f.Close()
		return fmt.Errorf("the file could not be made durable: %w", err)
	}
	return f.Close() // Windows can neither link nor remove an open file.
}

// discard removes what a failed Create has made. If that fails too, a file stays that nothing names.
func (s *Store) discard(in *os.Root, name string) { _ = s.sys.remove(in, name) }

// publish gives a durable file its name in place of the temporary one, durably, or removes both.
func (s *Store) publish(dir openedDir, temporary, name string) error {
	err := s.sys.link(dir.in, temporary, name)
	if err != nil && lacksLinks(err) {
		err = s.claim(dir, temporary, name)
	}
	if err != nil {
		s.discard(dir.in, temporary)
		if errors.Is(err, fs.ErrExist) {
			return blob.ErrExists
		}
		return err
	}
	if err = s.sys.remove(dir.in, temporary); err == nil || errors.Is(err, fs.ErrNotExist) {
		if err = s.sys.syncDir(dir.self); err == nil {
			return nil
		}
		err = fmt.Errorf("the file's name could not be made durable: %w", err)
	}
	s.discard(dir.in, temporary)
	s.discard(dir.in, name)
	return err
}

// claim stands in for link on file systems without it: who makes the empty file may replace it. Here, and
// only here, a process that is killed between the two steps leaves an empty file under the name.
func (s *Store) claim(dir openedDir, temporary, name string) error {
	empty, err := s.sys.create(dir.in, name)
	if err != nil {
		return err
	}
	empty.Close()
	if err := dir.in.Rename(temporary, name); err != nil {
		s.discard(dir.in, name)
		return err
	}
	return nil
}
