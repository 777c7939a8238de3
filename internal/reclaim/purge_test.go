package reclaim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
)

var tables = []string{"java1", "java2", "java3", "python1", "python2"}

// TestPurge: of tables that real clients wrote nothing is left, and of their neighbours everything;
// then their places are free.
func TestPurge(t *testing.T) {
	for _, name := range tables {
		t.Run(name, func(t *testing.T) {
			run(t, func(s *stack) {
				foreign := []string{
					"file:///w/main/" + name + "/data/nobody-names-this.parquet",
					"file:///w/main/" + name + "-2/data/first-0.parquet",
				}
				s.put(foreign...)
				s.real(name)
				s.purge(name)
				s.left(foreign...)
				if lists := s.lists(); len(lists) != 0 {
					t.Errorf("lists are left: %+v", lists)
				}
				s.create(name, nil)
			})
		})
	}
}

// TestCrash stops a purge before each of its deletions, the one after the other, and starts it
// again: nothing is left, and until then the metadata file was there to begin with.
func TestCrash(t *testing.T) {
	for _, name := range []string{"java3", "python2"} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				crashed := false
				run(t, func(s *stack) { crashed = s.crash(name, n) })
				if t.Failed() {
					t.Fatalf("stopped before deletion %d", n+1)
				}
				if !crashed {
					if files := len(strings.Fields(string(listing(t, name)))); n != files {
						t.Fatalf("the purge deleted %d files, not %d", n, files)
					}
					return
				}
			}
		})
	}
}

// crash reports whether a purge had more than n deletions, and was stopped after these.
func (s *stack) crash(name string, n int) bool {
	foreign := "file:///w/main/" + name + "/data/nobody-names-this.parquet"
	s.put(foreign)
	s.real(name)
	id := s.drop(name)
	metadata := s.lists()[0].Metadata

	r := s.reclaimer()
	var (
		mu      sync.Mutex
		deleted int
		crashed atomic.Bool
	)
	ctx, cancel := context.WithCancel(context.Background())
	s.files.fail(faults{delete: func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if deleted == n || crashed.Load() {
			crashed.Store(true)
			cancel()
			return context.Canceled
		}
		deleted++
		return nil
	}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	<-r.Start("main", id)
	if crashed.Load() {
		<-done
		if !slices.Contains(s.files.Locations(), metadata) {
			s.Error("the metadata file is gone before others")
		}
		if len(s.lists()) != 1 {
			s.Error("the list ended before its files were gone")
		}
	}
	cancel()
	<-done

	s.files.fail(faults{})
	s.round()
	s.left(foreign)
	if lists := s.lists(); len(lists) != 0 {
		s.Errorf("lists are left: %+v", lists)
	}
	return crashed.Load()
}

// TestSharedFilesStay: what lies outside a table's places belongs to others, whatever its metadata says,
// but leads to files of its own.
func TestSharedFilesStay(t *testing.T) {
	run(t, func(s *stack) {
		other := s.create("other", nil)
		s.create("t", nil)
		shared := []string{
			"file:///w/main/other/data/a.parquet", "file:///w/main/t2/data/b.parquet", "file:///w/main/t.parquet",
			"file:///w/main/other/metadata/m.avro",
		}
		s.put(shared[:3]...)
		s.put("file:///w/main/t/data/own.parquet", "file:///w/main/t/data/also.parquet", "file:///w/main/t/data/late.parquet")
		s.snapshots("t", map[string][]string{
			"file:///w/main/t/metadata/snap-1.avro": {"file:/w/main/t/metadata/own.avro", "file:///w/main/other/metadata/m.avro"},
			// Of an earlier writer, in another place; and what no location can be.
			"file:///w/main/t/metadata/snap-2.avro": {"file:///w/main/t/metadata/own.avro", "file:///elsewhere/m.avro", "s3://bucket/m.avro", "nonsense", strings.Repeat("l", 5000)},
		}, map[string][]string{
			"file:///w/main/t/metadata/own.avro": {
				"file:/w/main/t/data/own.parquet", "file:///w/main/t/data/own.parquet", shared[0], shared[1], shared[2], "file:///w/main/t/../other/data/a.parquet",
				"file:///w/main/t/data/gone-already.parquet", "file:///w/main/t/data/%61.parquet", "file:///w/main", "file:///w/main/t", "s3://bucket/x", strings.Repeat("l", 5000),
				"file:///w/main/t/data/late.parquet",
			},
			shared[3]: {"file:///w/main/t/data/also.parquet", other},
		})
		s.purge("t")
		s.left(append(shared, other)...)
		if len(s.lists()) != 0 {
			t.Error("the list is left")
		}
	})
}

// TestKeepsData: gc.enabled=false says that others may share a table's files.
func TestKeepsData(t *testing.T) {
	for value, kept := range map[string]bool{"false": true, "FALSE": true, "no": true, "true": false, "True": false} {
		t.Run(value, func(t *testing.T) {
			run(t, func(s *stack) {
				s.create("t", nil)
				data := []string{"file:///w/main/t/data/a.parquet", "file:///w/main/t/data/deletes.parquet"}
				s.put(data...)
				s.snapshots("t", map[string][]string{"file:///w/main/t/metadata/snap-1.avro": {"file:///w/main/t/metadata/m.avro"}},
					map[string][]string{"file:///w/main/t/metadata/m.avro": data})
				s.commit("t", setProperty("gc.enabled", value))
				s.purge("t")
				if !kept {
					data = nil
				}
				s.left(data...)
			})
		})
	}
}

// TestUnreadable: what cannot be read stays, with what it alone names; the rest goes, and the list ends.
func TestUnreadable(t *testing.T) {
	list, m := "file:///w/main/t/metadata/snap-1.avro", "file:///w/main/t/metadata/m.avro"
	data, second := "file:///w/main/t/data/a.parquet", "file:///w/main/t/data/b.parquet"
	for name, c := range map[string]struct {
		damage func(s *stack, metadata string)
		left   []string
	}{
		"an encrypted manifest":              {func(s *stack, _ string) { s.files.Replace(m, []byte("AGS1 encrypted")) }, []string{m, data}},
		"a truncated manifest":               {func(s *stack, _ string) { s.files.Replace(m, manifestOf(s, data)[:200]) }, []string{m, data}},
		"a manifest list that is a manifest": {func(s *stack, _ string) { s.files.Replace(list, manifestOf(s, data)) }, []string{list, m, data}},
		"a missing manifest":                 {func(s *stack, _ string) { s.delete(m) }, []string{data}},
		"a missing manifest list":            {func(s *stack, _ string) { s.delete(list) }, []string{m, data}},
		"a manifest that is too large":       {func(s *stack, _ string) { s.files.fail(faults{read: unusable(m, blob.ErrTooLarge)}) }, []string{m, data}},
		"a manifest that is a directory":     {func(s *stack, _ string) { s.files.fail(faults{read: unusable(m, blob.ErrNotRegular)}) }, []string{m, data}},
		"missing metadata":                   {func(s *stack, metadata string) { s.delete(metadata) }, nil}, // nothing is known
		"damaged metadata":                   {func(s *stack, metadata string) { s.files.Replace(metadata, []byte(`{"format-version":2`)) }, nil},
		"metadata with damaged gzip":         {func(s *stack, metadata string) { s.files.Replace(metadata, []byte("\x1f\x8b damaged")) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(s *stack) {
				s.create("t", nil)
				s.put(data, second)
				s.snapshots("t", map[string][]string{list: {m}, "file:///w/main/t/metadata/snap-2.avro": {"file:///w/main/t/metadata/m2.avro"}},
					map[string][]string{m: {data}, "file:///w/main/t/metadata/m2.avro": {second}})
				id := s.drop("t")
				c.damage(s, s.lists()[0].Metadata)
				if c.left == nil {
					c.left = s.files.Locations()
				}
				r := s.reclaimer()
				stop := s.begin(r)
				<-r.Start("main", id)
				stop()
				s.left(c.left...)
				if len(s.lists()) != 0 {
					t.Error("the list is left")
				}
			})
		})
	}
}

// unusable makes one file of those that trying again does not help.
func unusable(location string, err error) func(string) error {
	return func(l string) error {
		if l == location {
			return fmt.Errorf("read %s: %w", l, err)
		}
		return nil
	}
}

func (s *stack) delete(location string) {
	s.Helper()
	if err := s.files.Files.Delete(s.Context(), scope, location); err != nil {
		s.Fatal(err)
	}
}

// TestFaults: a fault of the store leaves the list, and what leads to the files that are left; other
// files go. The next round finishes.
func TestFaults(t *testing.T) {
	const (
		list              = "file:///w/main/t/metadata/snap-1.avro"
		first, firstFile  = "file:///w/main/t/metadata/m1.avro", "file:///w/main/t/data/1.parquet"
		second, secondOne = "file:///w/main/t/metadata/m2.avro", "file:///w/main/t/data/2.parquet"
	)
	broken := func(location string) func(string) error {
		return func(l string) error {
			if location == "" || l == location {
				return errors.New("the disk is broken")
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		faults faults
		gone   string
	}{
		"a data file":       {faults{delete: broken(firstFile)}, secondOne},
		"every file":        {faults{delete: broken("")}, ""},
		"a manifest":        {faults{read: broken(second)}, firstFile},
		"a manifest list":   {faults{read: broken(list)}, ""},
		"an unmounted root": {faults{mark: blob.ErrMarkMissing}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(s *stack) {
				s.create("t", nil)
				s.put(firstFile, secondOne)
				s.snapshots("t", map[string][]string{list: {first, second}}, map[string][]string{first: {firstFile}, second: {secondOne}})
				id := s.drop("t")
				want := slices.DeleteFunc(s.files.Locations(), func(l string) bool { return l == c.gone })
				s.files.fail(c.faults)
				r := s.reclaimer()
				stop := s.begin(r)
				<-r.Start("main", id)
				synctest.Wait()
				s.left(want...)
				if len(s.lists()) != 1 {
					t.Fatal("the list ended")
				}
				time.Sleep(roundTime) // of the bubble: the next round
				synctest.Wait()
				s.left(want...)
				s.files.fail(faults{})
				time.Sleep(roundTime)
				synctest.Wait()
				s.left()
				if len(s.lists()) != 0 {
					t.Error("the list is left")
				}
				stop()
				if !strings.Contains(s.log.String(), "level=WARN") {
					t.Errorf("nothing was logged: %s", s.log)
				}
			})
		})
	}
}

// TestUnmountedMeanwhile: a list does not end because its files are missing from the wrong place.
func TestUnmountedMeanwhile(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		s.drop("t")
		s.files.fail(faults{delete: func(string) error {
			s.files.fail(faults{mark: blob.ErrMarkMissing})
			return nil
		}})
		s.round()
		s.left()
		if len(s.lists()) != 1 {
			t.Error("the list ended")
		}
		s.files.fail(faults{})
		s.round()
		if len(s.lists()) != 0 {
			t.Error("the list is left")
		}
	})
}

// TestBrokenStore: a list is given up for the time being when the store fails again and again.
func TestBrokenStore(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		m := "file:///w/main/t/metadata/m.avro"
		var data []string
		for i := range 1000 {
			data = append(data, fmt.Sprintf("file:///w/main/t/data/%d.parquet", i))
		}
		s.snapshots("t", map[string][]string{"file:///w/main/t/metadata/snap-1.avro": {m}}, map[string][]string{m: data})
		var tries atomic.Int64
		s.files.fail(faults{delete: func(string) error {
			tries.Add(1)
			return errors.New("the disk is broken")
		}})
		s.purge("t")
		if n := tries.Load(); n < 100 || n > 100+32 {
			t.Errorf("%d files were tried", n)
		}
	})
}

// TestManyFiles purges two tables at once: deletion is parallel but bounded, and the manifests that
// snapshots share are read once.
func TestManyFiles(t *testing.T) {
	run(t, func(s *stack) {
		var manifests []string
		for _, table := range []string{"file:///w/main/t", "file:///w/main/u"} {
			named := map[string][]string{}
			lists := map[string][]string{}
			for i := range 10 {
				m := fmt.Sprintf("%s/metadata/m-%02d.avro", table, i)
				for j := range 250 {
					named[m] = append(named[m], fmt.Sprintf("%s/data/%02d-%03d.parquet", table, i, j))
				}
				s.put(named[m]...)
				manifests = append(manifests, m)
				lists[fmt.Sprintf("%s/metadata/snap-%02d.avro", table, i)] = slices.Clone(manifests[len(manifests)-i-1:])
			}
			s.create(path.Base(table), nil)
			s.snapshots(path.Base(table), lists, named)
		}
		files := len(s.files.Locations())
		var mu sync.Mutex
		reads, deletes := map[string]int{}, 0
		s.files.fail(faults{
			read: func(location string) error {
				mu.Lock()
				defer mu.Unlock()
				reads[location]++
				return nil
			},
			delete: func(string) error {
				time.Sleep(time.Millisecond) // of the bubble, so that all that can run at once does
				mu.Lock()
				defer mu.Unlock()
				deletes++
				return nil
			},
		})
		r := s.reclaimer()
		first, second := r.Start("main", s.drop("t")), r.Start("main", s.drop("u"))
		stop := s.begin(r)
		<-first
		<-second
		stop()
		s.left()
		if s.files.most != 32 {
			t.Errorf("%d files were deleted at once, want 32", s.files.most)
		}
		if deletes != files {
			t.Errorf("%d deletions of %d files", deletes, files)
		}
		for _, m := range manifests {
			if reads[m] != 1 {
				t.Errorf("%s was read %d times", m, reads[m])
			}
		}
	})
}

// TestLongHistory: metadata files that fell off the log are reached through the oldest file of each
// log, also where an earlier attempt was cut off among them.
func TestLongHistory(t *testing.T) {
	history := func(s *stack) {
		s.create("t", map[string]string{"write.metadata.previous-versions-max": "3"})
		for i := range 20 {
			s.commit("t", setProperty("n", fmt.Sprint(i)))
		}
	}
	for n := range 21 {
		run(t, func(s *stack) {
			history(s)
			id := s.drop("t")
			ctx, cancel := context.WithCancel(context.Background())
			var deleted atomic.Int64
			s.files.fail(faults{delete: func(string) error {
				if deleted.Add(1) > int64(n) {
					cancel()
					return context.Canceled
				}
				return nil
			}})
			r := s.reclaimer()
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.Run(ctx)
			}()
			<-r.Start("main", id)
			cancel()
			<-done
			s.files.fail(faults{})
			s.round()
			s.left()
		})
	}
}

// TestRegistered: of a table whose history began elsewhere an older metadata file may be another's by
// now. It goes only if it says that it is of one of the table's places.
func TestRegistered(t *testing.T) {
	for _, registered := range []bool{false, true} {
		run(t, func(s *stack) {
			oldest := s.create("t", nil)
			damaged, current := s.commit("t", setProperty("n", "1")), ""
			for i := range 3 {
				current = s.commit("t", setProperty("n", fmt.Sprint(i+2)))
			}
			data, err := s.files.Read(s.Context(), scope, oldest, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			s.files.Replace(oldest, []byte(strings.ReplaceAll(string(data), "/w/main/t", "/w/main/t2")))
			s.files.Replace(damaged, []byte("{"))
			s.plant(catalog.Dying{ID: "t", Metadata: current, Places: []string{"file:///w/main/t"}, Registered: registered})
			s.round()
			if registered {
				s.left(oldest, damaged)
			} else {
				s.left()
			}
			if len(s.lists()) != 0 {
				t.Error("the list is left")
			}
		})
	}
}

// TestPurgeSparesWhatAForkShares: a copy of a table's metadata that says another location is a table of its own, which
// shares the manifests of the first. Its purge spares them, though the two write their metadata to one directory.
func TestPurgeSparesWhatAForkShares(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", map[string]string{"write.metadata.path": "file:///w/main/shared"})
		s.put("file:///w/main/t/data/1.parquet")
		s.snapshots("t", map[string][]string{"file:///w/main/shared/snap-1.avro": {"file:///w/main/shared/m1.avro"}},
			map[string][]string{"file:///w/main/shared/m1.avro": {"file:///w/main/t/data/1.parquet"}})
		current := s.commit("t", setProperty("k", "v"))
		data, err := s.files.Read(t.Context(), scope, current, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		const fork = "file:///w/main/shared/00000-fork.metadata.json"
		s.write(fork, bytes.Replace(data, []byte(`"file:///w/main/t"`), []byte(`"file:///w/main/fork"`), 1))
		before := s.files.Locations()
		s.must(&catalog.RegisterTable{Request: catalog.RegisterTableRequest{Warehouse: "main", Table: ident("fork"), MetadataLocation: fork}})
		s.purge("fork")
		s.left(before...) // its own file, too: it lies in no place of the fork
	})
}
