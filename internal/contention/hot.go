package contention

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// The window of [Hot] is a minute, in slices that are forgotten one by one.
const (
	hotSlices      = 6
	hotSliceLength = 10 * time.Second
	// hotCounters is how many keys a slice counts at a time. A key that has more than one
	// in so many of a slice's events is always among them.
	hotCounters = 256
)

// Hot finds the keys that are waited for, or conflicted on, most in the last minute. Its
// memory is bounded whatever the number of keys: each slice of the minute is a
// Space-Saving sketch (Metwally and others, 2005). A key that was always free costs nothing.
//
// It is safe for concurrent use.
type Hot struct {
	now   func() time.Time
	start time.Time

	mu     sync.Mutex
	slices [hotSlices]hotSlice // that of number n at n modulo hotSlices
}

// NewHot counts from now on, by this clock.
func NewHot(now func() time.Time) *Hot {
	h := &Hot{now: now, start: now()}
	for i := range h.slices {
		h.slices[i].byKey = make(map[key.Key]*hotCounter, hotCounters)
	}
	return h
}

// HotKey is what happened at one key in the last minute. The counts are true or too low,
// never too high.
type HotKey struct {
	Key       key.Key
	Waits     int           // how often a request waited there
	Waited    time.Duration // how long, all together
	Conflicts int           // how often a decision lost there
	// Missing is how many waits and conflicts there may have been beyond those counted.
	Missing int
}

func (k HotKey) events() int { return k.Waits + k.Conflicts }

// add counts what happened at one key more.
func (k *HotKey) add(more HotKey) {
	k.Waits += more.Waits
	k.Waited += more.Waited
	k.Conflicts += more.Conflicts
	k.Missing += more.Missing
}

// Wait counts one request that waited so long at k.
func (h *Hot) Wait(k key.Key, waited time.Duration) {
	h.count(HotKey{Key: k, Waits: 1, Waited: waited})
}

// Conflict counts one decision that lost because k had changed.
func (h *Hot) Conflict(k key.Key) { h.count(HotKey{Key: k, Conflicts: 1}) }

// Lost counts a batch whose conditions did not hold. What is bound to a name is changed at its pointer, whose id
// says nothing to a person: it is counted at the name, where the batch tells which that is.
func (h *Hot) Lost(b store.Batch, conds []store.Cond) {
	for _, c := range conds {
		h.Conflict(named(c.Key, b.Writes))
	}
}

// named is the name of the table or view whose pointer is among the writes; any other key is itself.
func named(k key.Key, writes []store.Write) key.Key {
	i := slices.IndexFunc(writes, func(w store.Write) bool { return w.Key == k })
	if k.Level != key.Pointer || i < 0 {
		return k
	}
	var bound struct {
		Ident struct {
			Namespace []string `json:"namespace"`
			Name      string   `json:"name"`
		} `json:"ident"`
	}
	// It is for people alone: what cannot be read stays the pointer.
	if json.Unmarshal(writes[i].Value, &bound) != nil || len(bound.Ident.Namespace) == 0 {
		return k
	}
	warehouse, _, _ := strings.Cut(k.Path, "//") // its name needs no escape
	return key.ForTableName(warehouse, bound.Ident.Namespace, bound.Ident.Name)
}

func (h *Hot) count(event HotKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.currentLocked()
	c := s.counter(event.Key)
	c.add(event)
	heap.Fix(&s.heap, c.place)
}

// Top gives the hottest n keys, the hottest first.
func (h *Hot) Top(n int) []HotKey {
	all := h.all()
	slices.SortFunc(all, func(a, b HotKey) int {
		return cmp.Or(b.events()-a.events(), cmp.Compare(b.Waited, a.Waited), key.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}

// all is every key that some slice of the last minute counts.
func (h *Hot) all() []HotKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest := h.numberLocked() - hotSlices + 1
	sums := map[key.Key]HotKey{}
	for i := range h.slices {
		if s := &h.slices[i]; s.number >= oldest {
			for _, c := range s.heap {
				sums[c.Key] = HotKey{Key: c.Key}
			}
		}
	}
	all := make([]HotKey, 0, len(sums))
	for k, sum := range sums {
		for i := range h.slices {
			s := &h.slices[i]
			if s.number < oldest {
				continue
			}
			c := s.byKey[k]
			if c == nil {
				sum.Missing += s.forgotten()
				continue
			}
			sum.add(c.HotKey)
		}
		all = append(all, sum)
	}
	return all
}

func (h *Hot) numberLocked() int64 { return int64(h.now().Sub(h.start) / hotSliceLength) }

// currentLocked is the slice of this moment, emptied if it was that of another.
func (h *Hot) currentLocked() *hotSlice {
	n := h.numberLocked()
	s := &h.slices[n%hotSlices]
	if s.number != n {
		s.number = n
		clear(s.byKey)
		clear(s.heap) // so that the keys are not kept
		s.heap = s.heap[:0]
	}
	return s
}

// hotSlice counts the keys of ten seconds.
type hotSlice struct {
	number int64
	byKey  map[key.Key]*hotCounter
	heap   hotHeap // the least counter first; the counters of byKey
}

// hotCounter counts one key since it took the counter over. What its former keys had
// counted is in Missing: it may have been this key's, before it was given up for another.
type hotCounter struct {
	HotKey
	place int // in the heap
}

func (c *hotCounter) weight() int { return c.events() + c.Missing }

// counter is that of k, not yet in its place of the heap. A key that has none takes over
// the least.
func (s *hotSlice) counter(k key.Key) *hotCounter {
	c := s.byKey[k]
	switch {
	case c != nil:
	case len(s.heap) < hotCounters:
		c = &hotCounter{HotKey: HotKey{Key: k}}
		s.byKey[k] = c
		heap.Push(&s.heap, c)
	default:
		c = s.heap[0]
		delete(s.byKey, c.Key)
		c.HotKey = HotKey{Key: k, Missing: c.weight()}
		s.byKey[k] = c
	}
	return c
}

// forgotten is how many events a key may have had that the slice does not count.
func (s *hotSlice) forgotten() int {
	if len(s.heap) < hotCounters {
		return 0
	}
	return s.heap[0].weight()
}

// hotHeap is a heap.Interface.
type hotHeap []*hotCounter

func (h hotHeap) Len() int           { return len(h) }
func (h hotHeap) Less(i, j int) bool { return h[i].weight() < h[j].weight() }
func (h hotHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is that of heap.Interface.
func (h *hotHeap) Push(x any) {
	c := x.(*hotCounter)
	c.place = len(*h)
	*h = append(*h, c)
}

// Pop is that of heap.Interface.
func (h *hotHeap) Pop() any { panic("contention: counters are never taken out") }
