package tablemeta_test

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/tablemeta"
)

// TestSize: what metadata says of its size is about what it takes in memory, so that a bound
// on what is remembered is one.
func TestSize(t *testing.T) {
	const copies = 40
	made := map[string]func(doc []byte) *tablemeta.Metadata{
		"parsed": func(doc []byte) *tablemeta.Metadata {
			m, err := tablemeta.Parse(bytes.Clone(doc))
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		"committed": func(doc []byte) *tablemeta.Metadata {
			base, err := tablemeta.Parse(doc)
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := tablemeta.Commit(tablemeta.Change{
				Base: base, BaseFile: transcriptFile, Now: time.UnixMilli(transcriptNow),
				Updates: decodeUpdates(t, `[{"action":"set-properties","updates":{"k":"v"}}]`),
			})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
	}
	for name, produce := range made {
		for _, snapshots := range []int{10, 1000} {
			doc := history(snapshots)
			kept, said := make([]*tablemeta.Metadata, copies), 0
			before := inUse()
			for i := range kept {
				kept[i] = produce(doc)
			}
			taken := int(inUse() - before)
			for _, m := range kept {
				said += m.Size()
			}
			if ratio := float64(said) / float64(taken); ratio < 0.7 || ratio > 1.3 {
				t.Errorf("%s, %d snapshots: says %d bytes, takes %d", name, snapshots, said/copies, taken/copies)
			}
		}
	}
}

// inUse is how much memory is used after a collection, in bytes.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
