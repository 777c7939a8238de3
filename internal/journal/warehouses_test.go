package journal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// remade deletes the warehouse and makes another of its name.
func remade(h *harness, id string) {
	h.t.Helper()
	w, err := h.store.Get(context.Background(), key.ForWarehouse("w"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.apply(store.Batch{ID: newID(), Conds: []store.Cond{store.Is(w.Key, w.Version)}, Writes: []store.Write{{Key: w.Key, ID: id}}})
}

// Property: a purge waits for what a start could not write in its warehouse, and not for that of others nor for what
// nobody can read.
func TestSettledWaitsForItsWarehouse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		h.commit(file("a", "a"))
		k := key.ForUnsynced("0")
		h.apply(store.Batch{ID: "0", Conds: []store.Cond{store.Is(k, store.Absent)}, Writes: []store.Write{{Key: k, ID: "0", Value: []byte{format + 1}}}})
		h.disk.mount("")
		h.restart(Options{})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.want(2, 0)
		defer run(h)()
		if err := h.Settled(t.Context(), "v"); err != nil {
			t.Errorf("in another warehouse: %v", err)
		}
		if err := h.Settled(t.Context(), "w"); !errors.Is(err, errRiding) {
			t.Errorf("while its volume is away: %v; want errRiding", err)
		}
		h.disk.mount("w-id")
		if err := h.Settled(t.Context(), "w"); err != nil {
			t.Errorf("beside a record that cannot be read: %v", err)
		}
		h.want(1, 0)
	})
}

// Property: nor does it wait for files of others that a failed Sync has left to be written anew.
func TestSettledBesideSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		f := file("a", "a")
		h.commit(f)
		h.disk.failSync = errDisk
		h.disk.mount("")
		defer run(h)()
		time.Sleep(time.Second)
		synctest.Wait()
		h.want(1, len(f.Data))
		if err := h.Settled(t.Context(), "v"); err != nil {
			t.Errorf("in another warehouse: %v", err)
		}
		if err := h.Settled(t.Context(), "w"); !errors.Is(err, errRiding) {
			t.Errorf("in its own: %v; want errRiding", err)
		}
		h.disk.mount("w-id")
	})
}

// Properties: files of a warehouse that was made again elsewhere are nobody's; where the new one has the root of the old
// they are written, whatever the journal knew before.
func TestWarehouseMadeAgain(t *testing.T) {
	t.Run("elsewhere", func(t *testing.T) {
		h := newHarness(t, Options{})
		f := file("a", "a")
		h.commit(f)
		h.disk.crash(func(string) int { return -1 })
		remade(h, "other-id")
		h.restart(Options{})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.want(0, 0)
		if there, _ := h.disk.Exists(t.Context(), scope, f.Location); there {
			t.Error("the file is back")
		}
	})
	t.Run("in the same root", func(t *testing.T) {
		h := newHarness(t, Options{})
		before, after := file("a", "a"), file("b", "b")
		h.commit(before)
		remade(h, "other-id")
		h.disk.mount("other-id")
		h.commit(after)
		h.disk.crash(func(string) int { return -1 })
		h.restart(Options{})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.want(0, 0)
		h.wantSafe(before, after)
	})
	t.Run("in the same root, which is not mounted then", func(t *testing.T) {
		h := newHarness(t, Options{})
		h.commit(file("a", "a"))
		h.settle(t.Context())
		remade(h, "other-id")
		h.disk.mount("other-id")
		f := file("b", "b")
		h.commit(f)
		h.disk.crash(func(string) int { return -1 })
		h.disk.mount("")
		h.restart(Options{})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.want(1, 0)
		h.disk.mount("other-id")
		h.look(t.Context())
		h.want(0, 0)
		h.wantSafe(f)
	})
}
