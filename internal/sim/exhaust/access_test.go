package exhaust

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// verb is what an access does.
type verb string

const (
	get     verb = "get" // of an object
	put     verb = "put"
	list    verb = "list"
	remove  verb = "delete"
	read    verb = "read" // of a file
	create  verb = "create"
	record  verb = "record" // of a store that applies batches
	records verb = "records"
	apply   verb = "apply"
	outcome verb = "outcome"
)

func (v verb) writes() bool {
	return v == put || v == remove || v == create || v == apply || v == outcome
}

// access is one thing that an actor does to what all share.
type access struct {
	verb  verb
	cell  string // what it touches; of a list, what the names begin with
	after string
	limit int
	match store.Tag
	blind bool // a put that does not look at match, as no store may make it
	data  []byte
	batch store.Batch

	number, content int // of the cell and of data, once the search has looked: from 1
}

func (a *access) String() string {
	switch a.verb {
	case put:
		return fmt.Sprintf("put %s if %s: %s", a.cell, short(a.match), excerpt(a.data))
	case create:
		return fmt.Sprintf("create %s, %d bytes", a.cell, len(a.data))
	case list, records:
		return fmt.Sprintf("%s %s* after %q", a.verb, a.cell, a.after)
	case apply:
		return fmt.Sprintf("apply %s: if %v, %v", a.batch.ID, a.batch.Conds, a.batch.Writes)
	}
	return fmt.Sprintf("%s %s", a.verb, a.cell)
}

// identity orders the accesses that an actor waits for at once.
func (a *access) identity() string { return string(a.verb) + " " + a.cell + " " + string(a.data) }

// same reports whether two accesses ask for the same.
func (a *access) same(b *access) bool {
	return a.verb == b.verb && a.cell == b.cell && a.after == b.after && a.limit == b.limit && a.match == b.match &&
		a.blind == b.blind && bytes.Equal(a.data, b.data) && (a.verb != apply && a.verb != outcome || reflect.DeepEqual(a.batch, b.batch))
}

func short(tag store.Tag) string {
	if tag == store.NoTag {
		return "absent"
	}
	return string(tag[:min(len(tag), 6)])
}

func excerpt(data []byte) string {
	const most = 160
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, string(data))
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// The cells of what all share, by what begins their names.
const (
	objectCells = "object "
	fileCells   = "file "
	recordCells = "record "
	batchCells  = "batch " // what became of a batch
)

func recordCell(k key.Key) string      { return fmt.Sprintf("%s%d %s", recordCells, k.Level, k.Path) }
func recordsUnder(p key.Prefix) string { return fmt.Sprintf("%s%d %s", recordCells, p.Level, p.Path) }

// result is the answer to an access, as the code gets it.
type result struct {
	object  store.Object
	names   []string
	records []store.Record
	outcome store.Outcome
	err     error
}

// errEnded is the answer to every access of an actor that the search has no use for any more.
var errEnded = errors.New("exhaust: the search is over")

// errFault is the answer to a read that fails.
var errFault = errors.New("exhaust: it cannot be read")

// env is what one actor, in one run, knows of the world. Each access blocks until the
// search answers it.
type env struct {
	number int // of the actor
	ask    func(access) result

	ids     int
	blocked int // how often locks of others were in the way of the operation
	replies []reply
	// afresh says with what the actor began afresh since it was last seen; empty: it did not.
	afresh string

	db     store.Atomic
	kernel *kernel.Kernel
}

// newID gives UUIDs that depend on the actor and on how many it took.
func (e *env) newID() string {
	e.ids++
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", e.number, e.ids)
}

// begins notes that the actor has forgotten all answers so far, but for what it told its clients and how often it was
// blocked: it begins an operation, or to decide one again.
func (e *env) begins(try int) { e.afresh = fmt.Sprint(try, e.blocked, e.ids, e.replies) }

// now stands still: what a client's clock shows decides nothing here.
func now() time.Time { return time.UnixMilli(1_700_000_000_000) }

// do asks, unless the caller has gone.
func (e *env) do(ctx context.Context, a access) result {
	if err := ctx.Err(); err != nil {
		return result{err: err}
	}
	return e.ask(a)
}

// objects is a store.Objects that asks the search.
type objects struct {
	e     *env
	blind bool
}

var _ store.Objects = objects{}

func (o objects) Get(ctx context.Context, name string) (store.Object, error) {
	r := o.e.do(ctx, access{verb: get, cell: objectCells + name})
	r.object.Name = name
	return r.object, r.err
}

func (o objects) Put(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
	r := o.e.do(ctx, access{verb: put, cell: objectCells + name, match: match, data: slices.Clone(data), blind: o.blind})
	return r.object.Tag, r.err
}

func (o objects) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if limit < 1 {
		return nil, errors.New("exhaust: a limit below 1")
	}
	r := o.e.do(ctx, access{verb: list, cell: objectCells + prefix, after: objectCells + after, limit: limit})
	return r.names, r.err
}

func (o objects) Delete(ctx context.Context, name string) error {
	return o.e.do(ctx, access{verb: remove, cell: objectCells + name}).err
}

// transactional is a store.Atomic that asks the search.
type transactional struct{ e *env }

var _ store.Atomic = transactional{}

func (s transactional) Get(ctx context.Context, k key.Key) (store.Record, error) {
	r := s.e.do(ctx, access{verb: record, cell: recordCell(k)})
	if r.err != nil || len(r.records) == 0 {
		return store.Record{Key: k}, r.err
	}
	return r.records[0], nil
}

func (s transactional) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	if limit < 1 {
		return nil, errors.New("exhaust: a limit below 1")
	}
	a := access{verb: records, cell: recordsUnder(p), limit: limit}
	if after != "" {
		a.after = recordCell(key.Key{Level: p.Level, Path: after})
	}
	r := s.e.do(ctx, a)
	return r.records, r.err
}

func (s transactional) Apply(ctx context.Context, b store.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	return s.e.do(ctx, access{verb: apply, cell: batchCells + b.ID, batch: b}).err
}

func (s transactional) Outcome(ctx context.Context, b store.Batch) (store.Outcome, error) {
	r := s.e.do(ctx, access{verb: outcome, cell: batchCells + b.ID, batch: b})
	return r.outcome, r.err
}

// files is a kernel.Files that asks the search.
type files struct{ e *env }

var _ kernel.Files = files{}

func (f files) Read(ctx context.Context, scope blob.Scope, location string, _ int64) ([]byte, error) {
	if _, _, err := scope.Locate(location); err != nil {
		return nil, err
	}
	r := f.e.do(ctx, access{verb: read, cell: fileCells + location})
	return r.object.Data, r.err
}

func (f files) Exists(ctx context.Context, scope blob.Scope, location string) (bool, error) {
	_, err := f.Read(ctx, scope, location, 0)
	if errors.Is(err, blob.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (f files) Create(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	if _, _, err := scope.Locate(location); err != nil {
		return err
	}
	return f.e.do(ctx, access{verb: create, cell: fileCells + location, data: data}).err
}

func (files) CheckMark(context.Context, blob.Root, string) error { return nil }
