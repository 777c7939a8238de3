package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

// combineCases are about operations that wait at the head of one queue together. With a queue that
// lets everyone in at once, none do.
var combineCases = []suiteCase{
	{"what waited for one record lands in one batch", testOneBatch},
	{"files are written side by side", testFilesSideBySide},
	{"a batch is bounded", testBatchBounded},
	{"a batch of large files is bounded", testBytesBounded},
	{"a failed upload fails alone", testUploadFailsAlone},
	{"a refusal because of a neighbour waits until that one is durable", testRefusedByNeighbour},
	{"a refusal because of a neighbour whose batch failed is decided again", testNeighbourFails},
	{"a refusal because of a neighbour who leaves after a conflict is decided again", testNeighbourLeaves},
	{"a refusal that the store gives anyway does not wait", testRefusedEarly},
	{"a leader that is refused is answered before the others are durable", testLeaderRefused},
	{"who changes nothing shows what the batch left, too", testNothingShowsLatest},
	{"uploads that all fail fail at once", testAllUploadsFail},
	{"a key that is used twice in one batch counts once", testKeyInBatch},
	{"a leader that leaves during the uploads ends nobody's work", testLeaderLeaves},
	{"a follower that leaves before its turn ends nobody's work", testFollowerLeavesBefore},
	{"clients that leave during Apply do not reach the store", testLeaveDuringApply},
	{"a batch that nobody waits for is not sent", testAllLeave},
	{"a conflict decides all again", testConflictDecidesAllAgain},
	{"a condition of any operation of a batch is one of the batch", testConditionsOfAll},
	{"after three conflicts all queue for the keys, and land together", testReserveTogether},
	{"an unknown outcome is told to all, and asked once", testUnknownToAll},
	{"an unknown outcome that was applied is done for all", testUnknownAppliedForAll},
	{"a panic in Decide is its own", testPanicIsItsOwn},
	{"a panic of the leader's is its own", testLeaderPanics},
	{"a panic in Apply leaves the outcome unknown", testApplyPanics},
	{"an operation on two records keeps its place", testKeepsItsPlace},
	{"what lists or deletes lands alone", testLandsAlone},
	{"a deadline during the uploads is its own", testDeadlineIsItsOwn},
	{"an upload that another's deadline cut is made again", testCutUpload},
}

const theLog = "log"

// waiters counts who holds a key, and who waits for it.
func (h *harness) waiters(k key.Key) (holders, waiters int) {
	for _, s := range h.queue.(Queue).Snapshot() {
		if s.Key == k {
			return len(s.Holders), len(s.Waiters)
		}
	}
	return 0, 0
}

// until waits for a condition. It may be called on any goroutine.
func (h *harness) until(what string, met func() bool) {
	for !met() {
		if h.ctx.Err() != nil {
			h.Errorf("in vain: %s", what)
			return
		}
		runtime.Gosched()
	}
}

func (h *harness) untilWaiting(n int) {
	h.until(fmt.Sprintf("%d wait", n), func() bool {
		_, waiting := h.waiters(counter(theLog))
		return waiting == n
	})
}

// crowd are operations that wait for one log, in the order in which they came.
type crowd struct {
	h    *harness
	k    *kernel.Kernel
	hold lock.Hold // what they wait for; nil once they go
	all  []*member

	mu      sync.Mutex
	batches []int // sizes of what was applied, in its order
	applies int
	lost    []string // words
}

// member is one of them, on a goroutine of its own.
type member struct {
	ctx      context.Context
	leave    context.CancelFunc
	done     chan struct{} // closed when what follows is set
	err      error
	panicked any
}

func (m *member) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// crowd makes a crowd, of which apply does the n-th Apply, from 1; nil: as the store does it.
func (h *harness) crowd(apply func(ctx context.Context, n int, b store.Batch) error) *crowd {
	c := &crowd{h: h}
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		c.mu.Lock()
		c.applies++
		n := c.applies
		c.mu.Unlock()
		var err error
		if apply != nil {
			err = apply(ctx, n, b)
		} else {
			err = h.store.Atomic.Apply(ctx, b)
		}
		if err == nil {
			c.mu.Lock()
			c.batches = append(c.batches, len(b.Ops))
			c.mu.Unlock()
		}
		return err
	}
	opt := h.options()
	opt.Lost = func(files []kernel.File) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, f := range files {
			c.lost = append(c.lost, wordOf(f.Location))
		}
	}
	c.k = kernel.New(opt)
	hold, err := h.queue.Acquire(h.ctx, lock.NewSet(lock.W(counter(theLog))), 0)
	if err != nil {
		h.Fatal(err)
	}
	c.hold = hold
	return c
}

func wordOf(location string) string {
	word, _, _ := strings.Cut(strings.TrimPrefix(location, "file:///kerneltest/"), "-")
	return word
}

// come lets operations come, one after the other.
func (c *crowd) come(ops ...kernel.Operation) {
	c.h.Helper()
	for _, op := range ops {
		c.comeUnder(c.h.ctx, op)
	}
}

func (c *crowd) comeUnder(ctx context.Context, op kernel.Operation) *member {
	c.h.Helper()
	_, before := c.h.waiters(counter(theLog))
	m := &member{done: make(chan struct{})}
	m.ctx, m.leave = context.WithCancel(ctx)
	c.all = append(c.all, m)
	go func() {
		defer close(m.done)
		defer m.leave()
		defer func() { m.panicked = recover() }()
		m.err = c.k.Do(m.ctx, op)
	}()
	c.h.untilWaiting(before + 1)
	return m
}

// words are notes of these words, in this order.
func (c *crowd) words(words ...string) (notes []*note) {
	c.h.Helper()
	for _, w := range words {
		n := &note{Log: theLog, Word: w}
		notes = append(notes, n)
		c.come(n)
	}
	return notes
}

// begin lets the crowd go.
func (c *crowd) begin() { c.hold.Release() }

// end waits for all, and wants these answers of them: nil is done.
func (c *crowd) end(want ...error) {
	c.h.Helper()
	for i, m := range c.all {
		select {
		case <-m.done:
		case <-time.After(caseTimeout):
			c.h.Fatalf("operation %d does not end", i)
		}
		var expected error
		if i < len(want) {
			expected = want[i]
		}
		if m.panicked != nil && !errors.Is(expected, errPanicked) || !errors.Is(m.err, expected) && m.panicked == nil {
			c.h.Errorf("operation %d: error %v, panic %v; want %v", i, m.err, m.panicked, expected)
		}
		if errors.Is(expected, errPanicked) && m.panicked == nil {
			c.h.Errorf("operation %d did not panic: %v", i, m.err)
		}
	}
	if holders, waiters := c.h.waiters(counter(theLog)); holders+waiters > 0 {
		c.h.Errorf("%d hold the key and %d wait when all have ended", holders, waiters)
	}
}

// errPanicked stands for a panic, in end.
var errPanicked = errors.New("panicked")

// expect wants this log, in these batches, and these words' files told to Lost.
func (c *crowd) expect(log string, batches []int, lost ...string) {
	c.h.Helper()
	c.h.store.apply = nil
	c.h.expectLog(log)
	slices.Sort(c.lost)
	if diff := cmp.Diff([]any{batches, lost}, []any{c.batches, c.lost}); diff != "" {
		c.h.Errorf("batches and lost files (-want +got)\n%s", diff)
	}
}

func (h *harness) expectLog(want string) {
	h.Helper()
	got := &words{Log: theLog}
	h.do(got)
	if diff := cmp.Diff(want, got.Result); diff != "" {
		h.Errorf("the log (-want +got)\n%s", diff)
	}
}

// write adds a word to the log behind the kernel's back, as another process would.
func (h *harness) write(word string) { h.behind(&note{Log: theLog, Word: word}) }

// Twenty that came while the first was being applied land in one batch, in order of
// arrival, each with a file of its own, and each is answered with the last state.
func testOneBatch(h *harness) {
	held, letGo := make(chan struct{}), make(chan struct{})
	c := h.crowd(func(ctx context.Context, n int, b store.Batch) error {
		if n == 1 {
			close(held)
			<-letGo
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("first")
	c.begin()
	<-held
	want := "first"
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("w%02d", i))
		want += " " + names[i]
	}
	notes := c.words(names...)
	close(letGo)
	c.end()
	for i, n := range notes {
		if n.Result != want || n.Latest != (i < 19) {
			h.Errorf("%s was answered with %q, latest %v", n.Word, n.Result, n.Latest)
		}
	}
	var files []string
	for _, location := range h.files.Locations() {
		files = append(files, wordOf(location))
	}
	if diff := cmp.Diff(append([]string{"first"}, names...), files); diff != "" {
		h.Errorf("files (-want +got)\n%s", diff)
	}
	c.expect(want, []int{1, 20})
	for range 21 {
		r := <-h.reports
		if first := r.Batch == 1; !first && r.Batch != 20 || r.Decisions != 1 || !r.Wrote || r.Bytes == 0 {
			h.Errorf("report %+v", r)
		}
	}
}

// The files of a batch are not written one after the other.
func testFilesSideBySide(h *harness) {
	c := h.crowd(nil)
	c.words("a", "b", "c")
	var meet sync.WaitGroup
	meet.Add(3)
	h.files.FailCreate = func(string) error {
		meet.Done()
		meet.Wait()
		return nil
	}
	c.begin()
	c.end()
	c.expect("a b c", []int{3})
}

// Of 129 that wait, 128 land together.
func testBatchBounded(h *harness) {
	c := h.crowd(nil)
	var names []string
	for i := range 129 {
		names = append(names, fmt.Sprintf("w%03d", i))
	}
	c.words(names...)
	c.begin()
	c.end()
	c.expect(strings.Join(names, " "), []int{128, 1})
}

// No further operation joins a batch that has 8 MiB of files.
func testBytesBounded(h *harness) {
	c := h.crowd(nil)
	for _, w := range []string{"a", "b", "c", "d"} {
		c.come(&note{Log: theLog, Word: w, Padding: 3 << 20})
	}
	c.begin()
	c.end()
	c.expect("a b c d", []int{3, 1})
}

// What comes before a file that cannot be written lands; what comes behind is decided on the state without it.
func testUploadFailsAlone(h *harness) {
	c := h.crowd(nil)
	c.words("a", "b")
	c.come(&note{Log: theLog, Word: "c", After: "b"})
	c.words("d")
	broken := errors.New("broken disk")
	h.files.FailCreate = func(location string) error {
		if wordOf(location) == "b" {
			return broken
		}
		return nil
	}
	c.begin()
	c.end(nil, broken, errStale)
	if !errors.Is(c.all[1].err, kernel.ErrUpload) {
		h.Errorf("got %v", c.all[1].err)
	}
	c.expect("a d", []int{1, 1}, "b", "c", "d")
}

// Who is refused because of a neighbour is so when that one is durable.
func testRefusedByNeighbour(h *harness) {
	h.write("s")
	var c *crowd
	c = h.crowd(func(ctx context.Context, _ int, b store.Batch) error {
		for range 100 {
			runtime.Gosched()
		}
		if c.all[1].ended() {
			h.Error("it was refused because of what is not durable")
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("a")
	c.come(&note{Log: theLog, Word: "b", After: "s"})
	c.words("c")
	c.begin()
	c.end(nil, errStale)
	c.expect("s a c", []int{2})
}

// Who would be refused because of a neighbour is decided again when that one fails.
func testNeighbourFails(h *harness) {
	h.write("s")
	broken := errors.New("broken")
	c := h.crowd(func(ctx context.Context, n int, b store.Batch) error {
		if n == 1 {
			return broken
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("a")
	c.come(&note{Log: theLog, Word: "b", After: "s"})
	c.begin()
	c.end(broken)
	c.expect("s b", []int{1}, "a")
}

// So it is when the neighbour's batch conflicts, and that one's client has left.
func testNeighbourLeaves(h *harness) {
	h.write("s")
	var c *crowd
	c = h.crowd(func(ctx context.Context, n int, b store.Batch) error {
		if n == 1 {
			c.all[0].leave()
			return &store.ConflictError{Conds: b.Conds}
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("a")
	c.come(&note{Log: theLog, Word: "b", After: "s"})
	c.begin()
	c.end(context.Canceled)
	c.expect("s b", []int{1}, "a")
}

// Who would be refused without its neighbours, too, is answered before they are durable.
func testRefusedEarly(h *harness) {
	h.write("s")
	var c *crowd
	c = h.crowd(func(ctx context.Context, _ int, b store.Batch) error {
		h.until("the refusal", c.all[1].ended)
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("a")
	c.come(&note{Log: theLog, Word: "b", After: "of something else"})
	c.begin()
	c.end(nil, errStale)
	c.expect("s a", []int{1})
}

// So is who would lead them: another does.
func testLeaderRefused(h *harness) {
	h.write("s")
	var c *crowd
	c = h.crowd(func(ctx context.Context, _ int, b store.Batch) error {
		h.until("the refusal", c.all[0].ended)
		return h.store.Atomic.Apply(ctx, b)
	})
	c.come(&note{Log: theLog, Word: "x", After: "of something else"})
	c.words("a", "b")
	c.begin()
	c.end(errStale)
	c.expect("s a b", []int{2})
}

// Whoever has nothing to change answers with the batch's last state, like its neighbours.
func testNothingShowsLatest(h *harness) {
	c := h.crowd(nil)
	c.words("a")
	nothing := &note{Log: theLog, Nothing: true}
	c.come(nothing)
	c.words("b")
	c.begin()
	c.end()
	c.expect("a b", []int{2})
	if nothing.Result != "a b" {
		h.Errorf("who changed nothing was shown %q", nothing.Result)
	}
}

// Where no file can be written, each operation tries once.
func testAllUploadsFail(h *harness) {
	c := h.crowd(nil)
	full := errors.New("full")
	var tries atomic.Int64
	h.files.FailCreate = func(string) error {
		tries.Add(1)
		return full
	}
	c.words("a", "b", "c", "d")
	c.begin()
	c.end(kernel.ErrUpload, kernel.ErrUpload, kernel.ErrUpload, kernel.ErrUpload)
	h.files.FailCreate = nil
	if n := tries.Load(); n != 4 {
		h.Errorf("%d files were tried for 4 operations", n)
	}
	c.expect("", nil, "a", "b", "c", "d")
}

// A request that is made again while it waits is carried out once, and answered twice.
func testKeyInBatch(h *harness) {
	c := h.crowd(nil)
	c.words("a")
	first, again := &note{Log: theLog, Word: "b", Key: "key"}, &note{Log: theLog, Word: "b", Key: "key"}
	c.come(first, again)
	c.words("c")
	c.begin()
	c.end()
	if first.Result != "a b c" || again.Result != "a b" {
		h.Errorf("answered %q, and the second time %q", first.Result, again.Result)
	}
	c.expect("a b c", []int{3})
}

func testLeaderLeaves(h *harness) {
	c := h.crowd(nil)
	c.words("a", "b", "c")
	h.files.FailCreate = func(string) error {
		c.all[0].leave()
		return nil
	}
	c.begin()
	c.end()
	c.expect("a b c", []int{3})
}

// It may be too late to leave: but either the word is there, or the client hears that it is not.
func testFollowerLeavesBefore(h *harness) {
	c := h.crowd(nil)
	c.come(&note{Log: theLog, Word: "a", began: func() { c.all[1].leave() }})
	c.words("b", "c")
	c.begin()
	<-c.all[1].done
	if c.all[1].err == nil {
		c.end()
		h.expectLog("a b c")
		return
	}
	c.end(nil, context.Canceled)
	h.expectLog("a c")
}

func testLeaveDuringApply(h *harness) {
	var c *crowd
	c = h.crowd(func(ctx context.Context, _ int, b store.Batch) error {
		c.all[0].leave()
		c.all[1].leave()
		if ctx.Err() != nil {
			h.Error("the store saw a client leave")
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("a", "b", "c")
	c.begin()
	c.end()
	c.expect("a b c", []int{3})
}

func testAllLeave(h *harness) {
	c := h.crowd(nil)
	c.words("a", "b")
	h.files.FailCreate = func(string) error {
		c.all[0].leave()
		c.all[1].leave()
		return nil
	}
	c.begin()
	c.end(context.Canceled, context.Canceled)
	c.expect("", nil, "a", "b")
}

func testConflictDecidesAllAgain(h *harness) {
	c := h.crowd(func(ctx context.Context, n int, b store.Batch) error {
		if n == 1 {
			h.write("x")
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("a", "b", "c")
	c.begin()
	c.end()
	c.expect("x a b c", []int{3}, "a", "b", "c")
	for range 3 {
		if r := <-h.reports; r.Decisions != 2 || r.Conflicts != 1 || r.Batch != 3 {
			h.Errorf("report %+v", r)
		}
	}
}

// What only the second operation has read changes before the batch is applied.
func testConditionsOfAll(h *harness) {
	h.do(&add{Counter: "also", By: 10})
	c := h.crowd(func(ctx context.Context, n int, b store.Batch) error {
		if n == 1 {
			h.bump("also", 10)
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("a")
	c.come(&note{Log: theLog, Word: "b", Also: "also"})
	c.begin()
	c.end()
	c.expect("a b", []int{2}, "a", "b")
	if got := h.value("also"); got != 21 {
		h.Errorf("three additions made %d of it, want 21", got)
	}
}

// bump adds to a counter behind the kernel's back.
func (h *harness) bump(name string, by int) { h.behind(&add{Counter: name, By: by}) }

func testReserveTogether(h *harness) {
	h.do(&add{Counter: "shared", By: 0})
	const crowded, conflicts = 3, 3
	c := h.crowd(func(ctx context.Context, n int, b store.Batch) error {
		if n <= conflicts {
			h.bump("shared", 10)
			return h.store.Atomic.Apply(ctx, b)
		}
		if n == conflicts+1 { // who is back is in this batch, or waits behind it
			h.untilWaiting(crowded - len(b.Ops))
		}
		if holders, _ := h.waiters(counter("shared")); holders != len(b.Ops) {
			h.Errorf("%d of %d hold the key of the conflicts", holders, len(b.Ops))
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	for _, w := range []string{"a", "b", "c"} {
		c.come(&note{Log: theLog, Word: w, Also: "shared"})
	}
	c.begin()
	c.end()
	if c.applies > conflicts+2 {
		h.Errorf("%d batches after the conflicts: %v", c.applies-conflicts, c.batches)
	}
	h.store.apply = nil
	if got := h.value("shared"); got != conflicts*10+crowded {
		h.Errorf("shared = %d", got)
	}
}

func testUnknownToAll(h *harness) {
	asked := 0
	h.store.outcome = func(context.Context, string) (store.Outcome, error) {
		asked++
		return 0, errors.New("store is down")
	}
	c := h.crowd(func(context.Context, int, store.Batch) error { return store.ErrOutcomeUnknown })
	c.words("a", "b", "c")
	c.begin()
	c.end(store.ErrOutcomeUnknown, store.ErrOutcomeUnknown, store.ErrOutcomeUnknown)
	if asked != 1 || c.applies != 1 {
		h.Errorf("sent %d times, and asked %d times", c.applies, asked)
	}
	c.expect("", nil)
}

func testUnknownAppliedForAll(h *harness) {
	c := h.crowd(func(ctx context.Context, _ int, b store.Batch) error {
		if err := h.store.Atomic.Apply(ctx, b); err != nil {
			return err
		}
		return store.ErrOutcomeUnknown
	})
	c.words("a", "b", "c")
	c.begin()
	c.end()
	if c.applies != 1 {
		h.Errorf("sent %d times", c.applies)
	}
	c.expect("a b c", nil)
}

func testPanicIsItsOwn(h *harness) {
	c := h.crowd(nil)
	c.words("a")
	c.come(&note{Log: theLog, Word: "b", Panics: true})
	c.words("c")
	c.begin()
	c.end(nil, errPanicked)
	if text := fmt.Sprint(c.all[1].panicked); !strings.Contains(text, "boom") {
		h.Errorf("panicked with %s", text)
	}
	c.expect("a c", []int{2})
}

func testLeaderPanics(h *harness) {
	c := h.crowd(nil)
	c.come(&note{Log: theLog, Word: "a", Panics: true})
	c.words("b", "c")
	c.begin()
	c.end(errPanicked)
	got := &words{Log: theLog}
	h.do(got)
	if got.Result != "b c" && got.Result != "c b" { // they came anew
		h.Errorf("the log is %q", got.Result)
	}
}

// The batch may have been applied before the panic: nobody decides again.
func testApplyPanics(h *harness) {
	c := h.crowd(func(ctx context.Context, _ int, b store.Batch) error {
		if err := h.store.Atomic.Apply(ctx, b); err != nil {
			return err
		}
		panic("boom")
	})
	c.words("a", "b")
	c.begin()
	c.end(errPanicked, store.ErrOutcomeUnknown)
	c.expect("a b", nil)
}

// Nobody overtakes an operation on two records, and it overtakes nobody.
func testKeepsItsPlace(h *harness) {
	c := h.crowd(nil)
	c.words("a", "b")
	c.come(&pair{Logs: [2]string{theLog, "other"}, Word: "p"})
	c.words("c", "d")
	c.begin()
	c.end()
	c.expect("a b p c d", []int{2, 1, 2})
}

func testLandsAlone(h *harness) {
	c := h.crowd(nil)
	c.words("a", "b")
	c.come(&note{Log: theLog, Word: "l", Looks: true})
	c.words("c", "d")
	c.begin()
	c.end()
	c.expect("a b l c d", []int{2, 1, 2})

	c = h.crowd(nil)
	c.words("e")
	c.come(&note{Log: theLog, Erases: true})
	c.words("f", "g")
	c.begin()
	c.end()
	c.expect("f g", []int{1, 1, 2})
}

// Whose time is spent while its own file is being written fails alone.
func testDeadlineIsItsOwn(h *harness) {
	c := h.crowd(nil)
	c.words("a")
	ctx, cancel := context.WithTimeout(h.ctx, shortly)
	defer cancel()
	c.comeUnder(ctx, &note{Log: theLog, Word: "b"})
	c.words("c")
	h.files.FailCreate = func(location string) error {
		if wordOf(location) == "b" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	c.begin()
	c.end(nil, kernel.ErrContended)
	c.expect("a c", []int{1, 1}, "b", "c")
}

// The uploads of a batch end with the first deadline: whose time is not spent begins again.
func testCutUpload(h *harness) {
	c := h.crowd(nil)
	c.words("a", "b")
	ctx, cancel := context.WithTimeout(h.ctx, shortly)
	defer cancel()
	c.comeUnder(ctx, &note{Log: theLog, Word: "c"})
	var once sync.Once
	h.files.FailCreate = func(location string) (err error) {
		if wordOf(location) == "b" {
			once.Do(func() {
				<-ctx.Done()
				err = ctx.Err()
			})
		}
		return err
	}
	c.begin()
	c.end(nil, nil, kernel.ErrContended)
	c.expect("a b", []int{1, 1}, "b", "c")
}

// Words of many writers, some made again under a key and some refused, are each in the logs
// once if they were acknowledged, and not at all if they were refused.
func testWords(h *harness) {
	k := h.kernel()
	logs := []string{theLog, "other"}
	var mu sync.Mutex
	var done [2][]string
	together(12, func(i int) {
		for j := range 10 {
			at := (i + j) % 2
			n := &note{Log: logs[at], Word: fmt.Sprintf("w%d.%d", i, j)}
			times := 1
			switch (i + 2*j) % 5 {
			case 0:
				n.Key, times = "key-"+n.Word, 2
			case 1:
				n.After = fmt.Sprintf("w%d.%d", i-1, j)
			case 2:
				n.Also = "also"
			}
			acknowledged := false
			for range times {
				again := *n
				switch err := k.Do(h.ctx, &again); {
				case err == nil:
					acknowledged = true
				case !errors.Is(err, errStale):
					h.Error(err)
				}
			}
			if acknowledged {
				mu.Lock()
				done[at] = append(done[at], n.Word)
				mu.Unlock()
			}
		}
	})
	for i, log := range logs {
		got := &words{Log: log}
		h.do(got)
		there := strings.Fields(got.Result)
		slices.Sort(there)
		slices.Sort(done[i])
		if diff := cmp.Diff(done[i], there); diff != "" {
			h.Errorf("log %s (-acknowledged +there)\n%s", log, diff)
		}
	}
}
