package journal

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// deafStore gives no record of a level while it fails.
type deafStore struct {
	store.Atomic
	level key.Level
	fails *atomic.Bool
}

func (s deafStore) Get(ctx context.Context, k key.Key) (store.Record, error) {
	if k.Level == s.level && s.fails.Load() {
		return store.Record{}, errDisk
	}
	return s.Atomic.Get(ctx, k)
}

// faultsOfRecover begin when the power is back. What each returns ends it.
var faultsOfRecover = map[string]func(h *harness) (mend func()){
	"a file cannot be written": func(h *harness) func() {
		var fails atomic.Bool
		fails.Store(true)
		h.disk.failRewrite = func(string) error {
			if fails.Load() {
				return errDisk
			}
			return nil
		}
		return func() { fails.Store(false) }
	},
	"the marker cannot be read":    func(h *harness) func() { h.disk.failing(errDisk); return func() { h.disk.failing(nil) } },
	"the warehouse cannot be read": func(h *harness) func() { return deafen(h, key.Warehouse) },
	"the marker cannot be read, nor then the record": func(h *harness) func() {
		mendDisk, mendStore := func() { h.disk.failing(nil) }, deafen(h, key.Unsynced)
		h.disk.failing(errDisk)
		return func() { mendDisk(); mendStore() }
	},
}

func deafen(h *harness, level key.Level) (mend func()) {
	var fails atomic.Bool
	fails.Store(true)
	h.opt.Store = deafStore{h.opt.Store, level, &fails}
	return func() { fails.Store(false) }
}

// Property: a fault that passes costs the start some time, and no file.
func TestRecoverInsists(t *testing.T) {
	for name, fault := range faultsOfRecover {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, Options{})
				a, b := file("a", "aaa"), file("b", "bbb")
				h.commit(a)
				h.commit(b)
				h.disk.crash(func(string) int { return 1 })
				h.restart(Options{})
				time.AfterFunc(recoverLimit/2, fault(h))
				if err := h.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				h.wantSafe(a, b)
				h.want(0, 0)
				if strings.Contains(h.log.String(), "ERROR") {
					t.Errorf("the log has an error:\n%s", &h.log)
				}
			})
		})
	}
}

// Properties: a fault that lasts holds up the start for so long and no longer, whatever else waits for a volume; the
// operator is told which warehouse it is; Run goes on trying.
func TestRecoverGivesUp(t *testing.T) {
	for name, fault := range faultsOfRecover {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, Options{})
				f := file("a", "aaa")
				h.commit(f)
				h.disk.crash(func(string) int { return 1 })
				h.restart(Options{})
				mend := fault(h)
				began := time.Now()
				if err := h.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != recoverLimit {
					t.Errorf("it took %v; want %v", took, recoverLimit)
				}
				h.want(1, 0)
				if log := h.log.String(); !strings.Contains(log, "ERROR") || !strings.Contains(log, "warehouses=[w]") {
					t.Errorf("the log has no error that names the warehouse:\n%s", log)
				}
				defer run(h)()
				mend()
				time.Sleep(time.Second)
				synctest.Wait()
				h.wantSafe(f)
				h.want(0, 0)
			})
		})
	}
}

// Property: the start waits neither for a volume that is not mounted nor for a newer version.
func TestRecoverDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		h.commit(file("a", "aaa"))
		k := key.ForUnsynced("0")
		h.apply(store.Batch{ID: "0", Conds: []store.Cond{store.Is(k, store.Absent)}, Writes: []store.Write{{Key: k, ID: "0", Value: []byte{format + 1}}}})
		h.disk.mount("")
		h.restart(Options{})
		began := time.Now()
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		h.want(2, 0)
	})
}

// Property: who stops the start need not wait for the disk.
func TestRecoverIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		h.commit(file("a", "aaa"))
		h.disk.failing(errDisk)
		h.restart(Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Recover(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Recover: %v", err)
		}
	})
}
