package embedded

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/landfast/landfast/internal/store"
)

// seeded is the path of a closed catalog with some records.
func seeded(t *testing.T, records int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "catalog.db")
	s := openStore(t, path, Options{})
	for i := range records {
		b := newBatch(fmt.Sprint(i))
		b.Writes[0].Value = bytes.Repeat([]byte("v"), 1000)
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// script runs statements on a database file that is no store.
func script(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, offset int64, garbage []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(garbage, offset); err != nil {
		t.Fatal(err)
	}
}

// A file that cannot be used is refused with its path, the reason and a way out,
// and is left as it was.
func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		path   func(t *testing.T) string
		want   error // nil: any
		reason string
		remedy string
	}{
		"a newer schema": {
			path: func(t *testing.T) string {
				path := seeded(t, 1)
				script(t, path, "UPDATE meta SET value = '2' WHERE key = 'schema'")
				return path
			},
			want: ErrNewer, reason: "2, not 1", remedy: "run the version that wrote it",
		},
		"a schema that is no number": {
			path: func(t *testing.T) string {
				path := seeded(t, 1)
				script(t, path, "UPDATE meta SET value = 'x' WHERE key = 'schema'")
				return path
			},
			want: ErrNotCatalog, reason: `"x"`, remedy: "restore a backup",
		},
		"garbage": {
			path: func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "catalog.db")
				if err := os.WriteFile(path, bytes.Repeat([]byte("garbage "), 1000), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			},
			want: ErrNotCatalog, reason: "not a database", remedy: "restore a backup",
		},
		"a damaged header": {
			path: func(t *testing.T) string {
				path := seeded(t, 100)
				overwrite(t, path, 0, make([]byte, 100))
				return path
			},
			want: ErrNotCatalog, reason: "not a database", remedy: "restore a backup",
		},
		"a damaged first page": {
			path: func(t *testing.T) string {
				path := seeded(t, 100)
				overwrite(t, path, 100, bytes.Repeat([]byte{0xa5}, 3900))
				return path
			},
			want: ErrNotCatalog, reason: "malformed", remedy: "restore a backup",
		},
		"a file that was cut": {
			path: func(t *testing.T) string {
				path := seeded(t, 100)
				if err := os.Truncate(path, 4096); err != nil {
					t.Fatal(err)
				}
				return path
			},
			want: ErrNotCatalog, reason: "malformed", remedy: "restore a backup",
		},
		"another program's database": {
			path: func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "catalog.db")
				script(t, path, "CREATE TABLE records (id)")
				return path
			},
			want: ErrNotCatalog, reason: "another program", remedy: "choose another data directory",
		},
		"a directory": {
			path: func(t *testing.T) string { return t.TempDir() },
			want: ErrNotCatalog, reason: "no regular file", remedy: "choose another data directory",
		},
		"a missing directory": {
			path: func(t *testing.T) string { return filepath.Join(t.TempDir(), "missing", "catalog.db") },
			want: os.ErrNotExist, reason: "no such file", remedy: "the directory must exist",
		},
		"a log without its file": {
			path: func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "catalog.db")
				if err := os.WriteFile(path+"-wal", []byte("log"), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			},
			want: ErrNotCatalog, reason: "missing", remedy: "put the file back",
		},
		"an empty file beside a log": {
			path: func(t *testing.T) string {
				path := filepath.Join(t.TempDir(), "catalog.db")
				if err := errors.Join(os.WriteFile(path, nil, 0o600), os.WriteFile(path+"-wal", []byte("log"), 0o600)); err != nil {
					t.Fatal(err)
				}
				return path
			},
			want: ErrNotCatalog, reason: "cut short", remedy: "restore a backup",
		},
		"a backup restored beside another catalog's log": {
			path: func(t *testing.T) string {
				s := openStore(t, seeded(t, 1), Options{})
				path := filepath.Join(t.TempDir(), "catalog.db")
				if err := s.Backup(t.Context(), path); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path+"-wal", []byte("log"), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			},
			want: ErrNotCatalog, reason: "restored backup", remedy: "move",
		},
		"a file that is open": {
			path: func(t *testing.T) string {
				path := seeded(t, 1)
				openStore(t, path, Options{})
				return path
			},
			want: ErrInUse, reason: "already open", remedy: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.path(t)
			before, _ := os.ReadFile(path)
			s, err := Open(t.Context(), path, Options{})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			t.Log(err)
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("the error is not %v", c.want)
			}
			for _, part := range []string{path, c.reason, c.remedy} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q", part)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			// The refusal keeps nothing open: the same answer comes again.
			if _, again := Open(t.Context(), path, Options{}); again == nil || again.Error() != err.Error() {
				t.Errorf("the second time: %v", again)
			}
		})
	}

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(cancelled, filepath.Join(t.TempDir(), "catalog.db"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}

// A damaged page in the middle is not noticed by Open, which stays quick, but by
// who comes across it; it never reads as "absent", and a batch that has to look
// there is not applied.
func TestDamagedPage(t *testing.T) {
	const records = 400
	path := seeded(t, records)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for offset := int64(20 * page); offset < info.Size()-20*page; offset += 16 * page {
		overwrite(t, path, offset, bytes.Repeat([]byte{0xa5}, page))
	}
	s := openStore(t, path, Options{})
	damaged := 0
	for i := range records {
		name := fmt.Sprint(i)
		r, err := s.Get(t.Context(), pointer(name))
		if err == nil && !r.Exists() {
			t.Fatalf("record %s reads as absent", name)
		}
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "malformed") || !strings.Contains(err.Error(), "restore a backup") {
			t.Fatal(err)
		}
		if damaged++; damaged == 1 {
			b := newBatch(name)
			if err := s.Apply(t.Context(), b); err == nil || errors.Is(err, store.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "restore a backup") {
				t.Errorf("apply on a damaged page: %v", err)
			}
		}
	}
	if damaged == 0 || damaged == records {
		t.Fatalf("%d of %d records are damaged, want some", damaged, records)
	}
}

// All files are for their owner only, also one that was restored with the mode
// of another tool; the path may have characters that mean something in a URI; a
// clean shutdown leaves a single file.
func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "50% of #1? ü & co")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "catalog.db")
	for _, found := range []os.FileMode{0, 0o644} {
		if found != 0 {
			if err := os.Chmod(path, found); err != nil {
				t.Fatal(err)
			}
		}
		s := openStore(t, path, Options{})
		if err := s.Apply(t.Context(), newBatch(fmt.Sprint(found))); err != nil {
			t.Fatal(err)
		}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if info, err := os.Stat(path + suffix); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", path+suffix, info.Mode(), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("after closing: %v, %v", entries, err)
		}
	}
}

// Every connection has the settings that the promises rest on, also the one that
// replaces a connection that failed.
func TestSettings(t *testing.T) {
	w := newTestWriter(t)
	reader, err := dial(w.path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.close()
	first := w.conn
	check := func(name string, c *conn) {
		for pragma, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "checkpoint_fullfsync": "1", "cache_size": "-2000", "busy_timeout": "5000", "trusted_schema": "0",
		} {
			var got string
			if _, err := c.first("PRAGMA "+pragma, nil, &got); err != nil || got != want {
				t.Errorf("%s: %s is %q, %v, want %q", name, pragma, got, err, want)
			}
		}
	}
	check("first writer", w.conn)
	check("reader", reader)
	if err := reader.exec("DELETE FROM records"); !isPrimary(err, sqlite3.SQLITE_READONLY) {
		t.Errorf("a reader may write: %v", err)
	}
	commit := w.commit
	w.commit = func(*conn) error { return sqliteError(sqlite3.SQLITE_IOERR) }
	w.settled(writes("1", "a", store.Absent))
	w.commit = commit
	w.settled(writes("2", "a", store.Absent))
	if w.conn == first {
		t.Fatal("the writer goes on with a connection that failed")
	}
	check("next writer", w.conn)
}
