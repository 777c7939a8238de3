package reclaim_test

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfast/landfast/internal/duty"
	"github.com/landfast/landfast/internal/reclaim"
)

// instance is the Reclaimer of one of several processes.
func (s *stack) instance(owner string) (*reclaim.Reclaimer, *duty.Roster) {
	log := slog.New(slog.NewTextHandler(s.log, nil))
	d := duty.New(s, owner, log)
	return reclaim.New(reclaim.Options{Runner: s, Files: s.files, Grace: grace, Log: log, Duties: d}), d
}

// TestSeveral: each list is worked on by one instance, and ended once.
func TestSeveral(t *testing.T) {
	run(t, func(s *stack) {
		const tables = 30
		for i := range tables {
			s.create(fmt.Sprint("t", i), nil)
			s.drop(fmt.Sprint("t", i))
		}
		var deletes atomic.Int64
		s.files.fail(faults{delete: func(string) error {
			deletes.Add(1)
			time.Sleep(time.Second)
			return nil
		}})
		a, da := s.instance("a")
		b, db := s.instance("b")
		go da.Run(s.Context())
		go db.Run(s.Context())
		stopA, stopB := s.begin(a), s.begin(b)
		time.Sleep(25 * time.Minute) // rounds that met each other's lists come again
		synctest.Wait()
		s.left()
		if n := deletes.Load(); n != tables {
			t.Errorf("%d deletions of %d files", n, tables)
		}
		stopA()
		stopB()
	})
}

// TestFrozenPurge: an instance that was frozen in the middle of a purge deletes nothing more once another may have
// taken over, and that one ends it.
func TestFrozenPurge(t *testing.T) {
	run(t, func(s *stack) {
		first := s.create("t", nil)
		second := s.commit("t", setProperty("k", "v"))
		id := s.drop("t")
		var deleted []string
		frozen := make(chan struct{})
		s.files.fail(faults{delete: func(l string) error {
			if deleted = append(deleted, l); len(deleted) == 1 {
				<-frozen
			}
			return nil
		}})
		a, _ := s.instance("a") // nothing prolongs its duties: it is frozen
		stopA := s.begin(a)
		synctest.Wait()
		if len(deleted) != 1 {
			t.Fatalf("deleted %v; want the first file only", deleted)
		}
		time.Sleep(59 * time.Second)
		b, _ := s.instance("b")
		stopB := s.begin(b)
		<-b.Start("main", id)
		if len(deleted) != 1 {
			t.Errorf("b worked on it after 59 s: %v", deleted)
		}
		time.Sleep(2 * time.Second)
		<-b.Start("main", id)
		s.left()
		s.write(first, []byte("somebody's copy")) // a restored backup
		s.write(second, []byte("somebody's copy"))
		n := len(deleted)
		close(frozen)
		synctest.Wait()
		if deleted = deleted[n:]; len(deleted) > 0 {
			t.Errorf("the frozen instance deleted %v after it was relieved", deleted)
		}
		stopA()
		stopB()
	})
}

// TestTakenOver: what a dead instance had is done by another two minutes later, and not only after the next regular round.
func TestTakenOver(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		s.drop("t")
		dead := make(chan struct{})
		s.files.fail(faults{delete: func(string) error { <-dead; return nil }})
		a, _ := s.instance("a") // nothing prolongs its duties
		stopA := s.begin(a)
		synctest.Wait()
		s.files.fail(faults{})
		b, _ := s.instance("b")
		stopB := s.begin(b)
		time.Sleep(2*duty.Lifetime + time.Second)
		synctest.Wait()
		if len(s.lists()) > 0 {
			t.Error("nobody has taken over")
		}
		s.left()
		close(dead)
		stopA()
		stopB()
	})
}

// sweeps has every sweep stop at the first file that it reads, until goOn is called, and counts those that came so far.
func (s *stack) sweeps() (count *atomic.Int64, goOn func()) {
	count = new(atomic.Int64)
	wait := make(chan struct{})
	s.files.fail(faults{read: func(string) error { count.Add(1); <-wait; return nil }})
	return count, sync.OnceFunc(func() { close(wait) })
}

func (s *stack) wantSweep(r *reclaim.Reclaimer, dryRun bool, want error) {
	s.Helper()
	began := time.Now()
	if _, err := r.Sweep(s.Context(), "main", dryRun); !errors.Is(err, want) {
		s.Errorf("a sweep, dry run: %v: %v; want %v", dryRun, err, want)
	}
	if waited := time.Since(began); want != nil && waited > 0 {
		s.Errorf("the refusal came after %v", waited)
	}
}

// TestSweepElsewhere: a warehouse is swept by one instance at a time, who else would is told so at once, and may when that one
// has ended. A dry run disturbs nobody.
func TestSweepElsewhere(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		a, da := s.instance("a")
		b, _ := s.instance("b")
		go da.Run(s.Context())
		_, goOn := s.sweeps()
		var sweeping sync.WaitGroup
		sweeping.Go(func() { s.wantSweep(a, false, nil) })
		synctest.Wait()
		for range 3 {
			s.wantSweep(b, false, reclaim.ErrSweptElsewhere)
			s.wantSweep(a, false, reclaim.ErrSweeping)
			s.wantSweep(a, true, reclaim.ErrSweeping)
			time.Sleep(5 * time.Minute)
		}
		sweeping.Go(func() { s.wantSweep(b, true, nil) })
		synctest.Wait()
		goOn()
		sweeping.Wait()
		s.wantSweep(b, false, nil)
		s.wantSweep(a, false, nil)
	})
}

// TestSweepDaily: the daily sweep is made by one instance, keeps sweeps on demand away while it lasts, waits for one of its own
// instance, and comes when it would have whatever was swept on demand.
func TestSweepDaily(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		began := time.Now()
		until := func(hours float64) {
			time.Sleep(time.Until(began.Add(time.Duration(hours * float64(time.Hour)))))
			synctest.Wait()
		}
		a, da := s.instance("a")
		b, db := s.instance("b")
		go da.Run(s.Context())
		go db.Run(s.Context())
		stopA := s.begin(a)
		until(0.5)
		stopB := s.begin(b)

		count, goOn := s.sweeps()
		until(1.25) // a is at it
		s.wantSweep(b, false, reclaim.ErrSweptElsewhere)
		s.wantSweep(a, false, reclaim.ErrSweeping)
		goOn()
		synctest.Wait()
		s.wantSweep(b, false, nil) // an hour and a half after its start b finds that it is done, as it would without this one
		until(24)
		if n := count.Load(); n != 2 {
			t.Errorf("%d sweeps on the first day, want one and one on demand", n)
		}

		count, goOn = s.sweeps()
		var sweeping sync.WaitGroup
		sweeping.Go(func() { s.wantSweep(a, false, nil) })
		until(25.25) // a waits for itself
		goOn()
		sweeping.Wait()
		until(48)
		if n := count.Load(); n != 2 {
			t.Errorf("%d sweeps on the second day, want one and one on demand", n)
		}
		stopA()
		stopB()
	})
}

// TestFrozenSweep: an instance that was frozen in the middle of a sweep leaves it to who has taken over.
func TestFrozenSweep(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		s.create("u", nil)
		a, _ := s.instance("a") // nothing prolongs its duties: it is frozen
		b, _ := s.instance("b")
		_, goOn := s.sweeps()
		var frozen sync.WaitGroup
		frozen.Go(func() {
			report, err := a.Sweep(s.Context(), "main", false)
			if !errors.Is(err, reclaim.ErrSweptElsewhere) || report.Tables != 1 {
				t.Errorf("the frozen instance went on: %+v, %v", report, err)
			}
		})
		synctest.Wait()
		time.Sleep(duty.Lifetime - time.Second)
		s.wantSweep(b, false, reclaim.ErrSweptElsewhere)
		time.Sleep(time.Second)
		frozen.Go(func() { s.wantSweep(b, false, nil) })
		synctest.Wait()
		goOn()
		frozen.Wait()
	})
}
