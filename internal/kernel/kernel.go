package kernel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

// Options are what a Kernel is made of. Store, Files and Queue are required.
type Options struct {
	Store store.Atomic
	Files Files
	// Queue orders the operations of this process: lock/local's table.
	Queue lock.Locker
	// Locker orders them across processes, after the queue. Nil where none is needed.
	// That a hold was lost is not looked for: it costs a conflict, never an update.
	Locker lock.Locker
	// Journal lets small files ride in the batch that names them. Nil: each file is durable before its batch.
	Journal *journal.Journal
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID gives fresh UUIDv4s. Default uuid.NewString.
	NewID func() string
	// NewBatchID gives fresh UUIDv7s. Default from package uuid.
	NewBatchID func() string
	// Limit bounds an operation whose context has no deadline. Default 60 s.
	Limit time.Duration
	// ApplyLimit bounds Apply and Outcome, which outlive the request. Default 15 s.
	ApplyLimit time.Duration
	// BlockedLimit is how long, in all, one operation waits for what others have locked (*store.BlockedError), in all the
	// batches that it becomes a part of, but for the last attempt. Zero: as long as its request has time.
	BlockedLimit time.Duration
	// BlockedRetries is how often, in all, it is sent again meanwhile. Zero: as often as there is time for; below zero never.
	BlockedRetries int
	// Backoff gives the pause after a conflict: from zero up to the limit, which it excludes.
	// Default random.
	Backoff func(limit time.Duration) time.Duration
	// Observe is told of every operation that ended. It must not block. May be nil.
	Observe func(Report)
	// Patience is told when a class of operations has learned to wait longer, or less long, in the queue.
	// It must not block. May be nil.
	Patience func(c lock.Class, from, to time.Duration)
	// Lost is told of the files of a decision that was certainly not applied: no
	// batch names them, nor ever will by this operation. Some may not exist. It must
	// not block. May be nil.
	Lost func([]File)
	// MemoBytes bounds what is kept of parsed records and files, in bytes. Default 128 MiB; below zero nothing is kept.
	MemoBytes int
	// CheckPurity makes every decision twice on the same reads and panics if they
	// differ. For tests.
	CheckPurity bool
}

// Report tells how one operation went.
type Report struct {
	Op        string
	Err       error
	Wrote     bool          // a batch was sent
	Queued    time.Duration // in the queue
	Took      time.Duration // in all
	Decisions int           // runs of Decide
	Conflicts int
	Blocked   int // batches that were refused because others had locked what they needed; they were sent again
	Bytes     int // of files uploaded
	Batch     int // operations that landed in the same batch, this one included; 0 where none was sent
}

// Kernel runs operations on one store. It is safe for concurrent use, starts no
// goroutine that outlives Do, and holds no lock of its own.
type Kernel struct {
	opt    Options
	direct *direct
	memo   *memos
	// gatherer is the store, if it is one: else there is nothing to read ahead for, and there are no lastIDs.
	gatherer store.Gatherer
	lastIDs  *lastIDs
	// timeouts are how long operations wait in a queue, by class. What they learn from is the
	// queue of this process and the locker behind it.
	timeouts map[lock.Class]*lock.DynamicTimeout
}

var _ Runner = (*Kernel)(nil)

// New makes a kernel. It panics when a required option is missing.
func New(opt Options) *Kernel {
	if opt.Store == nil || opt.Files == nil || opt.Queue == nil {
		panic("kernel: Store, Files and Queue are required")
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.NewID == nil {
		opt.NewID = uuid.NewString
	}
	if opt.NewBatchID == nil {
		opt.NewBatchID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if opt.Limit == 0 {
		opt.Limit = time.Minute
	}
	if opt.ApplyLimit == 0 {
		opt.ApplyLimit = 15 * time.Second
	}
	if opt.Backoff == nil {
		opt.Backoff = rand.N[time.Duration]
	}
	if opt.MemoBytes == 0 {
		opt.MemoBytes = 128 << 20
	}
	k := &Kernel{
		opt: opt, direct: &direct{opt.Store, opt.Files}, memo: newMemos(opt.MemoBytes),
		timeouts: map[lock.Class]*lock.DynamicTimeout{},
	}
	if g, ok := opt.Store.(store.Gatherer); ok {
		k.gatherer, k.lastIDs = g, newLastIDs()
	}
	for _, c := range lock.Classes {
		k.timeouts[c] = c.NewTimeout(func(from, to time.Duration) {
			if opt.Patience != nil {
				opt.Patience(c, from, to)
			}
		})
	}
	return k
}

// Do implements Runner.
func (k *Kernel) Do(ctx context.Context, op Operation) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.opt.Limit)
		defer cancel()
	}
	r := &run{k: k, ctx: ctx, op: op, plan: op.Plan(), start: time.Now()}
	r.report.Op = r.plan.Op
	var err error
	if r.plan.Locks.Len() == 0 {
		err = r.alone() //nolint:contextcheck // r has the context, for whoever leads its group
	} else {
		err = r.do() //nolint:contextcheck // the same
	}
	if k.opt.Observe != nil {
		r.report.Err = err
		r.report.Took = time.Since(r.start)
		k.opt.Observe(r.report)
	}
	return err
}

// run is one operation on its way through Do.
type run struct {
	k      *Kernel
	ctx    context.Context // of the request
	op     Operation
	plan   Plan
	start  time.Time
	report Report
	// blocked is how long others' locks were in its way, in all; report.Blocked is how often.
	blocked time.Duration

	// What the leader of its group decides about it, before it closes done. The goroutine of Do touches
	// the operation only when it leads, or after done.
	verdict verdict
	done    chan struct{} // nil: nobody waits for it
	self    [1]*run       // room for a group of one
}

// verdict is how a turn ended for one operation.
type verdict struct {
	err error
	// again asks for another turn: after too many conflicts on these conditions, or because the leader is gone.
	again      bool
	conflicted []store.Cond
	panicked   any // what Decide panicked with in the hands of another
	// lead is a group that it is to lead from here on.
	lead *group
}

// do is the life of an operation that queues: its turns at the head of the queue,
// one as a rule.
func (r *run) do() error {
	set := r.plan.Locks
	for {
		v, err := r.turn(set)
		if err != nil {
			return err
		}
		if v.panicked != nil {
			panic(v.panicked)
		}
		if !v.again {
			return v.err
		}
		// Too many conflicts. Queueing for what they were about makes the others wait; the
		// set is acquired anew, because adding to a held set would break the lock order.
		for _, c := range v.conflicted {
			set = set.With(lock.W(c.Key))
		}
	}
}

// turn takes the operation's place in the queue. At its head it either leads, with those
// behind it that may land in the same batch, or it is led.
func (r *run) turn(set lock.Set) (verdict, error) {
	r.verdict, r.done = verdict{}, make(chan struct{})
	began := time.Now()
	hold, led, err := r.join(set)
	r.report.Queued += time.Since(began)
	if err != nil {
		return verdict{}, refusedLock(err)
	}
	defer hold.Release()
	if led {
		<-r.done
		if g := r.verdict.lead; g != nil {
			r.verdict, r.done = verdict{}, nil
			g.lead(r)
		}
		return r.verdict, nil
	}
	if r.k.opt.Locker != nil {
		held, _, err := r.patiently(func(wait time.Duration) (lock.Hold, bool, error) {
			h, err := r.k.opt.Locker.Acquire(r.ctx, set, wait)
			return h, false, err
		})
		if err != nil {
			return verdict{}, refusedLock(err)
		}
		defer held.Release()
	}
	r.self[0] = r
	g := &group{k: r.k, waiting: r.self[:], reserves: true}
	if queue, ok := r.k.opt.Queue.(lock.Gatherer); ok && r.combines() {
		for _, m := range queue.Gather(hold, r.plan.Combine, groupMax-1) {
			g.waiting = append(g.waiting, m.(*run))
		}
	}
	g.lead(r)
	return r.verdict, nil
}

// alone is the life of an operation that does not queue: a reader, as a rule.
func (r *run) alone() error {
	r.self[0] = r
	g := &group{k: r.k, waiting: r.self[:]}
	g.lead(r)
	return r.verdict.err
}

// decide runs Decide on a fresh Tx.
func (r *run) decide(ctx context.Context, tx *Tx) error {
	r.report.Decisions++
	if r.k.opt.CheckPurity {
		return r.decideTwice(ctx, tx)
	}
	return r.op.Decide(ctx, tx)
}

func (r *run) newTx(s source, now time.Time, newID func() string) *Tx {
	return &Tx{
		source: s, store: r.k.opt.Store, memo: r.k.memo, newID: newID, now: now.UTC().Truncate(time.Millisecond),
	}
}

// join acquires the set, in a way that others may gather where the plan allows that.
func (r *run) join(set lock.Set) (hold lock.Hold, led bool, err error) {
	return r.patiently(func(wait time.Duration) (lock.Hold, bool, error) {
		if queue, ok := r.k.opt.Queue.(lock.Gatherer); ok && r.combines() {
			return queue.Join(r.ctx, set, wait, r)
		}
		hold, err := r.k.opt.Queue.Acquire(r.ctx, set, wait)
		return hold, false, err
	})
}

// patiently acquires with as much patience as the operation's class has and its deadline leaves, and lets the
// class learn from how long it took. Whom another gathered did not wait for itself, and
// whose own time was up first has told nothing about the others.
func (r *run) patiently(acquire func(wait time.Duration) (lock.Hold, bool, error)) (lock.Hold, bool, error) {
	timeout := r.k.timeouts[r.plan.Patience]
	deadline, _ := r.ctx.Deadline()
	left, began := time.Until(deadline), time.Now()
	wait := timeout.Wait(left)
	hold, led, err := acquire(wait)
	switch {
	case err == nil && !led:
		timeout.Log(time.Since(began), false)
	case errors.Is(err, lock.ErrTimeout) && wait < left:
		timeout.Log(wait, true)
	}
	return hold, led, err
}

func (r *run) combines() bool { return r.plan.Combine != key.Key{} }

func refusedLock(err error) error {
	switch {
	case errors.Is(err, lock.ErrQueueFull), errors.Is(err, lock.ErrClosed):
		return fmt.Errorf("%w: %w", ErrOverloaded, err)
	case errors.Is(err, lock.ErrBusy), errors.Is(err, lock.ErrTimeout), errors.Is(err, lock.ErrLost):
		return fmt.Errorf("%w: %w", ErrContended, err)
	}
	return timely(err)
}

// timely tells a deadline that passed with nothing applied (ErrContended) from a
// client that went away and from what is not known.
func timely(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrOutcomeUnknown) {
		return fmt.Errorf("%w: the request's time is spent: %w", ErrContended, err)
	}
	return err
}

// backoff is the limit of the pause after a conflict, which is short and random: a
// conflict means that another made progress.
func backoff(tries int) time.Duration {
	return min(time.Millisecond<<min(tries-1, 6), 50*time.Millisecond)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
