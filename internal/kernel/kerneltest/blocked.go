package kerneltest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock/locktest"
	"github.com/landfast/landfast/internal/store"
)

// blockedCases are about batches in whose way others' locks stand.
var blockedCases = []suiteCase{
	{"a blocked batch is sent again as it is", testBlocked},
	{"a blocked batch that meets a conflict is decided again", testBlockedThenConflict},
	{"a blocked batch with an unknown outcome is asked about", testBlockedThenUnknown},
	{"a batch that is blocked too often is contended", testBlockedTooOften},
	{"a batch that is blocked at all is contended where it may not wait", testBlockedNever},
	{"a batch that is blocked for too long is contended", testBlockedTooLong},
	{"a blocked batch ends with the deadline", testBlockedDeadline},
	{"a client that leaves ends the wait of its blocked batch", testBlockedLeaves},
}

// blockedTogetherCases are those of several operations in one batch.
var blockedTogetherCases = []suiteCase{
	{"a blocked batch waits until the first deadline", testBlockedFirstDeadline},
	{"a blocked batch that nobody waits for is not sent again", testBlockedAllLeave},
}

const (
	anHour = time.Hour // longer than any case takes
	// shortly is a deadline that passes while a case waits for it, and not before it has come so far, on any store.
	shortly = 1500 * time.Millisecond
)

// blocks makes the store block the first n batches, each for so long, and keeps the ids of all that it sees.
func (h *harness) blocks(n int, d time.Duration) (ids *[]string) {
	ids = new([]string)
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		*ids = append(*ids, b.ID)
		if len(*ids) <= n {
			return &store.BlockedError{By: "another", Until: time.Now().Add(d)}
		}
		return h.store.Atomic.Apply(ctx, b)
	}
	return ids
}

// lastReport is that of the operation that ended last.
func (h *harness) lastReport() (last kernel.Report) {
	for {
		select {
		case last = <-h.reports:
		default:
			return last
		}
	}
}

// A batch that is blocked three times is the same each time, decided once, and no file is written twice.
func testBlocked(h *harness) {
	ids := h.blocks(3, time.Millisecond)
	if err := h.kernel().Do(h.ctx, &add{Counter: "c", By: 1, File: true}); err != nil {
		h.Fatal(err)
	}
	if files := h.files.Locations(); len(files) != 1 {
		h.Errorf("files %q, want one", files)
	}
	if len(*ids) != 4 || (*ids)[0] != (*ids)[3] {
		h.Errorf("batches %q, want one four times", *ids)
	}
	if r := h.lastReport(); r.Decisions != 1 || r.Blocked != 3 || r.Conflicts != 0 {
		h.Errorf("report %+v", r)
	}
}

// What blocked it has changed what it was decided on.
func testBlockedThenConflict(h *harness) {
	applies := 0
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		if applies++; applies == 1 {
			h.store.apply = nil
			h.do(&add{Counter: "c", By: 1})
			return &store.BlockedError{By: "another", Until: time.Now().Add(time.Millisecond)}
		}
		return h.store.Atomic.Apply(ctx, b)
	}
	op, k := &add{Counter: "c", By: 1, File: true}, h.kernel()
	h.queue = locktest.Yes{} // the other comes from another process
	if err := k.Do(h.ctx, op); err != nil || op.Result != 2 {
		h.Errorf("made %d, %v", op.Result, err)
	}
	if r := h.lastReport(); r.Decisions != 2 || r.Blocked != 1 || r.Conflicts != 1 {
		h.Errorf("report %+v", r)
	}
}

// A reply that is lost after a wait is as any other.
func testBlockedThenUnknown(h *harness) {
	applies := 0
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		if applies++; applies == 1 {
			return &store.BlockedError{By: "another", Until: time.Now()}
		}
		return errors.Join(store.ErrOutcomeUnknown, h.store.Atomic.Apply(ctx, b))
	}
	h.do(&add{Counter: "c", By: 1})
	if got := h.value("c"); applies != 2 || got != 1 {
		h.Errorf("applied %d times, c = %d", applies, got)
	}
}

// contended runs an operation that is blocked for ever. It ends as contended, with nothing applied, its file lost
// and known to be; the error says what was waited for.
func (h *harness) contended(ctx context.Context, opt kernel.Options, want error) {
	h.Helper()
	h.wantContended(h.addInVain(ctx, opt), want)
}

// vain is what came of an operation that was blocked for ever.
type vain struct {
	err   error
	files []string      // that it has written
	lost  []kernel.File // that were said to be
}

func (h *harness) addInVain(ctx context.Context, opt kernel.Options) (v vain) {
	before := h.files.Locations()
	opt.Lost = func(files []kernel.File) { v.lost = append(v.lost, files...) }
	v.err = kernel.New(opt).Do(ctx, &add{Counter: "c", By: 1, File: true})
	v.files = slices.DeleteFunc(h.files.Locations(), func(f string) bool { return slices.Contains(before, f) })
	return v
}

func (h *harness) wantContended(v vain, want error) {
	h.Helper()
	if !errors.Is(v.err, want) || errors.Is(v.err, store.ErrOutcomeUnknown) {
		h.Errorf("got %v, want %v", v.err, want)
	}
	if errors.Is(want, kernel.ErrBlocked) && (!errors.Is(v.err, kernel.ErrContended) || !strings.Contains(v.err.Error(), "blocked by another, ")) {
		h.Errorf("got %v", v.err)
	}
	if len(v.files) != 1 || len(v.lost) != 1 || v.lost[0].Location != v.files[0] {
		h.Errorf("files %q, lost %v", v.files, v.lost)
	}
	h.store.apply = nil
	if got := h.value("c"); got != 0 {
		h.Errorf("c = %d", got)
	}
}

func testBlockedTooOften(h *harness) {
	opt, ids := h.options(), h.blocks(1000, 0)
	opt.BlockedRetries = 2
	h.contended(h.ctx, opt, kernel.ErrBlocked)
	if len(*ids) != 3 {
		h.Errorf("sent %d times, want 3", len(*ids))
	}
}

func testBlockedNever(h *harness) {
	opt, ids := h.options(), h.blocks(1000, anHour)
	opt.BlockedRetries = -1
	h.contended(h.ctx, opt, kernel.ErrBlocked)
	if len(*ids) != 1 {
		h.Errorf("sent %d times, want once", len(*ids))
	}
}

// It is sent once more when the time is up.
func testBlockedTooLong(h *harness) {
	opt, ids := h.options(), h.blocks(1000, anHour)
	opt.BlockedLimit = time.Second / 2 // more than what comes before the wait, however busy the machine is
	h.contended(h.ctx, opt, kernel.ErrBlocked)
	if len(*ids) != 2 {
		h.Errorf("sent %d times, want twice", len(*ids))
	}
}

// How long it takes until the batch is sent for the first time is the store's and the machine's: there is ever more time, until
// it was sent before the deadline.
func testBlockedDeadline(h *harness) {
	for limit := 20 * time.Millisecond; ; limit *= 2 {
		ids := h.blocks(1000, anHour)
		ctx, cancel := context.WithTimeout(h.ctx, limit)
		v := h.addInVain(ctx, h.options())
		cancel()
		if len(*ids) > 0 {
			h.wantContended(v, kernel.ErrContended)
			return
		}
		if !errors.Is(v.err, kernel.ErrContended) || h.ctx.Err() != nil {
			h.Fatalf("before it was sent: %v", v.err)
		}
	}
}

func testBlockedLeaves(h *harness) {
	ctx, leave := context.WithCancel(h.ctx)
	h.store.apply = func(context.Context, store.Batch) error {
		time.AfterFunc(time.Millisecond, leave)
		return &store.BlockedError{By: "another", Until: time.Now().Add(anHour)}
	}
	h.contended(ctx, h.options(), context.Canceled)
}

// Whose time is up is answered, and whose is not is decided again without it.
func testBlockedFirstDeadline(h *harness) {
	c := h.crowd(func(ctx context.Context, n int, b store.Batch) error {
		if n == 1 {
			return &store.BlockedError{By: "another", Until: time.Now().Add(anHour)}
		}
		return h.store.Atomic.Apply(ctx, b)
	})
	c.words("a")
	ctx, cancel := context.WithTimeout(h.ctx, shortly)
	defer cancel()
	c.comeUnder(ctx, &note{Log: theLog, Word: "b"})
	c.words("c")
	c.begin()
	c.end(nil, kernel.ErrContended)
	c.expect("a c", []int{2}, "a", "b", "c")
}

func testBlockedAllLeave(h *harness) {
	var c *crowd
	applies := 0
	c = h.crowd(func(_ context.Context, n int, _ store.Batch) error {
		applies = n
		for _, m := range c.all {
			m.leave()
		}
		return &store.BlockedError{By: "another", Until: time.Now().Add(time.Millisecond)}
	})
	c.words("a", "b")
	c.begin()
	c.end(context.Canceled, context.Canceled)
	c.expect("", nil, "a", "b")
	if applies != 1 {
		h.Errorf("sent %d times, want once", applies)
	}
}
