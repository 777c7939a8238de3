package embedded_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
)

// BenchmarkApply measures durable commits per second: each batch replaces two records
// of about the size of a table's pointer under conditions on both and on a parent that
// all share, and each applier has its own two.
func BenchmarkApply(b *testing.B) {
	parent := key.ForNamespace("w", []string{"n"})
	value := fmt.Appendf(nil, `{"location":"%0400d"}`, 0)
	for _, appliers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("appliers=%d", appliers), func(b *testing.B) {
			var groups atomic.Int64
			s := open(b, filepath.Join(b.TempDir(), "catalog.db"), embedded.Options{
				Observe: func(int, time.Duration) { groups.Add(1) },
			})
			apply(b, s, []store.Cond{store.Is(parent, store.Absent)}, store.Write{Key: parent, ID: "n"})
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for i := range appliers {
				wg.Go(func() {
					one, other := key.ForPointer("w", fmt.Sprint(i)), key.ForPointer("w", fmt.Sprint(i, " too"))
					version := store.Absent
					for left.Add(-1) >= 0 && !b.Failed() {
						version = apply(b, s, []store.Cond{store.Is(one, version), store.Is(other, version), store.Live(parent, "n")},
							store.Write{Key: one, ID: "i", Value: value}, store.Write{Key: other, ID: "i", Value: value})
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(b.N)/float64(groups.Load()), "commits/group")
		})
	}
}

// apply applies a batch that holds, and gives the version of what it wrote.
func apply(b *testing.B, s *embedded.Store, conds []store.Cond, writes ...store.Write) store.Version {
	batch := store.Batch{ID: uuid.Must(uuid.NewV7()).String(), Conds: conds, Writes: writes}
	if err := s.Apply(b.Context(), batch); err != nil {
		b.Error(err)
	}
	return store.Version(batch.ID)
}

// BenchmarkApplyBesideLarge measures how long small batches take, at an easy pace, while
// 10 MB/s of values of 100 KiB are written, each deleted a second later.
func BenchmarkApplyBesideLarge(b *testing.B) {
	const appliers, largeAppliers, every = 16, 4, 40 * time.Millisecond
	s := open(b, filepath.Join(b.TempDir(), "catalog.db"), embedded.Options{})
	var small, large sync.WaitGroup
	done := make(chan struct{})
	for range largeAppliers {
		large.Go(func() {
			value := make([]byte, 100<<10)
			var writes []store.Write
			var versions []store.Version
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
				}
				w := store.Write{Key: key.ForPointer("w", uuid.NewString()), ID: "i", Value: value}
				versions = append(versions, apply(b, s, []store.Cond{store.Is(w.Key, store.Absent)}, w))
				writes = append(writes, store.Write{Key: w.Key, Delete: true})
				if len(writes) > int(time.Second/every) {
					apply(b, s, []store.Cond{store.Is(writes[0].Key, versions[0])}, writes[0])
					writes, versions = writes[1:], versions[1:]
				}
			}
		})
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var took [appliers][]time.Duration
	b.ResetTimer()
	for i := range appliers {
		small.Go(func() {
			k, version := key.ForPointer("w", fmt.Sprint(i)), store.Absent
			for left.Add(-1) >= 0 && !b.Failed() {
				start := time.Now()
				version = apply(b, s, []store.Cond{store.Is(k, version)}, store.Write{Key: k, ID: "i", Value: make([]byte, 400)})
				took[i] = append(took[i], time.Since(start))
				time.Sleep(time.Millisecond) // the pace, not a wait for something
			}
		})
	}
	small.Wait()
	b.StopTimer()
	close(done)
	large.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took[:]...)))
	for _, quantile := range []float64{50, 99, 99.9, 100} {
		b.ReportMetric(all[int(quantile/100*float64(len(all)-1))].Seconds()*1000, fmt.Sprintf("p%v-ms", quantile))
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
