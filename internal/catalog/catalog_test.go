package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
)

// Every operation that the package has is in the registry under the name of its plan.
func TestOperationsAreNamedByTheirPlans(t *testing.T) {
	for name, make := range catalog.Operations {
		if name == "once" {
			continue // its plan is that of what it wraps
		}
		if got := make().Plan().Op; got != name {
			t.Errorf("%s is registered as %s", got, name)
		}
	}
}

func TestNames(t *testing.T) {
	s := newPlainStack(t)
	for _, c := range []struct {
		name    string
		refusal string // empty: a good name
	}{
		{"a", ""},
		{strings.Repeat("x", 255), ""},
		{strings.Repeat("x", 256), "256 bytes long"},
		{strings.Repeat("é", 128), "256 bytes long"},
		{"", "empty"},
		{".", "reserved"},
		{"..", "reserved"},
		{"...", ""},
		{"a b", ""},
		{"50% + 1/2", ""},
		{"\x00", "control character"},
		{"a\x1fb", "control character"},
		{"a\u0085b", "control character"},
		{"\xff", "not valid UTF-8"},
		{"表", ""},
		{"Cafe\u0301", ""}, // not composed: distinct from the next
		{"Café", ""},
		{"<script>", ""},
		{"$", ""},
	} {
		table := createTable("ns.t")
		table.Request.Table.Name = c.name
		namespace := createNamespace("ns")
		namespace.Request.Levels = []string{c.name}
		if c.refusal != "" {
			for _, op := range []kernel.Operation{table, namespace} {
				if err := s.direct.Do(t.Context(), op); !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("%q: got %v, want %q", c.name, err, c.refusal)
				}
			}
			continue
		}
		s.must(table)
		s.must(namespace)
		load := loadTable("ns.t")
		load.Request.Table.Name = c.name
		s.must(load)
	}
	deep := createNamespace("x")
	for range 32 {
		deep.Request.Levels = append(deep.Request.Levels, "x")
	}
	s.refused(deep, catalog.ErrInvalid, "33 levels; at most 32")
	s.refused(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "main"}}, catalog.ErrInvalid, "no levels")
}

func TestWarehouseNames(t *testing.T) {
	s := newPlainStack(t)
	for name, ok := range map[string]bool{
		"w": true, "0-a_b": true, strings.Repeat("w", 63): true, strings.Repeat("w", 64): false, "": false, "W": false, "-w": false,
		"a.b": false, "é": false, "namespaces": false, "tables": false, "views": false, "transactions": false, "config": false, "oauth": false,
	} {
		op := &catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{ID: "id-" + name, Name: name, Root: blob.Root{URI: "file:///w/x"}}}
		if ok {
			s.must(op)
		} else {
			s.refused(op, catalog.ErrInvalid, "Invalid warehouse name")
		}
	}
}

// What main was stays gone once it was deleted.
func TestMainDoesNotReturn(t *testing.T) {
	s := newStack(t, queues["queue"]())
	s.must(&catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: "main"}})
	again := &catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "x", Root: blob.Root{URI: "file:///w/main"}}}
	s.must(again)
	if again.Result.Created {
		t.Error("bootstrapped twice")
	}
	s.refused(loadTable("ns.t"), catalog.ErrNoSuchWarehouse, "Warehouse does not exist: main")
}

// Where a location lies is checked by its meaning, and it is stored as it was sent.
func TestLocations(t *testing.T) {
	const w = "file:///w/main"
	for _, c := range []struct {
		first, second string // where two tables want to be; empty: the server chooses
		refusal       string // of the second
	}{
		{w + "/a/b", w + "/a/c", ""},
		{w + "/a/b", w + "/a/bc", ""},
		{w + "/a/b", w + "/a/b", "overlaps the location of another table"},
		{w + "/a/b", "file:/w/main/a/b/", "overlaps the location of another table"},
		{w + "/a/b", "file://localhost/w/main/a/b", "overlaps the location of another table"},
		{w + "/a/b", w + "/a", "overlaps the location of another table"},
		{w + "/a/b", w + "/a/b/c", "overlaps the location of another table"},
		{w + "/a/b", w + "/a/b/c/d/e", "overlaps the location of another table"},
		{"", w + "/ns", "overlaps the locations of the tables of a namespace"},
		{"", w, "none of the warehouse's roots"},
		{"", "file:///w", "none of the warehouse's roots"},
		{"", w + "/../x", "`..`"},
		{"", w + "x/t", "none of the warehouse's roots"},
		{"", "relative/t", "scheme"},
		{"", "/w/main/t", "scheme"},
		{"", "s3://bucket/t", "none of the warehouse's roots"},
		{"", w + "/a b", "escape"},
		{"", w + "/.landfast-warehouse-x", "reserved"},
		{"", w + "/x/.landfast-warehouse-x/t", "reserved"},
		{"", w + "/ns/own", ""},
		{w + "/ns/own", "", ""},
	} {
		t.Run(c.first+" then "+c.second, func(t *testing.T) {
			s := newPlainStack(t)
			s.must(createTableAt("ns.first", c.first))
			second := createTableAt("ns.second", c.second)
			if c.refusal == "" {
				s.must(second)
				if want := strings.TrimSuffix(c.second, "/"); want != "" && !strings.Contains(string(second.Result.Metadata), fmt.Sprintf("%q", want)) {
					t.Errorf("stored otherwise: %s", second.Result.Metadata)
				}
				return
			}
			before := s.store.String()
			s.refused(second, catalog.ErrInvalid, c.refusal)
			if d := cmp.Diff(before, s.store.String()); d != "" {
				t.Errorf("a refusal changed something: %s", d)
			}
			s.must(dropTable("ns.first", false))
			if strings.Contains(c.refusal, "another table") {
				s.must(second) // the claim ended with the table
			}
		})
	}
}

// A location that the server chose for a live table cannot be claimed, nor what
// lies below it; once the table is dropped, it can (as by one who registers it again).
func TestServerLocationIsTaken(t *testing.T) {
	s := newPlainStack(t)
	first := createTable("ns.t")
	s.must(first)
	location := strings.TrimSuffix(first.Result.MetadataLocation[:strings.LastIndex(first.Result.MetadataLocation, "/")], "/metadata")
	s.refused(createTableAt("ns.same", location), catalog.ErrInvalid, "overlaps the location of another table")
	s.refused(createTableAt("ns.below", location+"/x/y"), catalog.ErrInvalid, "overlaps the location of another table")
	s.must(renameTable("ns.t", "ns.renamed"))
	s.refused(stagedCreate("ns.t", location), catalog.ErrInvalid, "overlaps the location of another table")
	s.must(dropTable("ns.renamed", false))
	s.must(stagedCreate("ns.t", location))
}

// A namespace's location is the parent of what the server chooses in it, and in
// what is made under it.
func TestNamespaceLocation(t *testing.T) {
	s := newPlainStack(t)
	s.must(createNamespace("far", "location", "file:/w/main/far/away/"))
	s.must(createNamespace("far.child"))
	for table, want := range map[string]string{
		"far.t":       "file:/w/main/far/away/t-",
		"far.child.t": "file:/w/main/far/away/child/t-",
	} {
		op := createTable(table)
		s.must(op)
		if !strings.HasPrefix(op.Result.MetadataLocation, want) {
			t.Errorf("%s is at %s", table, op.Result.MetadataLocation)
		}
	}
	s.refused(createNamespace("out", "location", "file:///tmp/x"), catalog.ErrInvalid, "Invalid namespace location")
	s.refused(createNamespace("out", "location", "file:///w/main/.landfast-warehouse-x"), catalog.ErrInvalid, "reserved")
	s.must(createTableAt("ns.own", "file:///w/main/own"))
	s.refused(createNamespace("in", "location", "file:///w/main/own/in"), catalog.ErrInvalid, "overlaps the location of another table")
	s.must(createNamespace("own")) // which chose no location: the server finds another
	beside := createTable("own.t")
	s.must(beside)
	if !strings.HasPrefix(beside.Result.MetadataLocation, "file:///w/main/own-") {
		t.Errorf("own.t is at %s", beside.Result.MetadataLocation)
	}
	s.refused(createTableAt("ns.above", "file:///w/main/far"), catalog.ErrInvalid, "overlaps the locations of the tables of a namespace")
}

// A warehouse that opted out has no location index.
func TestOverlapAllowed(t *testing.T) {
	s := newStack(t, queues["queue"]())
	s.must(&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
		ID: "id", Name: "lax", Root: blob.Root{URI: "file:///lax"}, Properties: map[string]string{catalog.PropertyAllowOverlap: "true"},
	}})
	s.must(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "lax", Levels: []string{"ns"}}})
	for _, name := range []string{"ns.a", "ns.b"} {
		op := createTableAt(name, "file:///lax/same")
		op.Request.Warehouse = "lax"
		s.must(op)
	}
}

// A metadata file that is gone, garbage or unreachable is told from a table that
// is gone, and a commit on it changes nothing.
func TestMetadataFileFaults(t *testing.T) {
	s := newPlainStack(t)
	create := createTable("ns.t")
	s.must(create)
	file := create.Result.MetadataLocation
	before := s.store.String()
	for _, c := range []struct {
		fault   func()
		kind    error
		refusal string
	}{
		{func() { s.files.Replace(file, []byte("garbage")) }, catalog.ErrDamaged, "cannot be used"},
		{func() { s.files.Replace(file, nil) }, catalog.ErrDamaged, "cannot be used"},
		{func() { s.files.Replace(file, []byte(`{"format-version":99}`)) }, catalog.ErrDamaged, "version 99"},
		{func() { s.files.Replace(file, []byte("\x1f\x8bnot gzip")) }, catalog.ErrDamaged, "cannot be used"},
		{func() { _ = s.files.Delete(t.Context(), nil, file) }, catalog.ErrMissingFile, "Failed to open input stream for file: " + file},
	} {
		c.fault()
		s.restart()
		s.refused(loadTable("ns.t"), c.kind, c.refusal)
		s.refused(setProperty("ns.t", "k", "v"), c.kind, c.refusal)
	}
	if d := cmp.Diff(before, s.store.String()); d != "" {
		t.Errorf("a refusal changed something: %s", d)
	}
	s.must(createTable("ns.whole"))
	before = s.store.String()
	s.files.FailMark = blob.ErrMarkMissing // though the file is there
	s.restart()
	for _, op := range []kernel.Operation{
		loadTable("ns.whole"), setProperty("ns.whole", "k", "v"), createTable("ns.u"), stagedCreate("ns.u", "file:///w/main/u"),
		register("ns.u", "file:///w/main/elsewhere.metadata.json"), dropTable("ns.whole", true),
	} {
		s.refused(op, catalog.ErrWarehouseUnavailable, "Warehouse main is not available")
	}
	if d := cmp.Diff(before, s.store.String()); d != "" {
		t.Errorf("a refusal changed something: %s", d)
	}
	s.files.FailMark = nil
	s.must(dropTable("ns.t", true)) // a table whose metadata is lost can still be dropped
}

// Files never change. What was read of one serves reads on, without the file and without its volume; a
// commit goes on from it where its own file can be written.
func TestMetadataIsRemembered(t *testing.T) {
	s := newPlainStack(t)
	create := createTable("ns.t")
	s.must(create)
	s.restart()
	load := loadTable("ns.t")
	s.must(load)
	if d := cmp.Diff(string(create.Result.Metadata), string(load.Result.Metadata)); d != "" {
		t.Error(d)
	}
	if err := s.files.Delete(t.Context(), nil, create.Result.MetadataLocation); err != nil {
		t.Fatal(err)
	}
	s.files.FailMark = blob.ErrMarkMissing
	again := loadTable("ns.t")
	s.must(again)
	if d := cmp.Diff(load.Result, again.Result); d != "" {
		t.Error(d)
	}
	s.refused(setProperty("ns.t", "k", "v"), catalog.ErrWarehouseUnavailable, "Warehouse main is not available")
	s.files.FailMark = nil
	s.must(setProperty("ns.t", "k", "v"))
	s.restart()
	s.must(loadTable("ns.t")) // from the file of the commit
}

// A client that holds a table as it is learns that without a look at any file.
func TestNotModifiedLooksAtNoFile(t *testing.T) {
	s := newPlainStack(t)
	create := createTable("ns.t")
	s.must(create)
	if err := s.files.Delete(t.Context(), nil, create.Result.MetadataLocation); err != nil {
		t.Fatal(err)
	}
	s.restart()
	known := loadTable("ns.t")
	known.Request.Known = []string{create.Result.ETag}
	s.must(known)
	if !known.Result.NotModified || known.Result.ETag != create.Result.ETag {
		t.Errorf("%+v", known.Result)
	}
	s.refused(loadTable("ns.t"), catalog.ErrMissingFile, "Failed to open input stream")
}

// Two warehouses may reach buckets of one name in different places: what the one's file
// says is not what the other's does.
func TestMemoryOfFilesIsOfOneWarehouse(t *testing.T) {
	s := newPlainStack(t)
	file := map[string][]byte{}
	for _, w := range []string{"a", "b"} {
		s.must(&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
			ID: w + "-id", Name: w, Root: blob.Root{URI: "s3://bucket/lake", S3: blob.S3Options{Endpoint: "http://" + w}},
			Properties: map[string]string{catalog.PropertyAllowOverlap: "true"},
		}})
		s.must(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: w, Levels: []string{"ns"}}})
		create := createTableAt("ns.t", "s3://bucket/lake/t")
		create.Request.Warehouse = w
		s.must(create)
		file[w] = create.Result.Metadata
	}
	const shared = "s3://bucket/lake/t/metadata/00000-shared.metadata.json"
	for _, w := range []string{"a", "b"} {
		s.files.Replace(shared, file[w]) // as a's endpoint has it, and then b's
		op := register("ns.shared", shared)
		op.Request.Warehouse = w
		s.must(op)
		load := loadTable("ns.shared")
		load.Request.Warehouse = w
		s.must(load)
		if d := cmp.Diff(string(file[w]), string(load.Result.Metadata)); d != "" {
			t.Errorf("%s: %s", w, d)
		}
	}
}

// A table that is renamed to its own name has that name.
func TestRenameToItself(t *testing.T) {
	s := newPlainStack(t)
	s.refused(renameTable("ns.t", "ns.t"), catalog.ErrNoSuchTable, "Table does not exist: ns.t")
	s.must(createTable("ns.t"))
	s.must(renameTable("ns.t", "ns.t"))
	s.must(loadTable("ns.t"))
}

// Unknown parts of a commit are refused, but only once the table was found.
func TestCommitRefusals(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.t"))
	for _, c := range []struct {
		table, requirements, updates string
		kind                         error
		refusal                      string
	}{
		{"ns.none", `[]`, `[]`, catalog.ErrNoSuchTable, "Table does not exist: ns.none"},
		{"none.t", `[]`, `[]`, catalog.ErrNoSuchTable, "Table does not exist: none.t"},
		{"ns.none", `[{"type":"assert-nothing"}]`, `[{"action":"explode"}]`, catalog.ErrNoSuchTable, "Table does not exist"},
		{"none.t", `[{"type":"assert-create"}]`, `[]`, catalog.ErrNoSuchNamespace, "Namespace does not exist: none"},
		{"ns.t", `[{"type":"assert-nothing"}]`, `[]`, catalog.ErrInvalid, "assert-nothing"},
		{"ns.t", `[]`, `[{"action":"explode"}]`, catalog.ErrInvalid, "explode"},
		{"ns.t", `{}`, `[]`, catalog.ErrInvalid, "requirements"},
		{"ns.t", `[]`, `[{"action":"set-location"}]`, catalog.ErrInvalid, "location"},
		{"ns.t", `[]`, `[{"action":"set-location","location":"file:///etc"}]`, catalog.ErrInvalid, "none of the warehouse's roots"},
		{"ns.t", `[]`, `[{"action":"set-properties","updates":{"write.metadata.path":"file:///etc"}}]`, catalog.ErrInvalid, "none of the warehouse's roots"},
		{"ns.t", `[]`, `[{"action":"set-properties","updates":{"write.metadata.path":"file:///w/main/.landfast-warehouse-x"}}]`, catalog.ErrInvalid, "place for metadata files"},
		{"ns.t", `[]`, `[{"action":"set-properties","updates":{"write.metadata.compression-codec":"zip"}}]`, catalog.ErrInvalid, "zip"},
		{"ns.t", `[{"type":"assert-create"}]`, `[]`, catalog.ErrRequirement, "Requirement failed: table already exists"},
		{"ns.t", `[{"type":"assert-table-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}]`, `[]`, catalog.ErrRequirement, "Requirement failed: UUID does not match"},
	} {
		before := s.store.String()
		s.refused(commitTable(c.table, c.requirements, c.updates), c.kind, c.refusal)
		if d := cmp.Diff(before, s.store.String()); d != "" {
			t.Errorf("%s changed something: %s", c.updates, d)
		}
	}
}

// A staged create writes nothing and says everything; two may be staged at once,
// and the first that commits wins.
func TestStagedCreate(t *testing.T) {
	s := newPlainStack(t)
	before := s.store.String()
	stage := createTable("ns.t")
	stage.Request.Stage = true
	s.must(stage)
	if stage.Result.MetadataLocation != "" || stage.Result.ETag != "" || len(stage.Result.Metadata) == 0 {
		t.Errorf("staged: %+v", stage.Result)
	}
	if d := cmp.Diff(before, s.store.String()); d != "" || len(s.files.Locations()) != 0 {
		t.Errorf("staging wrote %v %s", s.files.Locations(), d)
	}
	s.must(stagedCreate("ns.t", "file:///w/main/s/1"))
	s.refused(stagedCreate("ns.t", "file:///w/main/s/2"), catalog.ErrRequirement, "Requirement failed: table already exists")
	s.refused(stage, catalog.ErrAlreadyExists, "Table already exists: ns.t")
}

// The tag of an answer is that of a load of the same representation.
func TestETags(t *testing.T) {
	s := newPlainStack(t)
	create := createTable("ns.t")
	s.must(create)
	load := loadTable("ns.t")
	s.must(load)
	refs := loadTable("ns.t")
	refs.Request.Snapshots = catalog.SnapshotsRefs
	s.must(refs)
	if create.Result.ETag != load.Result.ETag || load.Result.ETag == refs.Result.ETag || load.Result.ETag == "" {
		t.Errorf("create %s, load %s, refs %s", create.Result.ETag, load.Result.ETag, refs.Result.ETag)
	}
	known := loadTable("ns.t")
	known.Request.Known = []string{"x", load.Result.ETag}
	s.must(known)
	if !known.Result.NotModified || known.Result.Metadata != nil {
		t.Errorf("known: %+v", known.Result)
	}
	commit := setProperty("ns.t", "k", "v")
	s.must(commit)
	s.must(known)
	if known.Result.NotModified || known.Result.ETag != commit.Result.ETag {
		t.Errorf("after a commit: %+v", known.Result)
	}
}

// Pages cover a list once each, whatever is made and dropped between them.
func TestPages(t *testing.T) {
	s := newPlainStack(t)
	for i := range 10 {
		s.must(createTable(fmt.Sprintf("ns.t%d", i)))
	}
	var got []string
	list := &catalog.ListTables{Request: catalog.ListTablesRequest{Warehouse: "main", Namespace: []string{"ns"}, Page: catalog.Page{Size: 3}}}
	for page := range 4 {
		s.must(list)
		got = append(got, list.Result.Names...)
		if last := list.Result.NextToken == ""; last != (page == 3) {
			t.Fatalf("page %d: next %q", page, list.Result.NextToken)
		}
		list.Request.Page.Token = list.Result.NextToken
		if page < 3 {
			s.must(dropTable("ns."+got[len(got)-1], false))         // where the next page begins
			s.must(createTable(fmt.Sprintf("ns.a-before%d", page))) // on a page that has passed
		}
	}
	if d := cmp.Diff([]string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"}, got); d != "" {
		t.Error(d)
	}
	for _, token := range []string{"x", "bm90LWhlcmU", list.Request.Page.Token + "!"} {
		s.refused(&catalog.ListTables{Request: catalog.ListTablesRequest{
			Warehouse: "main", Namespace: []string{"ns"}, Page: catalog.Page{Token: token},
		}}, catalog.ErrInvalid, "Invalid page token")
	}
}

// Reclaiming deletes the metadata files of a purged table, and only those.
func TestReclaim(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.kept"))
	kept := s.files.Locations()
	s.must(createTable("ns.t"))
	s.must(setProperty("ns.t", "k", "v"))
	drop := dropTable("ns.t", true)
	s.must(drop)
	if n := len(s.files.Locations()); n != 3 {
		t.Errorf("%d files before reclaiming", n)
	}
	s.refused(&catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: "main"}}, catalog.ErrNotEmpty, "Warehouse main is not empty")
	location := "file:///w/main/ns/t-" + drop.Result.DyingID
	s.refused(createTableAt("ns.again", location), catalog.ErrInvalid, "being purged")
	for range 2 { // a second time, as after a crash, does no harm
		if err := reclaim(t.Context(), s.runner, s.files, "main", drop.Result.DyingID); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(kept, s.files.Locations()); d != "" {
		t.Errorf("after reclaiming: %s", d)
	}
	s.must(createTableAt("ns.again", location))
	s.must(dropTable("ns.again", true)) // its claim is kept until its files are gone
	s.refused(createTableAt("ns.again", location), catalog.ErrInvalid, "being purged")
	find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}}
	s.must(find)
	for _, list := range find.Result.Lists {
		if err := reclaim(t.Context(), s.runner, s.files, "main", list.ID); err != nil {
			t.Fatal(err)
		}
	}
	s.must(createTableAt("ns.again", location))
}

func register(dotted, metadataLocation string) *catalog.RegisterTable {
	return &catalog.RegisterTable{Request: catalog.RegisterTableRequest{Warehouse: "main", Table: ident(dotted), MetadataLocation: metadataLocation}}
}

// A table that was dropped is registered again from its metadata file, as it was,
// and its files' numbers go on.
func TestRegister(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.t"))
	commit := setProperty("ns.t", "k", "v")
	s.must(commit)
	file := commit.Result.MetadataLocation
	s.refused(register("ns.t", file), catalog.ErrAlreadyExists, "Table already exists: ns.t")
	s.refused(register("none.t", file), catalog.ErrNoSuchNamespace, "Namespace does not exist: none")
	s.refused(register("ns.copy", file), catalog.ErrInvalid, "lies in the place of a table or view in warehouse main")
	s.must(dropTable("ns.t", false))
	again := register("ns.u", file)
	s.must(again)
	if again.Result.MetadataLocation != file || string(again.Result.Metadata) != string(commit.Result.Metadata) {
		t.Errorf("registered otherwise: %+v", again.Result)
	}
	next := setProperty("ns.u", "k", "w")
	s.must(next)
	if base := next.Result.MetadataLocation[strings.LastIndex(next.Result.MetadataLocation, "/")+1:]; !strings.HasPrefix(base, "00002-") {
		t.Errorf("next file is %s", base)
	}

	back := register("ns.u", file)
	s.refused(back, catalog.ErrAlreadyExists, "Table already exists: ns.u")
	back.Request.Overwrite = true
	s.must(back)
	load := loadTable("ns.u")
	s.must(load)
	if load.Result.MetadataLocation != file {
		t.Errorf("after overwriting: %s", load.Result.MetadataLocation)
	}

	s.refused(register("ns.new", next.Result.MetadataLocation), catalog.ErrInvalid, "lies in the place of a table or view in warehouse main")
	s.files.Replace("file:///w/main/garbage.metadata.json", []byte("garbage"))
	for location, c := range map[string]struct {
		kind    error
		refusal string
	}{
		"":                                     {catalog.ErrInvalid, "empty"},
		"file:///etc/passwd":                   {catalog.ErrInvalid, "none of the warehouse's roots"},
		"file:///w/main/none.metadata.json":    {catalog.ErrMissingFile, "Failed to open input stream for file: file:///w/main/none.metadata.json"},
		"file:///w/main/garbage.metadata.json": {catalog.ErrInvalid, "cannot be used"},
		"file:///w/main/../../etc/hos":         {catalog.ErrInvalid, "`..`"},
	} {
		s.refused(register("ns.new", location), c.kind, c.refusal)
	}
}

// race runs operations at once, in many rounds, on both stores and both queues, and looks at each round's errors.
func race(t *testing.T, rounds int, prepare func(s *stack, round int) []kernel.Operation, check func(s *stack, round int, errs []error)) {
	for name, s := range map[string]func(*testing.T) *stack{
		"mem/queue":      func(t *testing.T) *stack { return newStack(t, queues["queue"]()) },
		"mem/yes":        func(t *testing.T) *stack { return newStack(t, queues["yes"]()) },
		"embedded/queue": func(t *testing.T) *stack { return newEmbeddedStack(t, queues["queue"]()) },
		"embedded/yes":   func(t *testing.T) *stack { return newEmbeddedStack(t, queues["yes"]()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := s(t)
			s.must(createNamespace("ns"))
			for round := range rounds {
				ops := prepare(s, round)
				errs := make([]error, len(ops))
				var wg sync.WaitGroup
				for i, op := range ops {
					wg.Go(func() { errs[i] = s.do(op) })
				}
				wg.Wait()
				check(s, round, errs)
			}
		})
	}
}

// A namespace is dropped, or has the table: never neither, never both.
func TestDropNamespaceRacesCreateTable(t *testing.T) {
	race(t, 40, func(s *stack, i int) []kernel.Operation {
		ns := fmt.Sprintf("r%d", i)
		s.must(createNamespace(ns))
		return []kernel.Operation{dropNamespace(ns), createTable(ns + ".t"), createNamespace(ns + ".child")}
	}, func(s *stack, i int, errs []error) {
		dropped := errs[0] == nil
		for _, err := range errs[1:] {
			if dropped && !errors.Is(err, catalog.ErrNoSuchNamespace) || !dropped && err != nil && !errors.Is(err, catalog.ErrNoSuchNamespace) {
				s.Errorf("round %d: %v", i, errs)
			}
		}
		if !dropped && !errors.Is(errs[0], catalog.ErrNotEmpty) {
			s.Errorf("round %d: %v", i, errs)
		}
	})
}

// Of tables made at once under one name, or at one location, one is made.
func TestCreateRaces(t *testing.T) {
	race(t, 20, func(s *stack, i int) []kernel.Operation {
		name := fmt.Sprintf("ns.t%d", i)
		return []kernel.Operation{createTable(name), createTable(name), stagedCreate(name, fmt.Sprintf("file:///w/main/c/%d", i))}
	}, oneWins)
	race(t, 20, func(s *stack, i int) []kernel.Operation {
		at := fmt.Sprintf("file:///w/main/l/%d", i)
		return []kernel.Operation{
			createTableAt(fmt.Sprintf("ns.a%d", i), at), createTableAt(fmt.Sprintf("ns.b%d", i), at+"/below"),
			stagedCreate(fmt.Sprintf("ns.c%d", i), at),
		}
	}, oneWins)
}

func oneWins(s *stack, round int, errs []error) {
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		}
	}
	if won != 1 {
		s.Errorf("round %d: %d won: %v", round, won, errs)
	}
}

// A commit that was acknowledged while its table was renamed is in the table
// under its new name; none is lost.
func TestRenameRacesCommit(t *testing.T) {
	race(t, 20, func(s *stack, i int) []kernel.Operation {
		s.must(createTable(fmt.Sprintf("ns.t%d", i)))
		return []kernel.Operation{
			renameTable(fmt.Sprintf("ns.t%d", i), fmt.Sprintf("ns.u%d", i)),
			setProperty(fmt.Sprintf("ns.t%d", i), "k0", "v"), setProperty(fmt.Sprintf("ns.t%d", i), "k1", "v"),
		}
	}, func(s *stack, i int, errs []error) {
		if errs[0] != nil {
			s.Errorf("round %d: rename: %v", i, errs[0])
		}
		load := loadTable(fmt.Sprintf("ns.u%d", i))
		s.must(load)
		for j, err := range errs[1:] {
			there := strings.Contains(string(load.Result.Metadata), fmt.Sprintf(`"k%d":"v"`, j))
			if err == nil != there || err != nil && !errors.Is(err, catalog.ErrNoSuchTable) {
				s.Errorf("round %d: commit %d: %v, in the table: %v", i, j, err, there)
			}
		}
	})
}

// Of 16 writers of different properties of one table, and of one namespace, none is lost.
func TestNoUpdateIsLost(t *testing.T) {
	for name, queue := range queues {
		t.Run(name, func(t *testing.T) {
			s := newStack(t, queue())
			s.must(createNamespace("ns"))
			s.must(createTable("ns.t"))
			var failed atomic.Int32
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					k := fmt.Sprintf("k%d", i)
					if err := s.do(setProperty("ns.t", k, "v")); err != nil {
						t.Error(err)
						failed.Add(1)
					}
					if err := s.do(&catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
						Warehouse: "main", Levels: []string{"ns"}, Updates: map[string]string{k: "v"},
					}}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			load := loadTable("ns.t")
			s.must(load)
			get := &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: "main", Levels: []string{"ns"}}}
			s.must(get)
			for i := range 16 {
				k := fmt.Sprintf("k%d", i)
				if !strings.Contains(string(load.Result.Metadata), fmt.Sprintf("%q", k)) || get.Result.Properties[k] != "v" {
					t.Errorf("%s is lost", k)
				}
			}
		})
	}
}
