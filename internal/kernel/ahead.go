package kernel

import (
	"context"

	"github.com/maypok86/otter/v2"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// idsMax is how many keys are remembered with the incarnation they had.
const idsMax = 100_000

// lastIDs are the incarnations that records had when they were last read ahead.
type lastIDs struct{ *otter.Cache[key.Key, string] }

func newLastIDs() *lastIDs {
	return &lastIDs{otter.Must(&otter.Options[key.Key, string]{
		MaximumSize: idsMax,
		Executor:    func(do func()) { do() }, // starts no goroutines
	})}
}

// Far tells whether reading ahead saves round trips: whether the store is a [store.Gatherer].
func (tx *Tx) Far() bool { return tx.view.k.gatherer != nil }

// Ahead reads several records in one round trip, for Get and Peek to come. It changes no decision, only how long it
// takes, and does nothing unless Far. Some of the keys may be guesses: see LastID. An error shows when they are read.
// The records need not be of one moment: what must be read after another record is read ahead after it.
func (tx *Tx) Ahead(ctx context.Context, keys ...key.Key) {
	if tx.Far() {
		tx.source.Ahead(ctx, keys)
	}
}

// LastID is the incarnation that a record had when it was last read ahead, by any operation; empty where that is not
// known. It is a guess, good for nothing but Ahead.
func (tx *Tx) LastID(k key.Key) string {
	if !tx.Far() {
		return ""
	}
	id, _ := tx.view.k.lastIDs.GetIfPresent(k)
	return id
}

// Ahead reads what the view has not read yet.
func (v *view) Ahead(ctx context.Context, keys []key.Key) {
	missing := make([]key.Key, 0, len(keys))
	for _, k := range keys {
		if _, read := v.read[k]; !read {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return
	}
	records, err := v.k.gatherer.GetAll(ctx, missing)
	if err != nil {
		return
	}
	if v.read == nil {
		v.read = make(map[key.Key]store.Record, len(records))
	}
	for _, r := range records {
		v.read[r.Key] = r
		if last, known := v.k.lastIDs.GetIfPresent(r.Key); r.Exists() && (!known || last != r.ID) {
			v.k.lastIDs.Set(r.Key, r.ID)
		}
	}
}
