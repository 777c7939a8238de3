package kernel

import (
	"math"

	"github.com/maypok86/otter/v2"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// MemoID names something that never changes: one version of a record, or, with
// level zero, the file at a location. Where one location may come to name another file, its
// version tells them apart.
type MemoID struct {
	Level   key.Level
	Name    string // a path, or a location
	Version store.Version
}

// MemoOf is the id of a record as it was read.
func MemoOf(r store.Record) MemoID { return MemoID{r.Key.Level, r.Key.Path, r.Version} }

// MemoOfFile is the id of a file.
func MemoOfFile(location string) MemoID { return MemoID{Name: location} }

// Memo gives what making made of the bytes that id names: it is made once, and
// shared from then on by all who ask, as long as there is room. Nobody may change it.
// Its weight is about as many bytes as it keeps in memory. An error is not kept.
//
// What a decision has staged itself, or one before it in the same batch, is kept for that batch
// alone until it is durable.
func Memo[T any](tx *Tx, id MemoID, making func() (made T, weight int, err error)) (T, error) {
	if kept, ok := tx.kept(id); ok {
		if made, ok := kept.value.(T); ok { // else something else was made of it, for others
			return made, nil
		}
	}
	made, weight, err := making()
	if err != nil {
		return made, err
	}
	m := memo{made, weight, id.Version}
	if tx.view.holds(id) {
		tx.view.keep(id, m)
	} else {
		tx.memo.keep(id, m)
	}
	if tx.recalls != nil {
		tx.recalls[id] = m
	}
	return made, nil
}

// kept finds what was made before.
func (tx *Tx) kept(id MemoID) (m memo, ok bool) {
	if m, ok = tx.recalls[id]; ok {
		return m, true
	}
	if tx.view != nil {
		m, ok = tx.view.fresh[id]
	}
	if !ok {
		m, ok = tx.memo.GetIfPresent(id.thing())
		ok = ok && m.version == id.Version
	}
	if ok && tx.recalls != nil {
		tx.recalls[id] = m
	}
	return m, ok
}

// Remember is Memo for what this decision stages: it has been made already.
func (tx *Tx) Remember(id MemoID, made any, weight int) {
	if tx.fresh == nil {
		tx.fresh = make(map[MemoID]memo, 1)
	}
	tx.fresh[id] = memo{made, weight, id.Version}
}

// Made is Remember for the record that this decision writes under a key: whoever reads it
// would make this of it.
func (tx *Tx) Made(k key.Key, made any, weight int) {
	if tx.made == nil {
		tx.made = make(map[key.Key]memo, 1)
	}
	tx.made[k] = memo{value: made, weight: weight}
}

// Forget says that hardly anybody will ask for this once the decision is durable: a file
// that another has taken the place of.
func (tx *Tx) Forget(id MemoID) { tx.stale = append(tx.stale, id) }

// thing is what the id is a version of: of each the newest that was asked for is kept.
func (id MemoID) thing() MemoID { return MemoID{Level: id.Level, Name: id.Name} }

// memo is one thing that was made, and its weight in bytes.
type memo struct {
	value   any
	weight  int
	version store.Version
}

// memos keep what was made of immutable bytes, within a bound.
type memos struct {
	*otter.Cache[MemoID, memo]
	weightMax int // of one of them
}

const (
	// memoOverhead is about what an entry costs beside its value: its id, and its place.
	memoOverhead = 400
	// memoShare is the part of all memory that one entry may take: the rest stays for the others.
	memoShare = 4
)

func newMemos(maxBytes int) *memos {
	return &memos{weightMax: maxBytes / memoShare, Cache: otter.Must(&otter.Options[MemoID, memo]{
		MaximumWeight: uint64(max(maxBytes, 1)),
		Weigher: func(_ MemoID, m memo) uint32 {
			return uint32(min(max(m.weight, 0)+memoOverhead, math.MaxUint32))
		},
		Executor: func(do func()) { do() }, // starts no goroutines
	})}
}

func (m *memos) keep(id MemoID, made memo) {
	if made.weight <= m.weightMax && m.weightMax > 0 {
		m.Set(id.thing(), made)
	} else {
		m.Invalidate(id.thing()) // of what it takes the place of
	}
}
