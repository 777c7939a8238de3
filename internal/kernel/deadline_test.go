package kernel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store/mem"
)

// slow adds its name to a record that others wait for, too.
type slow struct {
	name    string
	limit   time.Duration // of its request
	decides time.Duration // how long it takes to decide, if it is let
	uploads time.Duration // and its file to be written
	refuses bool          // it, unless it is the first
	notYet  bool          // it is left for the next batch
}

var errRefused = errors.New("refused")

func (op *slow) Plan() kernel.Plan {
	return kernel.Plan{Op: "slow", Locks: lock.NewSet(lock.W(tableA)), Combine: tableA}
}

func (op *slow) Decide(ctx context.Context, tx *kernel.Tx) error {
	r, err := tx.Get(ctx, tableA)
	if err != nil {
		return err
	}
	if err := pass(ctx, op.decides); err != nil {
		return err
	}
	if op.refuses && r.Exists() {
		return errRefused
	}
	if op.notYet {
		op.notYet = false
		return kernel.ErrAgain
	}
	tx.File(kernel.File{Location: op.name})
	tx.Put(tableA, "a", append(r.Value[:len(r.Value):len(r.Value)], op.name...))
	return nil
}

// pass lets time go by.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slowFiles take their time.
type slowFiles struct {
	kernel.Files
	takes map[string]time.Duration
}

func (f slowFiles) Create(ctx context.Context, _ blob.Scope, location string, _ []byte) error {
	return pass(ctx, f.takes[location])
}

// doTogether lets operations wait for the table in this order, and then go. It tells how each ended, and after what time.
func doTogether(t *testing.T, k *kernel.Kernel, queue *local.Table, ops []*slow) (errs []error, ended []time.Duration) {
	t.Helper()
	hold, err := queue.Acquire(t.Context(), lock.NewSet(lock.W(tableA)), 0)
	if err != nil {
		t.Fatal(err)
	}
	began, done := time.Now(), make(chan struct{})
	errs, ended = make([]error, len(ops)), make([]time.Duration, len(ops))
	for i, op := range ops {
		ctx, cancel := context.WithTimeout(t.Context(), op.limit)
		defer cancel()
		go func() {
			errs[i] = k.Do(ctx, op)
			ended[i] = time.Since(began)
			done <- struct{}{}
		}()
		synctest.Wait() // in this order
	}
	hold.Release()
	for range ops {
		<-done
	}
	return errs, ended
}

// What waits for one table is done together, but nobody waits for its neighbours beyond its own time: neither
// who leads nor who is led, whether it is decided already, decided on others, or its turn has not come. And
// nobody else fails for that.
func TestDeadlineBesideSlowNeighbours(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		ops  []*slow
		want map[string]time.Duration // when those who are done are so; the others' time is spent
		log  string
	}{
		"the leader's is spent first, and it lands without its neighbour": {
			[]*slow{{name: "a", limit: 2 * s}, {name: "b", limit: 20 * s, decides: 8 * s}},
			map[string]time.Duration{"a": s, "b": 9 * s}, "ab",
		},
		"that of who is decided": {
			[]*slow{{name: "a", limit: 20 * s}, {name: "b", limit: 2 * s}, {name: "c", limit: 20 * s, decides: 8 * s}},
			map[string]time.Duration{"a": s, "b": s, "c": 9 * s}, "abc",
		},
		"that of whose turn has not come": {
			[]*slow{{name: "a", limit: 20 * s}, {name: "b", limit: 20 * s, decides: 8 * s}, {name: "c", limit: 2 * s}},
			map[string]time.Duration{"a": s, "b": 10 * s}, "ab",
		},
		"that of who stands behind a slow leader": {
			[]*slow{{name: "a", limit: 20 * s, decides: 8 * s}, {name: "b", limit: 2 * s}, {name: "c", limit: 20 * s}},
			map[string]time.Duration{"a": 10 * s, "c": 10 * s}, "ac",
		},
		"that of the leader, which cannot land either": {
			[]*slow{{name: "a", limit: 2 * s, uploads: 8 * s}, {name: "b", limit: 20 * s, decides: 8 * s}},
			map[string]time.Duration{"b": 10 * s}, "b",
		},
		"that of who is not in the batch that is written": {
			[]*slow{{name: "a", limit: 20 * s, uploads: 8 * s}, {name: "b", limit: 2 * s, refuses: true}},
			map[string]time.Duration{"a": 10 * s}, "a",
		},
		"all have time": {
			[]*slow{{name: "a", limit: 20 * s}, {name: "b", limit: 20 * s, decides: 8 * s}, {name: "c", limit: 20 * s}},
			map[string]time.Duration{"a": 8 * s, "b": 8 * s, "c": 8 * s}, "abc",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, queue := mem.New(), local.New(local.Options{})
				takes := map[string]time.Duration{}
				for _, op := range tc.ops {
					takes[op.name] = op.uploads
				}
				k := kernel.New(kernel.Options{
					Store: db, Queue: queue, Files: slowFiles{takes: takes},
					Backoff: func(time.Duration) time.Duration { return 0 },
				})
				errs, ended := doTogether(t, k, queue, tc.ops)
				for i, op := range tc.ops {
					at, lands := tc.want[op.name]
					if !lands {
						at = op.limit
					}
					if lands != (errs[i] == nil) || !lands && !errors.Is(errs[i], kernel.ErrContended) || ended[i] != at {
						t.Errorf("%s ended after %v with %v; want %v, done %v", op.name, ended[i], errs[i], at, lands)
					}
				}
				r, err := db.Get(t.Context(), tableA)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.log, string(r.Value)); diff != "" {
					t.Errorf("the record (-want +got)\n%s", diff)
				}
			})
		})
	}
}
