package contention

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

func table(i int) key.Key {
	return key.ForTableName("main", []string{"sales"}, fmt.Sprintf("t%d", i))
}

func tables(n int) []key.Key {
	all := make([]key.Key, n)
	for i := range all {
		all[i] = table(i)
	}
	return all
}

// handClock is a clock that a test moves.
type handClock struct{ at time.Time }

func (c *handClock) now() time.Time { return c.at }

func newHandClock() *handClock { return &handClock{time.UnixMilli(1_700_000_000_000)} }

// Against exact counts, on streams of very uneven and hardly uneven keys: no count is too
// high, none is too low by more than is said, and no key that has its share is missed.
func TestHotOnZipfStreams(t *testing.T) {
	const keys, events, slicesUsed = 5_000, 24_000, 6
	for _, s := range []float64{1.05, 1.3, 2} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("s=%v/seed=%d", s, seed), func(t *testing.T) {
				source := rand.New(rand.NewPCG(seed, 0))
				zipf := rand.NewZipf(source, s, 1, keys-1)
				clock := newHandClock()
				hot := NewHot(clock.now)
				all := tables(keys)
				exact := map[key.Key]*HotKey{}
				inSlice := [slicesUsed]map[key.Key]int{}
				for i := range events {
					n := i * slicesUsed / events
					if inSlice[n] == nil {
						inSlice[n] = map[key.Key]int{}
						if n > 0 {
							clock.at = clock.at.Add(hotSliceLength)
						}
					}
					k := all[zipf.Uint64()]
					if exact[k] == nil {
						exact[k] = &HotKey{Key: k}
					}
					inSlice[n][k]++
					if source.IntN(4) == 0 {
						hot.Conflict(k)
						exact[k].Conflicts++
					} else {
						waited := time.Duration(source.IntN(1000))
						hot.Wait(k, waited)
						exact[k].Waits++
						exact[k].Waited += waited
					}
				}

				got := map[key.Key]HotKey{}
				for _, k := range hot.Top(keys) {
					got[k.Key] = k
					is := exact[k.Key]
					if k.Waits > is.Waits || k.Conflicts > is.Conflicts || k.Waited > is.Waited {
						t.Errorf("%+v is more than %+v", k, *is)
					}
					if k.events()+k.Missing < is.events() {
						t.Errorf("%+v and what is missing is less than %+v", k, *is)
					}
				}
				for n := range inSlice {
					for k, count := range inSlice[n] {
						if _, found := got[k]; !found && count > events/slicesUsed/hotCounters {
							t.Errorf("%v is missed, with %d events in slice %d", k, count, n)
						}
					}
				}
				// The hottest of such streams stand out so far that they are found, in order.
				top := hot.Top(3)
				for i, k := range top {
					if want := table(i); k.Key != want {
						t.Errorf("number %d is %+v, want %v", i, k, want)
					}
				}
				if first := *exact[top[0].Key]; s >= 1.3 && cmp.Diff(first, top[0]) != "" {
					t.Errorf("the hottest is not counted exactly: got %+v, want %+v", top[0], first)
				}
				if len(got) > hotSlices*hotCounters {
					t.Errorf("%d keys are counted", len(got))
				}
			})
		}
	}
}

// A key that comes every third time among ever new ones is never given up for them, so all
// of it is counted, though it came when all counters were taken.
func TestHotKeepsWhatIsHot(t *testing.T) {
	hot := NewHot(newHandClock().now)
	for i := range hotCounters {
		hot.Wait(table(-i-1), 1)
	}
	for i := range 10 * hotCounters {
		hot.Wait(table(0), 1)
		hot.Wait(table(2*i+1), 1)
		hot.Wait(table(2*i+2), 1)
	}
	want := []HotKey{{Key: table(0), Waits: 10 * hotCounters, Waited: 10 * hotCounters, Missing: 1}}
	if diff := cmp.Diff(want, hot.Top(1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A minute after it happened nothing is shown any more, and meanwhile it is.
func TestHotForgets(t *testing.T) {
	clock := newHandClock()
	hot := NewHot(clock.now)
	hot.Wait(table(1), time.Second)
	clock.at = clock.at.Add(30 * time.Second)
	hot.Conflict(table(2))
	hot.Wait(table(1), time.Second)
	expect := func(want ...HotKey) {
		t.Helper()
		if diff := cmp.Diff(want, hot.Top(10)); diff != "" && len(want)+len(hot.Top(10)) > 0 {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	expect(HotKey{Key: table(1), Waits: 2, Waited: 2 * time.Second}, HotKey{Key: table(2), Conflicts: 1})
	clock.at = clock.at.Add(29 * time.Second)
	expect(HotKey{Key: table(1), Waits: 2, Waited: 2 * time.Second}, HotKey{Key: table(2), Conflicts: 1})
	clock.at = clock.at.Add(time.Second)
	expect(HotKey{Key: table(1), Waits: 1, Waited: time.Second}, HotKey{Key: table(2), Conflicts: 1})
	clock.at = clock.at.Add(30 * time.Second)
	expect()
	// The slice that is used again has nothing of the former one.
	hot.Conflict(table(1))
	expect(HotKey{Key: table(1), Conflicts: 1})
	// So it is when the clock has gone round the slices meanwhile.
	clock.at = clock.at.Add(time.Hour)
	hot.Wait(table(1), 0)
	expect(HotKey{Key: table(1), Waits: 1})
}

func TestHotOrder(t *testing.T) {
	hot := NewHot(newHandClock().now)
	hot.Wait(table(3), time.Millisecond)
	hot.Wait(table(2), time.Second)
	hot.Wait(table(1), time.Millisecond)
	hot.Conflict(table(4))
	hot.Wait(table(4), 0)
	var got []key.Key
	for _, k := range hot.Top(3) {
		got = append(got, k.Key)
	}
	if diff := cmp.Diff([]key.Key{table(4), table(2), table(1)}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Keys beyond those that are counted take no memory.
func TestHotIsBounded(t *testing.T) {
	hot := NewHot(time.Now)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 50_000 {
		hot.Wait(table(i), time.Millisecond)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("it grew by %d bytes", grown)
	}
	runtime.KeepAlive(hot)
}

func TestHotConcurrently(t *testing.T) {
	hot := NewHot(time.Now)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 2000 {
				hot.Wait(table(i%7), 1)
				hot.Conflict(table(i % 700))
				if i%100 == 0 {
					hot.Top(3)
				}
			}
		})
	}
	all.Wait()
	events := 0
	for _, k := range hot.Top(1000) {
		events += k.events()
	}
	if events == 0 || events > 4*4000 {
		t.Errorf("%d events", events)
	}
}

func BenchmarkHot(b *testing.B) {
	for name, keys := range map[string]int{"one-key": 1, "100000-keys": 100_000} {
		b.Run(name, func(b *testing.B) {
			all := tables(keys)
			hot := NewHot(time.Now)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				hot.Wait(all[i%keys], time.Millisecond)
			}
		})
	}
}

// TestLost: a conflict is counted where a person finds it.
func TestLost(t *testing.T) {
	orders := key.ForTableName("main", []string{"sales", "a/b"}, "orders")
	pointer, other := key.ForPointer("main", "p"), key.ForPointer("main", "q")
	bound := `{"kind":"table","ident":{"namespace":["sales","a/b"],"name":"orders"}}`
	for name, c := range map[string]struct {
		lost  key.Key
		write store.Write
		want  key.Key
	}{
		"a pointer that the batch moves":   {pointer, store.Write{Key: pointer, Value: []byte(bound)}, orders},
		"one that it only rests on":        {pointer, store.Write{Key: other, Value: []byte(bound)}, pointer},
		"one that it removes":              {pointer, store.Write{Key: pointer, Delete: true}, pointer},
		"one that does not say":            {pointer, store.Write{Key: pointer, Value: []byte(`{}`)}, pointer},
		"a name, whatever is written here": {orders, store.Write{Key: orders, Value: []byte(bound)}, orders},
	} {
		t.Run(name, func(t *testing.T) {
			hot := NewHot(newHandClock().now)
			hot.Lost(store.Batch{Writes: []store.Write{c.write}}, []store.Cond{store.Is(c.lost, "v")})
			if diff := cmp.Diff([]HotKey{{Key: c.want, Conflicts: 1}}, hot.Top(10)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
