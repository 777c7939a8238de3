package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/landfast/landfast/internal/store"
)

// A copy made while writers are at work is one moment's state: whole batches,
// everything that was acknowledged before it began, outcomes included; it is a
// catalog like any other, and only its owner can read it.
func TestBackupWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, filepath.Join(dir, "catalog.db"), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	var acknowledged []string
	const writers = 4
	var begun sync.WaitGroup // every writer has written something
	begun.Add(writers)
	for i := range writers {
		wg.Go(func() {
			left, right := pointer(fmt.Sprint("left ", i)), pointer(fmt.Sprint("right ", i))
			for version := store.Absent; ctx.Err() == nil; {
				b := newBatch("")
				b.Conds = []store.Cond{store.Is(left, version), store.Is(right, version)}
				b.Writes = []store.Write{{Key: left, ID: "i", Value: make([]byte, 2000)}, {Key: right, ID: "i"}}
				err := s.Apply(context.Background(), b)
				if version == store.Absent {
					begun.Done()
				}
				if err != nil {
					t.Error(err)
					return
				}
				version = store.Version(b.ID)
				mu.Lock()
				acknowledged = append(acknowledged, b.ID)
				mu.Unlock()
			}
		})
	}
	begun.Wait()
	for round := range 3 {
		dest := filepath.Join(dir, fmt.Sprintf("backup %d.db", round))
		mu.Lock()
		before := append([]string(nil), acknowledged...)
		mu.Unlock()
		if err := s.Backup(t.Context(), dest); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dest); err != nil || info.Mode() != 0o600 {
			t.Errorf("mode: %v, %v", info.Mode(), err)
		}
		restored := openStore(t, dest, Options{})
		for _, id := range before {
			if o, err := restored.Outcome(t.Context(), store.Batch{ID: id}); err != nil || o != store.Applied {
				t.Errorf("round %d: outcome of %s, acknowledged before: %v, %v", round, id, o, err)
			}
		}
		for i := range writers {
			left, err1 := restored.Get(t.Context(), pointer(fmt.Sprint("left ", i)))
			right, err2 := restored.Get(t.Context(), pointer(fmt.Sprint("right ", i)))
			if err1 != nil || err2 != nil || left.Version != right.Version || !left.Exists() {
				t.Errorf("round %d: half a batch: %s and %s (%v, %v)", round, left.Version, right.Version, err1, err2)
			}
		}
		if err := restored.Apply(t.Context(), newBatch("new")); err != nil {
			t.Errorf("round %d: apply to the restored copy: %v", round, err)
		}
	}
	cancel()
	wg.Wait()
}

// A backup that fails leaves an existing file alone and none of its own.
func TestBackupFails(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, filepath.Join(dir, "catalog.db"), Options{})
	if err := s.Apply(t.Context(), newBatch("a")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	files := func() (names []string) {
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}

	existing := filepath.Join(out, "existing")
	if err := os.WriteFile(existing, nil, 0o600); err != nil { // empty: SQLite itself would take it
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), existing); !errors.Is(err, fs.ErrExist) {
		t.Errorf("existing file: %v", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(out, "missing", "copy")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	c := <-s.readers
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := backup(cancelled, c, filepath.Join(out, "copy")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	s.readers <- c
	wantEqual(t, "files", []string{"existing"}, files())
	if err := s.Backup(t.Context(), filepath.Join(out, "copy")); err != nil {
		t.Error(err)
	}
	wantEqual(t, "files", []string{"copy", "existing"}, files())
}
