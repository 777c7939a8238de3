package journal

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/blob/local"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
)

// server is a journal on a real file of records and real directories, both below dir.
type server struct {
	*Journal
	store   *embedded.Store
	files   *local.Store
	scope   blob.Scope
	settled chan int // the number of files, after each group; somebody must listen while Run runs
}

func open(t *testing.T, dir string) server {
	t.Helper()
	s := server{files: local.New(), settled: make(chan int)}
	var err error
	if s.store, err = embedded.Open(t.Context(), filepath.Join(dir, "catalog.db"), embedded.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	lake, err := s.files.Resolve(t.Context(), blob.DirURI(filepath.Join(dir, "lake")), blob.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.scope = blob.Scope{lake}
	if err := s.files.Mark(t.Context(), lake, "w-id"); err != nil {
		t.Fatal(err)
	}
	k := key.ForWarehouse("w")
	if r, err := s.store.Get(t.Context(), k); err != nil {
		t.Fatal(err)
	} else if !r.Exists() {
		s.apply(t, store.Batch{ID: newID(), Conds: []store.Cond{store.Is(k, store.Absent)}, Writes: []store.Write{{Key: k, ID: "w-id"}}})
	}
	s.Journal = New(Options{
		Store: s.store, Files: s.files, NewID: newID, Interval: 10 * time.Millisecond,
		Observe: func(files, _ int, _ time.Duration) { s.settled <- files },
	})
	return s
}

func (s server) apply(t *testing.T, b store.Batch) {
	t.Helper()
	if err := s.store.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// commit makes files and applies their batch.
func (s server) commit(t *testing.T, bodies map[string][]byte) {
	t.Helper()
	var files []File
	for path, data := range bodies {
		f := File{Warehouse: "w", Scope: s.scope, Location: s.scope[0].URI + "/" + path, Data: data}
		if !s.Admit(t.Context(), f) {
			t.Fatalf("%s may not ride", path)
		}
		if err := s.Create(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	id := newID()
	w, c := s.Write(id, files)
	s.apply(t, store.Batch{ID: id, Conds: []store.Cond{c}, Writes: []store.Write{w}})
	s.Applied(id, files)
}

func (s server) records(t *testing.T) int {
	t.Helper()
	records, err := s.store.List(t.Context(), key.Unsynceds(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(records)
}

func (s server) wantFiles(t *testing.T, bodies map[string][]byte) {
	t.Helper()
	for path, want := range bodies {
		got, err := s.files.Read(t.Context(), s.scope, s.scope[0].URI+"/"+path, 1<<20)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", path, len(got), err, len(want))
		}
	}
}

// tempDir is t.TempDir without the characters of a test's name that no location may have, and where files are deferred: on
// an overlay they are not.
func tempDir(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{"", "/dev/shm"} {
		dir, err := os.MkdirTemp(parent, "journal-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		uri := blob.DirURI(dir)
		if local.New().Defers(blob.Scope{{URI: uri, Dir: dir}}, uri+"/f") {
			return dir
		}
	}
	t.Fatal("neither the directory of the tests nor /dev/shm defers")
	return ""
}

func deferring(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("no file system defers here: Admit refuses every file")
	}
}

// Property: whatever the loss of power leaves of the files (nothing, a part, zeros, not even their directory), the next start makes
// all of them whole.
func TestCrash(t *testing.T) {
	deferring(t)
	was := tempDir(t)
	s := open(t, was)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, strings.Repeat(`{"format-version": 2}`, 100))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	bodies := map[string][]byte{
		"n/t/metadata/missing": []byte("m"), "n/t/metadata/short": bytes.Repeat([]byte("s"), 5000), "n/t/metadata/empty": []byte("e"), "n/t/metadata/zeros": bytes.Repeat([]byte("z"), 5000),
		"n/gone/metadata/gzip": packed.Bytes(), "n/gone/metadata/binary": {0, 0xff, 0, '\'', '\n'}, "n/t/metadata/whole": []byte("w"), "n/t/metadata/none": nil,
	}
	s.commit(t, bodies)
	var many []map[string][]byte
	for i := range 100 {
		many = append(many, map[string][]byte{fmt.Sprintf("n/t-%d/metadata/f", i): fmt.Append(nil, i)})
		s.commit(t, many[i])
	}

	// The power goes. The disk has kept its word for the records alone.
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	lake := filepath.Join(was, "lake")
	if err := os.RemoveAll(filepath.Join(lake, "n", "gone")); err != nil {
		t.Fatal(err)
	}
	for name, left := range map[string][]byte{"short": []byte("ss"), "empty": nil, "zeros": make([]byte, 5000)} {
		if err := os.WriteFile(filepath.Join(lake, "n", "t", "metadata", name), left, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(lake, "n", "t", "metadata", "missing")); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := os.RemoveAll(filepath.Join(lake, fmt.Sprintf("n/t-%d", i))); err != nil {
			t.Fatal(err)
		}
	}

	s = open(t, was)
	if n := s.records(t); n != 101 {
		t.Fatalf("%d records survived; want 101", n)
	}
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantFiles(t, bodies)
	for _, m := range many {
		s.wantFiles(t, m)
	}
	if n := s.records(t); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// Property: on a real disk the records go by themselves, and the files stay.
func TestSettle(t *testing.T) {
	deferring(t)
	s := open(t, tempDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	defer func() { cancel(); <-done }()
	bodies := map[string][]byte{"n/t/metadata/a": []byte("a"), "n/t/metadata/b": []byte("b")}
	s.commit(t, bodies)
	select {
	case files := <-s.settled:
		if n := s.records(t); files != 2 || n != 0 {
			t.Errorf("%d files were settled, %d records are left", files, n)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is settled")
	}
	s.wantFiles(t, bodies)
}
