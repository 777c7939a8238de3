package storetest

import (
	"errors"
	"sync/atomic"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// Is holds for the version that the record has and for no other, on keys that
// the batch writes and on keys that it does not.
func testIs(h *harness) {
	k, other := pointer("k"), pointer("other")
	v1 := h.create(k, "i", "1")
	vo := h.create(other, "o", "")

	h.mustConflict(batch(conds(store.Is(k, store.Absent)), put(k, "i", "x")), store.Is(k, store.Absent))
	h.mustConflict(batch(conds(store.Is(k, vo)), put(k, "i", "x")), store.Is(k, vo))
	h.mustConflict(batch(conds(store.Is(k, vo)), del(k)), store.Is(k, vo))
	h.mustBe(k, v1, "i", "1")

	v2 := h.mustApply(batch(conds(store.Is(k, v1)), put(k, "i", "2")))
	h.mustConflict(batch(conds(store.Is(k, v1), store.Is(other, vo)), put(other, "o", "x")), store.Is(k, v1))
	h.mustBe(other, vo, "o", "")
	vo = h.mustApply(batch(conds(store.Is(k, v2), store.Is(other, vo)), put(other, "o", "y")))
	h.mustBe(k, v2, "i", "2")
	h.mustBe(other, vo, "o", "y")

	missing := pointer("missing")
	h.mustConflict(batch(conds(store.Is(missing, v1)), put(missing, "i", "")), store.Is(missing, v1))
	h.mustConflict(batch(conds(store.Is(missing, v1)), del(missing)), store.Is(missing, v1))
	h.mustBeAbsent(missing)

	// Deleting what is not there is a change of nothing, under the usual condition.
	h.mustApply(batch(conds(store.Is(missing, store.Absent)), del(missing)))
	h.mustBeAbsent(missing)
}

// Live holds as long as the incarnation exists, whatever its value, and for no
// other incarnation; it may stand beside Is on the same key.
func testLive(h *harness) {
	parent := key.ForNamespace("w", []string{"a"})
	child := func(n string) store.Batch {
		k := key.ForTableName("w", []string{"a"}, n)
		return batch(conds(store.Live(parent, "p1"), store.Is(k, store.Absent)), put(k, "c", ""))
	}
	h.mustConflict(child("early"), store.Live(parent, "p1"))
	v := h.create(parent, "p1", "1")
	h.mustApply(child("t1"))
	v = h.mustApply(batch(conds(store.Is(parent, v), store.Live(parent, "p1")), put(parent, "p1", "2")))
	h.mustApply(child("t2"))
	h.mustConflict(batch(conds(store.Is(parent, v), store.Live(parent, "p2")), put(parent, "p1", "3")), store.Live(parent, "p2"))
	h.mustApply(batch(conds(store.Is(parent, v)), del(parent)))
	h.mustConflict(child("t3"), store.Live(parent, "p1"))
	h.create(parent, "p2", "")
	h.mustConflict(child("t4"), store.Live(parent, "p1"))
	h.mustList(key.TableNamesIn("w", []string{"a"}), key.ForTableName("w", []string{"a"}, "t1"), key.ForTableName("w", []string{"a"}, "t2"))
}

// Empty holds while nothing lies under the prefix: siblings, deeper levels and
// other levels do not count, deleted records do not either, any one record does.
func testEmpty(h *harness) {
	parent := key.ForNamespace("w", []string{"a"})
	tables, children := key.TableNamesIn("w", []string{"a"}), key.NamespacesIn("w", []string{"a"})
	vp := h.create(parent, "p", "")
	touch := func() store.Batch {
		return batch(conds(store.Is(parent, vp), store.Empty(parent, tables), store.Empty(parent, children)), put(parent, "p", ""))
	}
	for _, sibling := range []key.Key{
		key.ForNamespace("w", []string{"ab"}), key.ForNamespace("w", []string{"a", "b", "c"}),
		key.ForTableName("w", []string{"ab"}, "t"), key.ForTableName("wa", []string{"a"}, "t"),
	} {
		h.create(sibling, "s", "")
	}
	vp = h.mustApply(touch())

	table, child := key.ForTableName("w", []string{"a"}, "t"), key.ForNamespace("w", []string{"a", "b"})
	vt := h.create(table, "t", "", store.Live(parent, "p"))
	h.mustConflict(touch(), store.Empty(parent, tables))
	vc := h.create(child, "c", "", store.Live(parent, "p"))
	h.mustConflict(touch(), store.Empty(parent, tables), store.Empty(parent, children))
	h.mustApply(batch(conds(store.Is(table, vt)), del(table)))
	h.mustConflict(touch(), store.Empty(parent, children))
	h.mustApply(batch(conds(store.Is(child, vc)), del(child)))
	vp = h.mustApply(touch())
	h.mustApply(batch(conds(store.Is(parent, vp), store.Empty(parent, tables), store.Empty(parent, children)), del(parent)))
	h.mustBeAbsent(parent)
}

// Empty leaves out exactly what the batch itself writes: a batch may move the
// only record under a prefix, claim a place inside a prefix that must otherwise
// be empty, or replace what is there; a record that it does not write counts.
func testEmptyOwnWrites(h *harness) {
	guard := key.LocationGuard()
	vg := h.create(guard, "g", "")
	within := key.LocationsWithin("s3://b/t")
	outer, inner := key.ForLocation("s3://b/t"), key.ForLocation("s3://b/t/u")
	claim := func(more []store.Cond, ws ...store.Write) store.Batch {
		cs := append(conds(store.Is(guard, vg), store.Empty(guard, within)), more...)
		return batch(cs, append(ws, put(guard, "g", ""))...)
	}
	vg = h.mustApply(claim(conds(store.Is(outer, store.Absent)), put(outer, "1", "")))
	vo := vg
	h.mustConflict(claim(conds(store.Is(inner, store.Absent)), put(inner, "2", "")), store.Empty(guard, within))
	vg = h.mustApply(claim(conds(store.Is(outer, vo)), put(outer, "1", "again")))
	vo = vg
	vg = h.mustApply(claim(conds(store.Is(outer, vo), store.Is(inner, store.Absent)), del(outer), put(inner, "2", "")))
	h.mustList(within, inner)
	h.mustConflict(claim(conds(store.Is(outer, store.Absent)), put(outer, "3", "")), store.Empty(guard, within))
	vg = h.mustApply(claim(conds(store.Is(inner, vg)), del(inner)))
	h.mustList(within)

	// Many of its own, and one that is not, wherever that one sorts.
	for _, stranger := range []string{"s3://b/t/0", "s3://b/t/m", "s3://b/t/z"} {
		s := key.ForLocation(stranger)
		vs := h.create(s, "s", "")
		cs, ws := conds(), []store.Write{}
		for _, n := range []string{"a", "b", "n", "o"} {
			k := key.ForLocation("s3://b/t/" + n)
			cs, ws = append(cs, store.Is(k, store.Absent)), append(ws, put(k, n, ""))
		}
		h.mustConflict(claim(cs, ws...), store.Empty(guard, within))
		h.mustApply(batch(conds(store.Is(s, vs)), del(s)))
	}
	h.mustList(within)
}

// A record that was deleted can be made again; it then has a new version and
// the new incarnation, and no condition on the old one holds again.
func testIncarnations(h *harness) {
	k, x := pointer("k"), pointer("x")
	v1 := h.create(k, "i1", "same")
	h.mustApply(batch(conds(store.Is(k, v1)), del(k)))
	h.mustBeAbsent(k)
	h.mustConflict(batch(conds(store.Is(k, v1)), put(k, "i1", "same")), store.Is(k, v1))
	v2 := h.create(k, "i2", "same")
	h.mustBe(k, v2, "i2", "same")
	h.mustConflict(batch(conds(store.Is(k, v1)), put(k, "i1", "x")), store.Is(k, v1))
	h.mustConflict(batch(conds(store.Live(k, "i1"), store.Is(x, store.Absent)), put(x, "x", "")), store.Live(k, "i1"))
	h.mustApply(batch(conds(store.Live(k, "i2"), store.Is(x, store.Absent)), put(x, "x", "")))
	h.mustBe(k, v2, "i2", "same")
}

// A record that went away from a value and back (by a write, or by deleting and
// creating) never has a version it had before: whoever decided on the first
// sight of it is refused.
func testABA(h *harness) {
	k := pointer("k")
	seen := map[store.Version]bool{}
	v := h.create(k, "i", "A")
	first := v
	for round := range 6 {
		if seen[v] {
			h.Fatalf("round %d: version %s returned", round, v)
		}
		seen[v] = true
		if round%2 == 0 {
			v = h.mustApply(batch(conds(store.Is(k, v)), put(k, "i", "B")))
			v = h.mustApply(batch(conds(store.Is(k, v)), put(k, "i", "A")))
		} else {
			h.mustApply(batch(conds(store.Is(k, v)), del(k)))
			v = h.create(k, "i", "A")
		}
		if got := h.get(k).Version; got != v {
			h.Fatalf("the version is %s, want the id of the batch that wrote it, %s", got, v)
		}
		h.mustConflict(batch(conds(store.Is(k, first)), put(k, "i", "stale")), store.Is(k, first))
	}
}

// The ConflictError names every condition that failed, of every kind, and none
// that held.
func testConflictNamesAll(h *harness) {
	parent, sibling := key.ForNamespace("w", []string{"p"}), key.ForNamespace("w", []string{"q"})
	table, fresh := key.ForTableName("w", []string{"p"}, "t"), key.ForTableName("w", []string{"p"}, "fresh")
	vp := h.create(parent, "p", "")
	vs := h.create(sibling, "q", "")
	h.create(table, "t", "")

	failing := conds(
		store.Is(table, store.Absent),
		store.Is(parent, vs),
		store.Live(sibling, "not q"),
		store.Live(parent, "not p"),
		store.Empty(parent, key.TableNamesIn("w", []string{"p"})),
	)
	holding := conds(
		store.Is(sibling, vs),
		store.Is(fresh, store.Absent),
		store.Live(parent, "p"),
		store.Empty(parent, key.NamespacesIn("w", []string{"p"})),
	)
	writes := []store.Write{put(table, "x", ""), put(parent, "p", "x"), put(fresh, "f", "")}
	// `table` is one of the batch's own, so something else must lie there for Empty to fail.
	h.create(key.ForTableName("w", []string{"p"}, "u"), "u", "")
	h.mustConflict(batch(append(append(conds(), failing...), holding...), writes...), failing...)
	h.mustBe(parent, vp, "p", "")
	h.mustBeAbsent(fresh)
}

// A batch of several writes is applied whole or, if any one condition fails
// wherever it stands, not at all. All records written by one batch have its id
// for a version.
func testAllOrNothing(h *harness) {
	keys := []key.Key{
		key.ForNamespace("w", []string{"a"}), key.ForTableName("w", []string{"a"}, "t"), pointer("p"), key.ForDying("w", "d"), key.ForLocation("s3://b/x"),
	}
	versions := map[key.Key]store.Version{}
	for _, k := range keys[:3] {
		versions[k] = h.create(k, "i", "old")
	}
	all := func(wrong int) store.Batch {
		var b store.Batch
		b.ID = newID()
		for i, k := range keys {
			v := versions[k]
			if i == wrong {
				v = store.Version(newID())
			}
			b.Conds = append(b.Conds, store.Is(k, v))
			if i == 1 {
				b.Writes = append(b.Writes, del(k))
				continue
			}
			b.Writes = append(b.Writes, put(k, "i", "new"))
		}
		return b
	}
	for wrong := range keys {
		b := all(wrong)
		h.mustConflict(b, b.Conds[wrong])
		for _, k := range keys {
			if v := h.get(k).Version; v != versions[k] {
				h.Fatalf("a batch refused for its condition %d changed %v to %s", wrong, k, v)
			}
		}
	}
	v := h.mustApply(all(-1))
	for i, k := range keys {
		if i == 1 {
			h.mustBeAbsent(k)
			continue
		}
		h.mustBe(k, v, "i", "new")
	}
}

// An id that was applied is not applied again: the answer is nil even though
// the conditions no longer hold, and nothing that came later is touched.
func testSameID(h *harness) {
	k := pointer("k")
	b := batch(conds(store.Is(k, store.Absent)), put(k, "i", "1"))
	v1 := h.mustApply(b)
	h.mustApply(b)
	h.mustBe(k, v1, "i", "1")
	v2 := h.mustApply(batch(conds(store.Is(k, v1)), put(k, "i", "2")))
	h.mustApply(b)
	h.mustBe(k, v2, "i", "2")
	// The conditions of the first hold again once the record is gone.
	h.mustApply(batch(conds(store.Is(k, v2)), del(k)))
	h.mustApply(b)
	h.mustBeAbsent(k)

	// A refusal is not remembered: the same id may succeed later.
	early := batch(conds(store.Live(k, "i3"), store.Is(pointer("x"), store.Absent)), put(pointer("x"), "x", ""))
	h.mustConflict(early, store.Live(k, "i3"))
	h.create(k, "i3", "")
	h.mustApply(early)
}

// Many who send one batch at the same time all get nil, and it is applied once:
// a writer that follows it is never undone.
func testSameIDConcurrent(h *harness) {
	k := pointer("k")
	for range 20 {
		b := batch(conds(store.Is(k, h.get(k).Version)), put(k, "i", "1"))
		var next atomic.Value
		send := func() {
			if err := h.apply(b); err != nil {
				h.Errorf("apply: %v", err)
				return
			}
			after := batch(conds(store.Is(k, store.Version(b.ID))), put(k, "i", "2"))
			if h.apply(after) == nil && next.Swap(after.ID) != nil {
				h.Error("two batches followed one version")
			}
		}
		race(send, send, send, send)
		if got := next.Load(); !h.Failed() && got != string(h.get(k).Version) {
			h.Fatalf("the record is at %s, want %v", h.get(k).Version, got)
		}
	}
}

// Every store refuses what Validate refuses, and changes nothing.
func testInvalid(h *harness) {
	k, other := pointer("k"), pointer("other")
	v := h.create(k, "i", "1")
	for name, b := range map[string]store.Batch{
		"no id":               {Conds: conds(store.Is(k, v)), Writes: []store.Write{put(k, "i", "x")}},
		"no writes":           batch(conds(store.Is(k, v))),
		"a blind write":       batch(conds(store.Is(k, v)), put(k, "i", "x"), put(other, "i", "x")),
		"written twice":       batch(conds(store.Is(k, v)), put(k, "i", "x"), del(k)),
		"absent, not written": batch(conds(store.Is(k, v), store.Is(other, store.Absent)), put(k, "i", "x")),
		"unguarded empty":     batch(conds(store.Is(k, v), store.Empty(other, key.DyingIn("w"))), put(k, "i", "x")),
		"no incarnation":      batch(conds(store.Is(k, v)), put(k, "", "x")),
		"unknown condition":   batch(conds(store.Is(k, v), store.Cond{Kind: "was", Key: k}), put(k, "i", "x")),
	} {
		if err := h.env.Store.Apply(h.ctx, b); !errors.Is(err, store.ErrInvalidBatch) {
			h.Errorf("%s: got %v, want ErrInvalidBatch", name, err)
		}
	}
	h.mustBe(k, v, "i", "1")
	h.mustBeAbsent(other)
}
