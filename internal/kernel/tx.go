package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// Tx is what one run of Decide sees and stages. It is used by one goroutine.
//
// What Decide reads with Get, RequireLive and RequireEmpty becomes a condition
// of the batch; what it reads with Peek, List and ReadFile does not, so it must
// be immutable or implied by a condition. The first error of a read is final:
// Decide returns it.
type Tx struct {
	source source
	store  store.Atomic // as it is, for a second look
	view   *view        // of the batch that the decision may become a part of
	memo   *memos
	now    time.Time
	newID  func() string

	reads  []store.Record  // by Get, as first read; every later Get gives the same record
	index  map[key.Key]int // of reads, once there are many
	conds  []store.Cond    // Live and Empty
	writes []store.Write
	staged []File
	part   store.Batch      // what all that comes to, once Decide has succeeded and writes
	fresh  map[MemoID]memo  // of what is staged
	made   map[key.Key]memo // by the key of what is written
	stale  []MemoID         // of what is worth no memory any more
	// recalls, if not nil, is what Memo has answered: a second run on the same reads gets the same.
	recalls map[MemoID]memo
	listed  bool
	// alone says that the decision rests on a list, or deletes: it shares no batch with what comes before or
	// behind it.
	alone bool
}

// Files is where an operation's files go: blob.Store is one.
type Files interface {
	Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error)
	Exists(ctx context.Context, scope blob.Scope, location string) (bool, error)
	Create(ctx context.Context, scope blob.Scope, location string, data []byte) error
	CheckMark(ctx context.Context, root blob.Root, id string) error
}

// File is one immutable file, which is durable as soon as the batch that names it. Its
// Warehouse is for Options.Lost.
type File = journal.File

// Now is the time of this decision, in UTC and whole milliseconds.
func (tx *Tx) Now() time.Time { return tx.now }

// NewID gives a fresh UUIDv4: an incarnation, a table's uuid, a part of a file's name.
func (tx *Tx) NewID() string { return tx.newID() }

// Get reads a record and adds the condition that it keeps its version. A record
// that is absent must be written in the same decision, or nothing may be: use
// Peek to look where others may create.
func (tx *Tx) Get(ctx context.Context, k key.Key) (store.Record, error) {
	if r, ok := tx.seen(k); ok {
		return r, nil
	}
	r, err := tx.Peek(ctx, k)
	if err != nil {
		return store.Record{}, err
	}
	tx.keep(r)
	return r, nil
}

// readsSearched is how many reads are searched one by one. Operations on one table have fewer.
const readsSearched = 16

// seen gives a record that the decision is conditional on.
func (tx *Tx) seen(k key.Key) (store.Record, bool) {
	if tx.index != nil {
		i, ok := tx.index[k]
		if !ok {
			return store.Record{}, false
		}
		return tx.reads[i], true
	}
	for i := range tx.reads {
		if tx.reads[i].Key == k {
			return tx.reads[i], true
		}
	}
	return store.Record{}, false
}

func (tx *Tx) keep(r store.Record) {
	tx.reads = append(tx.reads, r)
	switch {
	case tx.index != nil:
		tx.index[r.Key] = len(tx.reads) - 1
	case len(tx.reads) > readsSearched:
		tx.index = make(map[key.Key]int, 4*readsSearched)
		for i := range tx.reads {
			tx.index[tx.reads[i].Key] = i
		}
	}
}

// Peek reads a record and adds no condition.
func (tx *Tx) Peek(ctx context.Context, k key.Key) (store.Record, error) {
	r, err := tx.source.Get(ctx, k)
	if err != nil {
		return store.Record{}, fmt.Errorf("read %v: %w", k, err)
	}
	return r, nil
}

// Keep adds the condition that a record read with Peek, and present, keeps its
// version. ErrAgain says that this decision has seen another version of it before.
func (tx *Tx) Keep(r store.Record) error {
	seen, ok := tx.seen(r.Key)
	if ok && seen.Version != r.Version {
		return ErrAgain
	}
	if !ok {
		tx.keep(r)
	}
	return nil
}

// List reads records under p after a path. An operation that listed may not
// write: a list is no snapshot.
func (tx *Tx) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	tx.listed = true
	return tx.list(ctx, p, after, limit)
}

// Look reads records under p after a path and adds no condition, for an operation that may write
// all the same: what it finds must be immutable or implied by a condition, or it must
// not matter that it changes.
func (tx *Tx) Look(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	return tx.list(ctx, p, after, limit)
}

func (tx *Tx) list(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	tx.alone = true
	rs, err := tx.source.List(ctx, p, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list %v: %w", p, err)
	}
	return rs, nil
}

// RequireLive adds the condition that this incarnation of a record still exists.
func (tx *Tx) RequireLive(k key.Key, id string) {
	if !planted.Is(planted.LiveDropped) {
		tx.conds = append(tx.conds, store.Live(k, id))
	}
}

// RequireEmpty adds the condition that nothing lives under p but what this
// decision writes; the decision must also write guard. It returns the first
// record in the way now, so that the operation can be refused in words or do
// without: then there is no condition. A record in mine is not in the way.
func (tx *Tx) RequireEmpty(ctx context.Context, guard key.Key, p key.Prefix, mine ...key.Key) (inTheWay store.Record, err error) {
	rs, err := tx.list(ctx, p, "", len(mine)+1)
	if err != nil {
		return store.Record{}, err
	}
	for _, r := range rs {
		if !slices.Contains(mine, r.Key) {
			return r, nil
		}
	}
	if !planted.Is(planted.EmptyByList) {
		tx.conds = append(tx.conds, store.Empty(guard, p))
	}
	return store.Record{}, nil
}

// Put stages the write of a record that was read with Get, under the
// incarnation id: that of the record, or a fresh one where it was absent.
func (tx *Tx) Put(k key.Key, id string, value []byte) {
	tx.stage(store.Write{Key: k, ID: id, Value: value})
}

// Create stages the write of a record under a key that must be absent. It need
// not be read first.
func (tx *Tx) Create(k key.Key, id string, value []byte) {
	if r, ok := tx.seen(k); ok && r.Exists() {
		panic(fmt.Sprintf("kernel: create of %v, which was read as present", k))
	} else if !ok {
		tx.keep(store.Record{Key: k, Version: store.Absent})
	}
	tx.stage(store.Write{Key: k, ID: id, Value: value})
}

// Delete stages the deletion of a record that was read with Get.
func (tx *Tx) Delete(k key.Key) {
	tx.alone = true
	tx.stage(store.Write{Key: k, Delete: true})
}

func (tx *Tx) stage(w store.Write) {
	switch read, ok := tx.seen(w.Key); {
	case !ok:
		panic(fmt.Sprintf("kernel: blind write of %v", w.Key))
	case !w.Delete && read.Exists() && read.ID != w.ID:
		panic(fmt.Sprintf("kernel: write of %v changes its incarnation", w.Key)) // Live conditions rest on it
	}
	for i := range tx.writes {
		if tx.writes[i].Key == w.Key {
			tx.writes[i] = w
			return
		}
	}
	tx.writes = append(tx.writes, w)
}

// Writes are the writes that this decision has staged so far. The caller must not
// change them.
func (tx *Tx) Writes() []store.Write { return tx.writes }

// ReadFile reads a file, at most limit bytes. Files are immutable: one location
// never names other bytes, so this adds no condition.
func (tx *Tx) ReadFile(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	return tx.source.Read(ctx, scope, location, limit)
}

// FileExists tells whether a file is there, without reading it. It adds no condition.
func (tx *Tx) FileExists(ctx context.Context, scope blob.Scope, location string) (bool, error) {
	return tx.source.Exists(ctx, scope, location)
}

// FileGone notices that a file which was there has gone, where that costs next to nothing. False says nothing.
func (tx *Tx) FileGone(scope blob.Scope, location string) bool {
	return tx.source.Gone(scope, location)
}

// CheckMark refuses a root that is not the one that was marked with id, as when
// a volume is not mounted.
func (tx *Tx) CheckMark(ctx context.Context, root blob.Root, id string) error {
	return tx.source.CheckMark(ctx, root, id)
}

// File stages a file, which is there before the batch is applied. Its location
// must be fresh for this decision (made with NewID): a decision that loses leaves
// the file behind, named by nothing.
func (tx *Tx) File(f File) { tx.staged = append(tx.staged, f) }

// batch is the decision as a batch of its own, without an id: everything read is a condition. It panics where
// that is no batch that a store could check: a mistake of the operation.
func (tx *Tx) batch(op string) store.Batch {
	b := store.Batch{ID: "decision", Writes: tx.writes}
	for _, r := range tx.reads {
		if planted.Is(planted.OnlyWritesConditioned) && !slices.ContainsFunc(tx.writes, func(w store.Write) bool { return w.Key == r.Key }) {
			continue
		}
		b.Conds = append(b.Conds, store.Is(r.Key, r.Version))
	}
	b.Conds = append(b.Conds, tx.conds...)
	if tx.listed {
		panic("kernel: " + op + " listed and writes")
	}
	if err := b.Validate(); err != nil {
		panic("kernel: " + op + ": " + err.Error())
	}
	return b
}

// settle looks again at every record read. Versions never repeat, so if none has
// changed, all of them held together at one moment: an answer that rests on several
// records is then as good as one read in a transaction. Otherwise it returns a
// *store.ConflictError with what changed.
func (tx *Tx) settle(ctx context.Context) error {
	var changed []store.Cond
	for _, read := range tx.reads {
		r, err := tx.store.Get(ctx, read.Key)
		if err != nil {
			return fmt.Errorf("read %v: %w", read.Key, err)
		}
		if r.Version != read.Version {
			changed = append(changed, store.Is(read.Key, read.Version))
		}
	}
	if len(changed) > 0 {
		return &store.ConflictError{Conds: changed}
	}
	return nil
}
