package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A copy by path is the same catalog as a copy by the store that has it open,
// before and after that is closed; it changes nothing, and what is no catalog is
// not copied.
func TestBackupByPath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "catalog.db")
	s := openStore(t, path, Options{})
	if err := s.Apply(t.Context(), newBatch("acknowledged")); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"open", "closed"} {
		dest := filepath.Join(dir, when+".db")
		if err := Backup(t.Context(), path, dest); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		c := openStore(t, dest, Options{})
		if !c.exists(t, "acknowledged") {
			t.Errorf("%s: the copy lacks a record", when)
		}
		if err := Backup(t.Context(), path, dest); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: over an existing file: %v", when, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no catalog ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{garbage, empty} {
		dest := filepath.Join(dir, "of-"+filepath.Base(from))
		if err := Backup(t.Context(), from, dest); !errors.Is(err, ErrNotCatalog) {
			t.Errorf("of %s: %v", from, err)
		}
		if _, err := os.Lstat(dest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of %s: there is a copy: %v", from, err)
		}
	}
	if err := Backup(t.Context(), filepath.Join(dir, "missing.db"), filepath.Join(dir, "x")); err == nil {
		t.Error("a missing file was copied")
	}
	if _, err := os.Lstat(filepath.Join(dir, "missing.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the missing file was made: %v", err)
	}
}
