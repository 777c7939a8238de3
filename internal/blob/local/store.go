package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/landfast/landfast/internal/blob"
)

// Store implements [blob.Store], [blob.Roots] and [blob.Deferrer]. It holds no open files between calls, except
// some directories from the first CreateDeferred until the next Sync.
type Store struct {
	sys      calls
	durable  durableDirs
	deferred deferred
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Roots    = (*Store)(nil)
	_ blob.Deferrer = (*Store)(nil)
	_ blob.Prober   = (*Store)(nil)
)

// New returns a Store. One per process is enough, and cheaper than several: what it
// knows to be durable it need not sync again.
func New() *Store { return &Store{sys: osCalls, deferred: newDeferred()} }

// calls are the calls to the operating system that fail on a full or broken disk. Tests replace them.
type calls struct {
	mkdir  func(in *os.Root, path string) error
	create func(in *os.Root, name string) (*os.File, error)
	write  func(f *os.File, data []byte) error
	sync   func(f *os.File) error
	link   func(in *os.Root, from, to string) error
	rename func(in *os.Root, from, to string) error
	remove func(in *os.Root, name string) error
	// syncDir makes the names in an open directory durable.
	syncDir func(d *os.File) error
}

var osCalls = calls{
	mkdir: func(in *os.Root, path string) error { return in.Mkdir(path, 0o777) },
	create: func(in *os.Root, name string) (*os.File, error) {
		return in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	},
	write:   func(f *os.File, data []byte) error { _, err := f.Write(data); return err },
	sync:    (*os.File).Sync,
	link:    (*os.Root).Link,
	rename:  (*os.Root).Rename,
	remove:  (*os.Root).Remove,
	syncDir: syncDir,
}

// target is a location resolved to a path below an open root.
type target struct {
	in   *os.Root // to be closed
	root blob.Root
	path string // below in, as the operating system spells it
}

// open finds the location's root and opens it.
func (s *Store) open(ctx context.Context, scope blob.Scope, location string) (target, error) {
	if err := ctx.Err(); err != nil {
		return target{}, err
	}
	root, slashed, err := scope.Locate(location)
	if err != nil {
		return target{}, err
	}
	return openBelow(root, slashed)
}

// localPath is a path below a root as this operating system spells it.
func localPath(root blob.Root, slashed string) (string, error) {
	below := filepath.FromSlash(slashed)
	if !filepath.IsLocal(below) { // on Windows: device names, drive letters and streams
		return "", &blob.LocationError{Location: root.URI + "/" + slashed, Problem: "this operating system reserves a name in it", Remedy: "choose another"}
	}
	if root.Dir == "" {
		return "", fmt.Errorf("root %s is not one of local files", root.URI)
	}
	return below, nil
}

func openBelow(root blob.Root, slashed string) (target, error) {
	below, err := localPath(root, slashed)
	if err != nil {
		return target{}, err
	}
	in, err := os.OpenRoot(asDir(root.Dir))
	if err != nil {
		// Not wrapped: a missing root must not look like a missing file.
		return target{}, fmt.Errorf("cannot open the root %s: %v; is its volume mounted and readable?", root.URI, err)
	}
	return target{in: in, root: root, path: below}, nil
}

// Read implements [blob.Store].
func (s *Store) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	t, err := s.open(ctx, scope, location)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer t.in.Close()
	data, err := read(t.in, t.path, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", location, named(err, location))
	}
	return data, nil
}

func read(in *os.Root, path string, limit int64) ([]byte, error) {
	f, err := in.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s", blob.ErrNotRegular, info.Mode().Type())
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", blob.ErrTooLarge, info.Size(), limit)
	}
	// The size is only a hint, for somebody may append meanwhile: the limit holds for what is read.
	limit = min(limit, math.MaxInt64-1)
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	n, err := buf.ReadFrom(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", blob.ErrTooLarge, limit)
	}
	return buf.Bytes(), nil
}

// Delete implements [blob.Store]. A symbolic link is removed, not what it leads to.
func (s *Store) Delete(ctx context.Context, scope blob.Scope, location string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, slashed, err := scope.LocateFile(location)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	t, err := openBelow(root, slashed)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	defer t.in.Close()
	// Between the two calls the name may come to mean an empty directory; its loss would harm nobody.
	info, err := t.in.Lstat(t.path)
	if err == nil && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink {
		err = fmt.Errorf("%w: %s", blob.ErrNotRegular, info.Mode().Type())
	}
	if err == nil {
		err = s.sys.remove(t.in, t.path)
	}
	if err = named(err, location); err != nil && !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("delete %s: %w", location, err)
	}
	if err := s.deleteChecksum(t); err != nil {
		return fmt.Errorf("delete the checksums of %s: %w", location, err)
	}
	return nil
}

// deleteChecksum removes the file of checksums that Java's clients, by way of Hadoop,
// write beside every file of theirs. Where it is missing, or is no file, all is well.
func (s *Store) deleteChecksum(t target) error {
	beside := filepath.Join(filepath.Dir(t.path), "."+filepath.Base(t.path)+".crc")
	if info, err := t.in.Lstat(beside); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if err := s.sys.remove(t.in, beside); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // somebody else was faster
}

// Exists implements [blob.Store].
func (s *Store) Exists(ctx context.Context, scope blob.Scope, location string) (bool, error) {
	t, err := s.open(ctx, scope, location)
	if err != nil {
		return false, fmt.Errorf("look for: %w", err)
	}
	defer t.in.Close()
	info, err := t.in.Stat(t.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s", blob.ErrNotRegular, info.Mode().Type())
	}
	if err = named(err, location); errors.Is(err, blob.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", location, err)
	}
	return true, nil
}

// Gone implements [blob.Prober]. Symbolic links on the way are followed wherever they lead: all that is told is
// that nothing is there.
func (s *Store) Gone(scope blob.Scope, location string) bool {
	root, slashed, err := scope.Locate(location)
	if err != nil || root.Dir == "" {
		return false
	}
	_, err = os.Lstat(filepath.Join(root.Dir, filepath.FromSlash(slashed)))
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// named gives an error of the operating system the name that the contract has for it.
func named(err error, location string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w (%v)", blob.ErrNotFound, err)
	case slices.ContainsFunc(diskFull, func(full error) bool { return errors.Is(err, full) }):
		return fmt.Errorf("%w (%v); free some, nothing was changed", blob.ErrFull, err)
	case escapes(err):
		return &blob.LocationError{
			Location: location, Err: blob.ErrOutside,
			Problem: "a symbolic link on the way leads out of the warehouse's root, or is absolute",
			Remedy:  "choose a location without it, or a warehouse that allows its target",
		}
	}
	return err
}

// escapes recognises os.Root's refusal to leave the root. Package os does not export the error, so its
// words must do; a test fails when they change, and the refusal itself does not depend on them.
func escapes(err error) bool {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error() == "path escapes from parent"
	}
	var link *os.LinkError
	return errors.As(err, &link) && link.Err.Error() == "path escapes from parent"
}
