package txn_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/txn"
)

// A list of few or many pages is that of a store that has no pages, wherever it begins and ends.
func TestListAsOneMap(t *testing.T) {
	prefixes := []key.Prefix{
		key.PointersIn("w"), key.PointersIn("w2"), key.DyingIn("w"), key.TableNamesIn("w", []string{"n"}), key.NamespacesIn("w", nil),
		key.LocationsWithin("file:///l"), key.Onces(), key.Warehouses(),
	}
	names := []string{"a", "b", "ab", "a/b", "é", "00", "z"}
	keys := func(name string) []key.Key {
		return []key.Key{
			key.ForPointer("w", name), key.ForPointer("w2", name), key.ForDying("w", name), key.ForTableName("w", []string{"n"}, name),
			key.ForTableName("w", []string{"n", "n"}, name), key.ForNamespace("w", []string{name}), key.ForLocation("file:///l/" + name),
			key.ForOnce("w", name), key.ForWarehouse(name),
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		one, other := mem.New(), txn.New(txn.Options{Objects: mem.NewObjects(), Layout: txn.Packed{}})
		for i := range rapid.IntRange(0, 40).Draw(t, "batches") {
			k := rapid.SampledFrom(keys(rapid.SampledFrom(names).Draw(t, "name"))).Draw(t, "key")
			now, err := one.Get(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			w := store.Write{Key: k, ID: "i", Value: []byte(fmt.Sprint(i))}
			if now.Exists() && rapid.Bool().Draw(t, "delete") {
				w = store.Write{Key: k, Delete: true}
			}
			b := store.Batch{ID: fmt.Sprintf("b%d", i), Conds: []store.Cond{store.Is(k, now.Version)}, Writes: []store.Write{w}}
			for _, s := range []store.Atomic{one, other} {
				if err := s.Apply(t.Context(), b); err != nil {
					t.Fatalf("%v: %v", b, err)
				}
			}
		}
		for range 10 {
			p := rapid.SampledFrom(prefixes).Draw(t, "prefix")
			after, limit := "", rapid.IntRange(1, 8).Draw(t, "limit")
			if rapid.Bool().Draw(t, "from a key") {
				after = rapid.SampledFrom(keys(rapid.SampledFrom(names).Draw(t, "after"))).Draw(t, "key").Path
			}
			want, err := one.List(t.Context(), p, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			got, err := other.List(t.Context(), p, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("list %v after %q, at most %d:\n%s", p, after, limit, diff)
			}
		}
	})
}
