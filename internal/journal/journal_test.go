package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

// run starts Run; stop ends it and waits.
func run(h *harness) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	return func() { cancel(); <-done }
}

// Properties: a file is there as soon as it is made, its bytes are in the store with the batch, and after an
// interval it is durable and nothing rides.
func TestRide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observed []int
		h := newHarness(t, Options{Observe: func(files, inFlight int, _ time.Duration) { observed = append(observed, files, inFlight) }})
		defer run(h)()
		a, b, c := file("a", "\x00\xff"), file("b", ""), file("c", "ccc")
		h.commit(a, b)
		h.create(c)
		h.want(1, 5)
		h.wantUnsafe(a)
		time.Sleep(time.Second)
		synctest.Wait()
		h.wantSafe(a, b)
		h.want(0, 3)
		h.Applied(h.batch(c), []File{c})
		time.Sleep(time.Second)
		synctest.Wait()
		h.want(0, 0)
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]int{2, 3, 1, 0}, observed); diff != "" {
			t.Errorf("observed files and bytes (-want +got):\n%s", diff)
		}
	})
}

// Property: files whose batch came to nothing are synced too, which lets go of their directories, and then nothing is.
func TestSyncWithoutBatch(t *testing.T) {
	h := newHarness(t, Options{Observe: func(int, int, time.Duration) { t.Error("observed") }})
	f := file("a", "a")
	h.create(f)
	h.Drop([]File{f})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	h.settle(canceled)
	h.wantUnsafe(f)
	h.settle(t.Context())
	h.wantSafe(f)
	h.disk.failSync = errDisk
	h.settle(t.Context())
	if h.disk.failSync == nil {
		t.Error("there was nothing to sync")
	}
}

// Property: a clean stop leaves no record, though the disk takes its time.
func TestCleanStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Interval: time.Hour})
		h.disk.syncs = make(chan struct{})
		stop := run(h)
		h.commit(file("a", "a"))
		time.AfterFunc(time.Second, func() { h.disk.syncs <- struct{}{} })
		stop()
		h.want(0, 0)
	})
}

// Properties: no more rides than may; what asks for more is refused and not kept waiting; when half of the room is taken
// nobody waits for the interval.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Interval: time.Hour, MaxBytes: 10})
		h.disk.syncs = make(chan struct{})
		stop := run(h)
		h.commit(file("a", "12345"))
		synctest.Wait()
		h.commit(file("b", "12345"))
		synctest.Wait() // Run is in Sync, for a and b or for what it was too early for
		if h.Admit(t.Context(), file("c", "1")) {
			t.Error("more rides than may")
		}
		close(h.disk.syncs)
		synctest.Wait()
		h.want(0, 0)
		h.create(file("c", "1234567890"))
		h.Drop([]File{file("c", "1234567890")})
		h.want(0, 0)
		stop()
	})
}

// Property: only a file rides that Recover could write anew, and that is small.
func TestAdmit(t *testing.T) {
	for name, c := range map[string]struct {
		file   File
		change func(h *harness)
	}{
		"too large":               {file("a", "12345"), nil},
		"outside the scope":       {File{Warehouse: "w", Scope: scope, Location: "file:///elsewhere/f"}, nil},
		"no warehouse":            {File{Warehouse: "v", Scope: scope, Location: root.URI + "/f"}, nil},
		"a root without a marker": {File{Warehouse: "w", Scope: blob.Scope{{URI: "file:///b", Dir: "/b"}}, Location: "file:///b/f"}, nil},
		"not mounted":             {file("a", "a"), func(h *harness) { h.disk.mark = "" }},
		"nothing is deferred":     {file("a", "a"), func(h *harness) { h.disk.rigid = true }},
		"twice":                   {file("a", "a"), func(h *harness) { h.create(file("a", "a")) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{MaxFile: 4})
			if c.change != nil {
				c.change(h)
			}
			h.mu.Lock()
			before := h.inFlight
			h.mu.Unlock()
			for range 2 { // the second answer is a remembered one
				if h.Admit(t.Context(), c.file) {
					t.Error("it may ride")
				}
			}
			h.want(0, before)
		})
	}
}

// Property: an answer that was no answer is not remembered, and another one for a minute.
func TestAdmitAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if h.Admit(canceled, file("a", "a")) {
			t.Error("admitted by nobody")
		}
		h.create(file("a", "a"))
		h.restart(Options{})
		h.disk.mount("")
		defer run(h)()
		if h.Admit(t.Context(), file("b", "b")) {
			t.Error("admitted to a volume that is not mounted")
		}
		h.disk.mount("w-id")
		time.Sleep(lookInterval)
		synctest.Wait()
		h.create(file("b", "b"))
	})
}

// Property: a file that could not be made takes no room.
func TestCreateFails(t *testing.T) {
	h := newHarness(t, Options{})
	f := file("a", "first")
	h.create(f)
	h.Drop([]File{f})
	if !h.Admit(t.Context(), f) {
		t.Fatal("not admitted")
	}
	if err := h.Create(t.Context(), f); !errors.Is(err, blob.ErrExists) {
		t.Errorf("Create: %v; want ErrExists", err)
	}
	h.Drop([]File{f}) // does no harm
	h.want(0, 0)
}

// Properties: after a failed Sync every file that was made before it is written anew, though its batch was applied later and
// though another Sync succeeded meanwhile, except a deleted one; and its record stays until that worked.
func TestSyncFails(t *testing.T) {
	h := newHarness(t, Options{})
	a, b, gone, later := file("a", "a"), file("b", "b"), file("gone", "gone"), file("later", "later")
	h.commit(a, gone)
	h.commit(b)
	h.create(later)
	h.disk.delete(gone.Location)
	h.disk.failSync = errDisk
	h.disk.failRewrite = func(location string) error {
		if location == b.Location {
			return errDisk
		}
		return nil
	}
	h.settle(t.Context())
	h.wantSafe(a)
	h.want(1, len("b")+len("later"))
	h.Applied(h.batch(later), []File{later})
	h.settle(t.Context())
	h.wantSafe(later)
	h.want(1, len("b"))
	h.disk.failRewrite = nil
	h.settle(t.Context())
	h.wantSafe(b)
	h.want(0, 0)
	if there, _ := h.disk.Exists(t.Context(), scope, gone.Location); there {
		t.Error("a deleted file is back")
	}
	if n := strings.Count(h.log.String(), "could not be written anew"); n != 1 {
		t.Errorf("the log complains %d times:\n%s", n, &h.log)
	}
}

// Properties: a removal that fails is tried again, one by one with what else is due, and one that was done though nobody
// knew it ends well.
func TestRemovalFails(t *testing.T) {
	for name, fault := range map[string]mem.Fault{
		"full":                 {Err: store.ErrFull},
		"unknown, not applied": {Err: store.ErrOutcomeUnknown},
		"unknown, applied":     {Err: store.ErrOutcomeUnknown, Applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			h.commit(file("a", "a"), file("b", "b"))
			h.fault = func(store.Batch) mem.Fault { return fault }
			h.settle(t.Context())
			h.commit(file("c", "c"))
			h.mu.Lock()
			if h.inFlight != 3 {
				t.Errorf("%d bytes ride", h.inFlight)
			}
			h.mu.Unlock()
			h.fault = nil
			h.disk.failSync = errDisk // which has the records read again
			h.settle(t.Context())
			h.want(0, 0)
		})
	}
}

// Property: more records than one batch may remove are removed.
func TestManyRecords(t *testing.T) {
	h := newHarness(t, Options{})
	for i := range removeMax + pageMax + 1 {
		h.commit(file(fmt.Sprint(i), "x"))
	}
	removals := 0
	h.fault = func(store.Batch) mem.Fault { removals++; return mem.Fault{} }
	h.settle(t.Context())
	h.want(0, 0)
	if removals != 2 {
		t.Errorf("%d removals", removals)
	}
	for i := range 3 * pageMax {
		h.commit(file(fmt.Sprint("again", i), "x"))
	}
	h.disk.crash(func(string) int { return -1 })
	h.restart(Options{})
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.want(0, 0)
	for i := range 3 * pageMax {
		h.wantSafe(file(fmt.Sprint("again", i), "x"))
	}
}

// Properties: the record of a batch whose outcome nobody knew is found, its files are made durable and it is removed; a deleted
// file stays deleted; a record that is on its way to being applied is let alone.
func TestDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Interval: lookInterval / 2})
		rewrites := 0
		h.disk.failRewrite = func(string) error { rewrites++; return nil }
		defer run(h)()
		a, gone, slow := file("a", "a"), file("gone", "gone"), file("slow", "slow")
		h.create(a, gone)
		h.batch(a, gone)
		h.Drop([]File{a, gone})
		h.want(1, 0)
		h.disk.delete(gone.Location)
		time.Sleep(lookInterval + time.Second) // the first look sees it
		h.create(slow)
		id := h.batch(slow)
		time.Sleep(lookInterval)
		synctest.Wait()
		h.wantSafe(a)
		h.want(1, len("slow"))
		if rewrites != 1 {
			t.Errorf("%d files were rewritten", rewrites)
		}
		h.Applied(id, []File{slow})
		time.Sleep(lookInterval)
		synctest.Wait()
		h.wantSafe(slow)
		h.want(0, 0)
		if there, _ := h.disk.Exists(t.Context(), scope, gone.Location); there {
			t.Error("a deleted file is back")
		}
	})
}

// Properties: after the loss of power every file of a record is whole, whatever is left of it, and the records are gone.
func TestRecover(t *testing.T) {
	for name, keep := range map[string]int{"nothing is left": -1, "empty": 0, "short": 1, "whole": 1000} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			a, b, c := file("a", "aaa\x00"), file("b", "bbb"), file("c", "")
			h.commit(a, b)
			h.commit(c)
			h.create(file("orphan", "x"))
			h.disk.crash(func(string) int { return keep })
			h.restart(Options{})
			if err := h.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.wantSafe(a, b, c)
			h.want(0, 0)
		})
	}
}

// Property: what is deleted once Settled has returned stays deleted, whatever crashes then.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		f := file("a", "aaa")
		h.commit(f)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { h.Run(ctx) })
		began := time.Now()
		if err := h.Settled(t.Context(), "w"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		h.want(0, 0)
		cancel()
		running.Wait()
		h.commit(file("b", "bbb"))
		if err := h.Settled(t.Context(), "w"); !errors.Is(err, errRiding) { // nobody settles
			t.Errorf("got %v", err)
		}
	})
}

// Properties: what cannot be recovered holds up nobody else, keeps its record, says what to do, and is recovered
// once it can be; files of a warehouse that is gone are nobody's.
func TestRecoverLater(t *testing.T) {
	for name, c := range map[string]struct {
		before func(h *harness)
		after  func(h *harness)
		says   string
	}{
		"not mounted": {
			func(h *harness) { h.disk.mount("") }, func(h *harness) { h.disk.mount("w-id") }, "mount its volume",
		},
		"another volume": {
			func(h *harness) { h.disk.mount("v-id") }, func(h *harness) { h.disk.mount("w-id") }, "mount its volume",
		},
		"full": {
			func(h *harness) { h.disk.failRewrite = func(string) error { return blob.ErrFull } },
			func(h *harness) { h.disk.failRewrite = nil }, "no space left",
		},
		"records cannot be removed": {
			func(h *harness) { h.fault = func(store.Batch) mem.Fault { return mem.Fault{Err: store.ErrFull} } },
			func(h *harness) { h.fault = nil }, "could not be removed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, Options{})
				f := file("a", "aaa")
				h.commit(f)
				h.disk.crash(func(string) int { return 1 })
				c.before(h)
				h.restart(Options{})
				if err := h.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				h.want(1, 0)
				if !strings.Contains(h.log.String(), c.says) {
					t.Errorf("the log does not say %q:\n%s", c.says, &h.log)
				}
				h.look(t.Context())
				h.want(1, 0)
				c.after(h)
				h.look(t.Context())
				h.want(0, 0)
				h.wantSafe(f)
			})
		})
	}
	t.Run("the warehouse is gone", func(t *testing.T) {
		h := newHarness(t, Options{})
		h.commit(file("a", "aaa"))
		h.disk.crash(func(string) int { return -1 })
		w, err := h.store.Get(t.Context(), key.ForWarehouse("w"))
		if err != nil {
			t.Fatal(err)
		}
		h.disk.mount("")
		h.apply(store.Batch{ID: newID(), Conds: []store.Cond{store.Is(w.Key, w.Version)}, Writes: []store.Write{{Key: w.Key, Delete: true}}})
		h.restart(Options{})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.want(0, 0)
	})
	t.Run("damaged", func(t *testing.T) {
		h := newHarness(t, Options{})
		f := file("a", "aaa")
		h.commit(f)
		k := key.ForUnsynced("0")
		h.apply(store.Batch{ID: "0", Conds: []store.Cond{store.Is(k, store.Absent)}, Writes: []store.Write{{Key: k, ID: "0", Value: []byte{format + 1}}}})
		h.disk.crash(func(string) int { return -1 })
		h.restart(Options{})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.want(1, 0)
		h.wantSafe(f)
		if !strings.Contains(h.log.String(), k.String()) {
			t.Errorf("the log does not name the record:\n%s", &h.log)
		}
	})
}

// Property: a store that cannot be read stops the start.
func TestRecoverWithoutStore(t *testing.T) {
	h := newHarness(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Recover(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Recover: %v", err)
	}
}

// Property: whatever happens in whatever order, the loss of power at any moment leaves every file of an applied
// batch whole after Recover, unless it was deleted; and while the disk works nothing deleted comes back but by Recover.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHarness(t, Options{})
		ctx := t.Context()
		type made struct {
			batch string
			file  File
		}
		var (
			names   int
			open    []File                // created
			sent    []made                // their batch is applied, the journal does not know
			wanted  = map[string]string{} // what has to survive, by location
			deleted = map[string]bool{}
		)
		one := func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(rt, label) }
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		for range steps {
			switch rapid.SampledFrom([]string{"create", "create", "apply", "apply", "applied", "applied", "drop", "settle", "settle", "look", "fail", "delete", "crash"}).Draw(rt, "step") {
			case "create":
				names++
				f := file(fmt.Sprint(names), strings.Repeat("x", names%5))
				h.create(f)
				open = append(open, f)
			case "drop":
				if len(open) > 0 {
					i := one(len(open), "which")
					h.Drop(open[i : i+1])
					open = slices.Delete(open, i, i+1)
				}
			case "apply":
				if len(open) > 0 {
					i := one(len(open), "which")
					f := open[i]
					open = slices.Delete(open, i, i+1)
					sent = append(sent, made{h.batch(f), f})
					wanted[f.Location] = string(f.Data)
				}
			case "applied":
				if len(sent) > 0 {
					i := one(len(sent), "which")
					if rapid.Bool().Draw(rt, "known") {
						h.Applied(sent[i].batch, []File{sent[i].file})
					} else {
						h.Drop([]File{sent[i].file})
					}
					sent = slices.Delete(sent, i, i+1)
				}
			case "settle":
				h.settle(ctx)
			case "look":
				h.look(ctx)
			case "fail":
				h.disk.failSync = errDisk
			case "delete":
				if len(wanted) > 0 {
					location := slices.Sorted(maps.Keys(wanted))[one(len(wanted), "which")]
					h.disk.delete(location)
					delete(wanted, location)
					deleted[location] = true
				}
			case "crash":
				h.disk.crash(func(string) int { return rapid.IntRange(-1, 4).Draw(rt, "left") })
				h.restart(Options{})
				if err := h.Recover(ctx); err != nil {
					rt.Fatal(err)
				}
				open, sent = nil, nil
				clear(deleted) // may be back now
				h.want(0, 0)
				for location, data := range wanted {
					if got := h.disk.safely(location); got != data {
						rt.Fatalf("%s: %q after the crash; want %q", location, got, data)
					}
				}
			}
			for location := range deleted {
				if there, _ := h.disk.Exists(ctx, scope, location); there {
					rt.Fatalf("%s is back", location)
				}
			}
			if t.Failed() {
				rt.FailNow()
			}
		}
	})
}

// Property: all methods may be called at once; in the end everything is durable and nothing rides.
func TestConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers, each = 8, 100
		h := newHarness(t, Options{Interval: time.Millisecond, MaxBytes: 40})
		stop := run(h)
		var rode sync.Map
		var alone, dropped atomic.Int64
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for n := range each {
					f := file(fmt.Sprintf("%d-%d", i, n), "12345")
					if !h.Admit(t.Context(), f) {
						alone.Add(1)
						time.Sleep(time.Millisecond)
						continue
					}
					if err := h.Create(t.Context(), f); err != nil {
						t.Error(err)
					}
					if n%10 == 9 {
						h.Drop([]File{f})
						dropped.Add(1)
						continue
					}
					h.Applied(h.batch(f), []File{f})
					rode.Store(f.Location, f)
				}
			})
		}
		wg.Wait()
		stop()
		h.want(0, 0)
		n := 0
		rode.Range(func(_, f any) bool { n++; h.wantSafe(f.(File)); return true })
		if total := n + int(alone.Load()+dropped.Load()); n == 0 || total != writers*each {
			t.Errorf("%d files rode, of %d", n, total)
		}
	})
}
