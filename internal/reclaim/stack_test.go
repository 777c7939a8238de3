package reclaim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/reclaim"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOnObjects runs every test again on a store that can only swap single objects.
func TestOnObjects(t *testing.T) { kerneltest.RunOnObjects(t, "^TestOnObjects$") }

// newStore makes the store that this process is to run on.
func newStore() store.Atomic {
	if kerneltest.OnObjects() {
		return txn.New(txn.Options{Objects: mem.NewObjects(), Layout: txn.Packed{}})
	}
	return mem.New()
}

const grace = 2 * time.Minute

// files are kerneltest's, found by every spelling of their location and with the time they were
// made at, which can be made to fail.
type files struct {
	kerneltest.Files

	mu       sync.Mutex
	faults   faults
	modified map[string]time.Time
	deleting int // at this moment
	most     int // at any
}

// faults are what goes wrong. The functions are asked before each call, with the normal form of
// the location; nil: nothing.
type faults struct {
	delete, read func(location string) error
	mark         error
}

// fail says what goes wrong from now on.
func (f *files) fail(with faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = with
}

func (f *files) failing() faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

func (f *files) CheckMark(context.Context, blob.Root, string) error { return f.failing().mark }

func normal(location string) string {
	n, err := blob.Normalize(location)
	if err != nil {
		return location
	}
	return n
}

func (f *files) Create(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	f.mu.Lock()
	if f.modified == nil {
		f.modified = map[string]time.Time{}
	}
	f.modified[normal(location)] = time.Now()
	f.mu.Unlock()
	return f.Files.Create(ctx, scope, normal(location), data)
}

func (f *files) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	if fail := f.failing().read; fail != nil {
		if err := fail(normal(location)); err != nil {
			return nil, err
		}
	}
	return f.Files.Read(ctx, scope, normal(location), limit)
}

func (f *files) Delete(ctx context.Context, scope blob.Scope, location string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, _, err := scope.Locate(location); err != nil {
		return err
	}
	f.mu.Lock()
	f.deleting++
	f.most = max(f.most, f.deleting)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.deleting--
		f.mu.Unlock()
	}()
	if fail := f.failing().delete; fail != nil {
		if err := fail(normal(location)); err != nil {
			return err
		}
	}
	return f.Files.Delete(ctx, scope, normal(location))
}

func (f *files) List(_ context.Context, scope blob.Scope, location string, yield func(blob.Entry) error) error {
	if _, _, err := scope.LocateDir(location); err != nil {
		return err
	}
	for _, l := range f.Locations() {
		if !strings.HasPrefix(l, normal(location)+"/") {
			continue
		}
		f.mu.Lock()
		e := blob.Entry{Location: l, Modified: f.modified[l], Temporary: blob.IsTemporary(l)}
		f.mu.Unlock()
		if err := yield(e); err != nil {
			return err
		}
	}
	return nil
}

// stack is a catalog in memory, with the clock of the bubble that its test runs in.
type stack struct {
	*testing.T
	files  *files
	runner kernel.Runner
	log    *bytes.Buffer // locked by its handler

	mu    sync.Mutex
	ended [][]string // the ids of each EndDying
}

// Do implements kernel.Runner, for the Reclaimer.
func (s *stack) Do(ctx context.Context, op kernel.Operation) error {
	if end, ok := op.(*catalog.EndDying); ok {
		s.mu.Lock()
		s.ended = append(s.ended, end.Request.IDs)
		s.mu.Unlock()
	}
	return s.runner.Do(ctx, op)
}

var scope = blob.Scope{{URI: "file:///w/main", Dir: "/w/main"}}

// run runs a test in a bubble, on a fresh stack with a namespace `ns`.
func run(t *testing.T, test func(s *stack)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stack{T: t, files: &files{}, log: &bytes.Buffer{}}
		s.runner = kernel.New(kernel.Options{
			Store: newStore(), Files: s.files, Queue: local.New(local.Options{}), CheckPurity: true, Limit: time.Minute,
		})
		s.must(&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: scope[0]}})
		s.must(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "main", Levels: []string{"ns"}}})
		test(s)
	})
}

func (s *stack) must(op kernel.Operation) {
	s.Helper()
	if err := s.runner.Do(s.Context(), op); err != nil {
		s.Fatalf("%s: %v", op.Plan().Op, err)
	}
}

func (s *stack) reclaimer() *reclaim.Reclaimer {
	return reclaim.New(reclaim.Options{
		Runner: s, Files: s.files, Grace: grace, Log: slog.New(slog.NewTextHandler(s.log, nil)),
	})
}

// begin runs a Reclaimer until the returned function is called, which waits for its end.
func (s *stack) begin(r *reclaim.Reclaimer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	s.Cleanup(stop)
	return stop
}

// round runs the first round of a fresh Reclaimer, as after a restart.
func (s *stack) round() {
	stop := s.begin(s.reclaimer())
	synctest.Wait()
	stop()
}

// put makes files; those that tests do not read hold nothing worth reading.
func (s *stack) put(locations ...string) {
	s.Helper()
	for _, l := range locations {
		s.write(l, []byte("x"))
	}
}

func (s *stack) write(location string, data []byte) {
	s.Helper()
	if err := s.files.Create(s.Context(), scope, location, data); err != nil {
		s.Fatal(err)
	}
}

// left compares the files that are left with those that should be.
func (s *stack) left(want ...string) {
	s.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, s.files.Locations(), cmp.Transformer("short", func(l string) string { return strings.TrimPrefix(l, "file:///w/main/") })); diff != "" {
		s.Errorf("files (-want +left):\n%s", diff)
	}
}

// lists are the lists of dying files that are left.
func (s *stack) lists() []catalog.Dying {
	s.Helper()
	op := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}}
	s.must(op)
	return op.Result.Lists
}

func ident(name string) catalog.Ident { return catalog.Ident{Namespace: []string{"ns"}, Name: name} }

// create makes a table at file:///w/main/NAME and returns the location of its metadata file.
func (s *stack) create(name string, properties map[string]string) string {
	s.Helper()
	op := &catalog.CreateTable{Request: catalog.CreateTableRequest{
		Warehouse: "main", Table: ident(name), Location: "file:///w/main/" + name, Properties: properties,
		Schema: []byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`),
	}}
	s.must(op)
	return op.Result.MetadataLocation
}

// commit applies updates to a table and returns the location of its metadata file.
func (s *stack) commit(name string, updates ...string) string {
	s.Helper()
	op := &catalog.CommitTable{Request: catalog.CommitTableRequest{
		Warehouse: "main", Table: ident(name), Requirements: []byte("[]"), Updates: []byte("[" + strings.Join(updates, ",") + "]"),
	}}
	s.must(op)
	return op.Result.MetadataLocation
}

func setProperty(k, v string) string {
	return fmt.Sprintf(`{"action":"set-properties","updates":{%q:%q}}`, k, v)
}

// addSnapshot is the update that adds a snapshot.
func addSnapshot(n int, manifestList string) string {
	return fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"summary":{"operation":"append"},"manifest-list":%q,"schema-id":0}}`,
		n, n, time.Now().UnixMilli(), manifestList)
}

// drop drops a table with purge and returns the id of its list.
func (s *stack) drop(name string) string {
	s.Helper()
	op := &catalog.DropTable{Request: catalog.DropTableRequest{Warehouse: "main", Table: ident(name), Purge: true}}
	s.must(op)
	if op.Result.DyingID == "" {
		s.Fatal("the purge left no list")
	}
	return op.Result.DyingID
}

// purge drops a table and waits for the end of its purge.
func (s *stack) purge(name string) {
	s.Helper()
	id := s.drop(name)
	r := s.reclaimer()
	stop := s.begin(r)
	<-r.Start("main", id)
	stop()
}

// plant writes a list of dying files as no operation does.
type plant struct {
	ID, Value string
}

func (op *plant) Plan() kernel.Plan { return kernel.Plan{Op: "plant"} }

func (op *plant) Decide(_ context.Context, tx *kernel.Tx) error {
	tx.Create(key.ForDying("main", op.ID), op.ID, []byte(op.Value))
	return nil
}

func (s *stack) plant(d catalog.Dying) {
	s.Helper()
	value, err := json.Marshal(d)
	if err != nil {
		s.Fatal(err)
	}
	s.must(&plant{ID: d.ID, Value: string(value)})
}

// testdata is that of package manifest: tables of real clients.
const testdata = "../manifest/testdata"

// listing names the files of one of these tables, one a line.
func listing(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testdata, name, "files.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// real puts one of them in its place and registers it.
func (s *stack) real(name string) {
	s.Helper()
	current := ""
	for _, file := range strings.Fields(string(listing(s, name))) {
		data, err := os.ReadFile(filepath.Join(testdata, name, path.Base(file)))
		if os.IsNotExist(err) {
			data, err = []byte("PAR1"), nil
		}
		if err != nil {
			s.Fatal(err)
		}
		location := "file:///w/main/" + name + "/" + file
		s.write(location, data)
		if strings.HasSuffix(file, ".metadata.json") {
			current = max(current, location)
		}
	}
	s.must(&catalog.RegisterTable{Request: catalog.RegisterTableRequest{Warehouse: "main", Table: ident(name), MetadataLocation: current}})
}

const listSchema = `{"type":"record","name":"manifest_file","fields":[{"name":"manifest_path","type":"string"},{"name":"manifest_length","type":"long"}]}`

const entrySchema = `{"type":"record","name":"manifest_entry","fields":[{"name":"status","type":"int"},
	{"name":"data_file","type":{"type":"record","name":"r2","fields":[{"name":"content","type":"int"},{"name":"file_path","type":"string"}]}}]}`

// manifestList is one that names these manifests.
func manifestList(t testing.TB, manifests ...string) []byte {
	return container(t, listSchema, manifests, func(path string) any {
		return map[string]any{"manifest_path": path, "manifest_length": int64(1)}
	})
}

// manifestOf is one that names these files.
func manifestOf(t testing.TB, files ...string) []byte {
	return container(t, entrySchema, files, func(path string) any {
		return map[string]any{"status": int32(1), "data_file": map[string]any{"content": int32(0), "file_path": path}}
	})
}

func container(t testing.TB, schema string, paths []string, record func(path string) any) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avro.MustParse(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if err := w.Encode(record(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// snapshots gives a table snapshots whose manifest lists and manifests, by location, name other files.
func (s *stack) snapshots(name string, lists, manifests map[string][]string) {
	s.Helper()
	for _, m := range slices.Sorted(maps.Keys(manifests)) {
		s.write(m, manifestOf(s, manifests[m]...))
	}
	for i, l := range slices.Sorted(maps.Keys(lists)) {
		s.write(l, manifestList(s, lists[l]...))
		s.commit(name, addSnapshot(i+1, l))
	}
}
