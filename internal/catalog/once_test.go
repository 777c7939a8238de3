package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// Every mutation may be sent again under its key: it is answered as the first time, whatever
// has become of what it changed, and changes nothing more.
func TestOnceReplays(t *testing.T) {
	const location = "file:///w/main/own/staged"
	file := "file:///w/main/ns/t-00000000-0000-4000-8000-%012d/metadata/00000-00000000-0000-4000-8000-%012d.metadata.json"
	for name, c := range map[string]struct {
		before []catalog.Mutation
		op     func() catalog.Mutation
		after  []catalog.Mutation
	}{
		"create namespace": {nil, func() catalog.Mutation { return createNamespace("a", "k", "v") }, []catalog.Mutation{dropNamespace("a")}},
		"drop namespace":   {[]catalog.Mutation{createNamespace("a")}, func() catalog.Mutation { return dropNamespace("a") }, nil},
		"update properties": {nil, func() catalog.Mutation {
			return &catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
				Warehouse: "main", Levels: []string{"ns"}, Updates: map[string]string{"k": "v"}, Removals: []string{"none"},
			}}
		}, nil},
		"create table":      {nil, func() catalog.Mutation { return createTable("ns.t") }, []catalog.Mutation{dropTable("ns.t", true)}},
		"commit":            {[]catalog.Mutation{createTable("ns.t")}, func() catalog.Mutation { return setProperty("ns.t", "k", "v") }, []catalog.Mutation{setProperty("ns.t", "k", "w"), dropTable("ns.t", true)}},
		"commit of nothing": {[]catalog.Mutation{createTable("ns.t")}, func() catalog.Mutation { return commitTable("ns.t", noAssert, `[]`) }, []catalog.Mutation{dropTable("ns.t", true)}},
		"staged create":     {nil, func() catalog.Mutation { return stagedCreate("ns.t", location) }, []catalog.Mutation{renameTable("ns.t", "ns.u")}},
		"drop":              {[]catalog.Mutation{createTable("ns.t")}, func() catalog.Mutation { return dropTable("ns.t", false) }, nil},
		"drop, made again":  {[]catalog.Mutation{createTable("ns.t")}, func() catalog.Mutation { return dropTable("ns.t", true) }, []catalog.Mutation{createTable("ns.t")}},
		"rename":            {[]catalog.Mutation{createTable("ns.t")}, func() catalog.Mutation { return renameTable("ns.t", "ns.u") }, nil},
		"unregister": {[]catalog.Mutation{createTable("ns.t")}, func() catalog.Mutation {
			return &catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: "main", Table: ident("ns.t")}}
		}, nil},
		"register": {[]catalog.Mutation{createTable("ns.t"), dropTable("ns.t", false)}, func() catalog.Mutation {
			return register("ns.u", fmt.Sprintf(file, 8, 9))
		}, []catalog.Mutation{dropTable("ns.u", true)}},
		"transaction": {[]catalog.Mutation{createTable("ns.t")}, func() catalog.Mutation {
			return transaction(change("ns.t", noAssert, `[{"action":"set-properties","updates":{"k":"v"}}]`), staged("ns.u", location))
		}, []catalog.Mutation{dropTable("ns.t", false)}},
		"create view": {nil, func() catalog.Mutation { return createView("ns.v") }, []catalog.Mutation{&catalog.DropView{Request: view("ns.v")}}},
		"replace view": {[]catalog.Mutation{createView("ns.v")}, func() catalog.Mutation {
			return replaceView("ns.v", noAssert, `[{"action":"set-properties","updates":{"k":"v"}}]`)
		}, []catalog.Mutation{&catalog.DropView{Request: view("ns.v")}}},
		"drop view":   {[]catalog.Mutation{createView("ns.v")}, func() catalog.Mutation { return &catalog.DropView{Request: view("ns.v")} }, nil},
		"rename view": {[]catalog.Mutation{createView("ns.v")}, func() catalog.Mutation { return renameView("ns.v", "ns.w") }, nil},
		"register view": {[]catalog.Mutation{createView("ns.v"), &catalog.DropView{Request: view("ns.v")}}, func() catalog.Mutation {
			return registerView("ns.w", "file:///w/main/ns/v-00000000-0000-4000-8000-000000000008/metadata/00000-00000000-0000-4000-8000-000000000009.gz.metadata.json")
		}, []catalog.Mutation{&catalog.DropView{Request: view("ns.w")}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPlainStack(t)
			for _, op := range c.before {
				s.must(op)
			}
			first := once("k", c.op())
			s.must(first)
			for _, op := range c.after {
				s.must(op)
				if drop, ok := op.(*catalog.DropTable); ok && drop.Result.DyingID != "" {
					if err := reclaim(t.Context(), s.runner, s.files, "main", drop.Result.DyingID); err != nil {
						t.Fatal(err)
					}
				}
			}
			records := s.store.Snapshot()
			again := once("k", c.op())
			s.must(again)
			if diff := cmp.Diff(first.Inner, again.Inner); diff != "" {
				t.Errorf("-first +again\n%s", diff)
			}
			if diff := cmp.Diff(records, s.store.Snapshot()); diff != "" {
				t.Errorf("the second time changed something: %s", diff)
			}
		})
	}
}

// A large result is not kept in its record: the file that it names is read again.
func TestOnceReplaysLargeMetadata(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.t"))
	var noise strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&noise, "%x", uint64(i+1)*0x9e3779b97f4a7c15)
	}
	first := once("k", setProperty("ns.t", "noise", noise.String()))
	s.must(first)
	s.must(setProperty("ns.t", "k", "v"))
	again := once("k", setProperty("ns.t", "noise", noise.String()))
	s.must(again)
	if diff := cmp.Diff(first.Inner, again.Inner); diff != "" {
		t.Errorf("-first +again\n%s", diff)
	}
	if record, err := s.store.Get(t.Context(), key.ForOnce("main", "k")); err != nil || len(record.Value) > 8<<10 {
		t.Errorf("the record has %d bytes, %v", len(record.Value), err)
	}
}

// A key means one request, within one warehouse, for its lifetime. A refusal is not remembered.
func TestOnceKeys(t *testing.T) {
	s := newPlainStack(t)
	s.refused(once("k", dropTable("ns.t", false)), catalog.ErrNoSuchTable, "ns.t")
	s.must(once("k", createTable("ns.t")))
	s.refused(once("k", createTable("ns.u")), catalog.ErrUnprocessable, "Idempotency-Key k was used for another request (create-table)")
	elsewhere := once("k", dropTable("ns.t", false))
	elsewhere.Request.Warehouse = ""
	s.must(elsewhere)

	s.mu.Lock()
	s.clock = s.clock.Add(time.Minute)
	s.mu.Unlock()
	s.must(once("k", createTable("ns.u"))) // k is free again
	s.refused(once("k", createTable("ns.t")), catalog.ErrUnprocessable, "another request")
	if err := catalog.ForgetAllExpired(t.Context(), s.runner); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		warehouse string
		kept      bool
	}{{"main", true}, {"", false}} {
		r, err := s.store.Get(t.Context(), key.ForOnce(c.warehouse, "k"))
		if err != nil || r.Exists() != c.kept {
			t.Errorf("key of warehouse %q: %v %v", c.warehouse, r.Exists(), err)
		}
	}
}

// Of many duplicates in flight one makes the change, and all get its answer, though
// some batches are lost on their way and some are applied unheard.
func TestOnceInFlight(t *testing.T) {
	for name, queue := range queues {
		t.Run(name, func(t *testing.T) {
			s := newStack(t, queue())
			s.must(createNamespace("ns"))
			n := 0
			s.store.Fault = func(store.Batch) kerneltest.Fault {
				s.mu.Lock()
				defer s.mu.Unlock()
				n++
				if n%3 > 0 {
					return kerneltest.Fault{}
				}
				return kerneltest.Fault{Err: store.ErrOutcomeUnknown, Applied: n%2 == 0}
			}
			answers := make([]string, 20)
			var clients sync.WaitGroup
			for i := range answers {
				clients.Go(func() {
					op := once("k", createTable("ns.t"))
					if err := s.do(op); err != nil {
						t.Error(err)
					}
					answers[i] = op.Inner.(*catalog.CreateTable).Result.MetadataLocation
				})
			}
			clients.Wait()
			for _, a := range answers {
				if a == "" || a != answers[0] {
					t.Errorf("answers differ: %q", answers)
					break
				}
			}
			if err := s.do(createTable("ns.t")); !errors.Is(err, catalog.ErrAlreadyExists) {
				t.Error(err)
			}
		})
	}
}

// What is remembered of a warehouse has no secret.
func TestOnceForgetsSecrets(t *testing.T) {
	s := newPlainStack(t)
	bucket := blob.Root{URI: "s3://bucket/lake", S3: blob.S3Options{AccessKeyID: "id", SecretAccessKey: "s3cr3t"}}
	create := func() *catalog.CreateWarehouse {
		return &catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{ID: "lake-id", Name: "lake", Root: bucket, Allowed: []blob.Root{bucket}}}
	}
	first, again := once("k", create()), once("k", create())
	s.must(first)
	s.must(again)
	if got := again.Inner.(*catalog.CreateWarehouse).Result; got.ID != "lake-id" || got.Root.S3.AccessKeyID != "id" {
		t.Errorf("the second time: %+v", got)
	}
	record, err := s.store.Get(t.Context(), key.ForOnce("main", "k"))
	if err != nil || !record.Exists() || strings.Contains(string(record.Value), "s3cr3t") {
		t.Errorf("the record: %s %v", record.Value, err)
	}
	s.must(once("delete", &catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: "lake"}}))
	s.must(once("delete", &catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: "lake"}}))
}
