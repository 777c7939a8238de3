package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/reclaim"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/txn"
)

// grace is how long a file stays that a reader may still want: longer than any call.
const grace = 2 * time.Minute

// Limits of a node.
const (
	callLimit  = time.Minute // of a call without a deadline; others end sooner
	applyLimit = 15 * time.Second
)

// node is a process that serves calls. Its memory is gone when it dies.
type node struct {
	w  *world
	id int

	// Guarded by the world's mutex.
	up          bool
	recovering  bool // it will be up once its journal has written anew what was lost
	life        int  // counts the times it died
	frozenUntil time.Duration
	cutUntil    time.Duration // it cannot reach the stores
	skew        time.Duration // of its clock
	end         context.CancelFunc
	kernel      *kernel.Kernel
	reclaimer   *reclaim.Reclaimer
	ctx         context.Context

	running sync.WaitGroup // what outlives a call: reclaimers
}

func (n *node) String() string { return fmt.Sprintf("n%d", n.id) }

// reclaimActor is the node's reclaimer, beside the clients.
func (n *node) reclaimActor() int { return 40 + n.id }

// recoverActor is what recovers on the node.
func (n *node) recoverActor() int { return 45 + n.id }

// journalActor is the node's journal.
func (n *node) journalActor() int { return 60 + n.id }

// clockActor is what happens to the node by itself.
func (n *node) clockActor() int { return 50 + n.id }

// start brings the process up, with nothing in memory.
func (n *node) start() {
	w := n.w
	ctx, end := context.WithCancel(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	n.up, n.recovering = w.rides == nil, w.rides != nil
	n.ctx, n.end, n.frozenUntil, n.cutUntil = ctx, end, 0, 0
	var queue lock.Locker = yes{}
	if w.profile.queue {
		queue = arrivals{n.w, w.cfg.Queue()}
	}
	var records store.Atomic = w.records
	if w.objects != nil {
		over := txn.New(txn.Options{Objects: w.objects, Layout: txn.Packed{}, Lease: w.profile.lease})
		records = over
		c := n.caller("recover", n.recoverActor())
		n.running.Go(func() { n.recover(ctx, over, c) })
	}
	rides, settled := n.ride(ctx, records)
	c := n.caller("reclaim", n.reclaimActor())
	n.reclaimer = reclaim.New(reclaim.Options{
		Runner: &runner{caller: c, times: map[uint64]uint64{}}, Files: w.files, Log: slog.New(slog.DiscardHandler), Grace: grace, Now: n.clock,
		Settled: settled,
	})
	reclaimer := n.reclaimer
	names := &namer{node: n, stream: streamOf(w.cfg.Seed, textHash("names"), uint64(n.id), uint64(n.life))}
	n.kernel = kernel.New(kernel.Options{
		Store: records, Files: w.files, Queue: queue, Journal: rides, Now: n.clock, NewID: names.newID, NewBatchID: names.newBatchID, Backoff: names.backoff,
		Limit: callLimit, ApplyLimit: applyLimit, Observe: w.observe,
		Lost: func(lost []kernel.File) {
			for _, f := range lost {
				reclaimer.Lost(f.Warehouse, []string{f.Location})
			}
		},
	})
	n.running.Go(func() {
		w.sleep(c.actor, time.Second, 0)
		n.awaitRecovery(c)
		reclaimer.Run(withCaller(ctx, c))
	})
}

// ride gives the process a journal, if files ride in this world, and what its reclaimer asks. The world's
// mutex is held.
func (n *node) ride(ctx context.Context, records store.Atomic) (_ *journal.Journal, settled func(context.Context, string) error) {
	w := n.w
	if w.rides == nil {
		return nil, nil
	}
	names := &namer{node: n, stream: streamOf(w.cfg.Seed, textHash("journal names"), uint64(n.id), uint64(n.life))}
	opt := *w.rides
	opt.Store, opt.Files, opt.NewID, opt.Log = records, w.files, names.newBatchID, slog.New(slog.DiscardHandler)
	j := journal.New(opt)
	c := n.caller("journal", n.journalActor())
	n.running.Go(func() {
		w.sleep(c.actor, time.Millisecond, 0)
		err := j.Recover(withCaller(ctx, c))
		w.sleep(c.actor, 0, 0)
		w.event(c.label, "recover", "", outcomeOf(err))
		if err != nil {
			s := streamOf(c.name)
			n.crash(c.life, &s) //nolint:contextcheck // the next life has no caller
			return
		}
		n.running.Go(func() { n.openUp(ctx, c) })
		j.Run(withCaller(ctx, c))
	})
	return j, func(ctx context.Context, warehouse string) error {
		asks := callerOf(ctx)
		tag := asks.stream("settled", "")
		err := j.Settled(ctx, warehouse)
		w.sleep(asks.actor, tag.between(0, 5*time.Second), tag) // others were told at the same instant, and would delete together
		return err
	}
}

// openUp lets clients in once no file is left that was not written anew. A server lets them in before, and the tables
// whose files it could not write lack them for a while; here a file that is missing is always a mistake.
func (n *node) openUp(ctx context.Context, c *caller) {
	for n.isRecovering(c.life) {
		left, err := n.w.records.inner.List(context.WithoutCancel(ctx), key.Unsynceds(), "", 1)
		if err == nil && len(left) == 0 {
			n.w.mu.Lock()
			n.up, n.recovering = true, false
			n.w.mu.Unlock()
			return
		}
		n.w.sleep(c.actor, 10*time.Millisecond, stream(c.life)+1)
	}
}

func (n *node) isRecovering(life int) bool {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return n.recovering && n.life == life
}

// awaitRecovery waits until the node is up, or dead.
func (n *node) awaitRecovery(c *caller) {
	for n.isRecovering(c.life) {
		n.w.sleep(c.actor, 10*time.Millisecond, 0)
	}
}

// caller is what the node itself does, in this life. The world's mutex is held.
func (n *node) caller(what string, actor int) *caller {
	return &caller{
		w: n.w, node: n, life: n.life, actor: actor, label: n.String() + " " + what,
		name: uint64(streamOf(n.w.cfg.Seed, textHash(what), uint64(n.id), uint64(n.life))),
	}
}

// recoverEvery is how often a node looks for what others have left in the bucket.
const recoverEvery = time.Minute

// recover ends what others have left, until ctx is done.
func (n *node) recover(ctx context.Context, over *txn.Store, c *caller) {
	for {
		n.w.sleep(c.actor, recoverEvery/10, 0)
		if ctx.Err() != nil {
			return
		}
		limited, cancel := context.WithTimeout(withCaller(ctx, c), n.w.until(c.actor, timeout, recoverEvery))
		err := over.Recover(limited)
		cancel()
		n.w.sleep(c.actor, recoverEvery, 0)
		n.w.event(c.label, "recover", "", outcomeOf(err))
	}
}

// crash ends a life of the node. It comes back after a while.
func (n *node) crash(life int, s *stream) {
	w := n.w
	w.mu.Lock()
	if n.life != life || !n.up && !n.recovering {
		w.mu.Unlock()
		return
	}
	n.up, n.recovering = false, false
	n.life++
	w.files.lose()
	end := n.end
	w.mu.Unlock()
	w.event(n.String(), "crash", fmt.Sprintf("life %d", life), "dead")
	end()
	w.later(n.clockActor(), s.between(200*time.Millisecond, 5*time.Second), *s, func() {
		w.event(n.String(), "restart", fmt.Sprintf("life %d", life+1), "up")
		n.start()
	})
}

// stop ends what the node does by itself, and waits for it.
func (n *node) stop() {
	n.w.mu.Lock()
	n.up, n.recovering = false, false
	end := n.end
	n.w.mu.Unlock()
	end()
	n.running.Wait()
}

// clock is the time as the node has it.
func (n *node) clock() time.Time {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return time.Now().Add(n.skew)
}

// suffer plans what happens to the node at times of its own.
func (n *node) suffer() {
	w := n.w
	plan := func(kind string, index int, happen func(s *stream)) {
		s := streamOf(w.cfg.Seed, textHash(kind), uint64(n.id), uint64(index))
		name := s.next()
		at := s.between(0, 30*time.Second)
		w.later(n.clockActor(), at, s, func() {
			if w.inject(kind, name) {
				happen(&s)
			}
		})
	}
	s := streamOf(w.cfg.Seed, textHash("suffer"), uint64(n.id))
	for i := range w.profile.rates.crashes {
		plan("crash", i, func(s *stream) {
			w.mu.Lock()
			life := n.life
			w.mu.Unlock()
			n.crash(life, s)
		})
	}
	for i := range w.profile.rates.freezes {
		plan("freeze", i, func(s *stream) {
			d := late(s)
			w.mu.Lock()
			n.frozenUntil = max(n.frozenUntil, w.now()+d)
			w.mu.Unlock()
			w.event(n.String(), "freeze", d.String(), "frozen")
		})
	}
	for i := range w.profile.rates.cuts {
		plan("cut off", i, func(s *stream) {
			d := s.between(50*time.Millisecond, pick(s, 500*time.Millisecond, 2*time.Second, 12*time.Second))
			w.mu.Lock()
			n.cutUntil = max(n.cutUntil, w.now()+d)
			w.mu.Unlock()
			w.event(n.String(), "cut off", d.String(), "from the stores")
		})
	}
	if limit := w.profile.clocks; limit > 0 {
		n.skew = s.between(-limit, limit)
		for i := range s.n(3) {
			plan("clock jumps", i, func(s *stream) {
				w.mu.Lock()
				n.skew = s.between(-limit, limit)
				skew := n.skew
				w.mu.Unlock()
				w.event(n.String(), "clock", skew.String(), "jumps")
			})
		}
	}
}

// heal ends what is wrong with the node.
func (n *node) heal() {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.frozenUntil, n.cutUntil, n.skew = 0, 0, 0
}

// do runs an operation on the node for a caller of it.
func (n *node) do(ctx context.Context, c *caller, op kernel.Operation) error {
	w := n.w
	w.mu.Lock()
	if n.life != c.life || !n.up {
		w.mu.Unlock()
		return errDead
	}
	life, run, reclaimer := n.ctx, n.kernel, n.reclaimer
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(withCaller(ctx, c))
	defer cancel()
	defer context.AfterFunc(life, cancel)() //nolint:contextcheck // the process ends the call, as the client may
	err := run.Do(ctx, op)
	if err == nil {
		if dying, warehouse := dyingOf(op); dying != "" {
			reclaimer.Start(warehouse, dying)
		}
	}
	return err
}

// dyingOf is the list of dying files that a drop has left.
func dyingOf(op kernel.Operation) (list, warehouse string) {
	switch op := op.(type) {
	case *catalog.Once:
		return dyingOf(op.Inner)
	case *catalog.DropTable:
		return op.Result.DyingID, op.Request.Warehouse
	}
	return "", ""
}

// runner runs the operations of a reclaimer: each has streams of its own, named by what
// it asks, for several are under way at once.
type runner struct {
	caller *caller

	mu    sync.Mutex
	times map[uint64]uint64
}

// Do implements kernel.Runner.
func (r *runner) Do(ctx context.Context, op kernel.Operation) error {
	asked, err := json.Marshal(op)
	if err != nil {
		return err
	}
	h := textHash(op.Plan().Op, string(asked))
	r.mu.Lock()
	r.times[h]++
	times := r.times[h]
	r.mu.Unlock()
	c := r.caller
	own := &caller{w: c.w, node: c.node, life: c.life, actor: c.actor, label: c.label, name: uint64(streamOf(c.name, h, times))}
	return c.node.do(ctx, own, op)
}

// yes is the lock that always says yes.
type yes struct{}

// Acquire implements lock.Locker.
func (yes) Acquire(ctx context.Context, _ lock.Set, _ time.Duration) (lock.Hold, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return granted{ctx}, nil
}

type granted struct{ ctx context.Context }

func (g granted) Context() context.Context { return g.ctx }
func (granted) Token(key.Key) lock.Token   { return 0 }
func (granted) Release()                   {}
