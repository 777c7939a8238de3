package lock_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

func TestNewSet(t *testing.T) {
	ns := []string{"sales"}
	table, namespace, warehouse := key.ForTableName("main", ns, "t"), key.ForNamespace("main", ns), key.ForWarehouse("main")
	for _, c := range []struct {
		items []lock.Item
		want  string
	}{
		{nil, "{}"},
		{[]lock.Item{lock.W(table), lock.R(warehouse), lock.R(namespace)}, "{R warehouse //main, R namespace main//sales, W table-name main/sales//t}"},
		{[]lock.Item{lock.R(table), lock.W(table), lock.R(table)}, "{W table-name main/sales//t}"},
		{[]lock.Item{lock.R(table), lock.R(table)}, "{R table-name main/sales//t}"},
		{[]lock.Item{lock.W(namespace), lock.R(table), lock.R(namespace)}, "{W namespace main//sales, R table-name main/sales//t}"},
	} {
		before := slices.Clone(c.items)
		if got := lock.NewSet(c.items...).String(); got != c.want {
			t.Errorf("NewSet(%v): got %v, want %v", c.items, got, c.want)
		}
		if diff := cmp.Diff(before, c.items); diff != "" {
			t.Errorf("NewSet changed its argument: %s", diff)
		}
	}
}

// A set is sorted and holds each key once, exclusive if it was so anywhere; it
// does not matter in which order or in how many steps it was made.
func TestSetIsCanonical(t *testing.T) {
	item := rapid.Custom(func(t *rapid.T) lock.Item {
		return lock.Item{
			Key: key.Key{
				Level: rapid.SampledFrom([]key.Level{key.Warehouse, key.Namespace, key.TableName}).Draw(t, "level"),
				Path:  rapid.SampledFrom([]string{"a", "b", "ab"}).Draw(t, "path"),
			},
			Mode: rapid.SampledFrom([]lock.Mode{lock.Shared, lock.Exclusive}).Draw(t, "mode"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(item, 0, 12).Draw(t, "items")
		cut := rapid.IntRange(0, len(items)).Draw(t, "cut")
		first := lock.NewSet(items[:cut]...)
		firstBefore := slices.Clone(first.Items())
		got := first.With(items[cut:]...).Items()

		modes := map[key.Key]lock.Mode{}
		for _, i := range items {
			modes[i.Key] = max(modes[i.Key], i.Mode)
		}
		var want []lock.Item
		for k, m := range modes {
			want = append(want, lock.Item{Key: k, Mode: m})
		}
		slices.SortFunc(want, func(a, b lock.Item) int { return key.Compare(a.Key, b.Key) })
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if !slices.Equal(first.Items(), firstBefore) {
			t.Fatalf("With changed the set it was called on: %v, before %v", first, firstBefore)
		}
	})
}

func TestOwner(t *testing.T) {
	if got := lock.OwnerFrom(context.Background()); got != (lock.Owner{}) {
		t.Errorf("owner of a context without one: %+v", got)
	}
	want := lock.Owner{Op: "commit-table", RequestID: "r1", Client: "alice"}
	if got := lock.OwnerFrom(lock.WithOwner(context.Background(), want)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
