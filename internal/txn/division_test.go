package txn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// describe tells what each page gets, one page a line.
func describe(d division) string {
	var b strings.Builder
	line := func(title string, sh *share) {
		fmt.Fprintf(&b, "%s %s:", title, sh.page)
		for _, c := range sh.conds {
			fmt.Fprintf(&b, " %v", c)
		}
		for _, c := range sh.parents {
			fmt.Fprintf(&b, " reads %v", c)
		}
		for _, p := range sh.seals {
			fmt.Fprintf(&b, " seals %s", p.Path)
		}
		for _, c := range sh.empties {
			fmt.Fprintf(&b, " %v", c)
		}
		for _, w := range sh.writes {
			fmt.Fprintf(&b, " %v", w)
		}
		b.WriteString("\n")
	}
	for _, sh := range d.shares {
		line("page", sh)
	}
	for _, sh := range d.births {
		line("birth", sh)
	}
	return strings.ReplaceAll(b.String(), "pointer ", "")
}

// Which page gets which condition, seal and write of a batch; what is a birth, and what is only read.
func TestDivide(t *testing.T) {
	put := func(name string) store.Write { return store.Write{Key: letter(name), ID: "i"} }
	del := func(name string) store.Write { return store.Write{Key: letter(name), Delete: true} }
	is := func(name string, v store.Version) store.Cond { return store.Is(letter(name), v) }
	live := func(name string) store.Cond { return store.Live(letter(name), "i") }
	empty := store.Empty(children.of, children.prefix)
	for _, c := range []struct {
		name   string
		conds  []store.Cond
		writes []store.Write
		want   string
	}{
		{"one record", []store.Cond{is("A", "v")}, []store.Write{put("A")}, "page A: is(A, v) put A id=i\n"},
		{"two of one page", []store.Cond{is("A", "v"), is("A1", "w")}, []store.Write{put("A1")}, "page A: is(A, v) is(A1, w) put A1 id=i\n"},
		{"pages in the order of names", []store.Cond{is("B", "v"), is("A", "v")}, []store.Write{put("B"), put("A")},
			"page A: is(A, v) put A id=i\npage B: is(B, v) put B id=i\n"},
		{"what is only read is a page too", []store.Cond{is("A", "v"), live("B"), is("C", "v")}, []store.Write{put("A")},
			"page A: is(A, v) put A id=i\npage B: live(B, i)\npage C: is(C, v)\n"},
		{"a parent is read", []store.Cond{is("N/x1", store.Absent), live("N")}, []store.Write{put("N/x1")},
			"page M1: is(N/x1, absent) reads live(N, i) put N/x1 id=i\n"},
		{"a parent of two children is read once", []store.Cond{is("N/x1", store.Absent), is("N/x2", store.Absent), live("N")}, []store.Write{put("N/x2"), put("N/x1")},
			"page M1: is(N/x1, absent) put N/x1 id=i\npage M2: is(N/x2, absent) reads live(N, i) put N/x2 id=i\n"},
		{"a parent under which only is deleted is held", []store.Cond{is("N/x1", "v"), live("N")}, []store.Write{del("N/x1")},
			"page M1: is(N/x1, v) delete N/x1\npage N: live(N, i)\n"},
		{"a parent that is written is held", []store.Cond{is("N/x1", store.Absent), is("N", "v"), live("N")}, []store.Write{put("N/x1"), put("N")},
			"page M1: is(N/x1, absent) put N/x1 id=i\npage N: is(N, v) live(N, i) put N id=i\n"},
		{"a parent whose version is needed is held", []store.Cond{is("N/x1", store.Absent), is("N", "v"), live("N")}, []store.Write{put("N/x1")},
			"page M1: is(N/x1, absent) put N/x1 id=i\npage N: is(N, v) live(N, i)\n"},
		{"a drop seals what it guards", []store.Cond{is("N", "v")}, []store.Write{del("N")},
			"page M1: seals N/\npage M2: seals N/\npage N: is(N, v) delete N\n"},
		{"an empty drop seals once", []store.Cond{is("N", "v"), empty}, []store.Write{del("N")},
			"page M1: seals N/ empty(N/*) guarded by N\npage M2: seals N/ empty(N/*) guarded by N\npage N: is(N, v) delete N\n"},
		{"a birth and its home", []store.Cond{is("A", store.Absent), is("p", store.Absent)}, []store.Write{put("p"), put("A")},
			"page A: is(A, absent) put A id=i\nbirth p: is(p, absent) put p id=i\n"},
		{"a birth beside a parent that is read", []store.Cond{is("N/x1", store.Absent), live("N"), is("p", store.Absent)}, []store.Write{put("p"), put("N/x1")},
			"page M1: is(N/x1, absent) reads live(N, i) put N/x1 id=i\nbirth p: is(p, absent) put p id=i\n"},
		{"births beside two pages are pages", []store.Cond{is("A", store.Absent), is("B", "v"), is("p", store.Absent)}, []store.Write{put("p"), put("A")},
			"page A: is(A, absent) put A id=i\npage B: is(B, v)\npage p: is(p, absent) put p id=i\n"},
		{"births alone", []store.Cond{is("q", store.Absent), is("p", store.Absent)}, []store.Write{put("q"), put("p")},
			"page p: is(p, absent) put p id=i\nbirth q: is(q, absent) put q id=i\n"},
		{"what is there is no birth", []store.Cond{is("A", "v"), is("p", "v")}, []store.Write{put("A"), put("p")},
			"page A: is(A, v) put A id=i\npage p: is(p, v) put p id=i\n"},
		{"a birth of which more is asked is none", []store.Cond{is("A", "v"), is("p", store.Absent), live("p")}, []store.Write{put("A"), put("p")},
			"page A: is(A, v) put A id=i\npage p: is(p, absent) live(p, i) put p id=i\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := store.Batch{ID: "b", Conds: c.conds, Writes: c.writes}
			if err := b.Validate(); err != nil {
				t.Fatal(err)
			}
			d, err := divide(letters{}, b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, describe(d)); diff != "" {
				t.Error(diff)
			}
			slices.Reverse(b.Conds)
			slices.Reverse(b.Writes)
			if other, err := divide(letters{}, b); err != nil || !slices.Equal(other.names(), d.names()) {
				t.Errorf("in another order: pages %q, %v", other.names(), err)
			}
		})
	}
}

// Nobody can seal what may lie in any number of pages.
func TestDivideRefuses(t *testing.T) {
	guard := key.ForWarehouse("w")
	b := store.Batch{ID: "b", Conds: []store.Cond{store.Is(guard, "v"), store.Empty(guard, key.PointersIn("w"))}, Writes: []store.Write{{Key: guard, Delete: true}}}
	if d, err := divide(Packed{}, b); err == nil {
		t.Errorf("divided into %s", describe(d))
	}
}

// Where the records of the catalog lie.
func TestPackedPages(t *testing.T) {
	ns := []string{"a", "b"}
	for _, c := range []struct {
		key  key.Key
		page string
	}{
		{key.ForCatalog(), "catalog"},
		{key.ForWarehouse("w"), "warehouses"},
		{key.ForNamespace("w", []string{"a"}), "w/w/namespaces"},
		{key.ForNamespace("w", ns), "w/w/namespaces"},
		{key.ForTableName("w", ns, "t"), "w/w/names/a/b/04"},
		{key.ForTableName("w", []string{"a/b"}, "t"), "w/w/names/a%2Fb/04"},
		{key.ForPointer("w", "id"), "pointers/w/id"},
		{key.ForDying("w", "id"), "w/w/dying"},
		{key.ForDyingFile("file:///f"), "dying-files/00"},
		{key.LocationGuard(), "locations/guard"},
		{key.ForLocation("file:///l"), "locations/14"},
		{key.ForOnce("w", "k"), "once/09"},
		{key.ForOnce("", "k"), "once/08"},
	} {
		if got := (Packed{}).Page(c.key); got != c.page {
			t.Errorf("%v lies in %s, want %s", c.key, got, c.page)
		}
	}
}

// drawCatalogKey draws a key and prefixes that cover it.
var drawCatalogKey = rapid.Custom(func(t *rapid.T) (c struct {
	key    key.Key
	covers []key.Prefix
}) {
	name := rapid.SampledFrom([]string{"a", "b", "ab", "a/b", "a//b", "00", "guard", "é", "%"})
	w, levels, n := name.Draw(t, "warehouse"), rapid.SliceOfN(name, 1, 3).Draw(t, "namespace"), name.Draw(t, "name")
	location := "file:///" + n
	switch key.Level(rapid.IntRange(2, 8).Draw(t, "level")) {
	case key.Warehouse:
		c.key, c.covers = key.ForWarehouse(n), []key.Prefix{key.Warehouses()}
	case key.Namespace:
		c.key, c.covers = key.ForNamespace(w, append(levels, n)), []key.Prefix{key.NamespacesIn(w, levels)}
	case key.TableName:
		c.key, c.covers = key.ForTableName(w, levels, n), []key.Prefix{key.TableNamesIn(w, levels)}
	case key.Pointer:
		c.key, c.covers = key.ForPointer(w, n), []key.Prefix{key.PointersIn(w)}
	case key.Dying:
		c.key, c.covers = key.ForDying(w, n), []key.Prefix{key.DyingIn(w)}
		if rapid.Bool().Draw(t, "file") {
			c.key, c.covers = key.ForDyingFile(location), []key.Prefix{key.DyingFile(location)}
		}
	case key.Location:
		c.key, c.covers = key.ForLocation(location), []key.Prefix{key.LocationsWithin(location), key.LocationsWithin("file://")}
	case key.Once:
		c.key, c.covers = key.ForOnce(w, n), []key.Prefix{key.Onces()}
	}
	return c
})

// A record lies in one of the pages of each prefix that covers it, and those of a guard are
// sealed where its children lie. Pages of different sets never meet.
func TestPackedPagesOfPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCatalogKey.Draw(t, "key")
		page := Packed{}.Page(c.key)
		if strings.HasPrefix(page, statusPrefix) {
			t.Fatalf("%v lies among the status records, in %s", c.key, page)
		}
		for _, p := range c.covers {
			if !p.Covers(c.key) {
				t.Fatalf("%v does not cover %v", p, c.key)
			}
			names, below, err := Packed{}.Pages(p)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(names, page) && (below == "" || !strings.HasPrefix(page, below)) {
				t.Fatalf("%v lies in %s, and %v in %q and below %q", c.key, page, p, names, below)
			}
		}
		other := drawCatalogKey.Draw(t, "other")
		for _, p := range (Packed{}).Children(c.key) {
			if !p.Covers(other.key) {
				continue
			}
			names, _, err := Packed{}.Pages(p)
			if err != nil || !slices.Contains(names, Packed{}.Page(other.key)) {
				t.Fatalf("%v guards %v, which lies in %s; sealed are %q, %v", c.key, other.key, Packed{}.Page(other.key), names, err)
			}
		}
		if page == (Packed{}).Page(other.key) && c.key.Level != other.key.Level {
			t.Fatalf("%v and %v both lie in %s", c.key, other.key, page)
		}
	})
}
