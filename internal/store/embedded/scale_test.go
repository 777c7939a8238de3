package embedded_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
)

var scaleTables = flag.Int("tables", 10_000, "how many tables BenchmarkScale has in one namespace")

// BenchmarkScale measures a namespace with -tables tables: a name and a pointer each.
// What it reports should not depend on their number:
//
//	go test -run '^$' -bench Scale ./internal/store/embedded -tables 1000000
func BenchmarkScale(b *testing.B) {
	namespace := []string{"n"}
	parent := key.ForNamespace("w", namespace)
	names := key.TableNamesIn("w", namespace)
	name := func(i int) key.Key { return key.ForTableName("w", namespace, fmt.Sprintf("table_%08d", i)) }
	pointer := func(i int) key.Key { return key.ForPointer("w", fmt.Sprintf("%08d", i)) }
	value := fmt.Appendf(nil, `{"location":"%0300d"}`, 0)

	path := filepath.Join(b.TempDir(), "catalog.db")
	s, err := embedded.Open(b.Context(), path, embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	version := apply(b, s, []store.Cond{store.Is(parent, store.Absent)}, store.Write{Key: parent, ID: "n"})
	const together = 1000
	for i := 0; i < *scaleTables; {
		var conds []store.Cond
		var writes []store.Write
		for ; len(writes) < 2*together && i < *scaleTables; i++ {
			conds = append(conds, store.Is(name(i), store.Absent), store.Is(pointer(i), store.Absent))
			writes = append(writes, store.Write{Key: name(i), ID: "i", Value: []byte(`{}`)}, store.Write{Key: pointer(i), ID: "i", Value: value})
		}
		apply(b, s, conds, writes...)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}

	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s, err := embedded.Open(b.Context(), path, embedded.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Get(b.Context(), parent); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})

	s = open(b, path, embedded.Options{})
	some := rand.New(rand.NewPCG(1, 2))
	b.Run("get any", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r, err := s.Get(b.Context(), pointer(some.IntN(*scaleTables))); err != nil || !r.Exists() {
				b.Fatalf("%v, %v", r, err)
			}
		}
	})
	for _, at := range []struct {
		where string
		after int
	}{{"first", 0}, {"middle", *scaleTables / 2}, {"last", max(0, *scaleTables-1001)}} {
		b.Run("list the "+at.where+" 1000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, err := s.List(b.Context(), names, name(at.after).Path, 1000)
				if err != nil || len(page) != min(1000, *scaleTables-1-at.after) {
					b.Fatalf("%d, %v", len(page), err)
				}
			}
		})
	}
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			n, p := key.ForTableName("w", namespace, fmt.Sprintf("table_%08d_%s", some.IntN(*scaleTables), uuid.NewString())), key.ForPointer("w", uuid.NewString())
			apply(b, s, []store.Cond{store.Live(parent, "n"), store.Is(n, store.Absent), store.Is(p, store.Absent)},
				store.Write{Key: n, ID: "i", Value: []byte(`{}`)}, store.Write{Key: p, ID: "i", Value: value})
		}
	})
	b.Run("find it not empty", func(b *testing.B) {
		for b.Loop() {
			batch := store.Batch{ID: uuid.Must(uuid.NewV7()).String(), Conds: []store.Cond{store.Is(parent, version), store.Empty(parent, names)},
				Writes: []store.Write{{Key: parent, Delete: true}}}
			if _, ok := errors.AsType[*store.ConflictError](s.Apply(b.Context(), batch)); !ok {
				b.Fatal("a namespace with tables was dropped")
			}
		}
	})
	b.Run("find its neighbour empty", func(b *testing.B) {
		next := key.ForNamespace("w", []string{"n0"})
		version := store.Absent
		for b.Loop() {
			version = apply(b, s, []store.Cond{store.Is(next, version), store.Empty(next, key.TableNamesIn("w", []string{"n0"}))},
				store.Write{Key: next, ID: "n"})
		}
	})
}
