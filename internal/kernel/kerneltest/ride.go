package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// rideCases are about files whose bytes ride in the batch that names them.
var rideCases = []suiteCase{
	{"a file that rides survives with its batch", testRides},
	{"a file that is too large to ride is durable before its batch", testTooLargeToRide},
	{"what a batch that came to nothing took of the journal is free again", testRoom},
	{"files ride as long as they are settled", testRoomForMany},
}

// rideTogetherCases are those with several operations in a batch.
var rideTogetherCases = []suiteCase{
	{"the files of a batch that is cut short ride again", testRideAgain},
	{"a batch carries the files of all its operations", testAllRide},
}

// settleOften is so short that a case sees many files settled.
const settleOften = time.Millisecond

// ride runs a case with a journal, and then takes the power.
func (h *harness) ride(c suiteCase) {
	w := key.ForWarehouse("w")
	b := store.Batch{ID: newBatchID(), Conds: []store.Cond{store.Is(w, store.Absent)}, Writes: []store.Write{{Key: w, ID: "w-id"}}}
	if err := h.store.Atomic.Apply(h.ctx, b); err != nil {
		h.Fatal(err)
	}
	h.open(journal.Options{Interval: settleOften})
	h.settle()
	c.run(h)
	before := h.named()
	h.loseFiles()
	h.open(journal.Options{})
	if diff := cmp.Diff(before, h.named()); diff != "" {
		h.Errorf("what the records name, before the power was lost and after (-before +after)\n%s", diff)
	}
}

func newBatchID() string { return uuid.Must(uuid.NewV7()).String() }

// open gives the next kernel another journal, as a start does. Its Run is settle's.
func (h *harness) open(opt journal.Options) {
	h.Helper()
	h.stop()
	opt.Store, opt.Files, opt.NewID, opt.Log = h.store.Atomic, h.files, newBatchID, slog.New(slog.DiscardHandler)
	h.journal = journal.New(opt)
	if err := h.journal.Recover(h.ctx); err != nil {
		h.Fatal(err)
	}
}

// settle runs the journal.
func (h *harness) settle() {
	ctx, end := context.WithCancel(h.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.journal.Run(ctx)
	}()
	h.settled = func() { end(); <-done }
}

// stop ends the journal's Run, if it runs.
func (h *harness) stop() {
	if h.settled != nil {
		h.settled()
		h.settled = nil
	}
}

// loseFiles takes the power, and with it what is not durable and the process.
func (h *harness) loseFiles() {
	h.files.PowerOff()
	h.stop()
	h.files.PowerOn()
}

// named are the files that records name, and what a reader finds in them.
func (h *harness) named() map[string]string {
	h.Helper()
	records, err := h.store.Atomic.List(h.ctx, key.TableNamesIn("w", []string{"n"}), "", 10_000)
	if err != nil {
		h.Fatal(err)
	}
	found := map[string]string{}
	for _, r := range records {
		location := string(r.Value)
		if !strings.HasPrefix(location, testScope[0].URI) {
			continue
		}
		data, err := h.files.Read(h.ctx, testScope, location, 64<<20)
		if err != nil {
			h.Errorf("%v names a file that cannot be read: %v", r.Key, err)
		}
		found[location] = string(data)
	}
	return found
}

// rides does an operation that writes one file, and tells whether the file rode.
func (h *harness) rides() (rode bool) {
	h.Helper()
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		rode = slices.ContainsFunc(b.Writes, func(w store.Write) bool { return w.Key.Level == key.Unsynced })
		return h.store.Atomic.Apply(ctx, b)
	}
	h.do(&add{Counter: "rider", By: 1, File: true})
	h.store.apply = nil
	return rode
}

// When Apply is called the file is there, and it needs nothing but the batch.
func testRides(h *harness) {
	h.open(journal.Options{})
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		files := h.files.Locations()
		if len(files) != 1 || h.files.Durable(files[0]) {
			h.Errorf("files %q at Apply", files)
		}
		err := h.store.Atomic.Apply(ctx, b)
		h.files.PowerOff()
		return err
	}
	n := &note{Log: theLog, Word: "a", Padding: 1000}
	if err := h.kernel().Do(h.ctx, n); err != nil {
		h.Fatal(err)
	}
	h.store.apply = nil
	h.files.PowerOn()
	if files := h.files.Locations(); len(files) > 0 {
		h.Errorf("the loss of power has left %q", files)
	}
	h.open(journal.Options{})
	for _, location := range h.files.Locations() {
		data, err := h.files.Read(h.ctx, testScope, location, 64<<20)
		if want := "a" + strings.Repeat(".", n.Padding); err != nil || string(data) != want {
			h.Errorf("%d bytes were written anew, %v; want %d", len(data), err, len(want))
		}
	}
	h.expectLog("a")
}

func testTooLargeToRide(h *harness) {
	h.open(journal.Options{MaxFile: 4})
	h.store.apply = func(ctx context.Context, b store.Batch) error {
		if files := h.files.Locations(); len(files) != 1 || !h.files.Durable(files[0]) {
			h.Errorf("files %q at Apply, not all durable", files)
		}
		return h.store.Atomic.Apply(ctx, b)
	}
	h.do(&note{Log: theLog, Word: "words"})
}

// The journal has room for one file. Whatever happened to a batch, the next may ride.
func testRoom(h *harness) {
	broken := errors.New("broken")
	first := func(err error) func(context.Context, store.Batch) error { // of the first Apply
		applies := 0
		return func(ctx context.Context, b store.Batch) error {
			if applies++; applies == 1 {
				return err
			}
			return h.store.Atomic.Apply(ctx, b)
		}
	}
	silent := func(context.Context, string) (store.Outcome, error) { return 0, broken }
	for _, c := range []struct {
		name    string
		apply   func(context.Context, store.Batch) error
		outcome func(context.Context, string) (store.Outcome, error)
		create  func(string) error
		leaves  bool
		err     error // nil: it lands in the end, and rides
		same    bool  // as the batch that it was
	}{
		{name: "a conflict", apply: first(&store.ConflictError{})},
		{name: "unknown, and was not applied", apply: first(store.ErrOutcomeUnknown)},
		{name: "blocked", apply: first(&store.BlockedError{By: "another", Until: time.Now()}), same: true},
		{name: "a fault of the store", apply: first(broken), err: broken},
		{name: "unknown for good", apply: first(store.ErrOutcomeUnknown), outcome: silent, err: store.ErrOutcomeUnknown},
		{name: "a failed upload", create: func(string) error { return broken }, err: kernel.ErrUpload},
		{name: "a client that leaves", leaves: true, err: context.Canceled},
		{name: "a panic in an upload", create: func(string) error { panic("boom") }, err: errPanicked},
		{name: "a panic in Apply", apply: func(context.Context, store.Batch) error { panic("boom") }, err: errPanicked},
	} {
		h.open(journal.Options{MaxBytes: 1})
		ctx, leave := context.WithCancel(h.ctx)
		h.store.apply, h.store.outcome, h.files.FailCreate = c.apply, c.outcome, c.create
		k, before := h.kernel(), h.files.Locations()
		op := &add{Counter: "c", By: 1, File: true, decided: func() {
			if c.leaves {
				leave()
			}
		}}
		err := func() (err error) {
			defer func() {
				if recover() != nil {
					err = errPanicked
				}
			}()
			return k.Do(ctx, op)
		}()
		leave()
		h.store.apply, h.store.outcome, h.files.FailCreate = nil, nil, nil
		if !errors.Is(err, c.err) {
			h.Errorf("%s: got %v, want %v", c.name, err, c.err)
		}
		if c.err != nil {
			if !h.rides() {
				h.Errorf("%s: the next file does not ride", c.name)
			}
			continue
		}
		riding := 0
		for _, location := range h.files.Locations() {
			if !slices.Contains(before, location) && !h.files.Durable(location) {
				riding++
			}
		}
		want := 2 // that of the decision which came to nothing, and that of the batch
		if c.same {
			want = 1
		}
		if riding != want {
			h.Errorf("%s: %d files ride, want %d", c.name, riding, want)
		}
		if h.rides() {
			h.Errorf("%s: more rides than may", c.name)
		}
	}
}

// There is room for one file, again and again.
func testRoomForMany(h *harness) {
	h.open(journal.Options{MaxBytes: 1, Interval: time.Hour}) // it hurries when half of its room is taken
	h.settle()
	for i := range 50 {
		if !h.rides() {
			h.Fatalf("file %d does not ride", i)
		}
		if err := h.journal.Settled(h.ctx, "w"); err != nil {
			h.Fatal(err)
		}
		for _, location := range h.files.Locations() {
			if !h.files.Durable(location) {
				h.Errorf("%s is settled, and not durable", location)
			}
		}
	}
}

// There is room for all files, those included that are made twice, and for no further one.
func testRideAgain(h *harness) {
	h.open(journal.Options{MaxBytes: len("a") + len("a b") + len("a b c") + len("a b c d")})
	c := h.crowd(nil)
	c.words("a", "b", "c", "d")
	broken := errors.New("broken disk")
	h.files.FailCreate = func(location string) error {
		if wordOf(location) == "b" {
			return broken
		}
		return nil
	}
	c.begin()
	c.end(nil, broken)
	c.expect("a c d", []int{1, 2}, "b", "c", "d")
	for _, location := range h.files.Locations() {
		if h.files.Durable(location) {
			h.Errorf("%s did not ride", location)
		}
	}
}

func testAllRide(h *harness) {
	h.open(journal.Options{})
	c := h.crowd(func(ctx context.Context, _ int, b store.Batch) error {
		err := h.store.Atomic.Apply(ctx, b)
		h.files.PowerOff()
		return err
	})
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("w%02d", i))
	}
	c.words(names...)
	c.begin()
	c.end()
	h.files.PowerOn()
	h.open(journal.Options{})
	c.expect(strings.Join(names, " "), []int{20})
	var there []string
	for _, location := range h.files.Locations() {
		there = append(there, wordOf(location))
	}
	if diff := cmp.Diff(names, there); diff != "" {
		h.Errorf("files that were written anew (-want +got)\n%s", diff)
	}
}
