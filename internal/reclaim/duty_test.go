package reclaim_test

import (
	"fmt"
	"log/slog"
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
