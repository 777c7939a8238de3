package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
)

// Properties: whichever call of the operating system fails, the answer names the location and the right error, no file is left, and
// a second attempt succeeds. The table prints every step of a Create that makes a directory.
func TestEveryStepFails(t *testing.T) {
	type fault struct {
		step string
		nth  int // which call of the step fails, from 1
	}
	causes := slices.Concat(diskFull, []error{syscall.EROFS, syscall.EACCES, syscall.EIO})
	for _, f := range []fault{
		{"mkdir", 1}, {"mkdir", 2}, {"create", 1}, {"write", 1}, {"sync", 1}, {"link", 1}, {"remove", 1},
		{"syncDir", 1}, {"syncDir", 2}, {"syncDir", 3},
	} {
		for _, cause := range causes {
			t.Run(fmt.Sprintf("%s %d: %v", f.step, f.nth, cause), func(t *testing.T) {
				s := New()
				root := newRoot(t, s)
				calls := 0
				fail := func(step string) error {
					if step == f.step {
						if calls++; calls == f.nth {
							return &fs.PathError{Op: step, Path: "x", Err: cause}
						}
					}
					return nil
				}
				s.sys = failing(fail)
				location := root.URI + "/t/metadata/f"
				err := s.Create(t.Context(), blob.Scope{root}, location, []byte("0123456789"))
				if err == nil || !strings.Contains(err.Error(), location) {
					t.Fatalf("Create: %v; want an error that names the file", err)
				}
				if got, want := errors.Is(err, blob.ErrFull), slices.Contains(diskFull, cause); got != want {
					t.Errorf("Create: %v; is ErrFull: %v, want %v", err, got, want)
				}
				if errors.Is(err, blob.ErrExists) || errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrOutside) {
					t.Errorf("Create: %v, which says something else", err)
				}
				if left := files(t, root.Dir); left != nil {
					t.Errorf("left behind: %v", left)
				}
				must(t, s.Create(t.Context(), blob.Scope{root}, location, []byte("second")))
				if diff := cmp.Diff([]string{"t/metadata/f"}, files(t, root.Dir)); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Property: a name is given only to what is whole, the answer only to what is durable, and nothing is synced that need not be.
func TestOrderOfSteps(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	var steps []string
	s.sys = failing(func(step string) error { steps = append(steps, step); return nil })
	file := "create write link remove sync syncDir"
	if namesClosedOnly {
		file = "create write sync link remove syncDir"
	}
	for _, c := range []struct{ location, want string }{
		{"/t/metadata/1", "mkdir syncDir mkdir syncDir " + file},
		{"/t/metadata/2", file},
		{"/t/data/1", "mkdir mkdir syncDir " + file},
	} {
		steps = nil
		must(t, s.Create(t.Context(), blob.Scope{root}, root.URI+c.location, []byte("x")))
		if diff := cmp.Diff(c.want, strings.Join(steps, " ")); diff != "" {
			t.Errorf("create %s (-want +got):\n%s", c.location, diff)
		}
	}
}

// failing is the operating system with a say in whether each step works. A write that fails has written half.
func failing(fail func(step string) error) calls {
	return calls{
		mkdir: func(in *os.Root, path string) error {
			if err := fail("mkdir"); err != nil {
				return err
			}
			return osCalls.mkdir(in, path)
		},
		create: func(in *os.Root, name string) (*os.File, error) {
			if err := fail("create"); err != nil {
				return nil, err
			}
			return osCalls.create(in, name)
		},
		write: func(f *os.File, data []byte) error {
			if err := fail("write"); err != nil {
				osCalls.write(f, data[:len(data)/2])
				return err
			}
			return osCalls.write(f, data)
		},
		sync: func(f *os.File) error {
			if err := fail("sync"); err != nil {
				return err
			}
			return osCalls.sync(f)
		},
		link: func(in *os.Root, from, to string) error {
			if err := fail("link"); err != nil {
				return err
			}
			return osCalls.link(in, from, to)
		},
		rename: func(in *os.Root, from, to string) error {
			if err := fail("rename"); err != nil {
				return err
			}
			return osCalls.rename(in, from, to)
		},
		remove: func(in *os.Root, name string) error {
			if err := fail("remove"); err != nil {
				return err
			}
			return osCalls.remove(in, name)
		},
		syncDir: func(d *os.File) error {
			if err := fail("syncDir"); err != nil {
				return err
			}
			return osCalls.syncDir(d)
		},
	}
}

// Properties: on a file system without hard links, one creator wins too and nothing else is left.
func TestWithoutHardLinks(t *testing.T) {
	for _, cause := range []error{syscall.EPERM, syscall.ENOSYS, errors.ErrUnsupported} {
		s := New()
		s.sys.link = func(*os.Root, string, string) error { return &os.LinkError{Op: "linkat", Err: cause} }
		root := newRoot(t, s)
		scope := blob.Scope{root}
		const creators = 8
		errs := make(chan error, creators)
		for i := range creators {
			go func() { errs <- s.Create(context.Background(), scope, root.URI+"/t/f", fmt.Append(nil, "body ", i)) }()
		}
		won := 0
		for range creators {
			if err := <-errs; err == nil {
				won++
			} else if !errors.Is(err, blob.ErrExists) {
				t.Errorf("%v: Create: %v; want ErrExists", cause, err)
			}
		}
		data, err := s.Read(t.Context(), scope, root.URI+"/t/f", 100)
		if won != 1 || err != nil || !bytes.HasPrefix(data, []byte("body ")) {
			t.Errorf("%v: %d won; read %q, %v", cause, won, data, err)
		}
		if diff := cmp.Diff([]string{"t/f"}, files(t, root.Dir)); diff != "" {
			t.Errorf("%v: files (-want +got):\n%s", cause, diff)
		}
	}
}

// Property: a context that ends during the upload leaves nothing.
func TestContextEndsDuringCreate(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	s.sys = failing(func(step string) error {
		if step == "write" {
			cancel()
		}
		return nil
	})
	if err := s.Create(ctx, blob.Scope{root}, root.URI+"/t/f", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Create: %v; want context.Canceled", err)
	}
	if left := files(t, root.Dir); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// Properties: whichever call of the operating system fails during a Rewrite, the answer names the location and the right error, the
// file has its old bytes or all of the new ones, nothing else is left, and a second attempt succeeds.
func TestEveryStepOfRewriteFails(t *testing.T) {
	for _, step := range []string{"create", "write", "sync", "rename", "syncDir"} {
		for _, cause := range slices.Concat(diskFull, []error{syscall.EIO}) {
			t.Run(fmt.Sprintf("%s: %v", step, cause), func(t *testing.T) {
				s := New()
				root := newRoot(t, s)
				scope, location := blob.Scope{root}, root.URI+"/t/metadata/f"
				must(t, s.Create(t.Context(), scope, location, []byte("short")))
				s.sys = failing(func(at string) error {
					if at == step {
						return &fs.PathError{Op: step, Path: "x", Err: cause}
					}
					return nil
				})
				err := s.Rewrite(t.Context(), scope, location, []byte("the whole"))
				if err == nil || !strings.Contains(err.Error(), location) {
					t.Fatalf("Rewrite: %v; want an error that names the file", err)
				}
				if got, want := errors.Is(err, blob.ErrFull), slices.Contains(diskFull, cause); got != want {
					t.Errorf("Rewrite: %v; is ErrFull: %v, want %v", err, got, want)
				}
				want := "short"
				if step == "syncDir" {
					want = "the whole"
				}
				if data, err := s.Read(t.Context(), scope, location, 100); err != nil || string(data) != want {
					t.Errorf("there is %q, %v; want %q", data, err, want)
				}
				s.sys = osCalls
				must(t, s.Rewrite(t.Context(), scope, location, []byte("the whole")))
				if diff := cmp.Diff([]string{"t/metadata/f"}, files(t, root.Dir)); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Property: the new bytes are durable before they get the name, and the name is durable before the answer.
func TestOrderOfRewrite(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	var steps []string
	s.sys = failing(func(step string) error { steps = append(steps, step); return nil })
	must(t, s.Rewrite(t.Context(), blob.Scope{root}, root.URI+"/t/f", []byte("x")))
	if diff := cmp.Diff("mkdir syncDir create write sync rename syncDir", strings.Join(steps, " ")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
