package kernel

import (
	"context"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// source is what decisions read.
type source interface {
	Get(ctx context.Context, k key.Key) (store.Record, error)
	List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error)
	Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error)
	Exists(ctx context.Context, scope blob.Scope, location string) (bool, error)
	CheckMark(ctx context.Context, root blob.Root, id string) error
	Gone(scope blob.Scope, location string) bool
	Ahead(ctx context.Context, keys []key.Key)
}

// direct reads the store and the files as they are.
type direct struct {
	store store.Atomic
	files Files
}

func (d *direct) Get(ctx context.Context, k key.Key) (store.Record, error) {
	return d.store.Get(ctx, k)
}

func (d *direct) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	return d.store.List(ctx, p, after, limit)
}

func (d *direct) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	return d.files.Read(ctx, scope, location, limit)
}

func (d *direct) Exists(ctx context.Context, scope blob.Scope, location string) (bool, error) {
	return d.files.Exists(ctx, scope, location)
}

func (d *direct) Gone(scope blob.Scope, location string) bool {
	p, ok := d.files.(blob.Prober)
	return ok && p.Gone(scope, location)
}

// Ahead keeps nothing: the view does.
func (d *direct) Ahead(context.Context, []key.Key) {}

func (d *direct) CheckMark(ctx context.Context, root blob.Root, id string) error {
	return d.files.CheckMark(ctx, root, id)
}

// view is what the decisions of one round read: the store, asked once for each record, changed
// by those that were accepted so far. A list shows the store as it is: a decision that lists lands alone.
type view struct {
	source // for what is not seen through the view
	k      *Kernel
	shared bool // several may read it: each record is asked for once

	// id is the batch's, and so the version of what it writes. Drawn when the first decision is accepted.
	id       string
	accepted []accepted
	bytes    int // of their files

	read    map[key.Key]store.Record // as the store has them
	written map[key.Key]store.Record // as the accepted decisions make them
	marks   []mark                   // roots that were looked at, and found to be the right ones
	fresh   map[MemoID]memo          // of what is not durable yet
}

// accepted is a decision that is part of the batch, with the operation that made it.
type accepted struct {
	run   *run
	tx    *Tx
	rides []File // of those it staged, once they are there: their bytes are in the batch
}

type mark struct {
	root blob.Root
	id   string
}

func newView(k *Kernel, shared bool) *view {
	return &view{source: k.direct, k: k, shared: shared}
}

// tx is a fresh Tx that reads from s, which is the view or its base.
func (v *view) tx(m *run, s source) *Tx {
	tx := m.newTx(s, m.k.opt.Now(), m.k.opt.NewID)
	tx.view = v
	return tx
}

// Get gives a record as the accepted decisions leave it.
func (v *view) Get(ctx context.Context, k key.Key) (store.Record, error) {
	if r, ok := v.written[k]; ok && !planted.Is(planted.NeighboursUnseen) {
		return r, nil
	}
	return v.base(ctx, k)
}

func (v *view) base(ctx context.Context, k key.Key) (store.Record, error) {
	if r, ok := v.read[k]; ok {
		return r, nil
	}
	r, err := v.source.Get(ctx, k)
	if err == nil && v.shared {
		if v.read == nil {
			v.read = make(map[key.Key]store.Record, 4)
		}
		v.read[k] = r
	}
	return r, err
}

// Read gives a file, which may be one that is not written yet.
func (v *view) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	if f, ok := v.file(location); ok && int64(len(f.Data)) <= limit {
		return f.Data, nil
	}
	return v.source.Read(ctx, scope, location, limit)
}

// Exists tells whether there is a file, or will be.
func (v *view) Exists(ctx context.Context, scope blob.Scope, location string) (bool, error) {
	if _, ok := v.file(location); ok {
		return true, nil
	}
	return v.source.Exists(ctx, scope, location)
}

func (v *view) file(location string) (File, bool) {
	for _, a := range v.accepted {
		for _, f := range a.tx.staged {
			if f.Location == location {
				return f, true
			}
		}
	}
	return File{}, false
}

// files are all that the batch names anew.
func (v *view) files() []File {
	var files []File
	for _, a := range v.accepted {
		files = append(files, a.tx.staged...)
	}
	return files
}

// CheckMark looks at each root once a round.
func (v *view) CheckMark(ctx context.Context, root blob.Root, id string) error {
	if slices.ContainsFunc(v.marks, func(m mark) bool { return m.id == id && m.root.URI == root.URI }) {
		return nil
	}
	err := v.source.CheckMark(ctx, root, id)
	if err == nil {
		v.marks = append(v.marks, mark{root, id})
	}
	return err
}

// base is the view without what was accepted.
type base struct{ *view }

func (b base) Get(ctx context.Context, k key.Key) (store.Record, error) { return b.view.base(ctx, k) }

// accept makes a decision a part of the batch: those behind it see what it writes.
func (v *view) accept(m *run, tx *Tx) {
	if v.id == "" {
		v.id = v.k.opt.NewBatchID()
		v.written = make(map[key.Key]store.Record, 4)
	}
	v.accepted = append(v.accepted, accepted{run: m, tx: tx})
	for _, f := range tx.staged {
		v.bytes += len(f.Data)
	}
	for _, w := range tx.writes {
		if w.Delete {
			continue // the batch ends here
		}
		r := store.Record{Key: w.Key, Version: store.Version(v.id), ID: w.ID, Value: w.Value}
		v.written[w.Key] = r
		delete(v.fresh, MemoOf(r)) // of a value that an earlier decision gave the same version
		if m, ok := tx.made[w.Key]; ok {
			m.version = r.Version
			v.keep(MemoOf(r), m)
		}
	}
	for id, made := range tx.fresh {
		v.keep(id, made)
	}
}

// holds tells whether this is a version that the batch writes.
func (v *view) holds(id MemoID) bool {
	return v != nil && v.id != "" && id.Version == store.Version(v.id)
}

func (v *view) keep(id MemoID, made memo) {
	if v.fresh == nil {
		v.fresh = map[MemoID]memo{}
	}
	v.fresh[id] = made
}

// awaited tells whether anybody waits for the batch.
func (v *view) awaited() bool {
	return slices.ContainsFunc(v.accepted, func(a accepted) bool { return a.run.over() == nil })
}

// waited notes how long their batch has been blocked by now.
func (v *view) waited(since time.Time) (now time.Time) {
	now = time.Now()
	for _, a := range v.accepted {
		a.run.blocked += now.Sub(since)
	}
	return now
}

// cut ends the batch before the i-th decision.
func (v *view) cut(i int) {
	v.accepted = v.accepted[:i]
	v.fresh = nil // what the others have made is no part of it
}

// batch is all that was accepted as one batch: everything that was read, and is not written by
// the batch itself, is a condition.
func (v *view) batch() store.Batch {
	b := store.Batch{ID: v.id}
	for i, a := range v.accepted {
		part := &a.tx.part
		for _, c := range part.Conds {
			own := c.Kind == store.KindIs && c.Version == store.Version(v.id)
			if i > 0 && planted.Is(planted.NeighboursUnconditioned) {
				own = true
			}
			if !own && !slices.Contains(b.Conds, c) {
				b.Conds = append(b.Conds, c)
			}
		}
		b.Writes = appendWrites(b.Writes, part.Writes)
		b.Ops = append(b.Ops, store.OpRecord{ID: v.k.opt.NewID(), Name: a.run.plan.Op})
	}
	if rides := v.rides(); len(rides) > 0 && !planted.Is(planted.FilesDoNotRide) {
		w, c := v.k.opt.Journal.Write(v.id, rides)
		b.Writes, b.Conds = append(b.Writes, w), append(b.Conds, c)
	}
	if err := b.Validate(); err != nil {
		panic("kernel: " + v.accepted[0].run.plan.Op + ": " + err.Error())
	}
	return b
}

// rides are the files whose bytes are in the batch.
func (v *view) rides() []File {
	if len(v.accepted) == 1 {
		return v.accepted[0].rides
	}
	var rides []File
	for _, a := range v.accepted {
		rides = append(rides, a.rides...)
	}
	return rides
}

// appendWrites adds writes, of which a later one to a key stands for the earlier.
func appendWrites(writes, more []store.Write) []store.Write {
	for _, w := range more {
		if i := slices.IndexFunc(writes, func(earlier store.Write) bool { return earlier.Key == w.Key }); i >= 0 {
			writes[i] = w
		} else {
			writes = append(writes, w)
		}
	}
	return writes
}

// publish is for a batch that is durable: what was made for it is shared, and each operation shows what the
// last one left, also one that had nothing to change.
func (v *view) publish(later []deferred) {
	for id, made := range v.fresh {
		v.k.memo.keep(id, made)
	}
	last := v.accepted[len(v.accepted)-1].run.op
	show := func(op Operation) {
		if op, ok := op.(Latest); ok && op != last {
			op.ShowLatest(last)
		}
	}
	for _, a := range v.accepted {
		for _, id := range a.tx.stale {
			v.k.memo.Invalidate(id.thing())
		}
		show(a.run.op)
	}
	for _, d := range later {
		if d.refusal == nil {
			show(d.op)
		}
	}
}
