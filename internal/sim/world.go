package sim

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/sim/history"
	"github.com/landfast/landfast/internal/store"
)

// Variant is what the catalog's records are kept in.
type Variant string

// The variants.
const (
	Transactional Variant = "transactional" // a store that applies batches by itself
	Bucket        Variant = "bucket"        // compare-and-swap on single objects, under package txn
)

// Config says which run it is.
type Config struct {
	Seed    uint64
	Variant Variant
	// Without is what is left out of the run.
	Without Mask
	// Transcript keeps every event as a line of text.
	Transcript bool

	// Records makes an empty store, of the variant Transactional, and Objects an empty bucket, of
	// the other. Queue makes the lock table of a process.
	Records func() store.Atomic
	Objects func() store.Objects
	Queue   func() lock.Gatherer

	short bool // a run of few steps, with many faults
}

// Mask is what is left out of a run.
type Mask struct {
	steps  map[step]bool
	faults map[uint64]bool // by name
	ending bool            // the changes that are made in the end
}

// step is one thing that a client does: one call, or a few that belong together.
type step struct{ client, index int }

// world is one run.
type world struct {
	cfg     Config
	profile profile
	began   time.Time
	files   *files
	records *records // of the variant Transactional
	objects *objects // of the variant Bucket
	// rides says how small files ride in their batches; nil: each is durable before its batch. Then stores and files
	// are in the one process there is, and its death is the loss of power.
	rides *journal.Options
	nodes []*node
	// background counts what is under way without anybody who waits for it: deliveries that
	// are late, calls whose client has left, nodes on their way back.
	background sync.WaitGroup

	mu         sync.Mutex
	faulty     bool                       // faults happen; ever after, none does
	due        map[time.Duration][]stream // the tags of who wakes then
	woken      time.Duration              // when somebody last woke
	ties       int
	trace      uint64
	transcript []string
	faults     map[string]int // that happened, by kind
	injected   []uint64       // their names
	steps      []step         // that were taken
	history    []history.Operation
	problems   []string
	leftovers  []string
	batches    map[int]int // how many operations landed in batches of this size
}

func newWorld(cfg Config) *world {
	w := &world{cfg: cfg, profile: drawProfile(cfg.Seed), began: time.Now(), faults: map[string]int{}, due: map[time.Duration][]stream{}, batches: map[int]int{}}
	if cfg.Variant == Bucket {
		w.profile.rates = w.profile.rates.inBucket()
	}
	if cfg.short {
		w.profile.steps, w.profile.rates = 4, w.profile.rates.times(6)
		if w.profile.crowd == 0 {
			w.profile.clients = 3
		}
	}
	w.files = &files{w: w, at: map[string]file{}}
	if cfg.Variant == Bucket {
		w.objects = &objects{w: w, inner: cfg.Objects()}
	} else {
		w.records = &records{w: w, inner: cfg.Records()}
	}
	if s := streamOf(cfg.Seed, textHash("rides")); cfg.Variant == Transactional && w.profile.nodes == 1 && s.chance(7500) {
		// The interval is a multiple of wakeCycle, and never meets the minute's.
		w.rides = &journal.Options{Interval: time.Second - wakeCycle, MaxFile: pick(&s, 0, 0, 2<<10)}
	}
	for i := range w.profile.nodes {
		w.nodes = append(w.nodes, &node{w: w, id: i})
	}
	return w
}

// now is the time since the world began.
func (w *world) now() time.Duration { return time.Since(w.began) }

// Wake times differ by construction: modulo wakeCycle, in nanoseconds, they tell the
// actor, and which of its kinds of sleep ends.
const (
	wakeKinds = 4
	wakeCycle = 64 * wakeKinds // so many actors at most
)

// The kinds of sleep.
const (
	asleep   = iota // a goroutine of the actor
	delivery        // what the actor sent arrives
	timeout         // a deadline of the actor
)

// until is how long it is until about d from now, at an instant that belongs to the actor.
func (w *world) until(actor, kind int, d time.Duration) time.Duration {
	now := w.now()
	at := now + d
	at += time.Duration(actor*wakeKinds+kind) - at%wakeCycle
	if at <= now {
		at += wakeCycle
	}
	return at - now
}

// sleep ends at an instant at which nobody else wakes. The tag tells goroutines of one
// actor apart, where there are several.
func (w *world) sleep(actor int, d time.Duration, tag stream) {
	w.wake(w.reserve(actor, asleep, d, tag), tag)
}

// later runs f after d, on a goroutine of its own. It must not block.
func (w *world) later(actor int, d time.Duration, tag stream, f func()) {
	at := w.reserve(actor, delivery, d, tag)
	w.background.Go(func() {
		w.wake(at, tag)
		f()
	})
}

// reserve chooses when to wake.
func (w *world) reserve(actor, kind int, d time.Duration, tag stream) time.Duration {
	at := w.now() + w.until(actor, kind, d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due[at] = append(w.due[at], tag)
	return at
}

// wake sleeps until an instant that was reserved. Of several goroutines of one actor who
// chose the same, the one with the lowest tag wakes; the others sleep on, in their order.
func (w *world) wake(at time.Duration, tag stream) {
	for {
		time.Sleep(at - w.now())
		w.mu.Lock()
		together := w.due[at]
		rank := 0
		for _, other := range together {
			if other < tag {
				rank++
			}
		}
		if rank == 0 {
			break
		}
		at += time.Duration(rank) * wakeCycle
		w.due[at] = append(w.due[at], tag)
		w.mu.Unlock()
	}
	if w.woken == at {
		w.ties++
	} else {
		delete(w.due, w.woken) // nobody looks at what is past
	}
	w.woken = at
	w.mu.Unlock()
}

// event adds one to the trace. Only who has just woken may call it.
func (w *world) event(who, verb, what, outcome string) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = mix(w.trace ^ uint64(now) ^ textHash(who, verb, what, outcome))
	if w.cfg.Transcript {
		w.transcript = append(w.transcript, fmt.Sprintf("%14.6fms %-10s %-12s %s: %s", float64(now)/1e6, who, verb, what, outcome))
	}
}

// detail adds a line to the transcript that is no event of its own.
func (w *world) detail(who string, text func() string) {
	if !w.cfg.Transcript {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transcript = append(w.transcript, fmt.Sprintf("%16s %-10s %s", "", who, text()))
}

// inject tells whether a fault of this kind and name happens now, and counts it.
func (w *world) inject(kind string, name uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.faulty || w.cfg.Without.faults[name] {
		return false
	}
	w.faults[kind]++
	w.injected = append(w.injected, name)
	return true
}

// observe is told by the kernels of every operation that ended.
func (w *world) observe(r kernel.Report) {
	if r.Err != nil || r.Batch == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.batches[r.Batch]++
}

// problem notes what must not happen.
func (w *world) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// caught makes a panic a problem of the seed.
func (w *world) caught() {
	if p := recover(); p != nil {
		w.problem("panic: %v\n%s", p, debug.Stack())
	}
}

type callerKey struct{}

// withCaller is ctx for calls of the store and the files that c makes.
func withCaller(ctx context.Context, c *caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) *caller {
	c, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		panic("sim: a call without caller")
	}
	return c
}
