package kernel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/planted"
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
	// Backoff gives the pause after a conflict: from zero up to the limit, which it excludes.
	// Default random.
	Backoff func(limit time.Duration) time.Duration
	// Observe is told of every operation that ended. It must not block. May be nil.
	Observe func(Report)
	// Lost is told of the files of a decision that was certainly not applied: no
	// batch names them, nor ever will by this operation. Some may not exist. It must
	// not block. May be nil.
	Lost func([]File)
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
	Bytes     int // of files uploaded
}

// reserveAfter is how many conflicts an operation takes before it also queues
// for the keys it conflicted on.
const reserveAfter = 3

// uploadsMax is how many files of one decision are written at once.
const uploadsMax = 8

// Kernel runs operations on one store. It is safe for concurrent use, starts no
// goroutine that outlives Do, and holds no lock of its own.
type Kernel struct {
	opt Options
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
	return &Kernel{opt: opt}
}

// Do implements Runner.
func (k *Kernel) Do(ctx context.Context, op Operation) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.opt.Limit)
		defer cancel()
	}
	r := run{k: k, op: op, plan: op.Plan(), start: time.Now()}
	r.report.Op = r.plan.Op
	err := r.do(ctx)
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
	op     Operation
	plan   Plan
	start  time.Time
	report Report
}

// do is the life of an operation: queue, decide, upload, apply; and again after
// a conflict.
func (r *run) do(ctx context.Context) error {
	set := r.plan.Locks
	for {
		conflicted, err := r.turn(ctx, set)
		if err != nil || len(conflicted) == 0 {
			return err
		}
		// The turn ended in too many conflicts. Queueing for what it conflicted on
		// makes the others wait; the set is acquired anew, because adding to a held
		// set would break the lock order.
		for _, c := range conflicted {
			set = set.With(lock.W(c.Key))
		}
	}
}

// turn holds the set once and tries until the operation has ended, or has met
// reserveAfter conflicts: then it returns the conditions of the last one.
func (r *run) turn(ctx context.Context, set lock.Set) ([]store.Cond, error) {
	release, err := r.acquire(ctx, set)
	if err != nil {
		return nil, err
	}
	defer release()
	for tries := 1; ; tries++ {
		err := r.attempt(ctx)
		var (
			conflict *store.ConflictError
			blocked  *store.BlockedError
		)
		pause := time.Duration(0)
		switch {
		case errors.Is(err, ErrAgain):
			r.report.Conflicts++
		case errors.As(err, &conflict):
			r.report.Conflicts++
			// What does not queue at all (a reader) never comes to wait for others.
			if tries >= reserveAfter && len(conflict.Conds) > 0 && set.Len() > 0 {
				return conflict.Conds, nil
			}
		case errors.As(err, &blocked):
			pause = max(time.Until(blocked.Until), time.Millisecond)
		default:
			return nil, timely(err)
		}
		if err := sleep(ctx, pause+r.k.opt.Backoff(backoff(tries))); err != nil {
			return nil, timely(err)
		}
	}
}

// acquire takes the operation's place in the queue, then the lock across processes.
func (r *run) acquire(ctx context.Context, set lock.Set) (release func(), err error) {
	if set.Len() == 0 {
		return func() {}, nil
	}
	wait := r.k.opt.Limit
	if r.plan.Wait > 0 {
		wait = r.plan.Wait
	}
	began := time.Now()
	queued, err := r.k.opt.Queue.Acquire(ctx, set, wait)
	r.report.Queued += time.Since(began)
	if err != nil {
		return nil, refusedLock(err)
	}
	if r.k.opt.Locker == nil {
		return queued.Release, nil
	}
	held, err := r.k.opt.Locker.Acquire(ctx, set, wait)
	if err != nil {
		queued.Release()
		return nil, refusedLock(err)
	}
	return func() { held.Release(); queued.Release() }, nil
}

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

// attempt decides once and applies what was decided.
func (r *run) attempt(ctx context.Context) error {
	tx, refusal := r.decide(ctx)
	if errors.Is(refusal, ErrAgain) {
		return refusal
	}
	if refusal == nil && len(tx.writes) == 0 && len(tx.order) < 2 {
		return nil // an answer read from one record needs no second look
	}
	if refusal != nil || len(tx.writes) == 0 {
		if err := tx.settle(ctx); err != nil && !planted.Is(planted.AnswerUnsettled) {
			return err
		}
		return refusal
	}
	batch := tx.batch(r.k.opt.NewBatchID(), store.OpRecord{ID: r.k.opt.NewID(), Name: r.plan.Op})
	if planted.Is(planted.FilesAfterBatch) {
		return errors.Join(r.apply(ctx, batch), r.upload(ctx, tx.staged))
	}
	err := r.upload(ctx, tx.staged)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		r.report.Wrote = true
		err = r.apply(ctx, batch)
	}
	unknown := errors.Is(err, store.ErrOutcomeUnknown)
	if unknown && planted.Is(planted.UnknownIsCleanedUp) {
		cleanUp(ctx, r.k.opt.Files, tx.staged)
	}
	if err != nil && len(tx.staged) > 0 && r.k.opt.Lost != nil && !unknown {
		r.k.opt.Lost(tx.staged)
	}
	return err
}

// decide runs Decide on a fresh Tx.
func (r *run) decide(ctx context.Context) (*Tx, error) {
	r.report.Decisions++
	if r.k.opt.CheckPurity {
		return r.decideTwice(ctx)
	}
	tx := r.newTx(r.k.opt.Store, r.k.opt.Files, r.k.opt.Now(), r.k.opt.NewID)
	return tx, r.op.Decide(ctx, tx)
}

func (r *run) newTx(s store.Atomic, f Files, now time.Time, newID func() string) *Tx {
	tx := &Tx{store: s, files: f, newID: newID, now: now.UTC().Truncate(time.Millisecond)}
	tx.reads = make(map[key.Key]store.Record, 4)
	return tx
}

// upload makes the staged files durable, several at a time. What was written
// when another fails stays behind, named by nothing, until Lost's listener or a sweep finds it.
func (r *run) upload(ctx context.Context, files []File) error {
	var g errgroup.Group
	g.SetLimit(uploadsMax)
	for _, f := range files {
		r.report.Bytes += len(f.Data)
		g.Go(func() error {
			if err := r.k.opt.Files.Create(ctx, f.Scope, f.Location, f.Data); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrUpload, f.Location, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// apply sends the batch and resolves an unknown outcome. From here on the
// client's cancellation changes nothing: it would only make outcomes unknown.
func (r *run) apply(ctx context.Context, b store.Batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.k.opt.ApplyLimit)
	defer cancel()
	err := r.k.opt.Store.Apply(ctx, b)
	if !errors.Is(err, store.ErrOutcomeUnknown) {
		return err
	}
	if planted.Is(planted.UnknownIsConflict) {
		return &store.ConflictError{}
	}
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), r.k.opt.ApplyLimit)
	defer cancel()
	outcome, askErr := r.k.opt.Store.Outcome(ctx, b)
	switch {
	case askErr == nil && outcome == store.Applied:
		return nil
	case askErr == nil && outcome == store.NotApplied:
		// The cause has passed, and nothing was done: as good as a conflict.
		return &store.ConflictError{}
	case askErr == nil:
		askErr = errors.New("the store does not say")
	}
	return fmt.Errorf("batch %s: %w (asked again: %w)", b.ID, err, askErr)
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
