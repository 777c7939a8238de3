package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

var errImpure = errors.New("kernel: decide is impure")

// decideTwice runs Decide on its Tx and then again on a recording of what
// the first run read, with the same time and ids. A Decide that reads a clock, a
// map in its random order or its own earlier result decides differently, and
// would so after a conflict or on another node: that is a bug, so it panics.
func (r *run) decideTwice(ctx context.Context, first *Tx) error {
	rec := &recording{source: first.source, answers: map[string][]answer{}}
	var ids []string
	newID := first.newID
	first.newID = func() string {
		ids = append(ids, newID())
		return ids[len(ids)-1]
	}
	first.source, first.recalls = rec, map[MemoID]memo{}
	firstErr := r.op.Decide(ctx, first)
	firstOp, encErr := Encode(r.op)
	if encErr != nil {
		panic(encErr)
	}
	first.source = rec.source // what follows looks again
	rec.source = nil
	given := 0
	second := r.newTx(rec, first.now, func() string {
		if given++; given > len(ids) {
			panic(fmt.Sprintf("%v: %s took more ids the second time", errImpure, r.plan.Op))
		}
		return ids[given-1]
	})
	second.view, second.recalls = first.view, first.recalls
	secondErr := r.op.Decide(ctx, second)
	secondOp, encErr := Encode(r.op)
	if encErr != nil {
		panic(encErr)
	}

	switch {
	case fmt.Sprint(firstErr) != fmt.Sprint(secondErr):
		panic(fmt.Sprintf("%v: %s: errors %v and %v", errImpure, r.plan.Op, firstErr, secondErr))
	case !bytes.Equal(firstOp, secondOp):
		panic(fmt.Sprintf("%v: %s: results\n%s\n%s", errImpure, r.plan.Op, firstOp, secondOp))
	case !reflect.DeepEqual(first.writes, second.writes), !reflect.DeepEqual(first.conds, second.conds),
		!reflect.DeepEqual(first.reads, second.reads), !reflect.DeepEqual(first.staged, second.staged):
		panic(fmt.Sprintf("%v: %s: batches\n%v %v\n%v %v", errImpure, r.plan.Op, first.conds, first.writes, second.conds, second.writes))
	}
	return firstErr
}

// recording answers reads from a source, and once that is nil, from what it
// answered before.
type recording struct {
	source source
	// answers are in the order in which they were given: one that looks again because
	// the world moved is answered otherwise the second time.
	answers map[string][]answer
}

type answer struct {
	value any
	err   error
}

func (r *recording) ask(question string, read func() (any, error)) (any, error) {
	if r.source == nil {
		given := r.answers[question]
		if len(given) == 0 {
			panic(fmt.Sprintf("%v: only the second run asked for %s", errImpure, question))
		}
		r.answers[question] = given[1:]
		return given[0].value, given[0].err
	}
	v, err := read()
	r.answers[question] = append(r.answers[question], answer{v, err})
	return v, err
}

func (r *recording) Get(ctx context.Context, k key.Key) (store.Record, error) {
	v, err := r.ask("get "+k.String(), func() (any, error) { return r.source.Get(ctx, k) })
	return v.(store.Record), err
}

func (r *recording) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	v, err := r.ask(fmt.Sprintf("list %v after %q limit %d", p, after, limit), func() (any, error) {
		return r.source.List(ctx, p, after, limit)
	})
	return v.([]store.Record), err
}

func (r *recording) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	v, err := r.ask("file "+location, func() (any, error) { return r.source.Read(ctx, scope, location, limit) })
	return v.([]byte), err
}

func (r *recording) Exists(ctx context.Context, scope blob.Scope, location string) (bool, error) {
	v, err := r.ask("exists "+location, func() (any, error) { return r.source.Exists(ctx, scope, location) })
	return v.(bool), err
}

func (r *recording) Gone(scope blob.Scope, location string) bool {
	v, _ := r.ask("gone "+location, func() (any, error) { return r.source.Gone(scope, location), nil })
	return v.(bool)
}

// Ahead is no question: it changes no answer.
func (r *recording) Ahead(ctx context.Context, keys []key.Key) {
	if r.source != nil {
		r.source.Ahead(ctx, keys)
	}
}

func (r *recording) CheckMark(ctx context.Context, root blob.Root, id string) error {
	_, err := r.ask("mark "+root.URI+" "+id, func() (any, error) { return nil, r.source.CheckMark(ctx, root, id) })
	return err
}
