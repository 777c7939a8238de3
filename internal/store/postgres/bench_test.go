package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
)

// BenchmarkApply measures batches of one pointer, of about its real size, each applier with its own.
func BenchmarkApply(b *testing.B) {
	value := fmt.Appendf(nil, `{"location":"%0400d"}`, 0)
	for _, appliers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("appliers=%d", appliers), func(b *testing.B) {
			s := open(b, postgres.Options{URL: cluster.Database(b)})
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for i := range appliers {
				wg.Go(func() {
					k, version := key.ForPointer("w", fmt.Sprint(i)), store.Absent
					for left.Add(-1) >= 0 && !b.Failed() {
						batch := store.Batch{
							ID: uuid.Must(uuid.NewV7()).String(), Conds: []store.Cond{store.Is(k, version)}, Writes: []store.Write{{Key: k, ID: "i", Value: value}},
							Ops: []store.OpRecord{{ID: uuid.NewString(), Name: "commit-table"}},
						}
						if err := s.Apply(b.Context(), batch); err != nil {
							b.Error(err)
						}
						version = store.Version(batch.ID)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
		})
	}
}

// BenchmarkGet measures reads of single records, by readers at once.
func BenchmarkGet(b *testing.B) {
	for _, readers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			s := open(b, postgres.Options{URL: cluster.Database(b)})
			var keys []key.Key
			for i := range 64 {
				k := key.ForPointer("w", fmt.Sprint(i))
				keys = append(keys, k)
				batch := store.Batch{ID: uuid.Must(uuid.NewV7()).String(), Conds: []store.Cond{store.Is(k, store.Absent)}, Writes: []store.Write{{Key: k, ID: "i", Value: fmt.Appendf(nil, `{"location":"%0400d"}`, 0)}}}
				if err := s.Apply(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for i := range readers {
				wg.Go(func() {
					for left.Add(-1) >= 0 && !b.Failed() {
						if r, err := s.Get(b.Context(), keys[i]); err != nil || !r.Exists() {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
		})
	}
}
