package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/landfast/landfast/internal/blob"
)

// deferred is what CreateDeferred leaves to Sync. A file costs four system calls: a look whether its
// directory is the one that is held open, open, write and close. Sync is one syncfs(2) for each file system, which
// reports what could not be written back since its descriptor was opened: Linux 5.8 and later.
type deferred struct {
	sys     deferredCalls
	syncing sync.Mutex // a Sync at a time: the second waits for what the first has taken
	mu      sync.Mutex // guards round and what it points to, except its users
	round   *round     // nil: nothing was made since the last Sync
}

// deferredCalls are the calls to the operating system that fail on a full or broken disk. Tests replace them.
type deferredCalls struct {
	write  func(file int, data []byte) (int, error)
	syncfs func(dir *os.File) error
	// together tells whether syncfs makes all that is written in the directory's file system durable.
	together func(dir *os.File) bool
}

func newDeferred() deferred {
	return deferred{sys: deferredCalls{
		write:    unix.Write,
		syncfs:   func(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) },
		together: together,
	}}
}

// together knows the file systems of local disks. On others, FUSE and network file systems above all, syncfs may
// return before anything is safe; and on an overlay it may not hear what the file system below could not write.
func together(dir *os.File) bool {
	var info unix.Statfs_t
	return syncfsTells() && unix.Fstatfs(int(dir.Fd()), &info) == nil && isTogether(int64(info.Type)) //nolint:unconvert // int32 on some machines
}

func isTogether(fileSystem int64) bool {
	switch fileSystem {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

// syncfsTells is whether syncfs reports what could not be written. Older kernels say that all is well.
var syncfsTells = sync.OnceValue(func() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && isSince58(unix.ByteSliceToString(name.Release[:]))
})

func isSince58(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 5 || major == 5 && minor >= 8)
}

// round is what was made between two calls of Sync. It holds directories open: each is opened before the files in
// it are made, so that syncfs on the first one of a file system hears of every error.
type round struct {
	users sync.WaitGroup // calls of CreateDeferred under way
	dirs  map[dirKey]*heldDir
	open  []*os.File          // all that dirs ever held
	disks map[uint64]*os.File // a directory of each file system, by its device
}

// heldMax bounds the open directories of a round, but for one of each file system.
const heldMax = 128

// heldDir is a directory that is open, and which one it is.
type heldDir struct {
	self     *os.File
	path     string
	dev, ino uint64
}

// current tells whether the path still leads to the directory.
func (d *heldDir) current() bool {
	var now unix.Stat_t
	return unix.Stat(d.path, &now) == nil && now.Dev == d.dev && now.Ino == d.ino
}

// Defers implements [blob.Deferrer]: where one call makes everything durable.
func (s *Store) Defers(scope blob.Scope, location string) bool {
	t, err := s.open(context.Background(), scope, location)
	if err != nil {
		return false
	}
	defer t.in.Close()
	self, err := t.in.Open(".")
	if err != nil {
		return false
	}
	defer self.Close()
	return s.deferred.sys.together(self)
}

// CreateDeferred implements [blob.Deferrer]. Below a mount point whose file system Sync could not answer for
// it is Create.
func (s *Store) CreateDeferred(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	root, slashed, err := scope.Locate(location)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	below, err := localPath(root, slashed)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	err = s.createDeferred(root, below, data)
	switch {
	case errors.Is(err, errNotTogether):
		return s.Create(ctx, scope, location, data)
	case err != nil:
		return fmt.Errorf("create %s: %w", location, createNamed(err, location))
	}
	return nil
}

var errNotTogether = errors.New("the file system must make each file durable by itself")

func (s *Store) createDeferred(root blob.Root, below string, data []byte) error {
	path, name := filepath.Dir(below), filepath.Base(below)
	r, dir := s.deferred.join(dirKey{root.Dir, path})
	defer r.users.Done()
	if dir != nil && dir.current() {
		// A directory that was removed a moment ago takes no file. Then it is looked for anew.
		if err := s.makeFile(dir.self, name, data); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	self, held, err := s.openForRound(r, root, path)
	if err != nil {
		return err
	}
	if !held {
		defer self.Close()
	}
	return s.makeFile(self, name, data)
}

// join takes part in the round that is on, and finds the directory if it is held.
func (d *deferred) join(key dirKey) (*round, *heldDir) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.round == nil {
		d.round = &round{dirs: map[dirKey]*heldDir{}, disks: map[uint64]*os.File{}}
	}
	d.round.users.Add(1)
	return d.round, d.round.dirs[key]
}

// openForRound opens a directory, made where it is missing. Unless the round holds it, it is for the caller to close.
func (s *Store) openForRound(r *round, root blob.Root, path string) (dir *os.File, held bool, err error) {
	t, err := openBelow(root, path)
	if err != nil {
		return nil, false, err
	}
	defer t.in.Close()
	dir, err = t.in.Open(asDir(path))
	if errors.Is(err, fs.ErrNotExist) {
		for above := range downTo(path) {
			if err := s.sys.mkdir(t.in, above); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, false, err
			}
		}
		dir, err = t.in.Open(asDir(path))
	}
	if err != nil {
		return nil, false, err
	}
	if held, err = s.hold(r, dirKey{root.Dir, path}, dir); err != nil {
		dir.Close()
		return nil, false, err
	}
	return dir, held, nil
}

// hold keeps the directory open until the next Sync, if there is room or it is the first of its file system.
func (s *Store) hold(r *round, key dirKey, dir *os.File) (bool, error) {
	if !s.deferred.sys.together(dir) {
		return false, errNotTogether
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &info); err != nil {
		return false, &fs.PathError{Op: "fstat", Path: key.path, Err: err}
	}
	s.deferred.mu.Lock()
	defer s.deferred.mu.Unlock()
	if r.disks[info.Dev] == nil {
		r.disks[info.Dev] = dir
	} else if len(r.open) >= heldMax {
		return false, nil
	}
	key.path = strings.Clone(key.path) // not to keep alive all of the location that it is a part of
	r.dirs[key] = &heldDir{self: dir, path: filepath.Join(key.root, key.path), dev: info.Dev, ino: info.Ino}
	r.open = append(r.open, dir)
	return true, nil
}

// makeFile makes a file of these bytes in an open directory, or none.
func (s *Store) makeFile(dir *os.File, name string, data []byte) error {
	in := int(dir.Fd())
	file, err := again(func() (int, error) {
		return unix.Openat(in, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	})
	if errors.Is(err, fs.ErrExist) {
		return blob.ErrExists
	}
	if err != nil {
		return &fs.PathError{Op: "openat", Path: name, Err: err}
	}
	for len(data) > 0 && err == nil {
		var n int
		n, err = again(func() (int, error) { return s.deferred.sys.write(file, data) })
		data = data[max(n, 0):]
	}
	err = errors.Join(err, unix.Close(file))
	if err != nil {
		_ = unix.Unlinkat(in, name, 0) // if that fails too, a file stays that nothing names
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// again makes a system call until no signal interrupts it.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Sync implements [blob.Deferrer].
func (s *Store) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.deferred.syncing.Lock()
	defer s.deferred.syncing.Unlock()
	s.deferred.mu.Lock()
	r := s.deferred.round
	s.deferred.round = nil
	s.deferred.mu.Unlock()
	if r == nil {
		return nil
	}
	r.users.Wait()
	var errs []error
	for _, dir := range r.disks {
		if err := s.deferred.sys.syncfs(dir); err != nil {
			errs = append(errs, fmt.Errorf("the file system of %s could not be made durable: %w", dir.Name(), err))
		}
	}
	for _, dir := range r.open {
		dir.Close()
	}
	return errors.Join(errs...)
}
