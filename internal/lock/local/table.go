package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// Options of a Table. The zero value is ready for use.
type Options struct {
	// MaxWaitersPerKey is how many requests one key may hold up at a time; zero is
	// 1024. A request that passed here and waits for another of its keys does not
	// count, so a crowd at one table does not fill the queue of its namespace.
	MaxWaitersPerKey int

	// MaxWaiters is how many requests may wait in the whole table; zero is 16384.
	MaxWaiters int

	// Now is the clock of Snapshot, Waited and Held; nil is time.Now. It is called with
	// the table's mutex held, so that times in a queue never run back: it must not
	// call the table.
	Now func() time.Time

	// Waited, if not nil, is told how long each key held a request up, once the
	// request was granted or gave up; nothing of a request that was refused without
	// waiting. It runs on the goroutine of Acquire with no mutex held, concurrently.
	Waited func(Wait)

	// Held, if not nil, is told at Release how long each key was held. A request that was
	// gathered is left out: its keys are held by who gathered it. It runs on the goroutine
	// of Release with no mutex held, concurrently.
	Held func(k key.Key, mode lock.Mode, op string, held time.Duration)
}

// Wait tells how one key held up one request.
type Wait struct {
	Key    key.Key
	Mode   lock.Mode
	Op     string        // of the request's owner
	Waited time.Duration // zero at a key that was free
	Behind int           // how many the key held up already when the request came
}

func (o Options) withDefaults() Options {
	if o.MaxWaitersPerKey == 0 {
		o.MaxWaitersPerKey = 1024
	}
	if o.MaxWaiters == 0 {
		o.MaxWaiters = 16384
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Table is a [lock.Locker] for the goroutines of one process.
type Table struct {
	opts Options

	// mu guards this struct and, through it, every queue, slot and request.
	// It is held for a few map look-ups at a time and never across a wait.
	mu struct {
		sync.Mutex
		queues  map[key.Key]*queue // no queue in it is empty
		waiting int                // requests in state waiting
		token   lock.Token         // the last one given, whatever the key
		closed  bool               // set once; nobody is waiting then
	}
}

// New is an empty table.
func New(o Options) *Table {
	t := &Table{opts: o.withDefaults()}
	t.mu.queues = make(map[key.Key]*queue)
	return t
}

// state is how far a request has come. It only moves forward.
type state uint8

const (
	waiting state = iota + 1 // blocked > 0
	held                     // blocked == 0
	left                     // in no queue: released, given up, or refused by Close
)

// request is one Acquire; granted, it is the hold. What it waits with and what it
// holds are the same slots.
type request struct {
	table *Table
	set   lock.Set
	owner lock.Owner
	slots []slot        // parallel to the items of set
	ready chan struct{} // closed when granted or refused; nil if granted on arrival

	member any // what Gather hands to who gathers it; nil: nobody does

	// Set before the hold is given to the caller, and not changed after.
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Guarded by table.mu. The goroutine of Acquire may read what no longer
	// changes, once ready is closed or the request has left.
	state   state
	blocked int // how many of slots are not clear
	arrived time.Time
	granted time.Time
	token   lock.Token
	// leader is who gathered it, and itself in one that has gathered. Those of one leader hold
	// keys together.
	leader *request
}

var _ lock.Gatherer = (*Table)(nil)

// Acquire is that of [lock.Locker]. A request that is granted just as ctx ends
// gives the grant back; one that is granted just as wait passes keeps it.
func (t *Table) Acquire(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
	r, err := t.acquire(ctx, set, wait, nil)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (t *Table) acquire(ctx context.Context, set lock.Set, wait time.Duration, member any) (*request, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := &request{table: t, set: set, owner: lock.OwnerFrom(ctx), member: member}
	if err := t.enter(r, wait > 0); err != nil {
		return nil, err
	}
	var err error
	if r.ready != nil {
		err = t.await(ctx, r, wait)
	}
	t.observe(r)
	if err != nil {
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r, nil
}

// enter puts r into all its queues in one step, or into none if it is refused.
// It is granted on arrival, and r.ready nil, if it is clear in all of them.
func (t *Table) enter(r *request, mayWait bool) error {
	items := r.set.Items()
	r.slots = make([]slot, len(items))

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return lock.ErrClosed
	}
	for i, item := range items {
		q := t.mu.queues[item.Key]
		r.slots[i] = slot{request: r, queue: q, mode: item.Mode}
		if q == nil {
			continue
		}
		r.slots[i].behind = q.blocked
		if q.admits(item.Mode) {
			continue
		}
		if !mayWait {
			return fmt.Errorf("%w: %v", lock.ErrBusy, item.Key)
		}
		if q.blocked >= t.opts.MaxWaitersPerKey {
			return fmt.Errorf("%w: %v", lock.ErrQueueFull, item.Key)
		}
		r.blocked++
	}
	if r.blocked > 0 && t.mu.waiting >= t.opts.MaxWaiters {
		return fmt.Errorf("%w: %d wait in all", lock.ErrQueueFull, t.mu.waiting)
	}

	for i := range r.slots {
		s := &r.slots[i]
		if s.queue == nil {
			s.queue = &queue{key: items[i].Key}
			t.mu.queues[s.queue.key] = s.queue
		}
		s.queue.push(s)
	}
	r.arrived = t.opts.Now()
	if r.blocked == 0 {
		t.grantLocked(r, r.arrived)
		return nil
	}
	r.state = waiting
	r.ready = make(chan struct{})
	t.mu.waiting++
	return nil
}

// await blocks until r is granted, or has left the table with an error.
func (t *Table) await(ctx context.Context, r *request, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-r.ready:
	case <-timer.C:
	case <-ctx.Done():
	}

	// What happened is read again under the mutex: several may have.
	t.mu.Lock()
	defer t.mu.Unlock()
	err := context.Cause(ctx)
	switch {
	case r.state == left:
		return lock.ErrClosed
	case r.state == held && (err == nil || r.leader != nil):
		return nil
	case r.state == waiting && err == nil:
		err = lock.ErrTimeout
	}
	if r.state == waiting {
		err = fmt.Errorf("%w, waiting for %v", err, r.firstBlockedLocked())
	}
	t.leaveLocked(r)
	return err
}

// grantLocked makes r the holder of all its keys.
func (t *Table) grantLocked(r *request, now time.Time) {
	for i := range r.slots {
		if r.slots[i].mode == lock.Exclusive {
			t.mu.token++
			break
		}
	}
	r.state, r.granted, r.token = held, now, t.mu.token
}

// leaveLocked takes r out of all its queues, wakes those who stood behind only it, and
// gives the time.
func (t *Table) leaveLocked(r *request) time.Time {
	now := t.opts.Now()
	if r.state == waiting {
		t.mu.waiting--
	}
	r.state = left
	for i := range r.slots {
		s := &r.slots[i]
		if !s.clear {
			s.waited = now.Sub(r.arrived)
		}
		q := s.queue
		q.remove(s)
		for c := q.clearNext(); c != nil; c = q.clearNext() {
			t.clearedLocked(c, now)
		}
		if q.first == nil {
			delete(t.mu.queues, q.key)
		}
	}
	return now
}

// clearedLocked counts a slot that has become clear, and grants its request if
// that was the last.
func (t *Table) clearedLocked(s *slot, now time.Time) {
	r := s.request
	s.waited = now.Sub(r.arrived)
	r.blocked--
	if r.blocked > 0 || r.state != waiting {
		return
	}
	t.mu.waiting--
	t.grantLocked(r, now)
	close(r.ready)
}

func (t *Table) observe(r *request) {
	if t.opts.Waited == nil {
		return
	}
	for i, item := range r.set.Items() {
		t.opts.Waited(Wait{item.Key, item.Mode, r.owner.Op, r.slots[i].waited, r.slots[i].behind})
	}
}

// Close refuses all who wait, and all who come after, with [lock.ErrClosed]. What
// is held stays held until it is released; Close does not wait for that.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.closed = true

	// All are refused before the first leaves, so that none is granted on the way.
	var refused []*request
	for _, q := range t.mu.queues {
		for s := q.first; s != nil; s = s.next {
			if s.request.state == waiting {
				s.request.state = left
				refused = append(refused, s.request)
			}
		}
	}
	t.mu.waiting = 0
	for _, r := range refused {
		t.leaveLocked(r)
		close(r.ready)
	}
}

// Len is the number of keys that are held or awaited.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.queues)
}

// firstBlockedLocked is the coarsest key that holds r up; r is waiting.
func (r *request) firstBlockedLocked() key.Key {
	for i := range r.slots {
		if !r.slots[i].clear {
			return r.slots[i].queue.key
		}
	}
	panic("local: a waiting request is blocked nowhere")
}

// Context is that of [lock.Hold]; its cause is never ErrLost.
func (r *request) Context() context.Context { return r.ctx }

// Token is that of [lock.Hold]. All keys of a set have the same.
func (r *request) Token(k key.Key) lock.Token {
	for _, item := range r.set.Items() {
		if item.Key == k {
			return r.token
		}
	}
	return 0
}

// Release is that of [lock.Hold].
func (r *request) Release() {
	r.cancel(lock.ErrReleased)
	t := r.table
	after, leads := r.giveBack()
	if !leads || t.opts.Held == nil {
		return
	}
	for _, item := range r.set.Items() {
		t.opts.Held(item.Key, item.Mode, r.owner.Op, after)
	}
}

// giveBack takes r out of the table and tells how long it has held its keys. leads is
// false for one that was gathered, or that had left before.
func (r *request) giveBack() (after time.Duration, leads bool) {
	t := r.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.state != held {
		return 0, false
	}
	return t.leaveLocked(r).Sub(r.granted), r.leader == nil || r.leader == r
}
