package local_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/local"
)

var (
	namespace = key.ForNamespace("main", []string{"sales"})
	orders    = key.ForTableName("main", []string{"sales"}, "orders")
	returns   = key.ForTableName("main", []string{"sales"}, "returns")
)

// asked is an Acquire on a goroutine of its own, in a bubble.
type asked struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when hold and err are set
	hold   lock.Hold
	err    error
}

// ask asks with an owner of this id and lets everybody go as far as they can.
func ask(t *testing.T, table *local.Table, id string, items ...lock.Item) *asked {
	ctx, cancel := context.WithCancel(request(t.Context(), id))
	t.Cleanup(cancel)
	a := &asked{cancel: cancel, done: make(chan struct{})}
	go func() {
		a.hold, a.err = table.Acquire(ctx, lock.NewSet(items...), time.Hour)
		close(a.done)
	}()
	synctest.Wait()
	return a
}

// ended tells whether Acquire has returned, once nobody can go on at this instant.
func (a *asked) ended() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// granted wants that Acquire has returned with a hold.
func (a *asked) granted(t *testing.T) lock.Hold {
	t.Helper()
	if !a.ended() {
		t.Fatal("it still waits")
	}
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.hold
}

// refused wants that Acquire has returned with this error.
func (a *asked) refused(t *testing.T, want error) {
	t.Helper()
	if !a.ended() {
		t.Fatalf("it still waits, want %v", want)
	}
	if !errors.Is(a.err, want) || a.hold != nil {
		t.Fatalf("got hold %v, error %v; want %v", a.hold, a.err, want)
	}
}

func must(t *testing.T, table *local.Table, id string, items ...lock.Item) lock.Hold {
	t.Helper()
	hold, err := table.Acquire(request(t.Context(), id), lock.NewSet(items...), 0)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// expectIdle wants that the table remembers nothing.
func expectIdle(t *testing.T, table *local.Table) {
	t.Helper()
	if t.Failed() {
		return // what is still held then says nothing new
	}
	if n := table.Len(); n != 0 {
		t.Errorf("%d keys are left in an idle table: %v", n, table.Snapshot())
	}
}

// A full queue refuses who would wait, at once, and nobody else.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := local.New(local.Options{MaxWaitersPerKey: 2, MaxWaiters: 3})
		full := func(items ...lock.Item) {
			t.Helper()
			if _, err := table.Acquire(t.Context(), lock.NewSet(items...), time.Hour); !errors.Is(err, lock.ErrQueueFull) {
				t.Errorf("acquire %v: got error %v, want %v", items, err, lock.ErrQueueFull)
			}
		}
		holds := []lock.Hold{must(t, table, "h1", lock.W(orders)), must(t, table, "h2", lock.W(returns))}
		waiters := []*asked{
			ask(t, table, "1", lock.R(namespace), lock.W(orders)),
			ask(t, table, "2", lock.R(namespace), lock.W(orders)),
		}
		full(lock.W(orders))
		full(lock.R(namespace), lock.R(orders))
		// Two wait with the namespace, but it holds up neither.
		must(t, table, "3", lock.R(namespace)).Release()
		waiters = append(waiters, ask(t, table, "4", lock.R(namespace), lock.W(returns)))
		full(lock.W(returns))
		full(lock.W(namespace))
		must(t, table, "5", lock.W(key.ForWarehouse("main"))).Release()

		// A place that is given up is free again, in both counts.
		waiters[0].cancel()
		waiters[0].refused(t, context.Canceled)
		waiters[0] = ask(t, table, "6", lock.W(orders))
		full(lock.W(returns))

		// So is one whose request was granted, while others still wait behind it.
		holds[0].Release()
		granted := waiters[1].granted(t)
		waiters[1] = ask(t, table, "7", lock.W(orders))
		full(lock.W(orders))
		full(lock.W(returns))

		granted.Release()
		holds[1].Release()
		for _, w := range waiters {
			w.granted(t).Release()
		}
		expectIdle(t, table)
	})
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		table := local.New(local.Options{})
		commit := must(t, table, "commit", lock.R(namespace), lock.W(orders))
		time.Sleep(time.Second)
		second := ask(t, table, "second", lock.R(namespace), lock.W(orders))
		time.Sleep(time.Second)
		drop := ask(t, table, "drop", lock.W(namespace))

		owner := func(id string) lock.Owner {
			return lock.Owner{Op: "commit-table", RequestID: id, Client: "test"}
		}
		at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
		want := []lock.KeyState{
			{Key: namespace,
				Holders: []lock.Entry{{Owner: owner("commit"), Mode: lock.Shared, Since: at(0)}},
				Waiters: []lock.Entry{
					{Owner: owner("second"), Mode: lock.Shared, Since: at(1), WaitsAt: orders, Elsewhere: true},
					{Owner: owner("drop"), Mode: lock.Exclusive, Since: at(2), WaitsAt: namespace},
				}},
			{Key: orders,
				Holders: []lock.Entry{{Owner: owner("commit"), Mode: lock.Exclusive, Since: at(0)}},
				Waiters: []lock.Entry{{Owner: owner("second"), Mode: lock.Exclusive, Since: at(1), WaitsAt: orders}}},
		}
		if diff := cmp.Diff(want, table.Snapshot()); diff != "" {
			t.Errorf("while three meet (-want +got):\n%s", diff)
		}

		time.Sleep(time.Second)
		commit.Release()
		hold := second.granted(t)
		want = []lock.KeyState{
			{Key: namespace,
				Holders: []lock.Entry{{Owner: owner("second"), Mode: lock.Shared, Since: at(3)}},
				Waiters: []lock.Entry{{Owner: owner("drop"), Mode: lock.Exclusive, Since: at(2), WaitsAt: namespace}}},
			{Key: orders,
				Holders: []lock.Entry{{Owner: owner("second"), Mode: lock.Exclusive, Since: at(3)}}},
		}
		if diff := cmp.Diff(want, table.Snapshot()); diff != "" {
			t.Errorf("after the first released (-want +got):\n%s", diff)
		}
		hold.Release()
		drop.granted(t).Release()
		expectIdle(t, table)
	})
}

// Waited is told, for each key, how long that key held the request up and how many it held up
// already, also of a request that gave up, and not of one that was refused on
// arrival. Held is told how long keys were held.
func TestObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf(format, args...))
		}
		table := local.New(local.Options{
			Waited: func(w local.Wait) {
				note("%v %v %s waited %v behind %d", w.Mode, w.Key.Level, w.Op, w.Waited, w.Behind)
			},
			Held: func(k key.Key, m lock.Mode, op string, held time.Duration) {
				note("%v %v %s held %v", m, k.Level, op, held)
			},
		})
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(seen)
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
			seen = nil
		}
		both := []lock.Item{lock.R(namespace), lock.W(orders)}
		first, second := must(t, table, "1", lock.W(namespace)), must(t, table, "2", lock.W(orders))
		expect("W namespace commit-table waited 0s behind 0", "W table-name commit-table waited 0s behind 0")

		waiter := ask(t, table, "3", both...)
		expect()
		time.Sleep(time.Second)
		first.Release()
		first.Release()
		expect("W namespace commit-table held 1s")
		late := ask(t, table, "4", both...)
		time.Sleep(time.Second)
		second.Release()
		expect("R namespace commit-table waited 1s behind 0", "W table-name commit-table held 2s", "W table-name commit-table waited 2s behind 0")

		time.Sleep(3 * time.Second)
		late.cancel()
		expect("R namespace commit-table waited 0s behind 0", "W table-name commit-table waited 4s behind 1")
		if _, err := table.Acquire(t.Context(), lock.NewSet(both...), 0); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("got error %v, want %v", err, lock.ErrBusy)
		}
		expect()
		waiter.granted(t).Release()
		expect("R namespace commit-table held 3s", "W table-name commit-table held 3s")
	})
}

// What is gathered waited, and is held once: by the one that gathered it. A snapshot
// shows whose batch it is in.
func TestGatheredIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits, helds int
		table := local.New(local.Options{
			Waited: func(local.Wait) { waits++ },
			Held:   func(key.Key, lock.Mode, string, time.Duration) { helds++ },
		})
		set := lock.NewSet(lock.W(orders))
		leader := must(t, table, "leader", lock.W(orders))
		start := time.Now()
		members := make(chan lock.Hold)
		go func() {
			h, gathered, err := table.Join(request(t.Context(), "member"), set, time.Hour, "the work")
			if err != nil || !gathered {
				t.Errorf("gathered %v, error %v", gathered, err)
			}
			members <- h
		}()
		synctest.Wait()
		behind := ask(t, table, "behind", lock.W(orders))
		if got := table.Gather(leader, orders, 10); len(got) != 1 {
			t.Fatalf("gathered %v", got)
		}
		member := <-members
		owner := func(id string) lock.Owner {
			return lock.Owner{Op: "commit-table", RequestID: id, Client: "test"}
		}
		want := []lock.KeyState{{Key: orders,
			Holders: []lock.Entry{
				{Owner: owner("leader"), Mode: lock.Exclusive, Since: start, Batch: "leader"},
				{Owner: owner("member"), Mode: lock.Exclusive, Since: start, Batch: "leader"},
			},
			Waiters: []lock.Entry{{Owner: owner("behind"), Mode: lock.Exclusive, Since: start, WaitsAt: orders}},
		}}
		if diff := cmp.Diff(want, table.Snapshot()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		leader.Release()
		member.Release()
		alone := behind.granted(t)
		if got := table.Gather(alone, orders, 10); len(got) != 0 {
			t.Errorf("gathered %v", got)
		}
		if got := table.Snapshot()[0].Holders[0]; got.Batch != "" {
			t.Errorf("who gathered nobody is in the batch of %s", got.Batch)
		}
		alone.Release()
		if waits != 3 || helds != 2 {
			t.Errorf("%d waits and %d holds were told, want 3 and 2", waits, helds)
		}
		expectIdle(t, table)
	})
}

// Close refuses the waiting and the new, grants nothing on the way, and leaves
// what is held to its holders.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := local.New(local.Options{})
		hold := must(t, table, "1", lock.R(orders))
		waiters := []*asked{ // the reader would be granted if only the writers left
			ask(t, table, "2", lock.W(orders), lock.W(returns)), ask(t, table, "3", lock.W(orders)), ask(t, table, "4", lock.R(orders)),
		}
		table.Close()
		for _, w := range waiters {
			w.refused(t, lock.ErrClosed)
		}
		if _, err := table.Acquire(t.Context(), lock.NewSet(lock.R(returns)), time.Hour); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("after Close: got error %v, want %v", err, lock.ErrClosed)
		}
		if err := hold.Context().Err(); err != nil {
			t.Errorf("context of what was held: %v", err)
		}
		if got := table.Snapshot(); len(got) != 1 || len(got[0].Holders) != 1 || len(got[0].Waiters) != 0 {
			t.Errorf("left in the table: %+v", got)
		}
		hold.Release()
		expectIdle(t, table)
		table.Close()
	})
}

// A cancel and a release at the same moment: whichever comes first, the request
// either holds the keys or has given them back, and they go to the one behind.
func TestCancelRacesWithGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := local.New(local.Options{})
		outcomes := map[bool]int{}
		for range 3000 {
			first := must(t, table, "1", lock.R(namespace), lock.W(orders))
			second := ask(t, table, "2", lock.R(namespace), lock.W(orders))
			third := ask(t, table, "3", lock.R(namespace), lock.W(orders))
			var both sync.WaitGroup
			both.Go(second.cancel)
			both.Go(first.Release)
			both.Wait()
			if !second.ended() {
				t.Fatal("it still waits")
			}
			outcomes[second.err == nil]++
			if second.err == nil {
				second.hold.Release()
			}
			third.granted(t).Release()
		}
		expectIdle(t, table)
		t.Logf("granted %d, cancelled %d", outcomes[true], outcomes[false])
	})
}

// A grant that finds its request's context done is given back to the one behind.
func TestGrantUnderDoneContextIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := local.New(local.Options{})
		first := must(t, table, "1", lock.W(orders))
		second, third := ask(t, table, "2", lock.W(orders)), ask(t, table, "3", lock.W(orders))
		second.cancel()
		first.Release() // second may be granted here, before it saw its cancel
		second.refused(t, context.Canceled)
		third.granted(t).Release()
		expectIdle(t, table)
	})
}

// What an operator reads in an error is the key that held the request up.
func TestErrorsNameTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := local.New(local.Options{MaxWaitersPerKey: 1})
		defer must(t, table, "1", lock.R(namespace), lock.W(orders)).Release()
		set := lock.NewSet(lock.R(namespace), lock.W(orders))
		var got []string
		for _, wait := range []time.Duration{0, time.Second} {
			_, err := table.Acquire(t.Context(), set, wait)
			got = append(got, err.Error())
		}
		waiter := ask(t, table, "2", set.Items()...)
		_, err := table.Acquire(t.Context(), set, time.Second)
		got = append(got, err.Error())
		waiter.cancel()
		waiter.refused(t, context.Canceled)
		got = append(got, waiter.err.Error())
		want := []string{
			"lock: busy: table-name main/sales//orders",
			"lock: timed out, waiting for table-name main/sales//orders",
			"lock: queue full: table-name main/sales//orders",
			"context canceled, waiting for table-name main/sales//orders",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
	})
}
