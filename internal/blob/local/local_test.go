package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
)

// tempDir is t.TempDir without the characters of a test's name that no location may have, and without links.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "blob-local-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newRoot(t testing.TB, s *Store) blob.Root {
	t.Helper()
	root, err := s.Resolve(t.Context(), blob.DirURI(tempDir(t)), blob.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// files lists all that is below dir but directories.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			below, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(below))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// attempts runs every method on the location. None may take long: nothing here may wait for another process.
func attempts(t *testing.T, s *Store, scope blob.Scope, location string) map[string]error {
	t.Helper()
	got := make(chan map[string]error, 1)
	go func() {
		_, read := s.Read(context.Background(), scope, location, 1<<20)
		_, exists := s.Exists(context.Background(), scope, location)
		got <- map[string]error{
			"read": read, "exists": exists,
			"create": s.Create(context.Background(), scope, location, []byte("planted")),
			"delete": s.Delete(context.Background(), scope, location),
		}
	}()
	select {
	case errs := <-got:
		return errs
	case <-time.After(20 * time.Second):
		t.Fatalf("a call on %s does not return", location)
		return nil
	}
}

// Properties: no link leads a call out of its root, be it a link to a file or to a directory, relative or absolute, a chain,
// or the last part or an inner one; nothing outside is read, made or removed; the error is ErrOutside. Links that stay inside work.
func TestLinks(t *testing.T) {
	s := New()
	base := tempDir(t)
	outside := filepath.Join(base, "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "dir"), 0o777))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o666))
	root, err := s.Resolve(t.Context(), blob.DirURI(filepath.Join(base, "root")), blob.S3Options{})
	must(t, err)
	scope := blob.Scope{root}
	must(t, s.Create(t.Context(), scope, root.URI+"/in/file", []byte("inside")))
	for name, target := range map[string]string{
		"file":          "../outside/secret",
		"absfile":       filepath.Join(outside, "secret"),
		"dir":           "../outside",
		"absdir":        outside,
		"chain":         "chain2",
		"chain2":        "in/../../outside",
		"up":            "..",
		"self":          ".",
		"loop":          "loop",
		"abs-inside":    filepath.Join(root.Dir, "in"),
		"dangling-out":  "../outside/not-yet",
		"inside":        "in",
		"inside-file":   "in/file",
		"inside-detour": "../root/in",
	} {
		must(t, os.Symlink(target, filepath.Join(root.Dir, name)))
	}
	before := files(t, base)

	for _, path := range []string{
		"dir/secret", "absdir/secret", "chain/secret", "up/outside/secret", "dir/new", "dir/dir/new", "dir/newdir/new", "absdir/new", "up/new", "abs-inside/file", "abs-inside/new",
		"inside-detour/file", "self/up/outside/secret",
	} {
		for call, err := range attempts(t, s, scope, root.URI+"/"+path) {
			var e *blob.LocationError
			if !errors.Is(err, blob.ErrOutside) || !errors.As(err, &e) {
				t.Errorf("%s %s: %v; want ErrOutside", call, path, err)
			}
		}
	}
	// A link as the last part: reading follows and is stopped, creating finds the name taken.
	for _, path := range []string{"file", "absfile", "dangling-out"} {
		if _, err := s.Read(t.Context(), scope, root.URI+"/"+path, 100); !errors.Is(err, blob.ErrOutside) {
			t.Errorf("read %s: %v; want ErrOutside", path, err)
		}
		if _, err := s.Exists(t.Context(), scope, root.URI+"/"+path); !errors.Is(err, blob.ErrOutside) {
			t.Errorf("exists %s: %v; want ErrOutside", path, err)
		}
		if err := s.Create(t.Context(), scope, root.URI+"/"+path, []byte("planted")); !errors.Is(err, blob.ErrExists) {
			t.Errorf("create %s: %v; want ErrExists", path, err)
		}
	}
	if _, err := s.Read(t.Context(), scope, root.URI+"/loop/f", 100); err == nil || errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a loop of links: %v", err)
	}
	if diff := cmp.Diff(before, files(t, base)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}

	// Inside, links work; deleting removes the link and not what it leads to.
	for _, path := range []string{"inside/file", "inside-file", "self/in/file"} {
		if data, err := s.Read(t.Context(), scope, root.URI+"/"+path, 100); err != nil || string(data) != "inside" {
			t.Errorf("read %s: %q, %v", path, data, err)
		}
	}
	must(t, s.Create(t.Context(), scope, root.URI+"/inside/new/f", []byte("x")))
	must(t, s.Delete(t.Context(), scope, root.URI+"/absfile"))
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(root.Dir, "absfile")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link is still there: %v", err)
	}
}

// Properties: while somebody swaps what a name means, from a place inside the root to one outside and back, no read returns
// outside bytes and no file appears or disappears outside. The name always means one of the two.
func TestLinksSwappedDuringCalls(t *testing.T) {
	swapDuringCalls(t, func(t *testing.T, root string) (swap func()) {
		a, next := filepath.Join(root, "a"), filepath.Join(root, "next")
		must(t, os.Rename(a, filepath.Join(root, "inside")))
		must(t, os.Symlink("inside", a))
		to := "inside"
		return func() {
			if to == "inside" {
				to = "../outside"
			} else {
				to = "inside"
			}
			os.Symlink(to, next)
			os.Rename(next, a)
		}
	})
}

// swapDuringCalls reads root/a/f, and makes and deletes files beside it, while another goroutine calls swap.
func swapDuringCalls(t *testing.T, prepare func(t *testing.T, root string) (swap func())) {
	t.Helper()
	s := New()
	base := tempDir(t)
	outside := filepath.Join(base, "outside")
	must(t, os.Mkdir(outside, 0o777))
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o666))
	must(t, os.WriteFile(filepath.Join(outside, "g"), []byte("precious"), 0o666))
	root, err := s.Resolve(t.Context(), blob.DirURI(filepath.Join(base, "root")), blob.S3Options{})
	must(t, err)
	scope := blob.Scope{root}
	must(t, s.Create(t.Context(), scope, root.URI+"/a/f", []byte("inside")))
	swap := prepare(t, root.Dir)

	stop, swaps := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				swaps <- n
				return
			default:
				swap()
			}
		}
	}()
	const enough, tries = 50, 20000
	var inside, refused, made int
	for i := 0; i < tries && min(inside, refused, made) < enough; i++ {
		data, err := s.Read(t.Context(), scope, root.URI+"/a/f", 100)
		switch {
		case err == nil && string(data) != "inside":
			t.Errorf("read %q from outside", data)
		case err == nil:
			inside++
		case errors.Is(err, blob.ErrOutside):
			refused++
		}
		if err := s.Create(t.Context(), scope, fmt.Sprintf("%s/a/new-%d", root.URI, i), []byte("x")); err == nil {
			made++
		}
		s.Delete(t.Context(), scope, root.URI+"/a/g")
	}
	close(stop)
	t.Logf("%d swaps; %d reads inside, %d refused; %d files made", <-swaps, inside, refused, made)
	if min(inside, refused, made) < enough {
		t.Error("the calls and the swaps did not meet")
	}
	if diff := cmp.Diff([]string{"f", "g"}, files(t, outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
}

// Properties: what a removed and newly made directory was must not count for the new one; a file survives its directory's return.
func TestDirectoryIsMadeAgain(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	scope := blob.Scope{root}
	var synced []string
	s.sys.syncDir = func(d *os.File) error {
		below, _ := filepath.Rel(root.Dir, d.Name())
		synced = append(synced, filepath.ToSlash(below))
		return syncDir(d)
	}
	create := func(path string, want ...string) {
		t.Helper()
		synced = nil
		must(t, s.Create(t.Context(), scope, root.URI+"/"+path, []byte("x")))
		if diff := cmp.Diff(want, synced); diff != "" {
			t.Errorf("create %s: synced (-want +got):\n%s", path, diff)
		}
	}
	create("n/t/metadata/1", ".", "n", "n/t", "n/t/metadata")
	create("n/t/metadata/2", "n/t/metadata")
	create("n/t2/metadata/1", "n", "n/t2", "n/t2/metadata")
	create("3", ".")
	// Keep the old directory, so that the new one is not given its inode.
	must(t, os.Rename(filepath.Join(root.Dir, "n", "t"), filepath.Join(root.Dir, "old")))
	must(t, os.MkdirAll(filepath.Join(root.Dir, "n", "t", "metadata"), 0o777))
	create("n/t/metadata/1", "n", "n/t", "n/t/metadata")
	must(t, os.RemoveAll(filepath.Join(root.Dir, "n")))
	create("n/t2/metadata/1", ".", "n", "n/t2", "n/t2/metadata")
	// Another process knows nothing, so it relies on nothing.
	s2 := New()
	s2.sys = s.sys
	s = s2
	create("n/t2/metadata/2", ".", "n", "n/t2", "n/t2/metadata")
}

// Property: what is remembered of directories is bounded.
func TestDurableDirsAreBounded(t *testing.T) {
	self, err := os.Open(tempDir(t))
	must(t, err)
	defer self.Close()
	var d durableDirs
	for i := range 3 * durableMax {
		key := dirKey{"r", fmt.Sprint(i)}
		must(t, d.add(key, self))
		if !d.has(key, self) || len(d.seen) > durableMax {
			t.Fatalf("after %d: %d remembered", i, len(d.seen))
		}
	}
}

// Properties: a missing root is never a missing file, and its error says what to look at.
func TestRootIsGone(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	scope, location := blob.Scope{root}, root.URI+"/t/f"
	must(t, s.Create(t.Context(), scope, location, []byte("x")))
	for _, becomes := range []func(){
		func() { must(t, os.RemoveAll(root.Dir)) },
		func() { must(t, os.WriteFile(root.Dir, nil, 0o666)) },
	} {
		becomes()
		for call, err := range attempts(t, s, scope, location) {
			if err == nil || errors.Is(err, blob.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "mounted") {
				t.Errorf("%s: %v; want an error about the root", call, err)
			}
		}
		if err := s.Mark(t.Context(), root, "id"); err == nil {
			t.Error("Mark made the root again")
		}
	}
	must(t, os.Remove(root.Dir))
	if err := s.CheckMark(t.Context(), root, "id"); !errors.Is(err, blob.ErrMarkMissing) {
		t.Errorf("CheckMark: %v; want ErrMarkMissing", err)
	}
}

// Properties: directories in a file's place and files in a directory's place are refused by name.
func TestWrongKind(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	scope := blob.Scope{root}
	must(t, os.MkdirAll(filepath.Join(root.Dir, "dir"), 0o777))
	must(t, s.Create(t.Context(), scope, root.URI+"/file", []byte("x")))
	got := attempts(t, s, scope, root.URI+"/dir")
	for call, want := range map[string]error{"read": blob.ErrNotRegular, "exists": blob.ErrNotRegular, "create": blob.ErrExists, "delete": blob.ErrNotRegular} {
		if !errors.Is(got[call], want) {
			t.Errorf("%s of a directory: %v; want %v", call, got[call], want)
		}
	}
	got = attempts(t, s, scope, root.URI+"/file/below/f")
	if err := got["create"]; !errors.Is(err, blob.ErrBelowFile) {
		t.Errorf("create below a file: %v", err)
	}
	if got["delete"] != nil || got["exists"] != nil || !errors.Is(got["read"], blob.ErrNotFound) {
		t.Errorf("below a file: %v", got)
	}
	if diff := cmp.Diff([]string{"file"}, files(t, root.Dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Property: the limit holds for what is read and not for what the size was before.
func TestFileGrowsWhileRead(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	f, err := os.Create(filepath.Join(root.Dir, "f"))
	must(t, err)
	defer f.Close()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for range 1 << 14 {
			select {
			case <-stop:
				return
			default:
				f.Write(bytes.Repeat([]byte("x"), 1000))
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	const limit = 1 << 20
	for range 1 << 20 {
		data, err := s.Read(t.Context(), blob.Scope{root}, root.URI+"/f", limit)
		if len(data) > limit {
			t.Fatalf("read %d bytes", len(data))
		}
		if errors.Is(err, blob.ErrTooLarge) {
			return
		}
		must(t, err)
	}
	t.Fatal("the file never became too large")
}

func TestResolve(t *testing.T) {
	s := New()
	base := tempDir(t)
	uri := blob.DirURI(base)
	real := filepath.Join(base, "real")
	must(t, os.Mkdir(real, 0o777))
	must(t, os.Mkdir(filepath.Join(base, "has space"), 0o777))
	must(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o666))
	for name, target := range map[string]string{"link": "real", "abslink": real, "dangling": "nowhere", "loop": "loop", "spaced": "has space"} {
		must(t, os.Symlink(target, filepath.Join(base, name)))
	}
	bare := strings.TrimPrefix(uri, "file://")
	for _, c := range []struct {
		uri  string
		want blob.Root
	}{
		{uri + "/real", blob.Root{URI: uri + "/real", Dir: real}},
		{"file:" + bare + "/real/", blob.Root{URI: uri + "/real", Dir: real}},
		{"file://localhost" + bare + "/real", blob.Root{URI: uri + "/real", Dir: real}},
		{uri + "/link", blob.Root{URI: uri + "/link", Dir: real}},
		{uri + "/abslink", blob.Root{URI: uri + "/abslink", Dir: real}},
		{uri + "/link/made/deep", blob.Root{URI: uri + "/link/made/deep", Dir: filepath.Join(real, "made", "deep")}},
	} {
		got, err := s.Resolve(t.Context(), c.uri, blob.S3Options{})
		if err != nil {
			t.Errorf("%s: %v", c.uri, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.uri, diff)
		}
		if info, err := os.Stat(got.Dir); err != nil || !info.IsDir() {
			t.Errorf("%s: no directory: %v", c.uri, err)
		}
	}
	for _, bad := range []string{uri + "/file", uri + "/file/below", uri + "/dangling", uri + "/loop", uri + "/spaced", uri + "/has space", "file:///", "s3://bucket/key"} {
		if got, err := s.Resolve(t.Context(), bad, blob.S3Options{}); err == nil {
			t.Errorf("%s: resolved to %v", bad, got)
		}
	}

	// Two spellings of one directory have one canonical form.
	a, _ := s.Resolve(t.Context(), uri+"/real", blob.S3Options{})
	b, _ := s.Resolve(t.Context(), uri+"/link", blob.S3Options{})
	scope := blob.Scope{a, b}
	must(t, s.Create(t.Context(), scope, b.URI+"/t/f", []byte("x")))
	data, err := s.Read(t.Context(), scope, a.URI+"/t/f", 10)
	if err != nil || string(data) != "x" {
		t.Errorf("through the other root: %q, %v", data, err)
	}
	for _, location := range []string{a.URI + "/t", b.URI + "/t/"} {
		if got, err := scope.Canonical(location); err != nil || got != a.URI+"/t" {
			t.Errorf("Canonical(%s): %s, %v", location, got, err)
		}
	}
}

func TestMarkerOfAnotherKind(t *testing.T) {
	s := New()
	root := newRoot(t, s)
	mark := filepath.Join(root.Dir, blob.MarkPrefix+"id")
	for _, c := range []struct {
		name string
		make func() error
		want error
	}{
		{"empty", func() error { return os.WriteFile(mark, nil, 0o666) }, nil},
		{"directory", func() error { return os.Mkdir(mark, 0o777) }, blob.ErrNotRegular},
		{"link", func() error { return os.Symlink("/etc/passwd", mark) }, blob.ErrNotRegular},
	} {
		must(t, c.make())
		if err := s.CheckMark(t.Context(), root, "id"); !errors.Is(err, c.want) {
			t.Errorf("%s: CheckMark: %v; want %v", c.name, err, c.want)
		}
		if err := s.Mark(t.Context(), root, "id"); !errors.Is(err, c.want) {
			t.Errorf("%s: Mark: %v; want %v", c.name, err, c.want)
		}
		must(t, os.Remove(mark))
	}
}

// Delete takes the names that clients give to data files, and takes Hadoop's checksum file
// with the file that it is of.
func TestDeleteDataFiles(t *testing.T) {
	s := New()
	root, err := s.Resolve(t.Context(), "file://"+t.TempDir(), blob.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root.Dir, "data", "ts=2020-01-01T00%3A00", "city=New York é")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a?#.parquet", ".a?#.parquet.crc", "b", ".c.crc"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.Delete(t.Context(), blob.Scope{root}, root.URI+"/data//ts=2020-01-01T00%3A00/city=New York é/a?#.parquet"); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != ".c.crc" || left[1].Name() != "b" {
		t.Errorf("%v %v", left, err)
	}
}
