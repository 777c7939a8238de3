package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// raceRounds is how often a race is run: enough that a store which checks and
// writes in two steps is caught.
const raceRounds = 40

// conflicted reports whether err is a conflict, and fails the case on any error
// that is none.
func (h *harness) conflicted(err error) bool {
	if _, ok := errors.AsType[*store.ConflictError](err); ok {
		return true
	}
	if err != nil {
		h.Errorf("apply: %v", err)
	}
	return false
}

// Of two batches that each assert what the other writes, exactly one is
// applied.
func testSkewAssertWrite(h *harness) {
	a, b := pointer("a"), pointer("b")
	va, vb := h.create(a, "a", ""), h.create(b, "b", "")
	for range raceRounds {
		writeA := batch(conds(store.Is(a, va), store.Is(b, vb)), put(a, "a", ""))
		writeB := batch(conds(store.Is(b, vb), store.Is(a, va)), put(b, "b", ""))
		var conflictA, conflictB bool
		race(
			func() { conflictA = h.conflicted(h.apply(writeA)) },
			func() { conflictB = h.conflicted(h.apply(writeB)) })
		if h.Failed() || conflictA == conflictB {
			h.Fatalf("write a refused: %v, write b refused: %v", conflictA, conflictB)
		}
		va, vb = h.get(a).Version, h.get(b).Version
	}
}

// A child is never left under a parent that is gone: of "create a child if the
// parent lives" and "delete the parent if it is empty" exactly one is applied,
// with several children at a time and with the parent's properties changing.
func testSkewCreateDrop(h *harness) {
	const children = 3
	for round := range raceRounds {
		parent := key.ForNamespace("w", []string{fmt.Sprint(round)})
		tables := key.TableNamesIn("w", []string{fmt.Sprint(round)})
		vp := h.create(parent, "p", "")
		var dropped bool
		var created atomic.Int32
		fns := []func(){func() {
			b := batch(conds(store.Is(parent, vp), store.Empty(parent, tables)), del(parent))
			dropped = !h.conflicted(h.apply(b))
		}}
		for i := range children {
			k := key.ForTableName("w", []string{fmt.Sprint(round)}, fmt.Sprint(i))
			fns = append(fns, func() {
				b := batch(conds(store.Live(parent, "p"), store.Is(k, store.Absent)), put(k, "c", ""))
				if !h.conflicted(h.apply(b)) {
					created.Add(1)
				}
			})
		}
		race(fns...)
		left := int32(len(h.list(tables, "", 10)))
		if left != created.Load() {
			h.Fatalf("round %d: %d children were acknowledged, %d are there", round, created.Load(), left)
		}
		if dropped != (left == 0) || dropped == h.get(parent).Exists() {
			h.Fatalf("round %d: parent dropped: %v, there: %v, children: %d", round, dropped, h.get(parent).Exists(), left)
		}
	}
}

// Claims of nested locations that each assert an empty neighbourhood exclude
// one another through the guard that all of them write: exactly one claim wins,
// and retries with the guard's new version find it.
func testSkewLocations(h *harness) {
	guard := key.LocationGuard()
	h.create(guard, "g", "")
	for round := range raceRounds {
		top := fmt.Sprintf("s3://b/%d", round)
		outer, inner := key.ForLocation(top), key.ForLocation(top+"/t")
		var won atomic.Int32
		claim := func(mine, above key.Key, within key.Prefix) {
			for {
				// What is above is written as it is, absent, so that it can be asserted.
				cs := conds(store.Is(guard, h.get(guard).Version), store.Empty(guard, within), store.Is(mine, store.Absent))
				ws := []store.Write{put(guard, "g", ""), put(mine, "m", "")}
				if above != mine {
					cs, ws = append(cs, store.Is(above, store.Absent)), append(ws, del(above))
				}
				err := h.apply(batch(cs, ws...))
				if err == nil {
					won.Add(1)
					return
				}
				conflict, ok := errors.AsType[*store.ConflictError](err)
				if !ok {
					h.Errorf("claim %v: %v", mine, err)
					return
				}
				for _, c := range conflict.Conds {
					if c.Key != guard || c.Kind != store.KindIs {
						return // the place is taken, not just the guard moved
					}
				}
			}
		}
		race(
			func() { claim(outer, outer, key.LocationsWithin(top)) },
			func() { claim(inner, outer, key.LocationsWithin(top+"/t")) },
			func() { claim(inner, outer, key.LocationsWithin(top+"/t")) })
		if n := len(h.list(key.LocationsWithin(top), "", 10)); won.Load() != 1 || n != 1 {
			h.Fatalf("round %d: %d claims won, %d are there, want 1", round, won.Load(), n)
		}
	}
}

// Batches that write different keys and share a condition that none of them
// writes all succeed: a condition is shared, not held.
func testSharedCondition(h *harness) {
	shared, parent := pointer("shared"), key.ForNamespace("w", []string{"p"})
	vs := h.create(shared, "s", "")
	h.create(parent, "p", "")
	for round := range raceRounds {
		var fns []func()
		for i := range 4 {
			k := pointer(fmt.Sprintf("%d-%d", round, i))
			fns = append(fns, func() {
				b := batch(conds(store.Is(shared, vs), store.Live(parent, "p"), store.Is(k, store.Absent)), put(k, "k", ""))
				if err := h.apply(b); err != nil {
					h.Errorf("apply: %v", err)
				}
			})
		}
		race(fns...)
	}
	h.mustBe(shared, vs, "s", "")
}

// Of many who make a record, each its own incarnation, exactly one is applied, whole: with what it makes beside it. All
// others are told of the record that is there.
func testMadeOnce(h *harness) {
	const makers = 8
	for round := range raceRounds {
		k := pointer(fmt.Sprint("k", round))
		batches := make([]store.Batch, makers)
		var won [makers]bool
		var fns []func()
		for i := range batches {
			id := fmt.Sprint("i", i)
			beside := pointer(fmt.Sprint("beside", round, "-", i))
			batches[i] = batch(conds(store.Is(k, store.Absent), store.Is(beside, store.Absent)), put(k, id, id), put(beside, id, id))
			fns = append(fns, func() { won[i] = !h.conflicted(h.apply(batches[i])) })
		}
		race(fns...)
		if h.Failed() {
			return
		}
		winner := h.get(k)
		for i, b := range batches {
			is := winner.Version == store.Version(b.ID)
			if won[i] != is || h.get(b.Writes[1].Key).Exists() != is {
				h.Fatalf("round %d: maker %d was told that it won: %v; the record is %s's", round, i, won[i], winner.ID)
			}
		}
		if !winner.Exists() {
			h.Fatalf("round %d: nobody won", round)
		}
	}
}

// Sixteen writers that count up one record by read, compare and retry lose no
// step, and each step's version is its batch's.
func testLostUpdates(h *harness) {
	const writers, steps = 16, 10
	k := pointer("counter")
	h.create(k, "i", "0")
	var fns []func()
	for range writers {
		fns = append(fns, func() {
			for range steps {
				for {
					r, err := h.env.Store.Get(h.ctx, k)
					if err != nil {
						h.Errorf("get: %v", err)
						return
					}
					n, err := strconv.Atoi(string(r.Value))
					if err != nil {
						h.Errorf("read %q: %v", r.Value, err)
						return
					}
					runtime.Gosched() // so that others read the same
					err = h.apply(batch(conds(store.Is(k, r.Version)), put(k, "i", strconv.Itoa(n+1))))
					if err == nil {
						break
					}
					if !h.conflicted(err) {
						return
					}
				}
			}
		})
	}
	race(fns...)
	if got := string(h.get(k).Value); got != strconv.Itoa(writers*steps) {
		h.Fatalf("%d increments counted to %s", writers*steps, got)
	}
}

// What an Apply that returned nil wrote is seen by every Get and List that
// starts afterwards, on whatever goroutine, and so is what it deleted.
func testReadYourWrites(h *harness) {
	k := pointer("k")
	v := store.Absent
	for round := range raceRounds {
		var w store.Write
		want := store.Absent
		if v == store.Absent || round%3 != 0 {
			w = put(k, "i", fmt.Sprint(round))
		} else {
			w = del(k)
		}
		b := batch(conds(store.Is(k, v)), w)
		applied := h.mustApply(b)
		if !w.Delete {
			want = applied
		}
		look := func() {
			r, err := h.env.Store.Get(h.ctx, k)
			if err != nil || r.Version != want {
				h.Errorf("round %d: get gives %q, %v; want %q", round, r.Version, err, want)
			}
			rs, err := h.env.Store.List(h.ctx, key.Prefix{Level: k.Level, Path: k.Path}, "", 2)
			if err != nil || (len(rs) == 1) != (want != store.Absent) || len(rs) == 1 && rs[0].Version != want {
				h.Errorf("round %d: list gives %v, %v; want %q", round, rs, err, want)
			}
		}
		race(look, look, look, look)
		v = want
	}
}

// A reader never sees a record go back, and one that has seen the second write
// of a batch sees its first as well. (Get is no snapshot: of two reads the later
// may be newer.)
func testReadersOrder(h *harness) {
	a, b := pointer("a"), pointer("b")
	h.mustApply(batch(conds(store.Is(a, store.Absent), store.Is(b, store.Absent)), put(a, "a", "0"), put(b, "b", "0")))
	done := make(chan struct{})
	var readers sync.WaitGroup
	defer readers.Wait()
	defer close(done)
	for range 3 {
		readers.Go(func() {
			last := 0
			for {
				seen, err1 := h.env.Store.Get(h.ctx, b)
				then, err2 := h.env.Store.Get(h.ctx, a)
				if err := errors.Join(err1, err2); err != nil {
					h.Errorf("get: %v", err)
					return
				}
				nb, _ := strconv.Atoi(string(seen.Value))
				na, _ := strconv.Atoi(string(then.Value))
				if nb < last || na < nb {
					h.Errorf("after %d: read b=%d, then a=%d", last, nb, na)
					return
				}
				last = na
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := 1; i <= raceRounds; i++ {
		n := strconv.Itoa(i)
		h.mustApply(batch(conds(store.Is(a, h.get(a).Version), store.Is(b, h.get(b).Version)), put(a, "a", n), put(b, "b", n)))
	}
}
