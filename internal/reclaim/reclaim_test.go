package reclaim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfast/landfast/internal/catalog"
)

// TestStart: a purge begins at once, and who waits learns of its end whatever becomes of it.
func TestStart(t *testing.T) {
	run(t, func(s *stack) {
		r := s.reclaimer()
		s.create("t", nil)
		id := s.drop("t")
		var waiting []<-chan struct{}
		for i := range 64 {
			waiting = append(waiting, r.Start("main", fmt.Sprintf("no-such-list-%d", i)))
		}
		for _, w := range waiting {
			select {
			case <-w:
				t.Fatal("one of those that wait for Run has ended")
			default:
			}
		}
		select {
		case <-r.Start("main", id):
		default:
			t.Fatal("what finds no room is not left to the next round at once")
		}
		if again := r.Start("main", "no-such-list-7"); again != waiting[7] {
			t.Error("one list is waited for twice")
		}
		stop := s.begin(r)
		for _, w := range waiting {
			<-w
		}
		synctest.Wait()
		s.left() // the first round found it
		stop()
		<-r.Start("main", "after the end")
		<-r.Start("no-such-warehouse", "after the end")
	})
}

// TestStop ends those who wait when the server stops.
func TestStop(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		id := s.drop("t")
		hang := make(chan struct{})
		s.files.fail(faults{delete: func(string) error { <-hang; return nil }})
		r := s.reclaimer()
		stop := s.begin(r)
		synctest.Wait() // the first round has it
		done, other := r.Start("main", id), r.Start("main", "another")
		<-other
		select {
		case <-done:
			t.Error("a purge that hangs has ended")
		default:
		}
		go stop()
		close(hang)
		<-done
	})
}

// TestStopBeforeStart ends those who wait for a Reclaimer that never got to them.
func TestStopBeforeStart(t *testing.T) {
	run(t, func(s *stack) {
		r := s.reclaimer()
		var waiting []<-chan struct{}
		for i := range 64 {
			waiting = append(waiting, r.Start("main", fmt.Sprint(i)))
		}
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		r.Run(ctx)
		for _, w := range waiting {
			<-w
		}
	})
}

// TestGrace: files that a reader may still want stay for a while.
func TestGrace(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", map[string]string{"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"})
		var written []string
		for i := range 6 {
			written = append(written, s.commit("t", setProperty("n", fmt.Sprint(i))))
		}
		all := s.files.Locations()
		lists := s.lists()
		if len(lists) != 4 {
			t.Fatalf("%d lists, want one for each commit that dropped a file: %+v", len(lists), lists)
		}
		r := s.reclaimer()
		s.begin(r)
		<-r.Start("main", lists[0].ID)
		synctest.Wait()
		s.left(all...)
		time.Sleep(11 * time.Minute) // of the bubble, past the grace and to the next round
		synctest.Wait()
		s.left(written[3:]...)
		if len(s.lists()) != 0 {
			t.Error("lists are left")
		}
		s.commit("t", setProperty("n", "7"))
	})
}

// TestManyLists ends them in batches of a bounded size, and pages through them.
func TestManyLists(t *testing.T) {
	run(t, func(s *stack) {
		var files []string
		for i := range 250 {
			files = append(files, fmt.Sprintf("file:///w/main/t/metadata/%05d.json", i))
			s.plant(catalog.Dying{ID: fmt.Sprint("list-", i), Files: files[max(0, i-100):]})
		}
		s.put(files...)
		for i := range 3 {
			var large []string
			for j := range 900 {
				large = append(large, fmt.Sprintf("file:///w/main/t/metadata/large-%d-%d.json", i, j))
			}
			s.plant(catalog.Dying{ID: fmt.Sprint("large-", i), Files: large})
		}
		sizes := map[string]int{}
		for _, l := range s.lists() {
			sizes[l.ID] = len(l.Files)
		}
		s.round()
		s.left()
		if lists := s.lists(); len(lists) != 0 {
			t.Errorf("%d lists are left", len(lists))
		}
		for _, ids := range s.ended {
			n := 0
			for _, id := range ids {
				n += sizes[id]
			}
			if len(ids) > 100 || n > 1000 {
				t.Errorf("%d lists with %d files were ended together", len(ids), n)
			}
		}
		if len(s.ended) > 50 {
			t.Errorf("253 lists took %d operations to end", len(s.ended))
		}
	})
}

// TestLost: files of decisions that lost are named once nothing can be on its way with them, and
// deleted; what a table came to have after all stays, and so do the files of others.
func TestLost(t *testing.T) {
	const uuid = "/metadata/00001-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json"
	run(t, func(s *stack) {
		names := []string{s.create("t", nil), s.create("u", nil), s.commit("t", setProperty("n", "1"))}
		lost := []string{"file:///w/main/t" + uuid, "file:///w/main/u" + uuid, "file:///w/main/nobody" + uuid}
		s.copy(names[0], lost[0])
		s.copy(names[1], lost[1])
		s.put(lost[2])
		r := s.reclaimer()
		s.begin(r)
		time.Sleep(roundTime - time.Minute)
		r.Lost("main", append(lost, names...))
		r.Lost("no-such-warehouse", lost)
		r.Lost("main", []string{"file:///w/main/t/metadata/was-never-made.json"})
		time.Sleep(time.Minute) // a round, but too early
		synctest.Wait()
		if lists := s.lists(); len(lists) != 0 {
			t.Errorf("files were named at once: %+v", lists)
		}
		time.Sleep(roundTime) // they are named
		synctest.Wait()
		s.left(append(lost, names...)...)
		if lists := s.lists(); len(lists) != 2 || !lists[0].Grace {
			t.Errorf("lists, want one for each table: %+v", lists)
		}
		time.Sleep(roundTime) // they are deleted
		synctest.Wait()
		s.left(append(names, lost[2])...)
		if !strings.Contains(s.log.String(), "no-such-warehouse") {
			t.Errorf("nothing was logged: %s", s.log)
		}
	})
}

const roundTime = 10*time.Minute + time.Second

// TestDaily sweeps every warehouse, the first time an hour after the start.
func TestDaily(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		s.commit("t", setProperty("n", "1"))
		kept := s.files.Locations()
		orphan := func(n int) string {
			l := fmt.Sprintf("file:///w/main/t/metadata/00001-9c12d441-03fe-4693-9a96-a0705ddf69c%d.metadata.json", n)
			s.copy(kept[1], l)
			return l
		}
		left := func(more ...string) {
			t.Helper()
			s.left(append(slices.Clone(kept), more...)...)
		}
		first := orphan(1)
		s.begin(s.reclaimer())
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		left(first)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		left()
		second := orphan(2)
		time.Sleep(22 * time.Hour)
		synctest.Wait()
		left(second)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		left()
	})
}

// copy makes a file with the bytes of another.
func (s *stack) copy(from, to string) {
	s.Helper()
	data, err := s.files.Read(s.Context(), scope, from, 1<<20)
	if err != nil {
		s.Fatal(err)
	}
	s.write(to, data)
}
