package embedded_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
)

// BenchmarkApply measures durable commits per second: each batch replaces one
// pointer of about the size that a table's has, and each applier has its own.
func BenchmarkApply(b *testing.B) {
	for _, appliers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("appliers=%d", appliers), func(b *testing.B) {
			var groups atomic.Int64
			s := open(b, filepath.Join(b.TempDir(), "catalog.db"), embedded.Options{
				Observe: func(int, time.Duration) { groups.Add(1) },
			})
			value := []byte(fmt.Sprintf(`{"location":"%0400d"}`, 0))
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range appliers {
				wg.Go(func() {
					k := key.ForPointer("w", fmt.Sprint(i))
					version := store.Absent
					for left.Add(-1) >= 0 {
						batch := store.Batch{
							ID:     uuid.Must(uuid.NewV7()).String(),
							Conds:  []store.Cond{store.Is(k, version)},
							Writes: []store.Write{{Key: k, ID: "i", Value: value}},
						}
						if err := s.Apply(b.Context(), batch); err != nil {
							b.Error(err)
							return
						}
						version = store.Version(batch.ID)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(b.N)/float64(groups.Load()), "commits/group")
		})
	}
}

// BenchmarkGet measures one point read, in parallel.
func BenchmarkGet(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "catalog.db"), embedded.Options{})
	k := key.ForPointer("w", "p")
	put := store.Batch{ID: "1", Conds: []store.Cond{store.Is(k, store.Absent)}, Writes: []store.Write{{Key: k, ID: "i", Value: make([]byte, 400)}}}
	if err := s.Apply(b.Context(), put); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Get(b.Context(), k); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOpen measures opening and closing a catalog that is there.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "catalog.db")
	if err := open(b, path, embedded.Options{}).Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := embedded.Open(b.Context(), path, embedded.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
