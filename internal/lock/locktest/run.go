package locktest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// Caps says what a Locker promises beyond exclusion and progress.
type Caps struct {
	// Fenced: the tokens of exclusive grants rise. Otherwise all tokens are zero.
	Fenced bool

	// FIFO: a request is granted exactly when nothing incompatible that arrived
	// before it, granted or waiting, shares a key with it. Otherwise only that
	// nobody starves is tested.
	FIFO bool

	// Peer makes a Locker of another node, for the same keys as the first. The
	// tests then let the two contend. Nil where there is only one node.
	Peer func(t *testing.T, first lock.Locker) lock.Locker
}

// nodes are two Lockers for the same keys; without Caps.Peer they are one.
type nodes struct{ a, b lock.Locker }

// Run runs the suite. newLocker is called once in each test, inside its bubble,
// and undoes itself by t.Cleanup.
func Run(t *testing.T, newLocker func(t *testing.T) lock.Locker, caps Caps) {
	run := func(name string, test func(*testing.T, nodes)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := nodes{a: newLocker(t)}
				n.b = n.a
				if caps.Peer != nil {
					n.b = caps.Peer(t, n.a)
				}
				test(t, n)
			})
		})
	}
	run("Modes", testModes)
	run("DisjointSets", testDisjointSets)
	run("WholeSetOrNothing", testWholeSetOrNothing)
	run("EmptySet", testEmptySet)
	run("ZeroWait", testZeroWait)
	run("WaitIsBounded", testWaitIsBounded)
	run("Cancel", testCancel)
	run("DoneContext", testDoneContext)
	run("ReleaseIsIdempotent", testReleaseIsIdempotent)
	run("HoldContext", testHoldContext)
	run("WriterDoesNotStarve", testWriterDoesNotStarve)
	run("ReaderDoesNotStarve", testReaderDoesNotStarve)
	if caps.Fenced {
		run("TokensRise", testTokensRise)
	} else {
		run("TokensAreZero", testTokensAreZero)
	}
	if caps.FIFO {
		run("OrderOfArrival", testOrderOfArrival)
		run("WakesTheRightOnes", testWakesTheRightOnes)
		run("CancelWakesThoseBehind", testCancelWakesThoseBehind)
		run("AwaitedIsBusy", testAwaitedIsBusy)
		for _, seed := range seeds {
			run(seedName("Model", seed), func(t *testing.T, n nodes) { testModel(t, n, seed) })
		}
	}
	for _, seed := range seeds {
		run(seedName("Stress", seed), func(t *testing.T, n nodes) { testStress(t, n, seed, caps.Fenced) })
	}
}

// long is a wait that no test lasts.
const long = time.Hour

// table is the key of the n-th table.
func table(n int) key.Key {
	return key.ForTableName("main", []string{"ns"}, string(rune('a'+n)))
}

func r(n int) lock.Set { return lock.NewSet(lock.R(table(n))) }
func w(n int) lock.Set { return lock.NewSet(lock.W(table(n))) }

// must acquires what is free.
func must(t *testing.T, l lock.Locker, set lock.Set) lock.Hold {
	t.Helper()
	hold, err := l.Acquire(t.Context(), set, 0)
	if err != nil {
		t.Fatalf("acquire %v: %v", set, err)
	}
	return hold
}

// refused wants that set cannot be had at once.
func refused(t *testing.T, l lock.Locker, set lock.Set) {
	t.Helper()
	hold, err := l.Acquire(t.Context(), set, 0)
	if err == nil {
		hold.Release()
	}
	if !errors.Is(err, lock.ErrBusy) {
		t.Fatalf("acquire %v: got error %v, want %v", set, err, lock.ErrBusy)
	}
}

// asking is an Acquire that runs on a goroutine of its own.
type asking struct {
	set    lock.Set
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when hold and err are set
	hold   lock.Hold
	err    error
}

// ask asks and lets everybody go as far as they can, so that the next one to ask
// arrives later.
func ask(t *testing.T, l lock.Locker, set lock.Set, wait time.Duration) *asking {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	a := &asking{set: set, cancel: cancel, done: make(chan struct{})}
	go func() {
		a.hold, a.err = l.Acquire(ctx, set, wait)
		close(a.done)
	}()
	synctest.Wait()
	return a
}

// ended tells whether Acquire has returned, once nobody can go on at this instant.
func (a *asking) ended() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// granted tells whether a is held. It fails the test if a was refused.
func (a *asking) granted(t *testing.T) bool {
	t.Helper()
	ended := a.ended()
	if ended && a.err != nil {
		t.Fatalf("acquire %v: %v", a.set, a.err)
	}
	return ended
}

// want fails unless exactly the asking with a true are granted.
func want(t *testing.T, all []*asking, granted ...bool) {
	t.Helper()
	for i, a := range all {
		if got := a.granted(t); got != granted[i] {
			t.Fatalf("request %d for %v: granted is %v, want %v", i, a.set, got, granted[i])
		}
	}
}
