package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// A missing record has the version Absent, and neither an id nor a value; a
// record that is there has the version, the id and the value last written. The
// same path on another level is another record.
func testGet(h *harness) {
	k := key.Key{Level: key.Namespace, Path: "w//a"}
	h.mustBeAbsent(k)
	v1 := h.create(k, "i1", `{"n":1}`)
	h.mustBe(k, v1, "i1", `{"n":1}`)
	v2 := h.mustApply(batch(conds(store.Is(k, v1)), put(k, "i1", `{"n":2}`)))
	h.mustBe(k, v2, "i1", `{"n":2}`)
	h.mustBeAbsent(key.Key{Level: key.TableName, Path: k.Path})
	h.mustApply(batch(conds(store.Is(k, v2)), del(k)))
	h.mustBeAbsent(k)
}

// List gives the settled records of the prefix whole, in the order of the bytes
// of their paths (not of any collation), and nothing that was deleted.
func testList(h *harness) {
	names := []string{"b", "B", "ä", "a", "Z", "a b", "a%", "zz", "_", "10", "9", "日本", "\U0001F9CA"}
	var want []store.Record
	for i, n := range names {
		k := key.ForTableName("w", []string{"ns"}, n)
		id := fmt.Sprintf("i%d", i)
		v := h.create(k, id, n)
		want = append(want, store.Record{Key: k, Version: v, ID: id, Value: []byte(n)})
	}
	gone := key.ForTableName("w", []string{"ns"}, "gone")
	v := h.create(gone, "g", "")
	h.mustApply(batch(conds(store.Is(gone, v)), del(gone)))

	slices.SortFunc(want, func(a, b store.Record) int { return key.Compare(a.Key, b.Key) })
	got := h.list(key.TableNamesIn("w", []string{"ns"}), "", 1000)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("list (-want +got):\n%s", diff)
	}
	h.mustList(key.TableNamesIn("w", []string{"other"}))
}

// Pages of every size put together are the whole list: `after` is exclusive,
// whether or not a record is there (or ever was under the prefix), and `limit`
// is kept exactly.
func testListPages(h *harness) {
	p := key.DyingIn("w")
	var want []key.Key
	for i := range 7 {
		k := key.ForDying("w", fmt.Sprintf("d%d", i))
		h.create(k, "i", "")
		want = append(want, k)
	}
	h.create(key.ForDying("v", "before"), "i", "")
	h.create(key.ForDying("x", "behind"), "i", "")

	for limit := 1; limit <= len(want)+1; limit++ {
		var got []key.Key
		for after := ""; len(got) <= len(want); {
			page := keysOf(h.list(p, after, limit))
			if wantLen := min(limit, len(want)-len(got)); len(page) != wantLen {
				h.Fatalf("page of at most %d after %q has %d records, want %d", limit, after, len(page), wantLen)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			after = page[len(page)-1].Path
		}
		if diff := cmp.Diff(want, got); diff != "" {
			h.Fatalf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
	for after, first := range map[string]int{
		p.Path + "d3":     4,
		p.Path + "d3x":    4,
		p.Path + "d":      0,
		p.Path:            0,
		"a":               0,
		p.Path + "d6":     7,
		"zzz":             7,
		p.Path + "d2\xff": 3,
	} {
		if diff := cmp.Diff(want[first:], keysOf(h.list(p, after, 100)), cmpopts.EquateEmpty()); diff != "" {
			h.Errorf("after %q (-want +got):\n%s", after, diff)
		}
	}
}

// A prefix covers what lies under it and neither names that begin alike, nor
// deeper levels, nor the same path on another level. The characters that are
// wildcards to a database are none here.
func testListSiblings(h *harness) {
	a := key.ForNamespace("w", []string{"a"})
	ab := key.ForNamespace("w", []string{"ab"})
	under := key.ForNamespace("w", []string{"a", "b"})
	deeper := key.ForNamespace("w", []string{"a", "b", "c"})
	other := key.ForNamespace("wa", []string{"a"})
	table := key.ForTableName("w", []string{"a"}, "b")
	wild1, wild2 := key.ForNamespace("w", []string{"_", "x"}), key.ForNamespace("w", []string{"*", "x"})
	for _, k := range []key.Key{a, ab, under, deeper, other, table, wild1, wild2} {
		h.create(k, "i", "")
	}
	h.mustList(key.NamespacesIn("w", []string{"a"}), under)
	h.mustList(key.NamespacesIn("w", nil), a, ab)
	h.mustList(key.NamespacesIn("w", []string{"a", "b"}), deeper)
	h.mustList(key.TableNamesIn("w", []string{"a"}), table)
	h.mustList(key.NamespacesIn("w", []string{"_"}), wild1)
	h.mustList(key.NamespacesIn("w", []string{"*"}), wild2)
	h.mustList(key.NamespacesIn("w", []string{"A"}))

	loc, inside, beside := key.ForLocation("s3://b/t"), key.ForLocation("s3://b/t/u"), key.ForLocation("s3://b/tt")
	for _, k := range []key.Key{loc, inside, beside, key.LocationGuard()} {
		h.create(k, "i", "")
	}
	h.mustList(key.LocationsWithin("s3://b/t"), loc, inside)
}

// A caller that writes into a value it read, or into a batch's value after
// Apply is through with it, changes nothing that others read.
func testOwnership(h *harness) {
	k := pointer("own")
	sent := []byte("sent")
	v := h.mustApply(batch(conds(store.Is(k, store.Absent)), store.Write{Key: k, ID: "i", Value: sent}))
	copy(sent, "XXXX")
	h.mustBe(k, v, "i", "sent")
	copy(h.get(k).Value, "YYYY")
	h.mustBe(k, v, "i", "sent")
	copy(h.list(key.Prefix{Level: k.Level, Path: k.Path}, "", 1)[0].Value, "ZZZZ")
	h.mustBe(k, v, "i", "sent")
}

// A value is bytes: none is changed, cut at a NUL, or taken for a number.
func testValues(h *harness) {
	for i, value := range []string{
		"", `{}`, `{"n":9223372036854775807,"f":1e400}`, "9007199254740993", " padded ", "null", "a\x00b", "\x00", "\xff\xfe", "é\u2028'\"\\%?",
	} {
		k := pointer(fmt.Sprint(i))
		v := h.create(k, "i", value)
		h.mustBe(k, v, "i", value)
		listed := h.list(key.Prefix{Level: k.Level, Path: k.Path}, "", 1)
		if len(listed) != 1 || !bytes.Equal(listed[0].Value, []byte(value)) {
			h.Errorf("listing value %q gives %q", value, listed)
		}
	}
}

// A value of 8 MiB is written, read, replaced and deleted like a small one, and
// so is a batch of several.
func testLargeValues(h *harness) {
	big := strings.Repeat("0123456789abcde\n", 8<<20/16)
	a, b := pointer("a"), pointer("b")
	v1 := h.mustApply(batch(conds(store.Is(a, store.Absent), store.Is(b, store.Absent)), put(a, "i", big), put(b, "i", big[1:])))
	h.mustBe(a, v1, "i", big)
	h.mustBe(b, v1, "i", big[1:])
	v2 := h.mustApply(batch(conds(store.Is(a, v1), store.Is(b, v1)), put(a, "i", "small"), del(b)))
	h.mustBe(a, v2, "i", "small")
	h.mustBeAbsent(b)
}

var oddNames = []string{
	`quo"te`, "it's", "per%cent", "under_score", "star*", "back\\slash", "semi;colon--", "$1", "?", ":x", "@x",
	" leading", "trailing ", "tab\tnew\nline", "nul\x00byte", "bad\xffutf", "é", "e\u0301", "日本語", "\U0001F9CA", "\u202Ertl", "..", ".", "NULL", "0",
}

// Names are told apart byte for byte: each odd key holds its own record, look-
// alikes included, and is found by Get, by List and by conditions.
func testOddKeys(h *harness) {
	versions := map[key.Key]store.Version{}
	var want []key.Key
	for _, n := range oddNames {
		k := key.ForTableName(`w'"%`, []string{"a/b", "%_"}, n)
		versions[k] = h.create(k, "id "+n, n)
		want = append(want, k)
	}
	slices.SortFunc(want, key.Compare)
	h.mustList(key.TableNamesIn(`w'"%`, []string{"a/b", "%_"}), want...)
	for i, n := range oddNames {
		k := key.ForTableName(`w'"%`, []string{"a/b", "%_"}, n)
		h.mustBe(k, versions[k], "id "+n, n)
		h.mustConflict(batch(conds(store.Is(k, store.Absent)), put(k, "x", "")), store.Is(k, store.Absent))
		if i%2 == 0 {
			h.mustApply(batch(conds(store.Is(k, versions[k]), store.Live(k, "id "+n)), del(k)))
			h.mustBeAbsent(k)
		}
	}
}

// A path of 64 KiB is either refused with ErrUnstorable, and then nothing is there, or held like
// any other; two that differ in the last byte are two.
func testLongPaths(h *harness) {
	long := strings.Repeat("p", 64<<10)
	a, b := pointer(long+"a"), pointer(long+"b")
	write := batch(conds(store.Is(a, store.Absent)), put(a, "i", "a"))
	if err := h.apply(write); err != nil {
		if !errors.Is(err, store.ErrUnstorable) {
			h.Fatalf("got %.200v, want %v", err, store.ErrUnstorable)
		}
		h.mustList(key.Prefix{Level: key.Pointer, Path: "w//"})
		return
	}
	h.mustBe(a, store.Version(write.ID), "i", "a")
	h.mustBeAbsent(b)
	vb := h.create(b, "i", "b")
	h.mustBe(b, vb, "i", "b")
	h.mustList(key.Prefix{Level: key.Pointer, Path: "w//"}, a, b)
	h.mustApply(batch(conds(store.Is(a, store.Version(write.ID))), del(a)))
	h.mustBeAbsent(a)
	h.mustBe(b, vb, "i", "b")
}
