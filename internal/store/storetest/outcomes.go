package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// An applied batch is reported as such, as often as one asks, and when its
// records have long been written or deleted by others.
func testOutcomeApplied(h *harness) {
	k := pointer("k")
	b := batch(conds(store.Is(k, store.Absent)), put(k, "i", "1"))
	b.Ops = []store.OpRecord{{ID: newID(), Name: "it's"}}
	v := h.mustApply(b)
	h.mustOutcome(b, store.Applied)
	h.mustApply(batch(conds(store.Is(k, v)), del(k)))
	h.mustOutcome(b, store.Applied)
	h.mustOutcome(b, store.Applied)
}

// NotApplied is a promise: the batch is refused from then on, by a conflict that
// names no condition, although its conditions hold; the answer never changes,
// and other batches are not touched by it.
func testOutcomeNeverSeen(h *harness) {
	k := pointer("k")
	b := batch(conds(store.Is(k, store.Absent)), put(k, "i", "1"))
	h.mustOutcome(b, store.NotApplied)
	for range 2 {
		h.mustConflict(b)
		h.mustBeAbsent(k)
		h.mustOutcome(b, store.NotApplied)
	}
	b.ID = newID()
	h.mustApply(b)
	h.mustOutcome(b, store.Applied)
}

// A batch that was refused is NotApplied, and after that answer cannot succeed
// even if its conditions come to hold.
func testOutcomeAfterConflict(h *harness) {
	k, parent := pointer("k"), pointer("parent")
	b := batch(conds(store.Live(parent, "p"), store.Is(k, store.Absent)), put(k, "i", "1"))
	h.mustConflict(b, store.Live(parent, "p"))
	h.mustOutcome(b, store.NotApplied)
	h.create(parent, "p", "")
	h.mustConflict(b)
	h.mustBeAbsent(k)
}

// Asked while the batch is on its way, Outcome and Apply agree: either both say
// that it was applied, or neither, and what they say is what is there. Several
// who ask at once get one answer.
func testOutcomeInFlight(h *harness) {
	var applied, not int
	for round := range 5 * raceRounds {
		k := pointer(fmt.Sprint(round))
		b := batch(conds(store.Is(k, store.Absent)), put(k, "i", "1"))
		var err error
		var first, second store.Outcome
		// The neighbour gives stores that group batches a group to form.
		neighbour := pointer(fmt.Sprint("n", round))
		race(
			func() { err = h.apply(b) },
			func() { first = h.outcomeAsync(b) },
			func() { second = h.outcomeAsync(b) },
			func() {
				if err := h.apply(batch(conds(store.Is(neighbour, store.Absent)), put(neighbour, "n", ""))); err != nil {
					h.Errorf("neighbour: %v", err)
				}
			})
		if h.Failed() {
			return
		}
		want := store.Applied
		if h.conflicted(err) {
			want = store.NotApplied
			not++
		} else {
			applied++
		}
		if first != want || second != want || h.get(k).Exists() != (want == store.Applied) {
			h.Fatalf("round %d: apply says %v, outcome says %v and %v, there: %v", round, err, first, second, h.get(k).Exists())
		}
		h.mustOutcome(b, want)
	}
	h.Logf("applied first %d times, outcome first %d times", applied, not)
}

// outcomeAsync is outcome for goroutines that may not call Fatal.
func (h *harness) outcomeAsync(b store.Batch) store.Outcome {
	o, err := h.env.Store.Outcome(h.ctx, b)
	if err != nil {
		h.Errorf("outcome of %s: %v", b.ID, err)
	}
	return o
}

// Outcomes survive a restart, both of them: an applied id stays applied and is
// not applied again, an impossible one stays impossible.
func testOutcomeReopen(h *harness) {
	if h.env.Reopen == nil {
		h.Log("this store dies with its process: nothing to ask")
		return
	}
	k, l := pointer("k"), pointer("l")
	done := batch(conds(store.Is(k, store.Absent)), put(k, "i", "1"))
	void := batch(conds(store.Is(l, store.Absent)), put(l, "i", "1"))
	v := h.mustApply(done)
	h.mustOutcome(void, store.NotApplied)
	h.env.Store = h.env.Reopen()
	h.mustOutcome(done, store.Applied)
	h.mustApply(batch(conds(store.Is(k, v)), del(k)))
	h.mustApply(done)
	h.mustBeAbsent(k)
	h.mustConflict(void)
	h.mustOutcome(void, store.NotApplied)
	h.mustBeAbsent(l)
}

// Every acknowledged record is there after a restart, as it was, and what was
// deleted is not; work goes on where it stopped.
func testReopen(h *harness) {
	if h.env.Reopen == nil {
		h.Log("this store dies with its process: nothing to reopen")
		return
	}
	versions := map[key.Key]store.Version{}
	for i := range 20 {
		k := pointer(fmt.Sprint(i))
		versions[k] = h.create(k, "i", fmt.Sprint(i))
	}
	gone := pointer("7")
	h.mustApply(batch(conds(store.Is(gone, versions[gone])), del(gone)))
	delete(versions, gone)
	for range 2 {
		h.env.Store = h.env.Reopen()
		for k, v := range versions {
			h.mustBe(k, v, "i", k.Name())
		}
		h.mustBeAbsent(gone)
		for k, v := range versions {
			versions[k] = h.mustApply(batch(conds(store.Is(k, v)), put(k, "i", k.Name())))
		}
	}
}

// A context that is done before the call refuses it, and nothing is applied. One
// that ends in the middle may give any answer, but no lie and no half: nil means
// applied, ErrOutcomeUnknown means ask, anything else means not applied.
func testCancel(h *harness) {
	dead, cancel := context.WithCancel(h.ctx)
	cancel()
	k := pointer("k")
	b := batch(conds(store.Is(k, store.Absent)), put(k, "i", "1"))
	if err := h.env.Store.Apply(dead, b); !errors.Is(err, context.Canceled) {
		h.Fatalf("apply with a cancelled context: got %v, want context.Canceled", err)
	}
	h.mustBeAbsent(k)
	if _, err := h.env.Store.Get(dead, k); !errors.Is(err, context.Canceled) {
		h.Fatalf("get with a cancelled context: got %v, want context.Canceled", err)
	}
	if _, err := h.env.Store.List(dead, key.DyingIn("w"), "", 1); !errors.Is(err, context.Canceled) {
		h.Fatalf("list with a cancelled context: got %v, want context.Canceled", err)
	}

	var unknown atomic.Int32
	for round := range 5 * raceRounds {
		x, y := pointer(fmt.Sprint("x", round)), pointer(fmt.Sprint("y", round))
		b := batch(conds(store.Is(x, store.Absent), store.Is(y, store.Absent)), put(x, "i", ""), put(y, "i", ""))
		ctx, cancel := context.WithCancel(h.ctx)
		var err error
		race(cancel, func() { err = h.env.Store.Apply(ctx, b) })
		want := store.NotApplied
		switch {
		case err == nil:
			want = store.Applied
		case errors.Is(err, store.ErrOutcomeUnknown):
			unknown.Add(1)
			want = h.outcome(b)
		}
		if x, y := h.get(x).Exists(), h.get(y).Exists(); x != y || x != (want == store.Applied) {
			h.Fatalf("round %d: apply says %v, which is %v, but x is there: %v, y: %v", round, err, want, x, y)
		}
		h.mustOutcome(b, want)
	}
	h.Logf("%d answers were unknown", unknown.Load())
}
