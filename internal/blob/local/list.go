package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/landfast/landfast/internal/blob"
)

// listBatch is how many entries of a directory are looked at together.
const listBatch = 512

// List implements [blob.Store]. A directory that somebody swaps for a link during the call
// may be followed, but never out of the root.
func (s *Store) List(ctx context.Context, scope blob.Scope, location string, yield func(blob.Entry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, slashed, err := scope.LocateDir(location)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	t, err := openBelow(root, path.Clean(slashed)) // the root itself is "."
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	defer t.in.Close()
	l := lister{ctx: ctx, target: t, yield: yield}
	isDir, err := l.isDir()
	if isDir && err == nil {
		err = l.dir(t.path)
	}
	if err != nil && err != l.stopped { //nolint:errorlint // the very one that yield returned, to be handed on as it is
		return fmt.Errorf("list %s: %w", location, named(err, location))
	}
	return err
}

// lister is one call of List.
type lister struct {
	ctx context.Context
	target
	yield   func(blob.Entry) error
	stopped error // of yield
}

// isDir tells whether there is such a directory, and that no link leads to it.
func (l *lister) isDir() (bool, error) {
	for end := range len(l.path) + 1 {
		if end < len(l.path) && !os.IsPathSeparator(l.path[end]) {
			continue
		}
		info, err := l.in.Lstat(l.path[:end])
		switch {
		case isGone(err):
			return false, nil
		case err != nil:
			return false, err
		case info.Mode().Type() == fs.ModeSymlink:
			return false, fmt.Errorf("%w: %s is a symbolic link; list the directory that it leads to", blob.ErrNotRegular, l.path[:end])
		case !info.IsDir():
			return false, nil
		}
	}
	return true, nil
}

// dir yields the files of a directory, then those below it. The directory is closed before others are opened, so
// that few are open however deep they lie.
func (l *lister) dir(dir string) error {
	below, err := l.files(dir)
	if err != nil {
		return err
	}
	for _, name := range below {
		if err := l.dir(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// files yields the files of a directory and returns the names of the directories in it.
func (l *lister) files(dir string) (below []string, err error) {
	opened, err := openOnly(l.in, dir)
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	for {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
		entries, err := opened.self.ReadDir(listBatch)
		for _, e := range entries {
			if e.IsDir() {
				below = append(below, e.Name())
			} else if err := l.file(opened.in, dir, e); err != nil {
				return nil, err
			}
		}
		if errors.Is(err, io.EOF) {
			return below, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// file yields what is a regular file and no marker.
func (l *lister) file(in *os.Root, dir string, e fs.DirEntry) error {
	if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), blob.MarkPrefix) {
		return nil
	}
	info, err := in.Lstat(e.Name()) // e.Info would take the way from the top again, links and all
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	l.stopped = l.yield(blob.Entry{
		Location: l.root.URI + "/" + filepath.ToSlash(filepath.Join(dir, e.Name())),
		Size:     info.Size(), Modified: info.ModTime(), Temporary: blob.IsTemporary(e.Name()),
	})
	return l.stopped
}

// isGone tells whether what was to be listed is not there, or no directory.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
