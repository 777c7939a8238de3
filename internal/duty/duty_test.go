package duty_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/duty"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process makes the Roster of one process on a store that others may share, as that process's kernel sees it.
func process(db store.Atomic, owner string) *duty.Roster {
	k := kernel.New(kernel.Options{Store: db, Files: &kerneltest.Files{}, Queue: local.New(local.Options{}), CheckPurity: true, Limit: time.Minute})
	return duty.New(k, owner, slog.New(slog.DiscardHandler))
}

// live has a process prolong its duties; stop is its freezing.
func live(r *duty.Roster) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

func wantTaken(t *testing.T, r *duty.Roster, every time.Duration, names, want []string) {
	t.Helper()
	got, err := r.Take(t.Context(), every, names...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
}

// A duty is one process's at a time, as long as it lives, and another's when it is given up.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mem.New()
		a, b := process(db, "a"), process(db, "b")
		defer live(a)()
		defer live(b)()
		wantTaken(t, a, 0, []string{"x", "y"}, []string{"x", "y"})
		wantTaken(t, b, 0, []string{"x", "y", "z"}, []string{"z"})
		time.Sleep(time.Hour)
		wantTaken(t, b, 0, []string{"x"}, nil)
		for name, r := range map[string]*duty.Roster{"x": a, "y": a, "z": b} {
			if !r.Has(name) {
				t.Errorf("%s was lost", name)
			}
		}
		a.Done(t.Context(), "x")
		if a.Has("x") {
			t.Error("what was given up is still had")
		}
		wantTaken(t, b, 0, []string{"x", "y"}, []string{"x"})
		b.Done(t.Context(), "x", "y") // y is not its own
		wantTaken(t, b, 0, []string{"y"}, nil)
		a.Done(t.Context(), "y")
		b.Done(t.Context(), "z")
		if left, err := db.List(t.Context(), key.Duties(), "", 10); err != nil || len(left) > 0 {
			t.Errorf("records are left: %v, %v", left, err)
		}
	})
}

// A process that is frozen knows, when it goes on, that its duty may have another owner, before another
// can have taken it; and it takes nothing back.
func TestFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mem.New()
		a, b := process(db, "a"), process(db, "b")
		freeze := live(a)
		defer live(b)()
		wantTaken(t, a, 0, []string{"x"}, []string{"x"})
		time.Sleep(5 * time.Minute)
		freeze()
		for a.Has("x") {
			wantTaken(t, b, 0, []string{"x"}, nil)
			time.Sleep(time.Second)
		}
		for taken := []string(nil); len(taken) == 0; time.Sleep(time.Second) {
			taken, _ = b.Take(t.Context(), 0, "x")
			if time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) > 10*time.Minute {
				t.Fatal("nobody takes over")
			}
		}
		defer live(a)()
		time.Sleep(time.Minute)
		if a.Has("x") || !b.Has("x") {
			t.Errorf("after thawing a has it: %v, b has it: %v", a.Has("x"), b.Has("x"))
		}
		a.Done(t.Context(), "x")
		wantTaken(t, a, 0, []string{"x"}, nil)
	})
}

// What comes again is done once in each interval, by whoever comes first.
func TestRecurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mem.New()
		a, b := process(db, "a"), process(db, "b")
		wantTaken(t, a, time.Hour, []string{"x"}, []string{"x"})
		a.Recurs(t.Context(), "x")
		time.Sleep(59 * time.Minute)
		wantTaken(t, b, time.Hour, []string{"x"}, nil)
		wantTaken(t, a, time.Hour, []string{"x"}, nil)
		time.Sleep(time.Minute)
		wantTaken(t, b, time.Hour, []string{"x"}, []string{"x"})
	})
}

// A process that is alone has every duty, and writes nothing.
func TestAlone(t *testing.T) {
	var r *duty.Roster
	wantTaken(t, r, time.Hour, []string{"x"}, []string{"x"})
	r.Recurs(t.Context(), "x")
	wantTaken(t, r, time.Hour, []string{"x"}, []string{"x"})
	r.Done(t.Context(), "x")
	r.Run(t.Context())
	if !r.Has("x") {
		t.Error("a duty is missing")
	}
}
