package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
)

// listed are the files that List finds below a directory of the root, with what is special about them.
func listed(t *testing.T, s *Store, root blob.Root, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	must(t, s.List(t.Context(), blob.Scope{root}, root.URI+dir, func(e blob.Entry) error {
		found[strings.TrimPrefix(e.Location, root.URI)] = e.Temporary
		return nil
	}))
	return found
}

// Properties: links are neither listed nor followed, and what is reached by one is refused; files whose names no location can hold are listed.
func TestListLinks(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	must(t, s.Create(t.Context(), blob.Scope{root}, root.URI+"/t/d/f", nil))
	for name, target := range map[string]string{
		"t/file": "d/f", "t/dir": "d", "t/up": "..", "t/self": ".", "t/dangling": "nowhere", "link": "t", "out": "../elsewhere", "absolute": root.Dir,
	} {
		must(t, os.Symlink(target, filepath.Join(root.Dir, name)))
	}
	must(t, os.WriteFile(filepath.Join(root.Dir, "t", "a b%20é"), nil, 0o600))
	want := map[string]bool{"/t/d/f": false, "/t/a b%20é": false}
	for _, dir := range []string{"", "/t"} {
		if diff := cmp.Diff(want, listed(t, s, root, dir)); diff != "" {
			t.Errorf("List %q (-want +got):\n%s", dir, diff)
		}
	}
	for _, dir := range []string{"/link", "/link/d", "/t/dir", "/t/file", "/t/up/t", "/out", "/absolute/t"} {
		err := s.List(t.Context(), blob.Scope{root}, root.URI+dir, func(e blob.Entry) error {
			t.Errorf("List %s: %s", dir, e.Location)
			return nil
		})
		if !errors.Is(err, blob.ErrNotRegular) {
			t.Errorf("List %s: %v; want ErrNotRegular", dir, err)
		}
	}
}

// Properties: what an upload that was cut off has left is listed as temporary, and Delete removes it.
func TestListTemporaries(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	scope := blob.Scope{root}
	must(t, s.Create(t.Context(), scope, root.URI+"/t/f", nil))
	s.sys.remove = func(*os.Root, string) error { return syscall.EIO } // nor can the rest be cleared away
	s.sys.link = func(*os.Root, string, string) error { return syscall.EIO }
	if err := s.Create(t.Context(), scope, root.URI+"/t/g", nil); err == nil {
		t.Fatal("created")
	}
	s.sys = osCalls
	found := listed(t, s, root, "/t")
	left := ""
	for location, temporary := range found {
		if temporary {
			left = location
		}
	}
	if len(found) != 2 || left == "" {
		t.Fatalf("listed %v; want a file and a temporary one", found)
	}
	must(t, s.Delete(t.Context(), scope, root.URI+left))
	if diff := cmp.Diff(map[string]bool{"/t/f": false}, listed(t, s, root, "/t")); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// Property: a root that cannot be opened is an error, and not an empty one.
func TestListWithoutRoot(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	must(t, os.Remove(root.Dir))
	for _, dir := range []string{"", "/t"} {
		if err := s.List(t.Context(), blob.Scope{root}, root.URI+dir, func(blob.Entry) error { return nil }); err == nil || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("List %q: %v", dir, err)
		}
	}
}
