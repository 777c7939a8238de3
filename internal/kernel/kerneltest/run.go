package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/locktest"
	"github.com/landfast/landfast/internal/store"
)

// Env is what one case runs on.
type Env struct {
	// Store is empty and used by nobody else.
	Store store.Atomic
	// Queue is used by nobody else, and excludes.
	Queue Queue
}

// Queue gathers who waits, and shows them.
type Queue interface {
	lock.Gatherer
	Snapshot() []lock.KeyState
}

// caseTimeout bounds every case: a kernel that never answers fails.
const caseTimeout = 60 * time.Second

// Run runs the suite. new is called once for each case.
func Run(t *testing.T, new func(t *testing.T) Env) {
	run(t, slices.Concat(cases, blockedCases), slices.Concat(combineCases, blockedTogetherCases), func(t *testing.T, h *harness, c suiteCase) {
		h.use(new(t))
		c.run(h)
	})
}

// RunRiding is Run for a kernel whose small files ride in their batches, and more. After each case the power goes, and no
// file that a record names may be lost.
func RunRiding(t *testing.T, new func(t *testing.T) Env) {
	run(t, slices.Concat(cases, blockedCases, rideCases), slices.Concat(combineCases, blockedTogetherCases, rideTogetherCases), func(t *testing.T, h *harness, c suiteCase) {
		h.use(new(t))
		h.ride(c)
	})
}

// run runs cases with the given queue and with one that lets everyone in; those that are about who waits with the given one only.
func run(t *testing.T, all, waiting []suiteCase, one func(*testing.T, *harness, suiteCase)) {
	for _, queue := range []string{"queue", "yes"} {
		t.Run(queue, func(t *testing.T) {
			these := all
			if queue == "queue" {
				these = slices.Concat(all, waiting)
			}
			for _, c := range these {
				t.Run(c.name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), caseTimeout)
					defer cancel()
					one(t, &harness{T: t, ctx: ctx, excludes: queue == "queue", files: &Files{}, reports: make(chan kernel.Report, 10_000)}, c)
				})
			}
		})
	}
}

func (h *harness) use(env Env) {
	h.store, h.queue = &faulty{Atomic: env.Store}, env.Queue
	if !h.excludes {
		h.queue = locktest.Yes{}
	}
}

// suiteCase is one promise.
type suiteCase struct {
	name string
	run  func(*harness)
}

var cases = []suiteCase{
	{"no update is lost", testLostUpdate},
	{"a change of several records is all or nothing, and read so", testAllOrNothing},
	{"opposite orders do not deadlock", testOppositeOrders},
	{"a parent is not dropped with a child", testParentAndChild},
	{"one of many creators wins", testCreators},
	{"a refusal changes nothing", testRefusal},
	{"files are durable before the batch", testFilesFirst},
	{"a failed upload applies nothing", testFailedUpload},
	{"unknown, then applied, is done", testUnknownApplied},
	{"unknown, then not applied, is decided again", testUnknownNotApplied},
	{"unknown that stays unknown is said to be", testUnknown},
	{"a client that leaves does not stop what was sent", testClientLeaves},
	{"a fault of the store is no refusal", testStoreFault},
	{"conflicts end with the deadline", testDeadline},
	{"conflicts outside the plan are queued for", testReserve},
	{"one at a time under the queue", testOneAtATime},
	{"no word is lost", testWords},
	{"a parent that goes before the batch is missed", testParentGoes},
	{"a child that comes before the batch is in the way", testChildComes},
	{"what was only read is a condition", testOnlyRead},
	{"an answer held together at one moment", testAnswerAtOnce},
}

type harness struct {
	*testing.T
	ctx      context.Context
	excludes bool
	queue    lock.Locker
	store    *faulty
	files    *Files
	reports  chan kernel.Report
	journal  *journal.Journal // nil: no file rides
	settled  func()           // ends its Run; nil: it does not run
}

// faulty is a store whose Apply and Outcome can be made to go wrong, and whose reads let others in.
type faulty struct {
	store.Atomic
	get     func(k key.Key)                                // called before a record is read; may be nil
	apply   func(ctx context.Context, b store.Batch) error // nil: as the store
	outcome func(ctx context.Context, id string) (store.Outcome, error)
}

func (f *faulty) Get(ctx context.Context, k key.Key) (store.Record, error) {
	if f.get != nil {
		f.get(k)
	}
	return f.Atomic.Get(ctx, k)
}

func (f *faulty) Apply(ctx context.Context, b store.Batch) error {
	if f.apply != nil {
		return f.apply(ctx, b)
	}
	return f.Atomic.Apply(ctx, b)
}

func (f *faulty) Outcome(ctx context.Context, b store.Batch) (store.Outcome, error) {
	if f.outcome != nil {
		return f.outcome(ctx, b.ID)
	}
	return f.Atomic.Outcome(ctx, b)
}

// kernel is a kernel that decides everything twice.
func (h *harness) kernel() *kernel.Kernel { return kernel.New(h.options()) }

func (h *harness) options() kernel.Options {
	return kernel.Options{
		Store: h.store, Files: h.files, Queue: h.queue, Journal: h.journal, CheckPurity: true,
		Observe: func(r kernel.Report) {
			select {
			case h.reports <- r:
			default: // nobody reads so many
			}
		},
	}
}

func (h *harness) do(op kernel.Operation) {
	h.Helper()
	if err := h.runner().Do(h.ctx, op); err != nil {
		h.Fatalf("%s: %v", op.Plan().Op, err)
	}
}

func (h *harness) runner() kernel.Runner { return RoundTrip{h.kernel(), registry} }

func (h *harness) value(name string) int {
	h.Helper()
	op := &sum{Counters: []string{name}}
	h.do(op)
	return op.Result
}

// behind runs an operation behind the kernel's back, as another process would.
func (h *harness) behind(op kernel.Operation) {
	other := kernel.New(kernel.Options{Store: h.store.Atomic, Files: h.files, Queue: locktest.Yes{}})
	if err := other.Do(h.ctx, op); err != nil {
		h.Error(err)
	}
}

// meanwhile runs one between the next decision and its batch.
func (h *harness) meanwhile(op kernel.Operation) {
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		h.store.apply = nil
		h.behind(op)
		return h.store.Atomic.Apply(ctx, b)
	}
}

// together runs n goroutines to their end.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// Every one of 16 x 25 additions is in the sum.
func testLostUpdate(h *harness) {
	k := h.runner()
	together(16, func(int) {
		for range 25 {
			if err := k.Do(h.ctx, &add{Counter: "c", By: 1}); err != nil {
				h.Error(err)
			}
		}
	})
	if got := h.value("c"); got != 400 {
		h.Errorf("400 additions made %d", got)
	}
}

// The sum of two counters between which amounts move is the same at every read.
func testAllOrNothing(h *harness) {
	h.do(&add{Counter: "a", By: 100})
	k := h.runner()
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				op := &sum{Counters: []string{"a", "b"}}
				if err := k.Do(h.ctx, op); err != nil {
					h.Error(err)
					return
				}
				if op.Result != 100 {
					h.Errorf("a + b = %d", op.Result)
				}
			}
		})
	}
	together(8, func(i int) {
		for range 20 {
			op := &transfer{From: "a", To: "b", Amount: 7}
			if i%2 == 1 {
				op.From, op.To = op.To, op.From
			}
			if err := k.Do(h.ctx, op); err != nil && !errors.Is(err, errPoor) {
				h.Error(err)
			}
		}
	})
	done.Store(true)
	readers.Wait()
}

// Operations that name the same keys in opposite orders all end.
func testOppositeOrders(h *harness) {
	for _, c := range []string{"a", "b", "c"} {
		h.do(&add{Counter: c, By: 1000})
	}
	k := h.runner()
	names := []string{"a", "b", "c"}
	together(12, func(i int) {
		for j := range 10 {
			if err := k.Do(h.ctx, &transfer{From: names[(i+j)%3], To: names[(2*i+j+1)%3], Amount: 1}); err != nil {
				h.Error(err)
			}
		}
	})
}

// When a parent is dropped while children are made, either the child was refused
// or the parent stayed.
func testParentAndChild(h *harness) {
	k := h.runner()
	for round := range 30 {
		parent := fmt.Sprintf("p%d", round)
		h.do(&adopt{Parent: parent})
		var made, dropped error
		together(2, func(i int) {
			if i == 0 {
				made = k.Do(h.ctx, &adopt{Parent: parent, Child: "c"})
			} else {
				dropped = k.Do(h.ctx, &disown{Parent: parent})
			}
		})
		switch {
		case made == nil && errors.Is(dropped, errChildren):
		case errors.Is(made, errNoParent) && dropped == nil:
		default:
			h.Errorf("child: %v, drop: %v", made, dropped)
		}
	}
}

// Of eight that make the same thing, one does and seven are refused.
func testCreators(h *harness) {
	k := h.runner()
	h.do(&adopt{Parent: "p"})
	var won, lost atomic.Int32
	together(8, func(int) {
		switch err := k.Do(h.ctx, &adopt{Parent: "p", Child: "c"}); {
		case err == nil:
			won.Add(1)
		case errors.Is(err, errTaken):
			lost.Add(1)
		default:
			h.Error(err)
		}
	})
	if won.Load() != 1 || lost.Load() != 7 {
		h.Errorf("%d won, %d lost", won.Load(), lost.Load())
	}
}

// An operation that refuses after it staged leaves no trace.
func testRefusal(h *harness) {
	h.do(&add{Counter: "a", By: 1})
	h.store.apply = func(context.Context, store.Batch) error {
		h.Error("a refused operation was applied")
		return nil
	}
	if err := h.runner().Do(h.ctx, &transfer{From: "a", To: "b", Amount: 5}); !errors.Is(err, errPoor) {
		h.Errorf("got %v", err)
	}
	h.store.apply = nil
	if got := h.value("a"); got != 1 {
		h.Errorf("a = %d", got)
	}
}

// When Apply is called, the files of the decision are there.
func testFilesFirst(h *harness) {
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		if n := len(h.files.Locations()); n != 1 {
			h.Errorf("%d files at Apply", n)
		}
		return h.store.Atomic.Apply(ctx, b)
	}
	h.do(&add{Counter: "c", By: 1, File: true})
}

// A file that cannot be written is an error of its own, and nothing is applied.
func testFailedUpload(h *harness) {
	broken := errors.New("broken disk")
	h.files.FailCreate = func(string) error { return broken }
	h.store.apply = func(context.Context, store.Batch) error {
		h.Error("applied without its file")
		return nil
	}
	err := h.runner().Do(h.ctx, &add{Counter: "c", By: 1, File: true})
	if !errors.Is(err, kernel.ErrUpload) || !errors.Is(err, broken) {
		h.Errorf("got %v", err)
	}
}

// A lost reply to a batch that was applied is success, and it is applied once.
func testUnknownApplied(h *harness) {
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		h.store.apply = nil
		if err := h.store.Atomic.Apply(ctx, b); err != nil {
			return err
		}
		return fmt.Errorf("%w: reply lost", store.ErrOutcomeUnknown)
	}
	h.do(&add{Counter: "c", By: 1})
	if got := h.value("c"); got != 1 {
		h.Errorf("c = %d", got)
	}
}

// A batch that was lost on its way is declared impossible and decided again.
func testUnknownNotApplied(h *harness) {
	var late []store.Batch
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		if len(late) == 0 {
			late = append(late, b)
			return store.ErrOutcomeUnknown
		}
		return h.store.Atomic.Apply(ctx, b)
	}
	h.do(&add{Counter: "c", By: 1})
	h.store.apply = nil
	var conflict *store.ConflictError
	if err := h.store.Apply(h.ctx, late[0]); !errors.As(err, &conflict) {
		h.Errorf("the lost batch arrived late: %v", err)
	}
	if got := h.value("c"); got != 1 {
		h.Errorf("c = %d", got)
	}
}

// An outcome that cannot be found out is ErrOutcomeUnknown, and is not tried again. The batch may name its file, which stays.
func testUnknown(h *harness) {
	applies := 0
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		applies++
		return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, context.DeadlineExceeded)
	}
	h.store.outcome = func(context.Context, string) (store.Outcome, error) { return 0, errors.New("store is down") }
	err := h.runner().Do(h.ctx, &add{Counter: "c", By: 1, File: true})
	if !errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, kernel.ErrContended) {
		h.Errorf("got %v", err)
	}
	if files := len(h.files.Locations()); applies != 1 || files != 1 {
		h.Errorf("applied %d times, and there are %d files", applies, files)
	}
}

// Once a batch was sent, the client's cancellation does not reach the store; before, nothing is sent.
func testClientLeaves(h *harness) {
	ctx, leave := context.WithCancel(h.ctx)
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		leave()
		if ctx.Err() != nil {
			h.Error("the store saw the client leave")
		}
		return h.store.Atomic.Apply(ctx, b)
	}
	if err := h.runner().Do(ctx, &add{Counter: "c", By: 1}); err != nil {
		h.Errorf("got %v", err)
	}
	h.store.apply = func(context.Context, store.Batch) error {
		h.Error("a batch was sent for a client that had left")
		return nil
	}
	if err := h.runner().Do(ctx, &add{Counter: "c", By: 1}); !errors.Is(err, context.Canceled) {
		h.Errorf("got %v", err)
	}
}

// An error of Apply other than a conflict comes back as it is, once.
func testStoreFault(h *harness) {
	broken, applies := errors.New("broken"), 0
	h.store.apply = func(context.Context, store.Batch) error {
		applies++
		return broken
	}
	err := h.runner().Do(h.ctx, &add{Counter: "c", By: 1})
	if !errors.Is(err, broken) || errors.Is(err, store.ErrOutcomeUnknown) || applies != 1 {
		h.Errorf("got %v after %d", err, applies)
	}
}

// An operation that always conflicts ends as contended when its time is spent.
func testDeadline(h *harness) {
	h.store.apply = func(_ context.Context, b store.Batch) error {
		return &store.ConflictError{Conds: b.Conds}
	}
	ctx, cancel := context.WithTimeout(h.ctx, 50*time.Millisecond)
	defer cancel()
	if err := h.runner().Do(ctx, &add{Counter: "c", By: 1}); !errors.Is(err, kernel.ErrContended) {
		h.Errorf("got %v", err)
	}
}

// Operations that meet at a key outside their plans come to queue for it: none
// starves, and none is lost.
func testReserve(h *harness) {
	k := h.runner()
	together(8, func(i int) {
		for range 10 {
			if err := k.Do(h.ctx, &add{Counter: fmt.Sprintf("own%d", i), Also: "shared", By: 1}); err != nil {
				h.Error(err)
			}
		}
	})
	if got := h.value("shared"); got != 80 {
		h.Errorf("shared = %d", got)
	}
}

// With a queue that excludes, operations on one key decide once each: the queue
// saves the work that conflicts would waste.
func testOneAtATime(h *harness) {
	if !h.excludes {
		return
	}
	k := h.kernel()
	var decided atomic.Int32
	together(8, func(int) {
		for range 10 {
			if err := k.Do(h.ctx, &add{Counter: "c", By: 1, decided: func() { decided.Add(1) }}); err != nil {
				h.Error(err)
			}
		}
	})
	if got := decided.Load(); got != 160 { // twice each: the kernel checks purity
		h.Errorf("80 operations decided %d times", got/2)
	}
	for range 80 {
		if r := <-h.reports; r.Decisions != 1 || r.Conflicts != 0 {
			h.Errorf("report %+v", r)
		}
	}
}

func testParentGoes(h *harness) {
	h.do(&adopt{Parent: "p"})
	h.meanwhile(&disown{Parent: "p"})
	if err := h.runner().Do(h.ctx, &adopt{Parent: "p", Child: "c"}); !errors.Is(err, errNoParent) {
		h.Errorf("got %v", err)
	}
}

func testChildComes(h *harness) {
	h.do(&adopt{Parent: "p"})
	h.meanwhile(&adopt{Parent: "p", Child: "c"})
	if err := h.runner().Do(h.ctx, &disown{Parent: "p"}); !errors.Is(err, errChildren) {
		h.Errorf("got %v", err)
	}
}

func testOnlyRead(h *harness) {
	h.do(&add{Counter: "a", By: 1})
	h.meanwhile(&add{Counter: "a", By: 1})
	h.do(&imitate{Counter: "b", Of: "a"})
	if got := h.value("b"); got != 2 {
		h.Errorf("b = %d, which a no longer was", got)
	}
}

// Between the reads of two counters an amount moves from the one to the other: it is not seen in both.
func testAnswerAtOnce(h *harness) {
	h.do(&add{Counter: "a", By: 100})
	h.store.get = func(k key.Key) {
		if k == counter("b") {
			h.store.get = nil
			h.behind(&transfer{From: "a", To: "b", Amount: 7})
		}
	}
	op := &sum{Counters: []string{"a", "b"}}
	h.do(op)
	if op.Result != 100 {
		h.Errorf("a + b = %d", op.Result)
	}
}
