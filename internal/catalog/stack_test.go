package catalog_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/lock/locktest"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/store/postgres"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
	"github.com/landfast/landfast/internal/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withServer{m}) }

// withServer are the tests of this package, beside a PostgreSQL server if they are to run on one.
type withServer struct{ *testing.M }

var cluster *pgtest.Cluster

func (m withServer) Run() int {
	if !kerneltest.OnPostgres() {
		return m.M.Run()
	}
	return pgtest.Main(m.M, func(c *pgtest.Cluster) { cluster = c })
}

// TestOnObjects runs every test again on a store that can only swap single objects. What
// they compare with is the same: the transcripts to the byte.
func TestOnObjects(t *testing.T) { kerneltest.RunOnObjects(t, "^TestOn(Objects|Postgres)$") }

// TestOnPostgres runs them on PostgreSQL.
func TestOnPostgres(t *testing.T) { kerneltest.RunOnPostgres(t, "^TestOn(Objects|Postgres)$") }

// newStore makes the store that this process is to run on.
func newStore(t *testing.T) *kerneltest.Store { return kerneltest.NewStore(newInstances(t, 1)[0]) }

// newInstances makes an empty store of that kind, and gives it as so many processes see it that share it.
func newInstances(t *testing.T, n int) []store.Atomic {
	all := make([]store.Atomic, n)
	switch {
	case kerneltest.OnPostgres():
		url := cluster.Database(t)
		for i := range all {
			all[i] = openPostgres(t, url)
		}
	case kerneltest.OnObjects():
		objects := mem.NewObjects()
		for i := range all {
			all[i] = txn.New(txn.Options{Objects: objects, Layout: txn.Packed{}})
		}
	default:
		one := mem.New()
		for i := range all {
			all[i] = one
		}
	}
	return all
}

// openPostgres opens a database until the test ends.
func openPostgres(t *testing.T, url string) store.Atomic {
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// openEmbedded makes a store in SQLite until the test ends.
func openEmbedded(t *testing.T) store.Atomic {
	db, err := embedded.Open(t.Context(), filepath.Join(t.TempDir(), "catalog.db"), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// bubble runs a test in the time of a bubble. What asks a server over a network takes real time.
func bubble(t *testing.T, test func(*testing.T)) {
	if kerneltest.OnPostgres() {
		test(t)
		return
	}
	synctest.Test(t, test)
}

// stack is a whole catalog in memory. Its ids count up, and its clock moves one
// second with each operation, so that one run is like another. Operations are
// encoded on the way in and out, and decided twice.
type stack struct {
	*testing.T
	store  *kerneltest.Store
	files  *kerneltest.Files
	runner kernel.Runner
	direct kernel.Runner // without the journey, which text that is not UTF-8 does not survive
	// restart has a new process serve the same catalog: it remembers nothing.
	restart func()

	mu      sync.Mutex
	ids     int
	batches []store.Batch
	clock   time.Time
}

// queues are what every scenario runs with: what differs between them rested on a lock.
var queues = map[string]func() lock.Locker{
	"queue": func() lock.Locker { return local.New(local.Options{}) },
	"yes":   func() lock.Locker { return locktest.Yes{} },
}

func newStack(t *testing.T, queue lock.Locker) *stack { return newStackOn(t, newStore(t), queue) }

func newStackOn(t *testing.T, db *kerneltest.Store, queue lock.Locker) *stack {
	s := &stack{T: t, store: db}
	s.store.Fault = func(b store.Batch) kerneltest.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.batches = append(s.batches, b)
		return kerneltest.Fault{}
	}
	s.start(s.store, queue, func() string { return fmt.Sprintf("batch-%d", s.next()) })
	return s
}

// newEmbeddedStack keeps its records in SQLite.
func newEmbeddedStack(t *testing.T, queue lock.Locker) *stack {
	db := openEmbedded(t)
	s := &stack{T: t, store: kerneltest.NewStore(db)}
	s.start(db, queue, nil)
	return s
}

func (s *stack) start(db store.Atomic, queue lock.Locker, newBatchID func() string) {
	s.files = &kerneltest.Files{}
	s.clock = time.UnixMilli(1_700_000_000_000)
	s.restart = func() {
		s.direct = kernel.New(kernel.Options{
			Store: db, Files: s.files, Queue: queue, CheckPurity: true, Limit: 20 * time.Second,
			NewID:      func() string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.next()) },
			NewBatchID: newBatchID,
			Now: func() time.Time {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.clock = s.clock.Add(time.Second)
				return s.clock
			},
		})
		s.runner = kerneltest.RoundTrip{Registry: catalog.Operations, Runner: s.direct}
	}
	s.restart()
	s.must(&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: blob.Root{URI: "file:///w/main", Dir: "/w/main"}}})
}

// newPlainStack is a stack with a namespace `ns` and the local queue.
func newPlainStack(t *testing.T) *stack {
	s := newStack(t, local.New(local.Options{}))
	s.must(createNamespace("ns"))
	return s
}

func (s *stack) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return s.ids
}

func (s *stack) do(op kernel.Operation) error { return s.runner.Do(s.Context(), op) }

func (s *stack) must(op kernel.Operation) {
	s.Helper()
	if err := s.do(op); err != nil {
		s.Fatalf("%s: %v", op.Plan().Op, err)
	}
}

// refused runs op and expects a refusal of a kind whose message contains a text.
func (s *stack) refused(op kernel.Operation, kind error, text string) {
	s.Helper()
	err := s.do(op)
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		s.Errorf("%s: got %v, want %v with %q", op.Plan().Op, err, kind, text)
	}
}

func ident(dotted string) catalog.Ident {
	levels := strings.Split(dotted, ".")
	return catalog.Ident{Namespace: levels[:len(levels)-1], Name: levels[len(levels)-1]}
}

const (
	idSchema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`
	noAssert = `[]`
)

func createNamespace(dotted string, properties ...string) *catalog.CreateNamespace {
	op := &catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "main", Levels: strings.Split(dotted, ".")}}
	for i := 0; i < len(properties); i += 2 {
		if op.Request.Properties == nil {
			op.Request.Properties = map[string]string{}
		}
		op.Request.Properties[properties[i]] = properties[i+1]
	}
	return op
}

func dropNamespace(dotted string) *catalog.DropNamespace {
	return &catalog.DropNamespace{Request: catalog.DropNamespaceRequest{Warehouse: "main", Levels: strings.Split(dotted, ".")}}
}

func createTable(dotted string) *catalog.CreateTable {
	return &catalog.CreateTable{Request: catalog.CreateTableRequest{Warehouse: "main", Table: ident(dotted), Schema: []byte(idSchema)}}
}

func createTableAt(dotted, location string) *catalog.CreateTable {
	op := createTable(dotted)
	op.Request.Location = location
	return op
}

func loadTable(dotted string) *catalog.LoadTable {
	return &catalog.LoadTable{Request: catalog.LoadTableRequest{Warehouse: "main", Table: ident(dotted)}}
}

func dropTable(dotted string, purge bool) *catalog.DropTable {
	return &catalog.DropTable{Request: catalog.DropTableRequest{Warehouse: "main", Table: ident(dotted), Purge: purge}}
}

func renameTable(from, to string) *catalog.RenameTable {
	return &catalog.RenameTable{Request: catalog.RenameTableRequest{Warehouse: "main", Source: ident(from), Destination: ident(to)}}
}

func commitTable(dotted, requirements, updates string) *catalog.CommitTable {
	return &catalog.CommitTable{Request: catalog.CommitTableRequest{
		Warehouse: "main", Table: ident(dotted), Requirements: []byte(requirements), Updates: []byte(updates),
	}}
}

func setProperty(dotted, k, v string) *catalog.CommitTable {
	return commitTable(dotted, noAssert, fmt.Sprintf(`[{"action":"set-properties","updates":{%q:%q}}]`, k, v))
}

// stagedCreate is the commit with which a client creates a table that was staged.
func stagedCreate(dotted, location string) *catalog.CommitTable {
	return commitTable(dotted, `[{"type":"assert-create"}]`, fmt.Sprintf(`[
		{"action":"assign-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"},
		{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":%s},
		{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},
		{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},
		{"action":"set-default-sort-order","sort-order-id":-1},
		{"action":"set-location","location":%q}]`, idSchema, location))
}

func view(dotted string) catalog.ViewRequest {
	return catalog.ViewRequest{Warehouse: "main", View: ident(dotted)}
}

// viewVersion is the first version of every view here.
const viewVersion = `{"version-id":1,"timestamp-ms":1700000000000,"schema-id":0,"summary":{"engine-name":"test"},
	"default-namespace":["ns"],"representations":[{"type":"sql","sql":"select 1 id","dialect":"spark"}]}`

func createView(dotted string) *catalog.CreateView {
	return &catalog.CreateView{Request: catalog.CreateViewRequest{
		Warehouse: "main", View: ident(dotted), Schema: []byte(idSchema), Version: []byte(viewVersion),
	}}
}

func createViewAt(dotted, location string) *catalog.CreateView {
	op := createView(dotted)
	op.Request.Location = location
	return op
}

func replaceView(dotted, requirements, updates string) *catalog.ReplaceView {
	return &catalog.ReplaceView{Request: catalog.ReplaceViewRequest{
		Warehouse: "main", View: ident(dotted), Requirements: []byte(requirements), Updates: []byte(updates),
	}}
}

func renameView(from, to string) *catalog.RenameView {
	return &catalog.RenameView{Request: catalog.RenameTableRequest{Warehouse: "main", Source: ident(from), Destination: ident(to)}}
}

func registerView(dotted, file string) *catalog.RegisterView {
	return &catalog.RegisterView{Request: catalog.RegisterViewRequest{Warehouse: "main", View: ident(dotted), MetadataLocation: file}}
}

// change is the commit of a table in a transaction.
func change(dotted, requirements, updates string) catalog.TableCommit {
	return catalog.TableCommit{Table: ident(dotted), Requirements: []byte(requirements), Updates: []byte(updates)}
}

// staged is the change that creates a table that was staged.
func staged(dotted, location string) catalog.TableCommit {
	commit := stagedCreate(dotted, location).Request
	return catalog.TableCommit{Table: commit.Table, Requirements: commit.Requirements, Updates: commit.Updates}
}

func transaction(changes ...catalog.TableCommit) *catalog.CommitTransaction {
	return &catalog.CommitTransaction{Request: catalog.CommitTransactionRequest{Warehouse: "main", Changes: changes}}
}

func giveUp(files ...string) *catalog.GiveUp {
	return &catalog.GiveUp{Request: catalog.GiveUpRequest{Warehouse: "main", Files: files}}
}

// once makes an operation under an idempotency key that is remembered for a minute.
func once(k string, op catalog.Mutation) *catalog.Once {
	request, err := kernel.Encode(op)
	if err != nil {
		panic(err)
	}
	hash := sha256.Sum256(request)
	return &catalog.Once{Request: catalog.OnceRequest{Warehouse: "main", Key: k, Hash: hash[:], Lifetime: time.Minute}, Inner: op}
}
