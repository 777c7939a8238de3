package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T, path string) (*dataDir, error) {
	t.Helper()
	d, err := openDataDir(path)
	if err == nil {
		t.Cleanup(func() {
			if err := d.close(); err != nil && !strings.Contains(err.Error(), "already closed") {
				t.Error(err)
			}
		})
	}
	return d, err
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDataDirIsMade: a new directory has the parts that doc.go lists.
func TestDataDirIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d, err := open(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := filepath.EvalSymlinks(path); err != nil || d.path != want {
		t.Errorf("path %s, want %s (%v)", d.path, want, err)
	}
	if got, want := d.warehouseRoot("x"), "file://"+d.path+"/warehouses/x"; got != want {
		t.Errorf("root %s, want %s", got, want)
	}
	if info, err := os.Stat(filepath.Join(path, "warehouses")); err != nil || !info.IsDir() {
		t.Errorf("warehouses: %v %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(path, "VERSION")); err == nil || d.served {
		t.Error("a directory without a catalog is called served")
	}
	if err := d.markServed(); err != nil {
		t.Fatal(err)
	}
	version, err := os.ReadFile(filepath.Join(path, "VERSION"))
	if err != nil || string(version) != "1\n" {
		t.Errorf("VERSION %q, %v", version, err)
	}
}

// TestDataDirIsRefused lists what cannot be a data directory. Each refusal names the remedy and makes nothing.
func TestDataDirIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		path string // below a fresh directory
		make func(t *testing.T, path string)
		want string
	}{
		{"space", "my data", nil, "' ', which some clients escape and some do not; choose a path of letters"},
		{"percent", "a%20b", nil, "'%', which some clients escape"},
		{"hash", "a#b", nil, "'#', which some clients escape"},
		{"question mark", "a?b", nil, "'?', which some clients escape"},
		{"backslash", `a\b`, nil, `'\\', which some clients escape`},
		{"not ASCII", "é", nil, "is not ASCII"},
		{"below", "my data/x/y", nil, "choose a path"},
		{"link to it", "link", func(t *testing.T, path string) {
			target := filepath.Join(filepath.Dir(path), "my data")
			if err := os.Mkdir(target, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		}, "choose a path"},
		{"file", "file", func(t *testing.T, path string) { write(t, path, "") }, "it is a file: name a directory with --data"},
		{"below a file", "file/x", func(t *testing.T, path string) { write(t, filepath.Dir(path), "") }, "not a directory; it must be a directory in which this user can write"},
		{"loop", "loop", func(t *testing.T, path string) {
			if err := os.Symlink(path, path); err != nil {
				t.Fatal(err)
			}
		}, "it must be a directory in which this user can write"},
		{"file as warehouses", "d", func(t *testing.T, path string) { mkdirWith(t, path, "warehouses", "") }, "cannot be used: mkdir"},
		{"newer", "d", func(t *testing.T, path string) { mkdirWith(t, path, "VERSION", "2\nwhatever comes\n") }, "has version 2, and this landfast knows versions up to 1; run the landfast that wrote it, or a newer one"},
		{"damaged version", "d", func(t *testing.T, path string) { mkdirWith(t, path, "VERSION", "one\n") }, `its first line is "one" and not a version`},
		{"version 0", "d", func(t *testing.T, path string) { mkdirWith(t, path, "VERSION", "0\n") }, "is damaged"},
		{"empty version", "d", func(t *testing.T, path string) { mkdirWith(t, path, "VERSION", "") }, "is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(plainTempDir(t), c.path)
			if c.make != nil {
				c.make(t, path)
			}
			_, err := open(t, path)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v\nwant %s", err, c.want)
			}
			if _, err := os.Lstat(path); c.make == nil && err == nil {
				t.Error("the directory was made all the same")
			}
		})
	}
}

// plainTempDir is a temporary directory whose own path needs no escaping, whatever the test's name.
func plainTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "landfast-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func mkdirWith(t *testing.T, path, file, content string) {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, file), content)
}

// TestDataDirHasOneHolder: the second is refused and told who is first, whether or
// not that one serves yet, and by whatever name it comes.
func TestDataDirHasOneHolder(t *testing.T) {
	tmp := plainTempDir(t)
	path := filepath.Join(tmp, "data")
	first, err := open(t, path)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(tmp, "other-name")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	me := fmt.Sprintf("is in use by process %d", os.Getpid())
	if _, err := open(t, link); err == nil || !strings.Contains(err.Error(), me+"; stop that one first") {
		t.Errorf("got %v", err)
	}
	if err := first.lock.describe("http://127.0.0.1:4711"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path); err == nil || !strings.Contains(err.Error(), me+", which serves http://127.0.0.1:4711; stop") {
		t.Errorf("got %v", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path); err != nil {
		t.Errorf("after it was given up: %v", err)
	}
}

// TestDataDirThroughALink: what counts is where the links lead.
func TestDataDirThroughALink(t *testing.T) {
	tmp := plainTempDir(t)
	spaced := filepath.Join(tmp, "a b")
	real := filepath.Join(tmp, "real")
	for _, err := range []error{os.Mkdir(spaced, 0o755), os.Mkdir(real, 0o755), os.Symlink(real, filepath.Join(spaced, "link"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := open(t, filepath.Join(spaced, "link", "data"))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := filepath.EvalSymlinks(filepath.Join(real, "data")); err != nil || d.path != want {
		t.Errorf("path %s, want %s (%v)", d.path, want, err)
	}
}
