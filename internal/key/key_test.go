package key_test

import (
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/key"
)

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		got  key.Key
		want string
	}{
		{key.ForCatalog(), "catalog catalog"},
		{key.ForWarehouse("main"), "warehouse //main"},
		{key.ForNamespace("main", []string{"a"}), "namespace main//a"},
		{key.ForNamespace("main", []string{"a", "b"}), "namespace main/a//b"},
		{key.ForTableName("main", []string{"a", "b"}, "t"), "table-name main/a/b//t"},
		{key.ForTableName("main", []string{"a/b"}, "50%"), "table-name main/a%2Fb//50%25"},
		{key.ForTableName("main", []string{"a\x1fb"}, "\xff"), "table-name main/a%1Fb//%FF"},
		{key.ForPointer("main", "p1"), "pointer main//p1"},
		{key.ForLocation("file:///w/t"), "location //file:///w/t/"},
		{key.ForArea("file:///w"), "location //file:///w///"},
		{key.ForUnsynced("b1"), "unsynced //b1"},
	} {
		if c.got.String() != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestPrefixCoversDirectChildrenOnly(t *testing.T) {
	under := key.NamespacesIn("w", []string{"a"})
	for _, c := range []struct {
		levels []string
		want   bool
	}{
		{[]string{"a"}, false},
		{[]string{"ab"}, false},
		{[]string{"a", "b"}, true},
		{[]string{"a", "b", "c"}, false},
		{[]string{"a", ""}, true},
		{[]string{"a/b"}, false},
	} {
		if got := under.Covers(key.ForNamespace("w", c.levels)); got != c.want {
			t.Errorf("%v covers %v: got %v", under, c.levels, got)
		}
	}
	within := key.LocationsWithin("file:///w/a")
	for k, want := range map[key.Key]bool{
		key.ForLocation("file:///w/a"):   true,
		key.ForLocation("file:///w/a/b"): true,
		key.ForArea("file:///w/a"):       true,
		key.ForArea("file:///w/a/b"):     true,
		key.ForLocation("file:///w/ab"):  false,
		key.ForArea("file:///w"):         false,
		key.LocationGuard():              false,
	} {
		if got := within.Covers(k); got != want {
			t.Errorf("%v covers %v: got %v", within, k, got)
		}
	}
}

func TestLockOrderIsCoarseToFine(t *testing.T) {
	sorted := []key.Key{
		key.ForCatalog(), key.ForWarehouse("z"), key.ForNamespace("a", []string{"z"}),
		key.ForTableName("a", []string{"a"}, "a"), key.ForTableName("a", []string{"a"}, "b"), key.ForPointer("a", "a"),
	}
	if !slices.IsSortedFunc(sorted, key.Compare) {
		t.Errorf("not in lock order: %v", sorted)
	}
}

// Different names give different paths, a name is read back whole, paths are
// UTF-8, and a prefix covers exactly its own children.
func TestPathsAreInjective(t *testing.T) {
	name := rapid.OneOf(rapid.StringN(1, 5, -1), rapid.StringOfN(rapid.RuneFrom([]rune("/%a\x1f\x00é")), 1, 4, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 4), func(b []byte) string { return string(b) }))
	levels := rapid.SliceOfN(name, 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		la, lb := levels.Draw(t, "a"), levels.Draw(t, "b")
		na, nb := name.Draw(t, "name a"), name.Draw(t, "name b")
		a, b := key.ForTableName("w", la, na), key.ForTableName("w", lb, nb)
		same := slices.Equal(la, lb) && na == nb
		if (a == b) != same {
			t.Fatalf("%q and %q: equal %v", a, b, a == b)
		}
		if a.Name() != na {
			t.Fatalf("name of %q is %q, want %q", a, a.Name(), na)
		}
		if !utf8.ValidString(a.Path) {
			t.Fatalf("path %q is not UTF-8", a.Path)
		}
		if got, want := key.TableNamesIn("w", lb).Covers(a), slices.Equal(la, lb); got != want {
			t.Fatalf("prefix of %q covers %q: %v", lb, a, got)
		}
	})
}
