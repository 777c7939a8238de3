package journal

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Property: what is purged stays purged, also when nobody knew the outcome of the batch that named it; and a purge does
// not wait for a look.
func TestSettledKnowsDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		stop := run(h)
		f := file("a", "aaa")
		h.create(f)
		h.batch(f)
		h.Drop([]File{f})
		began := time.Now()
		if err := h.Settled(t.Context(), "w"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		h.want(0, 0)
		h.wantSafe(f) // it may be the file of a living table as well
		h.disk.delete(f.Location)
		stop()
		h.restart(Options{})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if there, _ := h.disk.Exists(t.Context(), scope, f.Location); there {
			t.Error("the purged file is back")
		}
	})
}

// Property: a batch that is on its way is in no doubt: its files are neither written twice nor settled too early.
func TestNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		h.disk.failRewrite = func(location string) error { t.Errorf("%s is rewritten", location); return nil }
		defer run(h)()
		f := file("a", "aaa")
		h.create(f)
		id := h.batch(f)
		time.Sleep(3 * lookInterval)
		h.want(1, len(f.Data))
		if err := h.Settled(t.Context(), "w"); !errors.Is(err, errRiding) {
			t.Errorf("Settled: %v; want errRiding", err)
		}
		h.Applied(id, []File{f})
		if err := h.Settled(t.Context(), "w"); err != nil {
			t.Error(err)
		}
		h.want(0, 0)
	})
}
