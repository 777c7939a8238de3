//go:build !windows

package local

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/landfast/landfast/internal/blob"
)

// Properties: pipes and sockets, as the file, as a directory on the way and as the marker, are refused
// without waiting for their other end, and are not removed.
func TestPipesAndSockets(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	scope := blob.Scope{root}
	pipe, socket := filepath.Join(root.Dir, "pipe"), filepath.Join(root.Dir, "socket")
	must(t, unix.Mkfifo(pipe, 0o666))
	l, err := net.Listen("unix", socket)
	must(t, err)
	defer l.Close()
	for _, name := range []string{"pipe", "socket"} {
		got := attempts(t, s, scope, root.URI+"/"+name)
		if !errors.Is(got["exists"], blob.ErrNotRegular) || !errors.Is(got["delete"], blob.ErrNotRegular) || !errors.Is(got["create"], blob.ErrExists) {
			t.Errorf("%s: %v", name, got)
		}
		// A socket cannot be opened at all.
		if err := got["read"]; err == nil || errors.Is(err, blob.ErrNotFound) || name == "pipe" && !errors.Is(err, blob.ErrNotRegular) {
			t.Errorf("read %s: %v", name, err)
		}
		for _, below := range []string{"/f", "/d/f"} {
			got := attempts(t, s, scope, root.URI+"/"+name+below)
			if got["create"] == nil || !errors.Is(got["read"], blob.ErrNotFound) || got["delete"] != nil {
				t.Errorf("%s%s: %v", name, below, got)
			}
		}
	}
	must(t, os.Rename(pipe, filepath.Join(root.Dir, blob.MarkPrefix+"id")))
	if err := s.CheckMark(t.Context(), root, "id"); !errors.Is(err, blob.ErrNotRegular) {
		t.Errorf("CheckMark of a pipe: %v", err)
	}
	must(t, unix.Mkfifo(pipe, 0o666))
	for call, err := range attempts(t, s, blob.Scope{{URI: root.URI + "/pipe", Dir: pipe}}, root.URI+"/pipe/f") {
		if err == nil {
			t.Errorf("%s in a root that is a pipe: no error", call)
		}
	}
}

// Property: the umask decides who may read files and directories.
func TestUmask(t *testing.T) {
	for _, mask := range []int{0o022, 0o077, 0o027} {
		t.Run(fmt.Sprintf("%03o", mask), func(t *testing.T) {
			s := New()
			root := newRoot(t, s)
			old := syscall.Umask(mask) // of the whole process: no other test of this package runs in parallel
			err := s.Create(t.Context(), blob.Scope{root}, root.URI+"/a/b/f", []byte("x"))
			made, err2 := s.Resolve(t.Context(), root.URI+"/made", blob.S3Options{})
			syscall.Umask(old)
			must(t, errors.Join(err, err2))
			for path, mode := range map[string]os.FileMode{
				filepath.Join(root.Dir, "a"): 0o777, filepath.Join(root.Dir, "a", "b"): 0o777, filepath.Join(root.Dir, "a", "b", "f"): 0o666, made.Dir: 0o777,
			} {
				info, err := os.Stat(path)
				must(t, err)
				if got, want := info.Mode().Perm(), mode&^os.FileMode(mask); got != want {
					t.Errorf("%s: %v, want %v", path, got, want)
				}
			}
		})
	}
}

// Property: a file that claims to be huge is refused before room is made for it.
func TestHugeSparseFile(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	f, err := os.Create(filepath.Join(root.Dir, "f"))
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(1<<43))
	if _, err := s.Read(t.Context(), blob.Scope{root}, root.URI+"/f", 1<<20); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("Read: %v; want ErrTooLarge", err)
	}
}
