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

// create gives the file its name before it is durable, where that can be done with an open file: one sync makes
// both durable, and the one of the directory then finds nothing left to do. Nobody whom this call has not
// answered counts on the file, so one that the loss of power has made short harms nobody.
func (s *Store) create(ctx context.Context, t target, data []byte) error {
	dir, err := s.openDir(t)
	if err != nil {
		return err
	}
	defer dir.Close()
	temporary, name := blob.TemporaryPrefix+rand.Text()+blob.TemporarySuffix, filepath.Base(t.path)
	f, err := s.write(dir.in, temporary, data)
	if err != nil {
		return err
	}
	if namesClosedOnly {
		if err := s.finish(f); err != nil {
			s.discard(dir.in, temporary)
			return err
		}
	}
	err = ctx.Err()
	if err != nil {
		s.discard(dir.in, temporary)
	} else {
		err = s.publish(dir, temporary, name)
	}
	if !namesClosedOnly {
		if err != nil {
			f.Close()
		} else if err = s.finish(f); err != nil {
			s.discard(dir.in, name)
		}
	}
	if err != nil {
		return err
	}
	if err := s.sys.syncDir(dir.self); err != nil {
		s.discard(dir.in, name)
		return fmt.Errorf("the file's name could not be made durable: %w", err)
	}
	return nil
}

// write makes a file of these bytes, which is not durable, or none.
func (s *Store) write(in *os.Root, name string, data []byte) (*os.File, error) {
	f, err := s.sys.create(in, name)
	if err != nil {
		return nil, err
	}
	if err := s.sys.write(f, data); err != nil {
		f.Close()
		s.discard(in, name)
		return nil, err
	}
	return f, nil
}

// finish makes the file durable and closes it. After a failed sync the kernel may have dropped the pages and
// forgotten the error, so a second sync would prove nothing: the file must go.
func (s *Store) finish(f *os.File) error {
	if err := s.sys.sync(f); err != nil {
		f.Close()
		return fmt.Errorf("the file could not be made durable: %w", err)
	}
	return f.Close()
}

// discard removes what a failed Create has made. If that fails too, a file stays that nothing names.
func (s *Store) discard(in *os.Root, name string) { _ = s.sys.remove(in, name) }

// publish gives a file its name in place of the temporary one, or removes both.
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
	if err := s.sys.remove(dir.in, temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.discard(dir.in, temporary)
		s.discard(dir.in, name)
		return err
	}
	return nil
}

// claim stands in for link on file systems without it: who makes the empty file may replace it. Here, and
// only here, a process that is killed between the two steps leaves an empty file under the name.
func (s *Store) claim(dir openedDir, temporary, name string) error {
	empty, err := s.sys.create(dir.in, name)
	if err != nil {
		return err
	}
	empty.Close()
	if err := s.sys.rename(dir.in, temporary, name); err != nil {
		s.discard(dir.in, name)
		return err
	}
	return nil
}
