package duty_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/catalog"
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
	return processBy(runner(db, time.Now), owner)
}

func processBy(run kernel.Runner, owner string) *duty.Roster {
	return duty.New(run, owner, slog.New(slog.DiscardHandler))
}

func runner(db store.Atomic, now func() time.Time) kernel.Runner {
	return kernel.New(kernel.Options{Store: db, Now: now, Files: &kerneltest.Files{}, Queue: local.New(local.Options{}), CheckPurity: true, Limit: time.Minute})
}

// wire is a way to the store on which every operation meets with what meet does. It changes only while none is on its way.
type wire struct {
	kernel.Runner
	meet func(op kernel.Operation, do func() error) error
}

func (w *wire) Do(ctx context.Context, op kernel.Operation) error {
	return w.meet(op, func() error { return w.Runner.Do(ctx, op) })
}

func passes(_ kernel.Operation, do func() error) error { return do() }

func isRenewal(op kernel.Operation) bool { return op.Plan().Op == new(catalog.RenewDuties).Plan().Op }

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

// A process that thaws after another has taken its duty has lost it for good: whatever the other did with it, nothing gives
// it back to who is still at work on it. Once that has given it up it is taken like any other.
func TestThawed(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		every time.Duration
		does  func(b *duty.Roster) // with what it has taken over
		next  []string             // what a third process gets an hour later
	}{
		"another is at it":                {0, func(*duty.Roster) {}, nil},
		"another has ended it":            {0, func(b *duty.Roster) { b.Done(ctx, "x") }, []string{"x"}},
		"another has done what recurs":    {time.Hour, func(b *duty.Roster) { b.Recurs(ctx, "x") }, []string{"x"}},
		"another has given up a sweep":    {time.Hour, func(b *duty.Roster) { b.Done(ctx, "x") }, []string{"x"}},
		"another has ended it, and again": {0, func(b *duty.Roster) { b.Done(ctx, "x"); _, _ = b.Take(ctx, 0, "x"); b.Done(ctx, "x") }, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := mem.New()
				a, b, third := process(db, "a"), process(db, "b"), process(db, "c")
				defer live(b)()
				defer live(third)()
				wantTaken(t, a, c.every, []string{"x"}, []string{"x"}) // and freezes
				time.Sleep(duty.Lifetime)
				wantTaken(t, b, c.every, []string{"x"}, []string{"x"})
				c.does(b)
				defer live(a)()
				for range 3600 {
					time.Sleep(time.Second)
					if a.Has("x") {
						t.Fatal("it has the duty back")
					}
				}
				wantTaken(t, third, c.every, []string{"x"}, c.next)

				owner := b
				if len(c.next) > 0 {
					owner = third
				}
				a.Done(t.Context(), "x")
				wantTaken(t, a, 0, []string{"x"}, nil)
				if a.Has("x") || !owner.Has("x") {
					t.Errorf("the former owner has it: %v, the owner has it: %v", a.Has("x"), owner.Has("x"))
				}
				owner.Done(t.Context(), "x")
				wantTaken(t, a, 0, []string{"x"}, []string{"x"})
				time.Sleep(time.Hour)
				if !a.Has("x") {
					t.Error("a new taking was lost")
				}
			})
		})
	}
}

// What a process has taken it does not take again before it has been given up, even if it was lost: the former run would
// have it back.
func TestTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := process(mem.New(), "a")
		wantTaken(t, a, 0, []string{"x", "x"}, []string{"x"})
		wantTaken(t, a, 0, []string{"x", "y"}, []string{"y"})
		time.Sleep(duty.Lifetime)
		wantTaken(t, a, 0, []string{"x"}, nil)
		if a.Has("x") {
			t.Error("it is had after its time")
		}
		a.Done(t.Context(), "x")
		wantTaken(t, a, 0, []string{"x"}, []string{"x"})
	})
}

// A renewal whose outcome is unknown neither prolongs a duty nor loses it: the next one tells.
func TestUnknownRenewal(t *testing.T) {
	for name, c := range map[string]struct{ applied, lost bool }{
		"applied":           {applied: true},
		"not applied":       {},
		"not applied, lost": {lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := mem.New()
				w := &wire{runner(db, time.Now), func(op kernel.Operation, do func() error) error {
					if !isRenewal(op) || c.applied {
						if err := do(); err != nil {
							return err
						}
					}
					if isRenewal(op) {
						return store.ErrOutcomeUnknown
					}
					return nil
				}}
				a, b := processBy(w, "a"), process(db, "b")
				wantTaken(t, a, 0, []string{"x"}, []string{"x"})
				stop := live(a)
				time.Sleep(duty.Trusted - time.Second)
				if !a.Has("x") {
					t.Error("lost before its time")
				}
				stop()
				time.Sleep(time.Second)
				if a.Has("x") {
					t.Error("prolonged by who knows what")
				}
				if c.lost {
					time.Sleep(duty.Lifetime - duty.Trusted)
					wantTaken(t, b, 0, []string{"x"}, []string{"x"})
					b.Done(t.Context(), "x")
				}
				w.meet = passes
				defer live(a)()
				time.Sleep(time.Minute)
				if a.Has("x") == c.lost {
					t.Errorf("when renewals succeed it has the duty: %v", a.Has("x"))
				}
			})
		})
	}
}

// yieldsMax is how often others may run before what they do is missed.
const yieldsMax = 1_000_000

// What is given up while it is renewed is given up: the renewal brings back neither the duty nor its record, and does
// nothing to a later taking.
func TestDoneWhileRenewed(t *testing.T) {
	for name, late := range map[string]bool{"before the record changes": false, "after the record has changed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := mem.New()
				w := &wire{runner(db, time.Now), passes}
				a := processBy(w, "a")
				wantTaken(t, a, 0, []string{"x", "y"}, []string{"x", "y"})
				under, goOn := make(chan struct{}), make(chan struct{})
				held := false
				w.meet = func(op kernel.Operation, do func() error) error {
					if a.Has("x") != isRenewal(op) {
						t.Errorf("at %s it has x: %v", op.Plan().Op, a.Has("x"))
					}
					if held {
						return do()
					}
					held = true
					if !late {
						close(under)
						<-goOn
						return do()
					}
					err := do()
					close(under)
					<-goOn
					return err
				}
				stop := live(a)
				<-under
				var ending sync.WaitGroup
				ending.Go(func() { a.Done(t.Context(), "x") })
				for n := 0; a.Has("x") && n < yieldsMax; n++ { // Done waits for a mutex, which a bubble does not tell of
					runtime.Gosched()
				}
				if a.Has("x") {
					t.Error("what is being given up is still had")
				}
				wantTaken(t, a, 0, []string{"x"}, nil) // its record is still to go
				close(goOn)
				ending.Wait()
				stop()
				if a.Has("x") || !a.Has("y") {
					t.Errorf("has what was given up: %v, has the other: %v", a.Has("x"), a.Has("y"))
				}
				if left, err := db.List(t.Context(), key.Duties(), "", 10); err != nil || len(left) != 1 {
					t.Errorf("records: %v, %v; want that of y", left, err)
				}
				w.meet = passes
				defer live(a)()
				wantTaken(t, a, 0, []string{"x"}, []string{"x"})
				time.Sleep(time.Hour)
				if !a.Has("x") || !a.Has("y") {
					t.Errorf("after an hour it has x: %v, y: %v", a.Has("x"), a.Has("y"))
				}
			})
		})
	}
}

// What was lost before its time, to an instance whose clock is far ahead, is not had from the next renewal on.
func TestLostEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mem.New()
		ahead := func() time.Time { return time.Now().Add(time.Hour) }
		a, b := process(db, "a"), processBy(runner(db, ahead), "b")
		wantTaken(t, a, 0, []string{"x", "y"}, []string{"x", "y"})
		wantTaken(t, b, 0, []string{"x"}, []string{"x"})
		defer live(a)()
		time.Sleep(15 * time.Second) // one renewal
		if a.Has("x") || !a.Has("y") || !b.Has("x") {
			t.Errorf("a has what it lost: %v, what it did not: %v; b has it: %v", a.Has("x"), a.Has("y"), b.Has("x"))
		}
	})
}

// The time of a duty counts from when it was asked for: that is before the record says so, however late the answer is.
func TestLateAnswer(t *testing.T) {
	const late = 9 * time.Second
	for _, op := range []string{"take-duties", "renew-duties"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked time.Time // the last time
				w := &wire{Runner: runner(mem.New(), time.Now)}
				a := processBy(w, "a")
				w.meet = func(met kernel.Operation, do func() error) error {
					if met.Plan().Op != op {
						return do()
					}
					asked = time.Now()
					err := do()
					time.Sleep(late)
					return err
				}
				wantTaken(t, a, 0, []string{"x"}, []string{"x"})
				if op == "renew-duties" {
					stop := live(a)
					time.Sleep(25 * time.Second) // two renewals
					stop()
				}
				time.Sleep(time.Until(asked.Add(duty.Trusted)) - 1)
				if !a.Has("x") {
					t.Error("lost before its time")
				}
				time.Sleep(time.Nanosecond)
				if a.Has("x") {
					t.Error("had after its time")
				}
			})
		})
	}
}

// A duty is had as long as neither clock says that its time is over.
func TestTwoClocks(t *testing.T) {
	for name, c := range map[string]struct {
		passes time.Duration // by the monotonic clock
		slept  time.Duration // for how long the machine is suspended beside that
		has    bool
	}{
		"at once":                {0, 0, true},
		"just in time":           {duty.Trusted - 1, 0, true},
		"over":                   {duty.Trusted, 0, false},
		"suspended for a moment": {0, duty.Trusted - 1, true},
		"suspended":              {0, 3 * time.Minute, false},
		"suspended at work":      {duty.Trusted - time.Second, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slept time.Duration
				a, began := process(mem.New(), "a"), time.Now()
				a.SetBoot(func() time.Duration { return time.Since(began) + slept })
				wantTaken(t, a, 0, []string{"x"}, []string{"x"})
				time.Sleep(c.passes)
				slept = c.slept
				if got := a.Has("x"); got != c.has {
					t.Errorf("has it: %v", got)
				}
				defer live(a)()
				time.Sleep(time.Minute)
				if !a.Has("x") {
					t.Error("nobody took it, and it was not renewed")
				}
			})
		})
	}
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

// A duty is taken over from who is dead also where its clock was far ahead, and not from who lives, however far: then its
// record changes.
func TestClockAhead(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a minute": time.Minute, "hours": 5 * time.Hour, "for ever": 80 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := mem.New()
				fast := processBy(runner(db, func() time.Time { return time.Now().Add(ahead) }), "fast")
				b, third := process(db, "b"), process(db, "c")
				die := live(fast)
				wantTaken(t, fast, 0, []string{"x"}, []string{"x"})
				time.Sleep(time.Second) // beside the renewals
				for range 360 {         // nobody takes it from who lives: each would take it from the other for ever
					time.Sleep(10 * time.Second)
					wantTaken(t, b, 0, []string{"x"}, nil)
					if !fast.Has("x") {
						t.Fatal("the owner has lost it")
					}
				}
				die()
				wantTaken(t, b, 0, []string{"x"}, nil)
				time.Sleep(duty.Lifetime - 1)
				wantTaken(t, b, 0, []string{"x"}, nil)
				wantTaken(t, third, 0, []string{"x"}, nil) // has never seen it before
				if fast.Has("x") {
					t.Error("who is to be relieved trusts its duty still")
				}
				time.Sleep(time.Nanosecond)
				defer live(b)()
				wantTaken(t, b, 0, []string{"x"}, []string{"x"})
				time.Sleep(duty.Lifetime)
				wantTaken(t, third, 0, []string{"x"}, nil) // what it has seen was another's
				defer live(fast)()
				time.Sleep(time.Minute)
				if fast.Has("x") || !b.Has("x") {
					t.Errorf("the former owner has it: %v, the owner has it: %v", fast.Has("x"), b.Has("x"))
				}
			})
		})
	}
}

// What stands for a lifetime must stand so by every look: a renewal in between, or an end and another's taking, begin it anew.
func TestSeenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mem.New()
		ahead := func() time.Time { return time.Now().Add(time.Hour) }
		first, second := processBy(runner(db, ahead), "first"), processBy(runner(db, ahead), "second")
		b := process(db, "b")
		wantTaken(t, first, 0, []string{"x"}, []string{"x"})
		wantTaken(t, b, 0, []string{"x"}, nil)
		time.Sleep(duty.Lifetime - time.Second)
		first.Done(t.Context(), "x")
		wantTaken(t, second, 0, []string{"x"}, []string{"x"})
		time.Sleep(time.Second)
		wantTaken(t, b, 0, []string{"x"}, nil)
		time.Sleep(duty.Lifetime - time.Second)
		wantTaken(t, b, 0, []string{"x"}, nil)
		time.Sleep(time.Second)
		wantTaken(t, b, 0, []string{"x"}, []string{"x"})
	})
}

// What was done by an instance whose clock was far ahead is done again by the others in their time, and not when they get there;
// small differences do not matter.
func TestDoneAhead(t *testing.T) {
	for name, c := range map[string]struct {
		ahead time.Duration
		want  []string
	}{
		"a moment": {20 * time.Second, nil},
		"a year":   {365 * 24 * time.Hour, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := mem.New()
				a, b := processBy(runner(db, func() time.Time { return time.Now().Add(c.ahead) }), "a"), process(db, "b")
				wantTaken(t, a, time.Hour, []string{"x"}, []string{"x"})
				a.Recurs(t.Context(), "x")
				wantTaken(t, b, time.Hour, []string{"x"}, c.want)
			})
		})
	}
}

// Work that comes again may be done out of turn by whoever wants to, at any time, and its next turn comes when it would have.
func TestOutOfTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mem.New()
		a, b := process(db, "a"), process(db, "b")
		wantTaken(t, a, time.Hour, []string{"x"}, []string{"x"})
		a.Recurs(t.Context(), "x")
		for range 59 {
			time.Sleep(time.Minute)
			wantTaken(t, b, 0, []string{"x"}, []string{"x"})
			b.Done(t.Context(), "x")
			wantTaken(t, a, time.Hour, []string{"x"}, nil)
		}
		time.Sleep(time.Minute)
		wantTaken(t, a, time.Hour, []string{"x"}, []string{"x"})
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
