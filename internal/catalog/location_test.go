package catalog_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/locktest"
	"github.com/landfast/landfast/internal/store"
)

// tableLocation is where the table of a metadata file in the usual place lies.
func tableLocation(metadataLocation string) string {
	return strings.TrimSuffix(metadataLocation[:strings.LastIndex(metadataLocation, "/")], "/metadata")
}

// The tables of a namespace cannot be made to lie inside a table whose location the server chose.
func TestAreaInsideServerLocation(t *testing.T) {
	s := newPlainStack(t)
	first := createTable("ns.t")
	s.must(first)
	live := tableLocation(first.Result.MetadataLocation)
	for _, at := range []string{live, live + "/data"} {
		s.refused(createNamespace("x", "location", at), catalog.ErrInvalid, "overlaps the location of another table")
		s.refused(&catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
			Warehouse: "main", Levels: []string{"ns"}, Updates: map[string]string{"location": at},
		}}, catalog.ErrInvalid, "overlaps the location of another table")
	}
	leaf := live[strings.LastIndexByte(live, '/')+1:]
	s.must(createNamespace("ns." + leaf))
	inner := createTable("ns." + leaf + ".inner")
	s.must(inner)
	if got := inner.Result.MetadataLocation; strings.HasPrefix(got, live+"/") {
		t.Errorf("%s lies inside %s", got, live)
	}
}

// Older metadata of a table that was moved, named by another table's pointer,
// outlives the purge of the first.
func TestPurgeSparesWhatAnotherTableNames(t *testing.T) {
	for _, path := range []string{"file:///w/main/meta", "file:///w/main/l2/meta"} {
		s := newPlainStack(t)
		a := createTableAt("ns.a", "file:///w/main/l1")
		a.Request.Properties = map[string]string{"write.metadata.path": path}
		s.must(a)
		s.must(commitTable("ns.a", noAssert, `[{"action":"set-location","location":"file:///w/main/l2"}]`))
		b := register("ns.b", a.Result.MetadataLocation) // the file says l1, which is free
		registered := s.do(b) == nil
		drop := dropTable("ns.a", true)
		s.must(drop)
		if !registered {
			s.refused(b, catalog.ErrInvalid, "being purged")
		}
		if err := reclaim(t.Context(), s.runner, s.files, "main", drop.Result.DyingID); err != nil {
			t.Fatal(err)
		}
		if registered {
			s.must(loadTable("ns.b"))
		}
	}
}

// Where tables may share locations, a purge deletes nothing: what is shared cannot be told.
func TestPurgeWhereLocationsOverlap(t *testing.T) {
	s := newStack(t, queues["queue"]())
	s.must(&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
		ID: "id", Name: "lax", Root: blob.Root{URI: "file:///lax"}, Properties: map[string]string{catalog.PropertyAllowOverlap: "true"},
	}})
	s.must(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "lax", Levels: []string{"ns"}}})
	a := createTable("ns.a")
	a.Request.Warehouse = "lax"
	s.must(a)
	b := register("ns.b", a.Result.MetadataLocation)
	b.Request.Warehouse = "lax"
	s.must(b)
	drop := dropTable("ns.a", true)
	drop.Request.Warehouse = "lax"
	s.must(drop)
	if err := reclaim(t.Context(), s.runner, s.files, "lax", drop.Result.DyingID); err != nil {
		t.Fatal(err)
	}
	load := loadTable("ns.b")
	load.Request.Warehouse = "lax"
	s.must(load)
}

// interrupted runs an operation, without a queue, and calls between once, after
// the operation's first read that when says yes to.
func (s *stack) interrupted(op kernel.Operation, when func(what string) bool, between func()) error {
	var once sync.Once
	hook := func(what string) {
		if when(what) {
			once.Do(between)
		}
	}
	return kernel.New(kernel.Options{
		Store: hookedStore{s.store, hook}, Files: hookedFiles{s.files, hook}, Queue: locktest.Yes{},
	}).Do(s.Context(), op)
}

type hookedStore struct {
	store.Atomic
	hook func(string)
}

func (h hookedStore) Get(ctx context.Context, k key.Key) (store.Record, error) {
	r, err := h.Atomic.Get(ctx, k)
	h.hook(k.String())
	return r, err
}

type hookedFiles struct {
	*kerneltest.Files
	hook func(string)
}

func (h hookedFiles) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	data, err := h.Files.Read(ctx, scope, location, limit)
	h.hook("file")
	return data, err
}

// A file that is read to be registered while the end of a purge deletes it is not registered.
func TestRegisterRacesReclaim(t *testing.T) {
	for _, at := range []string{"", "file:///w/main/own"} {
		s := newPlainStack(t)
		a := createTableAt("ns.a", at)
		s.must(a)
		drop := dropTable("ns.a", true)
		s.must(drop)
		reclaim := func() {
			if err := reclaim(t.Context(), s.runner, s.files, "main", drop.Result.DyingID); err != nil {
				t.Error(err)
			}
		}
		for _, when := range []string{"file", key.LocationGuard().String()} {
			err := s.interrupted(register("ns.b", a.Result.MetadataLocation), func(what string) bool { return what == when }, reclaim)
			if !errors.Is(err, catalog.ErrInvalid) && !errors.Is(err, catalog.ErrMissingFile) {
				t.Errorf("at %q, after %s: %v", at, when, err)
			}
		}
		reclaim()
	}
}

// A name that comes to be taken between two looks at it is refused for what is
// then true: never as if overwriting were not allowed, nor as if assert-create
// had not been asked for.
func TestNameTakenMeanwhile(t *testing.T) {
	s := newPlainStack(t)
	a := createTableAt("ns.a", "file:///w/main/own")
	s.must(a)
	s.must(dropTable("ns.a", false))
	overwrite := register("ns.b", a.Result.MetadataLocation)
	overwrite.Request.Overwrite = true
	first := func(name string) func(string) bool {
		return func(what string) bool { return what == key.ForTableName("main", []string{"ns"}, name).String() }
	}
	if err := s.interrupted(overwrite, first("b"), func() { s.must(createTable("ns.b")) }); err != nil {
		t.Errorf("overwrite: %v", err)
	}
	err := s.interrupted(stagedCreate("ns.c", "file:///w/main/c"), first("c"), func() { s.must(createTable("ns.c")) })
	if !errors.Is(err, catalog.ErrRequirement) {
		t.Errorf("assert-create: %v", err)
	}
}

// A warehouse that is deleted and made again, with another root, between two reads
// is taken as it then is.
func TestWarehouseMadeAgainMeanwhile(t *testing.T) {
	s := newStack(t, queues["queue"]())
	create := func(root string) {
		s.must(&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
			ID: "id" + root, Name: "w", Root: blob.Root{URI: "file://" + root, Dir: root},
		}})
		s.must(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "w", Levels: []string{"ns"}}})
	}
	create("/old")
	op := createTableAt("ns.t", "file:///old/x")
	op.Request.Warehouse = "w"
	err := s.interrupted(op, func(what string) bool { return what == key.ForWarehouse("w").String() }, func() {
		s.must(&catalog.DropNamespace{Request: catalog.DropNamespaceRequest{Warehouse: "w", Levels: []string{"ns"}}})
		s.must(&catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: "w"}})
		create("/new")
	})
	if !errors.Is(err, catalog.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
