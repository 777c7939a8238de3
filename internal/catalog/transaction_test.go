package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/landfast/landfast/internal/catalog"
)

// property is a property of the table in its current metadata.
func (s *stack) property(table, name string) string {
	s.Helper()
	load := loadTable(table)
	if err := s.do(load); err != nil {
		s.Error(err)
		return ""
	}
	var m struct {
		Properties map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(load.Result.Metadata, &m); err != nil {
		s.Error(err)
	}
	return m.Properties[name]
}

func setting(name, value string) string {
	return fmt.Sprintf(`[{"action":"set-properties","updates":{%q:%q}}]`, name, value)
}

// A table that is named twice is changed by both changes, the second on what the
// first made of it, and gets one file and one entry in its log.
func TestTransactionFolds(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.t"))
	files := len(s.files.Locations())
	const addColumn = `[{"action":"add-schema","schema":{"type":"struct","fields":[
		{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"n","required":false,"type":"string"}]}},
		{"action":"set-current-schema","schema-id":-1}]`
	s.must(transaction(
		change("ns.t", `[{"type":"assert-current-schema-id","current-schema-id":0}]`, addColumn),
		change("ns.t", `[{"type":"assert-current-schema-id","current-schema-id":1},{"type":"assert-last-assigned-field-id","last-assigned-field-id":2}]`,
			setting("k", "v")),
	))
	if got := s.property("ns.t", "k"); got != "v" {
		t.Errorf("k is %q", got)
	}
	if n := len(s.files.Locations()); n != files+1 {
		t.Errorf("%d files were written for one table", n-files)
	}
	load := loadTable("ns.t")
	s.must(load)
	var m struct {
		Log []any `json:"metadata-log"`
	}
	if err := json.Unmarshal(load.Result.Metadata, &m); err != nil || len(m.Log) != 1 {
		t.Errorf("%d log entries, %v", len(m.Log), err)
	}
	s.refused(transaction(
		change("ns.t", noAssert, setting("k", "w")),
		change("ns.t", `[{"type":"assert-current-schema-id","current-schema-id":0}]`, `[]`),
	), catalog.ErrRequirement, "current schema changed")
}

// A table may be created and changed in one transaction; created twice it is not.
func TestTransactionCreates(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.t"))
	s.must(transaction(
		staged("ns.new", "file:///w/main/own/new"),
		change("ns.new", `[{"type":"assert-current-schema-id","current-schema-id":0}]`, setting("k", "v")),
		change("ns.t", noAssert, setting("k", "v")),
	))
	if got := s.property("ns.new", "k"); got != "v" {
		t.Errorf("k is %q", got)
	}
	before := s.store.Snapshot()
	for _, c := range []struct {
		op   *catalog.CommitTransaction
		kind error
		text string
	}{
		{transaction(staged("ns.new", "file:///w/main/own/other")), catalog.ErrRequirement, "table already exists"},
		{transaction(staged("ns.a", "file:///w/main/own/a"), staged("ns.a", "file:///w/main/own/b")), catalog.ErrRequirement, "table already exists"},
		{transaction(staged("ns.a", "file:///w/main/own/a"), staged("ns.b", "file:///w/main/own/a/b")), catalog.ErrInvalid, "which the same request makes"},
		{transaction(staged("ns.a", "file:///w/main/own/a"), staged("no.b", "file:///w/main/own/b")), catalog.ErrNoSuchNamespace, "no"},
		{transaction(change("ns.t", noAssert, `[{"action":"set-location","location":"file:///w/main/m"}]`),
			staged("ns.b", "file:///w/main/m")), catalog.ErrInvalid, "which the same request makes"},
		{transaction(change("ns.t", noAssert, setting("k", "w")), change("ns.gone", noAssert, setting("k", "w"))), catalog.ErrNoSuchTable, "ns.gone"},
	} {
		s.refused(c.op, c.kind, c.text)
	}
	if after := s.store.Snapshot(); len(after) != len(before) || s.property("ns.t", "k") != "v" {
		t.Errorf("a refused transaction changed something")
	}
	s.must(transaction(change("ns.t", `[{"type":"assert-current-schema-id","current-schema-id":0}]`, `[]`))) // requires, and changes nothing
}

// Transactions over the same two tables, in opposite orders, beside readers: no reader
// ever finds one table changed and the other not yet. It looks at both, and at the
// first again: what did not move in between was so at one moment.
func TestTransactionIsAtomicAtEveryRead(t *testing.T) {
	for name, queue := range queues {
		t.Run(name, func(t *testing.T) {
			s := newStack(t, queue())
			s.must(createNamespace("ns"))
			s.must(createTable("ns.a"))
			s.must(createTable("ns.b"))
			var writers, readers sync.WaitGroup
			stop := make(chan struct{})
			for w := range 4 {
				writers.Go(func() {
					for i := range 10 {
						value := fmt.Sprintf("%d-%d", w, i)
						changes := []catalog.TableCommit{change("ns.a", noAssert, setting("k", value)), change("ns.b", noAssert, setting("k", value))}
						if w%2 == 0 {
							changes[0], changes[1] = changes[1], changes[0]
						}
						if err := s.do(transaction(changes...)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			looks := 0
			readers.Go(func() {
				for !s.Failed() {
					select {
					case <-stop:
						if looks > 0 { // if not before, then now that all is quiet
							return
						}
					default:
					}
					first, other, again := s.property("ns.a", "k"), s.property("ns.b", "k"), s.property("ns.a", "k")
					if first != again {
						continue
					}
					looks++
					if first != other {
						t.Errorf("a is %q and b is %q", first, other)
					}
				}
			})
			writers.Wait()
			close(stop)
			readers.Wait()
			if a, b := s.property("ns.a", "k"), s.property("ns.b", "k"); a != b || a == "" {
				t.Errorf("in the end a is %q and b is %q", a, b)
			}
		})
	}
}

// What is unregistered holds every commit that was acknowledged before, and none that
// came after is.
func TestUnregisterIsLinearizable(t *testing.T) {
	for name, queue := range queues {
		t.Run(name, func(t *testing.T) {
			s := newStack(t, queue())
			s.must(createNamespace("ns"))
			s.must(createTable("ns.t"))
			var mu sync.Mutex
			acknowledged := map[string]bool{}
			var clients sync.WaitGroup
			for w := range 4 {
				clients.Go(func() {
					for i := range 20 {
						k := fmt.Sprintf("k%d-%d", w, i)
						err := s.do(setProperty("ns.t", k, "v"))
						if errors.Is(err, catalog.ErrNoSuchTable) {
							return
						}
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						acknowledged[k] = true
						mu.Unlock()
					}
				})
			}
			op := &catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: "main", Table: ident("ns.t")}}
			clients.Go(func() {
				for s.property("ns.t", "k0-3") == "" && !s.Failed() { // some commits first
				}
				if err := s.do(op); err != nil {
					t.Error(err)
				}
			})
			clients.Wait()
			var m struct {
				Properties map[string]string `json:"properties"`
			}
			if err := json.Unmarshal(op.Result.Metadata, &m); err != nil {
				t.Fatal(err)
			}
			for k := range acknowledged {
				if m.Properties[k] == "" {
					t.Errorf("%s was acknowledged and is not there", k)
				}
			}
			if n := len(m.Properties) - 1; n != len(acknowledged) { // and the property that every new table has
				t.Errorf("%d commits are there, %d were acknowledged", n, len(acknowledged))
			}
		})
	}
}
