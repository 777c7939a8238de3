package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
)

var mainRoot = blob.Root{URI: "file:///w/main", Dir: "/w/main"}

// beforeApply calls between once, when the first batch of an operation has its files
// written and is about to be applied.
func (s *stack) beforeApply(op string, between func()) {
	fault, done := s.store.Fault, false
	s.store.Fault = func(b store.Batch) kerneltest.Fault {
		if b.Ops[0].Name == op && !done {
			done = true
			between()
		}
		return fault(b)
	}
}

// The metadata file of a create that is on its way can be seen, and so can the directory that the
// server chose. Who comes to lie there, at it, or below it, and the table never share it.
func TestCreateRacesClaim(t *testing.T) {
	for name, other := range map[string]func(file string) kernel.Operation{
		"register": func(file string) kernel.Operation { return register("ns.other", file) },
		"create":   func(file string) kernel.Operation { return createTableAt("ns.other", tableLocation(file)) },
		"below":    func(file string) kernel.Operation { return createTableAt("ns.other", tableLocation(file)+"/sub") },
		"area": func(file string) kernel.Operation {
			return createNamespace("area", "location", tableLocation(file)+"/sub")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPlainStack(t)
			s.beforeApply("create-table", func() {
				files := s.files.Locations()
				if err := s.do(other(files[len(files)-1])); err != nil && !errors.Is(err, catalog.ErrInvalid) {
					t.Error(err)
				}
			})
			create := createTable("ns.t")
			s.must(create)
			checkInvariants(t, s.store.Snapshot(), s.files.Locations(), blob.Scope{mainRoot})
			if n, err := s.store.Get(t.Context(), key.ForArea(tableLocation(create.Result.MetadataLocation)+"/sub")); err != nil || n.Exists() {
				t.Errorf("an area lies in the table's place: %v", err)
			}
			drop := dropTable("ns.other", true)
			if err := s.do(drop); err == nil {
				if err := reclaim(t.Context(), s.runner, s.files, "main", drop.Result.DyingID); err != nil {
					t.Fatal(err)
				}
			}
			s.must(loadTable("ns.t"))
		})
	}
}

// A file that was read to be registered, and is then given up, deleted and forgotten, is not
// registered. Only the time of grace speaks against it, and no condition may rest on a clock.
func TestRegisterRacesEndOfMark(t *testing.T) {
	s := newPlainStack(t)
	table := createTable("ns.t")
	table.Request.Properties = map[string]string{
		"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1",
		"write.metadata.path": "file:///w/main/shared",
	}
	s.must(table)
	s.must(setProperty("ns.t", "k", "1"))
	err := s.interrupted(register("ns.u", table.Result.MetadataLocation), func(what string) bool { return what == "file" }, func() {
		s.must(setProperty("ns.t", "k", "2"))
		find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}}
		s.must(find)
		for _, list := range find.Result.Lists {
			if err := reclaim(t.Context(), s.runner, s.files, "main", list.ID); err != nil {
				t.Error(err)
			}
		}
		s.must(dropTable("ns.t", false))
	})
	if !errors.Is(err, catalog.ErrMissingFile) {
		t.Errorf("register: %v", err)
	}
	checkInvariants(t, s.store.Snapshot(), s.files.Locations(), blob.Scope{mainRoot})
}

// A lost file of a table without uuid (format 1) is passed over while the table is being purged.
func TestGiveUpWithoutUUID(t *testing.T) {
	s := newPlainStack(t)
	const schema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`
	doc := []byte(`{"format-version":1,"location":"file:///w/main/own","last-updated-ms":1700000000000,"last-column-id":1,
		"schema":` + schema + `,"schemas":[` + schema + `],"current-schema-id":0,"partition-spec":[],"partition-specs":[{"spec-id":0,"fields":[]}],
		"default-spec-id":0,"last-partition-id":999,"sort-orders":[{"order-id":0,"fields":[]}],"default-sort-order-id":0,"properties":{}}`)
	const first, lost = "file:///w/main/own/metadata/v1.metadata.json", "file:///w/main/own/metadata/00001-lost.metadata.json"
	for _, f := range []string{first, lost} {
		if err := s.files.Create(t.Context(), blob.Scope{mainRoot}, f, doc); err != nil {
			t.Fatal(err)
		}
	}
	s.must(register("ns.t", first))
	s.must(dropTable("ns.t", true))
	op := giveUp(lost)
	s.must(op)
	if len(op.Result.Files) > 0 {
		t.Errorf("given up: %q", op.Result.Files)
	}
}

// A warehouse that lets locations overlap and one that does not have no place in common: what
// a purge in the one deletes, a table of the other could name.
func TestPurgeBesideOverlapping(t *testing.T) {
	s := newPlainStack(t)
	lax := map[string]string{catalog.PropertyAllowOverlap: "true"}
	root := func(path string) blob.Root { return blob.Root{URI: "file:///w" + path, Dir: "/w" + path} }
	create := func(name string, properties map[string]string, root blob.Root, allowed ...blob.Root) *catalog.CreateWarehouse {
		return &catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
			ID: name + "-id", Name: name, Root: root, Allowed: allowed, Properties: properties,
		}}
	}
	for _, op := range []*catalog.CreateWarehouse{
		create("same", lax, mainRoot), create("below", lax, root("/main/sub")), create("above", lax, root("")),
		create("allowed", lax, root("/lax"), root("/main/sub")),
	} {
		s.refused(op, catalog.ErrInvalid, "of warehouse main, which differs in "+catalog.PropertyAllowOverlap)
	}
	s.must(create("lax", lax, root("/lax")))
	s.refused(create("strict", nil, root("/strict"), root("/lax")), catalog.ErrInvalid, "of warehouse lax")
	s.must(create("strict", nil, root("/main/strict"))) // as main is
	s.must(create("laxer", lax, root("/lax/sub")))
}

// slowFiles are as far away as those in a bucket.
type slowFiles struct{ *kerneltest.Files }

func (f slowFiles) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	time.Sleep(30 * time.Millisecond)
	return f.Files.Read(ctx, scope, location, limit)
}

// What a busy table has lost is given up all the same, though there are many files to look at,
// and nobody has to wait long for the location index meanwhile.
func TestGiveUpOfBusyTable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		files := &kerneltest.Files{}
		run := kernel.New(kernel.Options{Store: newStore(t), Files: slowFiles{files}, Queue: local.New(local.Options{}), Limit: time.Minute})
		must := func(op kernel.Operation) {
			t.Helper()
			if err := run.Do(t.Context(), op); err != nil {
				t.Fatalf("%s: %v", op.Plan().Op, err)
			}
		}
		must(&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: mainRoot}})
		must(createNamespace("ns"))
		table := createTable("ns.t")
		must(table)
		data, err := files.Read(t.Context(), blob.Scope{mainRoot}, table.Result.MetadataLocation, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var lost []string
		for i := range 50 {
			f := strings.Replace(table.Result.MetadataLocation, "/00000-", fmt.Sprintf("/%05d-", i+1), 1)
			files.Replace(f, data)
			lost = append(lost, f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := 0; ctx.Err() == nil; n++ {
				if err := run.Do(context.Background(), setProperty("ns.t", "k", fmt.Sprint(n))); err != nil {
					t.Error(err)
				}
				time.Sleep(300 * time.Millisecond)
			}
		}()
		waited := make(chan time.Duration)
		go func() {
			time.Sleep(100 * time.Millisecond) // in the bubble's time: once the files are being looked at
			began := time.Now()
			if err := run.Do(context.Background(), createNamespace("other")); err != nil {
				t.Error(err)
			}
			waited <- time.Since(began)
		}()
		op := giveUp(lost...)
		err = run.Do(t.Context(), op)
		cancel()
		<-done
		if err != nil || len(op.Result.Files) != len(lost) {
			t.Errorf("given up: %d, %v", len(op.Result.Files), err)
		}
		if d := <-waited; d > time.Second {
			t.Errorf("a namespace was made only after %v", d)
		}
	})
}
