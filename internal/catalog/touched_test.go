package catalog_test

import (
	"testing"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// touched counts the records that a batch conditions or writes: what a store
// that can change one object at a time has to visit.
func touched(conds []store.Cond, writes []store.Write) int {
	records := map[key.Key]bool{}
	for _, c := range conds {
		records[c.Key] = true
	}
	for _, w := range writes {
		records[w.Key] = true
	}
	return len(records)
}

// A regular commit touches the pointer and nothing else, whatever the table is.
func TestCommitTouchesOneRecord(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.t"))
	s.must(createTableAt("ns.claimed", "file:///w/main/own/t"))
	for _, table := range []string{"ns.t", "ns.claimed"} {
		s.batches = nil
		s.must(setProperty(table, "k", "v"))
		if len(s.batches) != 1 || touched(s.batches[0].Conds, s.batches[0].Writes) != 1 {
			t.Errorf("%s: %+v", table, s.batches)
		}
	}
}
