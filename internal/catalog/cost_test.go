package catalog_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/txn"
)

// countedObjects is a bucket that notes what is asked of it.
type countedObjects struct {
	store.Objects
	mu     sync.Mutex
	reads  []string // gets and lists
	writes []string // puts and deletes
}

func (c *countedObjects) note(to *[]string, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to = append(*to, fmt.Sprintf(format, args...))
}

func (c *countedObjects) Get(ctx context.Context, name string) (store.Object, error) {
	c.note(&c.reads, "%s", name)
	return c.Objects.Get(ctx, name)
}

func (c *countedObjects) Put(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
	c.note(&c.writes, "%s", name)
	return c.Objects.Put(ctx, name, match, data)
}

func (c *countedObjects) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	c.note(&c.reads, "list %s", prefix)
	return c.Objects.List(ctx, prefix, after, limit)
}

func (c *countedObjects) Delete(ctx context.Context, name string) error {
	c.note(&c.writes, "delete %s", name)
	return c.Objects.Delete(ctx, name)
}

// take gives what was asked since it was last called.
func (c *countedObjects) take() (reads, writes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reads, writes = c.reads, c.writes
	c.reads, c.writes = nil, nil
	return reads, writes
}

var shardName = regexp.MustCompile(`/\d\d$`)

// inOrder lists names in the order of their first use. Pages of one set that follow each other
// are counted.
func inOrder(names []string) string {
	var all []string
	for len(names) > 0 {
		set := shardName.ReplaceAllString(names[0], "")
		n := 1
		for n < len(names) && shardName.MatchString(names[n]) && shardName.ReplaceAllString(names[n], "") == set && names[n] > names[n-1] {
			n++
		}
		if n > 2 {
			all = append(all, fmt.Sprintf("%s/* (%d)", set, n))
		} else {
			all = append(all, names[:n]...)
		}
		names = names[n:]
	}
	return strings.Join(all, ", ")
}

// checkCost holds the writes of one operation to what package txn says that batches cost.
func checkCost(t *testing.T, title string, writes []string) {
	t.Helper()
	pages, status := map[string]bool{}, 0
	for _, w := range writes {
		if strings.HasPrefix(strings.TrimPrefix(w, "delete "), "tx/") {
			status++
		} else {
			pages[w] = true
		}
	}
	switch n := len(pages); {
	case strings.HasPrefix(title, "commit-table") && !strings.Contains(title, "staged"):
		if len(writes) != 1 || !strings.HasPrefix(writes[0], "pointers/") {
			t.Errorf("%s: a commit is one swap of the pointer, not %q", title, writes)
		}
	case strings.HasSuffix(title, "locations may overlap") && strings.HasPrefix(title, "create-table"):
		if len(writes) != 3 || writes[0] != writes[2] || !strings.HasPrefix(writes[0], "pointers/") {
			t.Errorf("%s: the birth of a pointer, the swap of the page of names, the birth settled; not %q", title, writes)
		}
	case n == 1 && status == 0:
		if len(writes) != 1 {
			t.Errorf("%s: a batch of one page is one swap, not %q", title, writes)
		}
	case n > 0:
		if status != 3 || len(writes) != 2*n+3 {
			t.Errorf("%s: a batch of %d pages is %d writes, not %q", title, n, 2*n+3, writes)
		}
	}
}

// priced is an operation whose cost is told.
type priced struct {
	title string
	op    func() kernel.Operation
}

// price does every operation once, each alone and warm, and compares what cost tells of each with a file. before is called
// before each.
func (s *stack) price(path string, before func(), cost func(title string) string) {
	s.Helper()
	var got strings.Builder
	for _, c := range s.everything() {
		op := c.op()
		before()
		if err := s.direct.Do(s.Context(), op); err != nil {
			s.Fatalf("%s: %v", c.title, err)
		}
		fmt.Fprintf(&got, "## %s\n%s\n", c.title, cost(c.title))
	}
	for name := range catalog.Operations {
		if name != "bootstrap" && !strings.Contains(got.String(), "## "+name) {
			s.Errorf("what does %s cost?", name)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			s.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		s.Errorf("-want +got; go test -run TestCost -update rewrites it:\n%s", d)
	}
}

// What each operation asks of a bucket: the price list of bucket mode. No operation
// caches anything yet: what is read to decide is read again to apply.
func TestCost(t *testing.T) {
	objects := &countedObjects{Objects: mem.NewObjects()}
	db := txn.New(txn.Options{Objects: objects, Layout: txn.Packed{}})
	s := &stack{T: t, store: kerneltest.NewStore(db)}
	s.start(s.store, local.New(local.Options{}), func() string { return fmt.Sprintf("batch-%d", s.next()) })
	s.price("testdata/cost/packed.txt", func() { objects.take() }, func(title string) string {
		reads, writes := objects.take()
		checkCost(t, title, writes)
		cost := fmt.Sprintf("reads  %d: %s\n", len(reads), inOrder(reads))
		if len(writes) > 0 {
			cost += fmt.Sprintf("writes %d: %s\n", len(writes), inOrder(writes))
		}
		return cost
	})
	if left, err := db.Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %q %v", left, err)
	}
}

// farStore is a store that reads several records in one round trip, and notes each round trip, and how many SQL statements
// package store/postgres has executed in it.
type farStore struct {
	store.Atomic
	mu         sync.Mutex
	trips      []string
	statements int
}

func (f *farStore) note(statements int, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trips = append(f.trips, fmt.Sprintf(format, args...))
	f.statements += statements
}

func (f *farStore) take() (trips []string, statements int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	trips, statements = f.trips, f.statements
	f.trips, f.statements = nil, 0
	return trips, statements
}

// statementsOf is how many statements the call executes that a batch is, where every condition holds and nobody is in its way: its settings,
// one for each row that it locks, one for all conditions, the insertion of its id, a look whether that is forgotten, and
// one for each write. Which rows are locked and what is written follows newCall of store/postgres: what is not there is neither locked
// nor deleted. `make bench ARGS="-run cost -with landfast-postgres"` compares it with what PostgreSQL counts.
func statementsOf(b store.Batch) int {
	locked, absent := map[key.Key]bool{}, map[key.Key]bool{}
	for _, c := range b.Conds {
		if c.Kind == store.KindIs && c.Version == store.Absent {
			absent[c.Key] = true
		} else {
			locked[c.Key] = true
		}
	}
	n := 4 + len(locked)
	for _, w := range b.Writes {
		if !w.Delete || !absent[w.Key] {
			n++
		}
	}
	return n
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (f *farStore) Get(ctx context.Context, k key.Key) (store.Record, error) {
	f.note(1, "get %v", k.Level)
	return f.Atomic.Get(ctx, k)
}

func (f *farStore) GetAll(ctx context.Context, keys []key.Key) ([]store.Record, error) {
	var levels []string
	records := make([]store.Record, len(keys))
	for i, k := range keys {
		var err error
		if records[i], err = f.Atomic.Get(ctx, k); err != nil {
			return nil, err
		}
		levels = append(levels, k.Level.String())
	}
	f.note(1, "get %s", strings.Join(levels, ", "))
	return records, nil
}

func (f *farStore) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	f.note(1, "list %v", p.Level)
	return f.Atomic.List(ctx, p, after, limit)
}

func (f *farStore) Apply(ctx context.Context, b store.Batch) error {
	n := statementsOf(b)
	f.note(n, "apply %d conditions, %d writes, %d statements", len(b.Conds), len(b.Writes), n)
	return f.Atomic.Apply(ctx, b)
}

// The round trips of each operation to a store that is far, such as a database, and its statements: the price list of PostgreSQL.
func TestCostFar(t *testing.T) {
	far := &farStore{Atomic: mem.New()}
	s := &stack{T: t, store: kerneltest.NewStore(far)}
	s.start(far, local.New(local.Options{}), func() string { return fmt.Sprintf("batch-%d", s.next()) })
	s.price("testdata/cost/far.txt", func() { far.take() }, func(string) string {
		trips, statements := far.take()
		return fmt.Sprintf("%s, %s: %s\n", counted(len(trips), "round trip"), counted(statements, "statement"), strings.Join(trips, "; "))
	})
}

// everything is every operation in an order that works on an empty catalog. Each is made when its turn has come.
func (s *stack) everything() []priced {
	lax := map[string]string{catalog.PropertyAllowOverlap: "true"}
	inLax := func(table string) *catalog.CreateTable {
		op := createTable(table)
		op.Request.Warehouse = "lax"
		return op
	}
	commitInLax := setProperty("ns.t", "k", "v")
	commitInLax.Request.Warehouse = "lax"
	dying := func() string {
		find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}}
		s.must(find)
		return find.Result.Lists[0].ID
	}
	table := createTable("ns.t")
	given := func(op kernel.Operation) func() kernel.Operation { return func() kernel.Operation { return op } }
	return []priced{
		{"create-warehouse", given(&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
			ID: "lax-id", Name: "lax", Root: blob.Root{URI: "file:///w/lax", Dir: "/w/lax"}, Properties: lax}})},
		{"get-warehouse", given(&catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: "lax"}})},
		{"list-warehouses", given(&catalog.ListWarehouses{})},
		{"create-warehouse, of a bucket", given(&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
			ID: "s3-id", Name: "s3", Root: blob.Root{URI: "s3://bucket/lake"}, Properties: lax}})},
		{"set-warehouse-s3", given(&catalog.SetWarehouseS3{Request: catalog.SetWarehouseS3Request{Name: "s3", S3: blob.S3Options{Region: "eu-central-1"}}})},
		{"delete-warehouse", given(&catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: "s3"}})},
		{"create-namespace", given(createNamespace("ns"))},
		{"create-namespace, where locations may overlap", given(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "lax", Levels: []string{"ns"}}})},
		{"get-namespace", given(&catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: "main", Levels: []string{"ns"}}})},
		{"list-namespaces", given(&catalog.ListNamespaces{Request: catalog.ListNamespacesRequest{Warehouse: "main"}})},
		{"update-namespace-properties", given(&catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
			Warehouse: "main", Levels: []string{"ns"}, Updates: map[string]string{"k": "v"}}})},
		{"create-table", given(table)},
		{"create-table, where the client says", given(createTableAt("ns.own", "file:///w/main/own"))},
		{"create-table, where locations may overlap", given(inLax("ns.t"))},
		{"load-table", given(loadTable("ns.t"))},
		{"table-exists", given(&catalog.TableExists{Request: catalog.TableExistsRequest{Warehouse: "main", Table: ident("ns.t")}})},
		{"list-tables", given(&catalog.ListTables{Request: catalog.ListTablesRequest{Warehouse: "main", Namespace: []string{"ns"}}})},
		{"commit-table", given(setProperty("ns.t", "k", "v"))},
		{"commit-table, where locations may overlap", given(commitInLax)},
		{"commit-table, of what was staged", given(stagedCreate("ns.staged", "file:///w/main/staged"))},
		{"commit-transaction, of two tables", given(transaction(
			change("ns.t", noAssert, `[{"action":"set-properties","updates":{"k":"1"}}]`),
			change("ns.own", noAssert, `[{"action":"set-properties","updates":{"k":"1"}}]`)))},
		{"rename-table", given(renameTable("ns.own", "ns.other"))},
		{"find-tables", given(&catalog.FindTables{Request: catalog.FindTablesRequest{Warehouse: "main"}})},
		{"give-up", func() kernel.Operation {
			lost := strings.Replace(table.Result.MetadataLocation, "/00000-", "/00007-", 1)
			data, err := s.files.Read(s.Context(), blob.Scope{mainRoot}, table.Result.MetadataLocation, 1<<20)
			if err != nil {
				s.Fatal(err)
			}
			s.files.Replace(lost, data)
			return giveUp(lost)
		}},
		{"find-dying", given(&catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}})},
		{"end-dying", func() kernel.Operation {
			return &catalog.EndDying{Request: catalog.EndDyingRequest{Warehouse: "main", IDs: []string{dying()}}}
		}},
		{"unregister-table", given(&catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: "main", Table: ident("ns.t")}})},
		{"register-table", func() kernel.Operation { return register("ns.back", table.Result.MetadataLocation) }},
		{"drop-table", given(dropTable("ns.staged", false))},
		{"drop-table, with purge", given(dropTable("ns.other", true))},
		{"create-view", given(createView("ns.v"))},
		{"load-view", given(&catalog.LoadView{Request: view("ns.v")})},
		{"view-exists", given(&catalog.ViewExists{Request: view("ns.v")})},
		{"list-views", given(&catalog.ListViews{Request: catalog.ListTablesRequest{Warehouse: "main", Namespace: []string{"ns"}}})},
		{"replace-view", given(replaceView("ns.v", noAssert, `[{"action":"set-properties","updates":{"k":"v"}}]`))},
		{"rename-view", given(renameView("ns.v", "ns.w"))},
		{"drop-view", given(&catalog.DropView{Request: view("ns.w")})},
		{"register-view", func() kernel.Operation {
			for _, f := range s.files.Locations() {
				if strings.Contains(f, "/v-") {
					return registerView("ns.v", f)
				}
			}
			s.Fatal("no file of a view")
			return nil
		}},
		{"once, of commit-table", given(once("k", setProperty("ns.back", "k", "2")))},
		{"once, again", given(once("k", setProperty("ns.back", "k", "2")))},
		{"take-duties", given(takeDuties("a", 0, "purge/main/1", "purge/main/2"))},
		{"renew-duties", given(renewDuties("a", "purge/main/1", "purge/main/2"))},
		{"end-duties", given(endDuties("a", false, "purge/main/1", "purge/main/2"))},
		{"find-expired", given(&catalog.FindExpired{})},
		{"forget-expired", func() kernel.Operation {
			s.clock = s.clock.AddDate(0, 0, 1)
			return &catalog.ForgetExpired{Request: catalog.ForgetExpiredRequest{Keys: []key.Key{key.ForOnce("main", "k")}}}
		}},
		{"drop-namespace", func() kernel.Operation {
			s.must(createNamespace("empty"))
			return dropNamespace("empty")
		}},
	}
}
