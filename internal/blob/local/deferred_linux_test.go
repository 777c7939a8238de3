package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/landfast/landfast/internal/blob"
)

// newDeferring defers wherever the tests run, be it an overlay.
func newDeferring() *Store {
	s := New()
	s.deferred.sys.together = func(*os.File) bool { return true }
	return s
}

// descriptors counts the open files of this process that lie below dir.
func descriptors(t *testing.T, dir string) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	n := 0
	for _, fd := range fds {
		if path, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(path, dir) {
			n++
		}
	}
	return n
}

// Properties: a Sync covers every file system that has new files, once, through a directory that was open before
// they were made; it is told once; and then no directory is held open.
func TestSyncCoversWhatWasMade(t *testing.T) {
	s := newDeferring()
	root := newRoot(t, s)
	scope := blob.Scope{root}
	syncs := 0
	sync := s.deferred.sys.syncfs
	s.deferred.sys.syncfs = func(dir *os.File) error {
		syncs++
		if left, err := dir.Readdirnames(-1); err != nil || len(left) == 0 {
			t.Errorf("syncfs on %s, which holds %v, %v", dir.Name(), left, err)
		}
		return sync(dir)
	}
	for round := range 3 {
		for i := range 2 * heldMax {
			must(t, s.CreateDeferred(t.Context(), scope, fmt.Sprintf("%s/t-%d/metadata/%d", root.URI, i, round), []byte("x")))
		}
		if n := descriptors(t, root.Dir); n == 0 || n > heldMax {
			t.Errorf("%d directories are held open", n)
		}
		must(t, s.Sync(t.Context()))
		must(t, s.Sync(t.Context()))
		if n := descriptors(t, root.Dir); n != 0 || syncs != round+1 {
			t.Errorf("%d directories open, %d syncs after round %d", n, syncs, round)
		}
	}
	if got := len(files(t, root.Dir)); got != 3*2*heldMax {
		t.Errorf("%d files", got)
	}
}

// Property: a Sync waits for what another has taken, and for files that are being made in its round; what is made
// meanwhile is left for the next.
func TestSyncsTakeTurns(t *testing.T) {
	s := newDeferring()
	root := newRoot(t, s)
	scope := blob.Scope{root}
	entered, leave := make(chan struct{}), make(chan struct{})
	var syncs, at atomic.Int32
	s.deferred.sys.syncfs = func(*os.File) error {
		if at.Add(1) > 1 {
			t.Error("two at a time")
		}
		defer at.Add(-1)
		if syncs.Add(1) == 1 {
			close(entered)
			<-leave
		}
		return nil
	}
	must(t, s.CreateDeferred(t.Context(), scope, root.URI+"/t/1", []byte("x")))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Sync(context.Background()); err != nil {
			t.Error(err)
		}
	})
	<-entered
	must(t, s.CreateDeferred(t.Context(), scope, root.URI+"/t/2", []byte("x"))) // is not held up
	wg.Go(func() {
		if err := s.Sync(context.Background()); err != nil {
			t.Error(err)
		}
	})
	close(leave)
	wg.Wait()
	if n := syncs.Load(); n != 2 {
		t.Errorf("%d syncs; want 2", n)
	}
}

// Properties: a failed Sync says where, whatever the others did, and is not repeated by the next.
func TestSyncFails(t *testing.T) {
	s := newDeferring()
	root := newRoot(t, s)
	s.deferred.sys.syncfs = func(*os.File) error { return syscall.EIO }
	must(t, s.CreateDeferred(t.Context(), blob.Scope{root}, root.URI+"/t/f", []byte("x")))
	if err := s.Sync(t.Context()); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), root.Dir) {
		t.Errorf("Sync: %v; want EIO of %s", err, root.Dir)
	}
	must(t, s.Sync(t.Context()))
}

// Properties: a write that fails, at once or halfway, leaves no file; one that is interrupted or short goes on.
func TestDeferredWriteFails(t *testing.T) {
	for _, cause := range slices.Concat(diskFull, []error{syscall.EIO, syscall.EINTR, nil}) {
		t.Run(fmt.Sprint(cause), func(t *testing.T) {
			s := newDeferring()
			root := newRoot(t, s)
			write, writes := s.deferred.sys.write, 0
			s.deferred.sys.write = func(file int, data []byte) (int, error) {
				switch writes++; writes {
				case 1:
					return write(file, data[:3])
				case 2:
					if cause != nil {
						return -1, cause
					}
				}
				return write(file, data)
			}
			location := root.URI + "/t/metadata/f"
			err := s.CreateDeferred(t.Context(), blob.Scope{root}, location, []byte("0123456789"))
			if cause == nil || cause == syscall.EINTR {
				must(t, err)
				if data, err := s.Read(t.Context(), blob.Scope{root}, location, 100); err != nil || string(data) != "0123456789" {
					t.Errorf("read %q, %v", data, err)
				}
				return
			}
			if !strings.Contains(fmt.Sprint(err), location) || errors.Is(err, blob.ErrFull) != slices.Contains(diskFull, cause) {
				t.Errorf("CreateDeferred: %v", err)
			}
			if left := files(t, root.Dir); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Property: the file lies where its location leads at the time, though the directory was removed, moved away, or
// made again since it was opened, or became a link out of the root.
func TestDeferredInADirectoryThatChanges(t *testing.T) {
	s := newDeferring()
	base := tempDir(t)
	root, err := s.Resolve(t.Context(), blob.DirURI(filepath.Join(base, "root")), blob.S3Options{})
	must(t, err)
	must(t, os.Mkdir(filepath.Join(base, "outside"), 0o777))
	dir := filepath.Join(root.Dir, "t")
	create := func(name string) error {
		return s.CreateDeferred(t.Context(), blob.Scope{root}, root.URI+"/t/"+name, []byte("x"))
	}
	must(t, create("1"))
	must(t, create("2"))
	must(t, os.RemoveAll(dir))
	must(t, create("3"))
	must(t, os.Rename(dir, dir+"-moved"))
	must(t, create("4"))
	must(t, os.Rename(dir, dir+"-moved-too"))
	must(t, os.Mkdir(dir, 0o777))
	must(t, create("5"))
	must(t, os.RemoveAll(dir))
	must(t, os.Symlink("../outside", dir))
	if err := create("6"); !errors.Is(err, blob.ErrOutside) {
		t.Errorf("through a link out of the root: %v", err)
	}
	must(t, os.Remove(dir))
	must(t, os.Symlink("t-moved", dir))
	must(t, create("7"))
	must(t, s.Sync(t.Context()))
	if diff := cmp.Diff([]string{"root/t", "root/t-moved-too/4", "root/t-moved/3", "root/t-moved/7"}, files(t, base)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	must(t, os.RemoveAll(root.Dir))
	if err := create("8"); err == nil || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("in a root that is gone: %v", err)
	}
}

// Property: where no one call makes everything durable, each file is, before the answer.
func TestNotTogether(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	scope, location := blob.Scope{root}, root.URI+"/t/f"
	s.deferred.sys.together = func(*os.File) bool { return false }
	s.deferred.sys.syncfs = func(*os.File) error { t.Error("syncfs"); return nil }
	var steps []string
	s.sys = failing(func(step string) error { steps = append(steps, step); return nil })
	must(t, s.CreateDeferred(t.Context(), scope, location, []byte("x")))
	must(t, s.Sync(t.Context()))
	if diff := cmp.Diff("mkdir mkdir syncDir create write link remove sync syncDir", strings.Join(steps, " ")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if s.Defers(scope, location) {
		t.Error("Defers")
	}
	if n := descriptors(t, root.Dir); n != 0 {
		t.Errorf("%d directories are held open", n)
	}
}

// Property: the file systems of local disks defer, and that of /dev/shm; overlays and those behind a network or FUSE do
// not, nor does that of /proc.
func TestDefers(t *testing.T) {
	for fileSystem, want := range map[int64]bool{
		unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.F2FS_SUPER_MAGIC: true,
		unix.OVERLAYFS_SUPER_MAGIC: false, unix.NFS_SUPER_MAGIC: false, unix.FUSE_SUPER_MAGIC: false,
	} {
		if got := isTogether(fileSystem); got != want {
			t.Errorf("file system %#x: %v", fileSystem, got)
		}
	}
	s := New()
	root := newRoot(t, s)
	if !s.Defers(blob.Scope{{URI: "file:///dev/shm", Dir: "/dev/shm"}}, "file:///dev/shm/f") {
		t.Error("nothing is deferred in /dev/shm")
	}
	if s.Defers(blob.Scope{{URI: "file:///proc", Dir: "/proc"}}, "file:///proc/f") {
		t.Error("files in /proc are deferred")
	}
	if s.Defers(blob.Scope{{URI: "file:///x", Dir: filepath.Join(root.Dir, "missing")}}, "file:///x/f") {
		t.Error("files in a root that is gone are deferred")
	}
}

// Property: nothing is deferred on a kernel whose syncfs keeps errors to itself, or that does not say which it is.
func TestKernelRelease(t *testing.T) {
	for release, want := range map[string]bool{
		"5.8.0": true, "5.8-rc1": true, "5.15.0-91-generic": true, "6.18.44": true, "10.0": true,
		"5.7.19": false, "4.18.0-553.el8": false, "5": false, "": false, "x.y": false,
	} {
		if got := isSince58(release); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}
