package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfast/landfast/internal/lock"
)

// seeds of the random tests. They are fixed, so that a failure in CI is repeated
// by its name.
var seeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8}

func seedName(test string, seed uint64) string { return fmt.Sprintf("%s/seed=%d", test, seed) }

// tables is how many keys the random tests use: few enough that sets often meet.
const tables = 5

// randomSet is one to three keys in random order and modes.
func randomSet(rng *rand.Rand) lock.Set {
	var items []lock.Item
	for _, n := range rng.Perm(tables)[:1+rng.IntN(3)] {
		items = append(items, lock.Item{Key: table(n), Mode: []lock.Mode{lock.Shared, lock.Exclusive}[rng.IntN(2)]})
	}
	return lock.NewSet(items...)
}

// testModel makes random requests, releases and cancels, and after each compares
// who is granted with the rule itself, applied to the list of all in order of
// arrival.
func testModel(t *testing.T, n nodes, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var present []*asking // in order of arrival: granted, or waiting
	for step := range 300 {
		if len(present) < 2 || len(present) < 12 && rng.IntN(2) == 0 {
			present = append(present, ask(t, []lock.Locker{n.a, n.b}[rng.IntN(2)], randomSet(rng), long))
		} else {
			i := rng.IntN(len(present))
			leaving := present[i]
			present = slices.Delete(present, i, i+1)
			if leaving.granted(t) {
				leaving.hold.Release()
			} else {
				leaving.cancel(nil)
			}
		}
		for i, a := range present {
			free := !slices.ContainsFunc(present[:i], func(before *asking) bool { return meet(before.set, a.set) })
			if got := a.granted(t); got != free {
				t.Fatalf("step %d: request %d of %d for %v: granted is %v, want %v", step, i, len(present), a.set, got, free)
			}
		}
	}
	for _, a := range present {
		if a.granted(t) {
			a.hold.Release()
		} else {
			a.cancel(nil)
		}
	}
}

// meet tells whether two sets cannot be held together.
func meet(a, b lock.Set) bool {
	for _, x := range a.Items() {
		for _, y := range b.Items() {
			if x.Key == y.Key && (x.Mode == lock.Exclusive || y.Mode == lock.Exclusive) {
				return true
			}
		}
	}
	return false
}

// testStress lets many actors ask for sets that overlap in every order, with all
// kinds of waits and cancels. It checks that
//   - incompatible holds of a key never overlap in time, and its tokens rise;
//   - each error is one the request allows;
//   - who waits long enough is granted: nothing deadlocks, nothing is lost;
//   - at the end every key is free.
func testStress(t *testing.T, n nodes, seed uint64, fenced bool) {
	const actors, rounds = 16, 60
	var keys [tables]guarded
	var all sync.WaitGroup
	for actor := range actors {
		rng := rand.New(rand.NewPCG(seed, uint64(actor)))
		l := []lock.Locker{n.a, n.b}[actor%2]
		all.Go(func() {
			for range rounds {
				stressOnce(t, l, rng, &keys, fenced)
			}
		})
	}
	all.Wait()
	synctest.Wait()
	for i := range keys {
		must(t, n.b, w(i)).Release()
	}
}

func stressOnce(t *testing.T, l lock.Locker, rng *rand.Rand, keys *[tables]guarded, fenced bool) {
	set := randomSet(rng)
	wait := []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond, long}[rng.IntN(4)]
	hasLimit, limit := rng.IntN(4) == 0, time.Duration(rng.IntN(10))*time.Millisecond
	holdFor := time.Duration(rng.IntN(4)) * time.Millisecond

	ctx := t.Context()
	if hasLimit {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	hold, err := l.Acquire(ctx, set, wait)
	switch {
	case err == nil:
		defer hold.Release()
	case errors.Is(err, lock.ErrBusy) && wait == 0,
		errors.Is(err, lock.ErrTimeout) && wait > 0 && wait < long,
		errors.Is(err, context.DeadlineExceeded) && hasLimit:
		return
	default:
		t.Errorf("acquire %v, wait %v, limited %v: %v", set, wait, hasLimit, err)
		return
	}
	for i := range keys {
		for _, item := range set.Items() {
			if item.Key == table(i) {
				defer keys[i].enter(t, item, hold.Token(item.Key), fenced)()
			}
		}
	}
	time.Sleep(holdFor)
}

// guarded is what the lock of one key protects.
type guarded struct {
	holds atomic.Int64 // the shared holds, and exclusive for each exclusive one
	token atomic.Uint64
}

const exclusive = 1 << 32

// enter is called by who holds the key, and what it gives when it stops.
func (g *guarded) enter(t *testing.T, item lock.Item, token lock.Token, fenced bool) (leave func()) {
	weight, last := int64(1), g.token.Load()
	if item.Mode == lock.Exclusive {
		weight = exclusive
		g.token.Store(uint64(token))
	}
	if fenced && (uint64(token) < last || item.Mode == lock.Exclusive && uint64(token) == last) {
		t.Errorf("%v %v: token %d after %d", item.Mode, item.Key, token, last)
	}
	if holds := g.holds.Add(weight); holds > exclusive || item.Mode == lock.Exclusive && holds != exclusive {
		t.Errorf("%v %v: held together with %d shared and %d exclusive", item.Mode, item.Key, (holds-weight)%exclusive, (holds-weight)/exclusive)
	}
	return func() { g.holds.Add(-weight) }
}
