package locktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// Shared admits shared; every other pair excludes, until released.
func testModes(t *testing.T, n nodes) {
	for i, c := range []struct {
		held, asked lock.Set
		together    bool
	}{
		{r(0), r(0), true}, {r(0), w(0), false}, {w(0), r(0), false}, {w(0), w(0), false},
		{lock.NewSet(lock.R(table(0)), lock.W(table(0))), r(0), false}, // exclusive wins
	} {
		hold := must(t, n.a, c.held)
		asked := ask(t, n.b, c.asked, long)
		if got := asked.granted(t); got != c.together {
			t.Fatalf("%d: %v while %v is held: granted is %v", i, c.asked, c.held, got)
		}
		hold.Release()
		if !asked.granted(t) {
			t.Fatalf("%d: %v waits though %v was released", i, c.asked, c.held)
		}
		asked.hold.Release()
	}
}

// Different keys do not meet, not even with equal paths at different levels.
func testDisjointSets(t *testing.T, n nodes) {
	ns := []string{"ns"}
	for _, k := range []key.Key{
		key.ForTableName("main", ns, "a"), key.ForTableName("main", ns, "ab"), key.ForTableName("main", nil, "ns"),
		key.ForNamespace("main", ns), key.ForTableName("other", ns, "a"), key.ForPointer("main", "ns"),
	} {
		defer must(t, n.a, lock.NewSet(lock.W(k))).Release()
	}
}

// A set that has to wait for one key does not hold its others when it gives up.
func testWholeSetOrNothing(t *testing.T, n nodes) {
	both := lock.NewSet(lock.W(table(0)), lock.W(table(1)))
	hold := must(t, n.a, w(1))
	if _, err := n.b.Acquire(t.Context(), both, time.Second); !errors.Is(err, lock.ErrTimeout) {
		t.Fatalf("got error %v, want %v", err, lock.ErrTimeout)
	}
	must(t, n.a, w(0)).Release()
	refused(t, n.b, both)
	must(t, n.a, w(0)).Release()
	hold.Release()
	hold = must(t, n.b, both)
	refused(t, n.a, r(0))
	refused(t, n.a, r(1))
	hold.Release()
}

func testEmptySet(t *testing.T, n nodes) {
	defer must(t, n.a, w(0)).Release()
	hold := must(t, n.b, lock.NewSet())
	if got := hold.Token(table(0)); got != 0 {
		t.Errorf("token of a key that is not in the set: got %d, want 0", got)
	}
	hold.Release()
	hold.Release()
}

func testZeroWait(t *testing.T, n nodes) {
	hold := must(t, n.a, r(0))
	began := time.Now()
	refused(t, n.b, w(0))
	if took := time.Since(began); took > time.Second { // what I/O may take, but no wait
		t.Errorf("acquire with no wait took %v", took)
	}
	must(t, n.b, r(0)).Release()
	hold.Release()
	must(t, n.b, w(0)).Release()
}

func testWaitIsBounded(t *testing.T, n nodes) {
	const wait = 10 * time.Second
	hold := must(t, n.a, w(0))
	began := time.Now()
	_, err := n.b.Acquire(t.Context(), r(0), wait)
	if !errors.Is(err, lock.ErrTimeout) {
		t.Fatalf("got error %v, want %v", err, lock.ErrTimeout)
	}
	if took := time.Since(began); took < wait || took > wait+time.Second {
		t.Errorf("acquire gave up after %v, want %v", took, wait)
	}
	hold.Release()
	must(t, n.a, w(0)).Release()
}

// A cancelled request ends at once with the cause of its context, and what it
// waited for goes to others.
func testCancel(t *testing.T, n nodes) {
	cause := errors.New("client went away")
	hold := must(t, n.a, w(0))
	asked := ask(t, n.b, w(0), long)
	asked.cancel(cause)
	if !asked.ended() {
		t.Fatal("acquire goes on after its cancel")
	}
	if !errors.Is(asked.err, cause) || asked.hold != nil {
		t.Fatalf("after cancel: hold %v, error %v; want the cause %v", asked.hold, asked.err, cause)
	}
	hold.Release()
	must(t, n.a, w(0)).Release()

	hold = must(t, n.a, w(0))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	_, err := n.b.Acquire(ctx, w(0), long)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Second {
		t.Errorf("under a deadline of 1s: error %v after %v", err, time.Since(began))
	}
	hold.Release()
	must(t, n.a, w(0)).Release()
}

// Nothing is granted under a context that has ended, not even what is free.
func testDoneContext(t *testing.T, n nodes) {
	cause := errors.New("client went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, wait := range []time.Duration{0, long} {
		if _, err := n.a.Acquire(ctx, w(0), wait); !errors.Is(err, cause) {
			t.Errorf("wait %v: got error %v, want %v", wait, err, cause)
		}
	}
	must(t, n.b, w(0)).Release()
}

// A second Release does not take the key from the next holder.
func testReleaseIsIdempotent(t *testing.T, n nodes) {
	first := must(t, n.a, w(0))
	first.Release()
	second := must(t, n.b, w(0))
	first.Release()
	refused(t, n.a, r(0))
	waiting := ask(t, n.a, r(0), long)
	first.Release()
	want(t, []*asking{waiting}, false)
	second.Release()
	want(t, []*asking{waiting}, true)
	second.Release()
	refused(t, n.b, w(0))
	waiting.hold.Release()
}

// The hold's context carries what the caller's does, ends with it, and ends with
// Release; the end of the caller's context gives no key back.
func testHoldContext(t *testing.T, n nodes) {
	type tag struct{}
	cause := errors.New("client went away")
	parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), tag{}, "x"))
	hold, err := n.a.Acquire(parent, w(0), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := hold.Context().Value(tag{}); got != "x" {
		t.Errorf("value of the caller's context: got %v", got)
	}
	if err := hold.Context().Err(); err != nil {
		t.Errorf("context of what is held: %v", err)
	}
	cancel(cause)
	if got := context.Cause(hold.Context()); !errors.Is(got, cause) {
		t.Errorf("cause after the caller's context ended: got %v, want %v", got, cause)
	}
	refused(t, n.b, r(0))
	hold.Release()

	next := must(t, n.b, w(0))
	next.Release()
	if got := context.Cause(next.Context()); !errors.Is(got, lock.ErrReleased) {
		t.Errorf("cause after release: got %v, want %v", got, lock.ErrReleased)
	}
}

// A writer gets its turn though there is never a moment without a reader.
func testWriterDoesNotStarve(t *testing.T, n nodes) {
	testDoesNotStarve(t, n, r(0), w(0))
}

// A reader gets its turn though two writers take turns.
func testReaderDoesNotStarve(t *testing.T, n nodes) {
	testDoesNotStarve(t, n, w(0), r(0))
}

// testDoesNotStarve has two actors keep a key taken, each asking again while the
// other holds it, and a third who waits among them.
func testDoesNotStarve(t *testing.T, n nodes, crowd, single lock.Set) {
	ctx, stop := context.WithCancel(t.Context())
	var actors sync.WaitGroup
	defer actors.Wait()
	defer stop()
	for i, l := range []lock.Locker{n.a, n.b} {
		actors.Go(func() {
			time.Sleep(time.Duration(i) * 500 * time.Millisecond) // so that the crowd overlaps
			for ctx.Err() == nil {
				hold, err := l.Acquire(ctx, crowd, long)
				if err != nil {
					return
				}
				time.Sleep(time.Second)
				hold.Release()
			}
		})
	}
	time.Sleep(2 * time.Second)
	hold, err := n.b.Acquire(ctx, single, time.Minute)
	if err != nil {
		t.Fatalf("acquire %v among a crowd of %v: %v", single, crowd, err)
	}
	hold.Release()
}

// Tokens of a key rise with each exclusive grant, though the key was forgotten
// in between, and a shared grant's lies between those around it.
func testTokensRise(t *testing.T, n nodes) {
	last := map[key.Key]lock.Token{}
	for i, set := range []lock.Set{w(0), w(0), w(1), w(0).With(lock.W(table(1))), r(0), w(0), r(0).With(lock.W(table(1))), w(0), w(1)} {
		l := []lock.Locker{n.a, n.b}[i%2]
		hold := must(t, l, set)
		for _, item := range set.Items() {
			got := hold.Token(item.Key)
			if got < last[item.Key] || item.Mode == lock.Exclusive && got == last[item.Key] {
				t.Errorf("%d: token of %v is %d after %d", i, item.Key, got, last[item.Key])
			}
			last[item.Key] = got
		}
		if got := hold.Token(table(7)); got != 0 {
			t.Errorf("%d: token of a key that is not in the set: %d", i, got)
		}
		hold.Release()
	}
}

func testTokensAreZero(t *testing.T, n nodes) {
	hold := must(t, n.a, w(0))
	defer hold.Release()
	if got := hold.Token(table(0)); got != 0 {
		t.Errorf("token of a Locker that does not fence: %d", got)
	}
}

// Writers are granted in the order in which they asked.
func testOrderOfArrival(t *testing.T, n nodes) {
	hold := must(t, n.a, w(0))
	queue := make([]*asking, 20)
	for i := range queue {
		queue[i] = ask(t, []lock.Locker{n.a, n.b}[i%2], w(0), long)
	}
	turns := make([]bool, len(queue))
	for i := range queue {
		hold.Release()
		turns[i] = true
		want(t, queue, turns...)
		hold = queue[i].hold
	}
	hold.Release()
}

// A release wakes the run of readers at the head and nobody behind the next
// writer; readers that came after the writer do not overtake it.
func testWakesTheRightOnes(t *testing.T, n nodes) {
	hold := must(t, n.a, w(0))
	queue := []*asking{ask(t, n.a, r(0), long), ask(t, n.b, r(0), long), ask(t, n.a, w(0), long), ask(t, n.b, r(0), long)}
	want(t, queue, false, false, false, false)
	hold.Release()
	want(t, queue, true, true, false, false)
	queue[1].hold.Release()
	want(t, queue, true, true, false, false)
	queue[0].hold.Release()
	want(t, queue, true, true, true, false)
	queue[2].hold.Release()
	want(t, queue, true, true, true, true)
	queue[3].hold.Release()
}

// Those who waited only behind a writer that gave up go on, whether it was
// cancelled or its time was over.
func testCancelWakesThoseBehind(t *testing.T, n nodes) {
	for _, giveUp := range []func(*asking){
		func(a *asking) { a.cancel(nil) },
		func(*asking) { time.Sleep(time.Minute) },
	} {
		hold := must(t, n.a, r(0))
		writer := ask(t, n.b, w(0), time.Minute)
		behind := []*asking{ask(t, n.a, r(0), long), ask(t, n.b, r(0), long)}
		want(t, behind, false, false)
		giveUp(writer)
		want(t, behind, true, true)
		if !writer.ended() || writer.err == nil {
			t.Error("the writer that gave up still waits, or was granted beside readers")
		}
		hold.Release()
		behind[0].hold.Release()
		behind[1].hold.Release()
	}
}

// What would have to wait behind a waiter is busy, though it would go with what is held.
func testAwaitedIsBusy(t *testing.T, n nodes) {
	hold := must(t, n.a, r(0))
	writer := ask(t, n.b, w(0), long)
	refused(t, n.a, r(0))
	hold.Release()
	want(t, []*asking{writer}, true)
	writer.hold.Release()
	must(t, n.a, r(0)).Release()
}
