package local_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/local"
)

// One acquire and release of free keys: of one, and of the three a commit plans.
func BenchmarkUncontended(b *testing.B) {
	commit := lock.NewSet(lock.R(key.ForWarehouse("main")), lock.R(key.ForNamespace("main", []string{"sales"})),
		lock.W(key.ForTableName("main", []string{"sales"}, "orders")))
	for _, set := range []lock.Set{lock.NewSet(lock.W(key.ForWarehouse("main"))), commit} {
		b.Run("keys="+strconv.Itoa(set.Len()), func(b *testing.B) {
			table, ctx := local.New(local.Options{}), request(b.Context(), "bench")
			b.ReportAllocs()
			for b.Loop() {
				cycle(b, table, ctx, set)
			}
		})
	}
}

// Many goroutines at once: all on one key, and each on a table of its own under
// shared parents, which is what one mutex for the whole table has to bear.
func BenchmarkGoroutines64(b *testing.B) {
	const goroutines = 64
	parents := lock.NewSet(lock.R(key.ForWarehouse("main")), lock.R(key.ForNamespace("main", []string{"sales"})))
	for name, set := range map[string]func(int) lock.Set{
		"one-key": func(int) lock.Set { return lock.NewSet(lock.W(key.ForWarehouse("main"))) },
		"own-tables": func(i int) lock.Set {
			return parents.With(lock.W(key.ForTableName("main", []string{"sales"}, fmt.Sprint(i))))
		},
	} {
		b.Run(name, func(b *testing.B) {
			table := local.New(local.Options{})
			b.ReportAllocs()
			var all sync.WaitGroup
			for i := range goroutines {
				mine := set(i)
				all.Go(func() {
					ctx, cancel := context.WithCancel(request(b.Context(), "bench")) // as each request has its own
					defer cancel()
					for range b.N/goroutines + 1 {
						cycle(b, table, ctx, mine)
					}
				})
			}
			all.Wait()
		})
	}
}

func cycle(b *testing.B, table *local.Table, ctx context.Context, set lock.Set) {
	hold, err := table.Acquire(ctx, set, time.Minute)
	if err != nil {
		b.Error(err)
		return
	}
	hold.Release()
}

// request is a context like that of a request: it can end, and it names an owner.
func request(parent context.Context, id string) context.Context {
	return lock.WithOwner(parent, lock.Owner{Op: "commit-table", RequestID: id, Client: "test"})
}
