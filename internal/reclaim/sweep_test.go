package reclaim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/reclaim"
)

const (
	dir       = "file:///w/main/t/metadata/"
	orphanEnd = "-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json"
)

// sweep runs one in earnest or not.
func (s *stack) sweep(dryRun bool) reclaim.SweepReport {
	s.Helper()
	report, err := s.reclaimer().Sweep(s.Context(), "main", dryRun)
	if err != nil {
		s.Fatal(err)
	}
	slices.Sort(report.Files)
	return report
}

// TestSweep: what was uploaded and never named goes, and nothing else.
func TestSweep(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", map[string]string{"write.metadata.previous-versions-max": "2"})
		for i := range 8 {
			s.commit("t", setProperty("n", fmt.Sprint(i))) // 1 to 8; the log of each names two
		}
		current := s.files.Locations()[8]
		s.create("other", nil)
		view := s.createView("v")

		orphans := []string{dir + "00004" + orphanEnd, dir + "00008-9c12d441-03fe-4693-9a96-a0705ddf69c2.gz.metadata.json"}
		for _, o := range orphans {
			s.copy(current, o)
		}
		s.copy(current, dir+"00009"+orphanEnd)                     // not overtaken yet
		s.copy(view, strings.Replace(view, "00000-", "00001-", 1)) // of views nothing can be told
		leftover := dir + ".landfast-ABCDEF.tmp"
		s.put(leftover)

		kept := s.files.Locations()
		kept = slices.DeleteFunc(kept, func(l string) bool { return slices.Contains(orphans, l) || l == leftover })
		// Another table was here once: its file may be registered again. So may that of a table which was made from this one.
		moved, err := s.files.Read(s.Context(), scope, current, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s.write(dir+"00005-9c12d441-03fe-4693-9a96-a0705ddf69c3.metadata.json", uuids.ReplaceAll(moved, []byte(`"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c3"`)))
		s.write(dir+"00005-9c12d441-03fe-4693-9a96-a0705ddf69c6.metadata.json", bytes.ReplaceAll(moved, []byte("/w/main/t"), []byte("/w/main/t2")))
		// Names that are not of this catalog's making, and what is no metadata.
		for _, name := range []string{
			"v4.metadata.json", "00004-x.metadata.json", "0004" + orphanEnd, "00004" + orphanEnd + ".bak", "00004" + strings.ToUpper(orphanEnd),
			"snap-1.avro", "below/00004" + orphanEnd, ".landfast-ABCDEF.tmp2",
		} {
			s.copy(current, dir+name)
		}
		s.put(dir + "00006-9c12d441-03fe-4693-9a96-a0705ddf69c4.metadata.json")
		s.copy(current, "file:///w/main/t/00004"+orphanEnd)
		s.put("file:///w/main/.landfast-ABCDEF.tmp", "file:///w/main/t/data/.landfast-ABCDEF.tmp")
		for _, l := range s.files.Locations() {
			if !slices.Contains(kept, l) && !slices.Contains(orphans, l) && l != leftover {
				kept = append(kept, l)
			}
		}

		none := s.sweep(false)
		if diff := cmp.Diff(reclaim.SweepReport{Tables: 3}, none); diff != "" {
			t.Errorf("while the files are young (-want +got):\n%s", diff)
		}
		time.Sleep(grace + time.Second)
		s.put(dir + ".landfast-YOUNG.tmp")
		s.copy(current, dir+"00008-9c12d441-03fe-4693-9a96-a0705ddf69c5.metadata.json")
		kept = append(kept, dir+".landfast-YOUNG.tmp", dir+"00008-9c12d441-03fe-4693-9a96-a0705ddf69c5.metadata.json")
		all := s.files.Locations()

		want := reclaim.SweepReport{Tables: 3, Orphans: 2, Leftovers: 1, Files: append([]string{leftover}, orphans...)}
		slices.Sort(want.Files)
		if diff := cmp.Diff(want, s.sweep(true)); diff != "" {
			t.Errorf("dry run (-want +got):\n%s", diff)
		}
		s.left(all...)
		if len(s.lists()) != 0 {
			t.Error("a dry run named files")
		}
		if diff := cmp.Diff(want, s.sweep(false)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.left(slices.DeleteFunc(all, func(l string) bool { return l == leftover })...)
		s.round() // too early
		s.left(all[:len(all)-1]...)
		time.Sleep(grace + time.Second)
		s.round()
		s.left(kept...)
		if diff := cmp.Diff(reclaim.SweepReport{Tables: 3, Leftovers: 1, Orphans: 1}, s.sweep(false), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Files" }, cmp.Ignore())); diff != "" {
			t.Errorf("what was young (-want +got):\n%s", diff)
		}
		s.must(&catalog.LoadTable{Request: catalog.LoadTableRequest{Warehouse: "main", Table: ident("t")}})
	})
}

var uuids = regexp.MustCompile(`"table-uuid":"[^"]*"`)

// createView makes a view and returns the location of its metadata file.
func (s *stack) createView(name string) string {
	s.Helper()
	op := &catalog.CreateView{Request: catalog.CreateViewRequest{
		Warehouse: "main", View: ident(name), Location: "file:///w/main/" + name, Properties: map[string]string{"write.metadata.compression-codec": "none"},
		Schema:  []byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`),
		Version: []byte(`{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":["ns"],"representations":[{"type":"sql","sql":"select 1","dialect":"spark"}]}`),
	}}
	s.must(op)
	return op.Result.MetadataLocation
}

// TestSweepBrokenHistory: where the chain of logs breaks, what came before cannot be told from orphans.
func TestSweepBrokenHistory(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", map[string]string{"write.metadata.previous-versions-max": "2"})
		for i := range 8 {
			s.commit("t", setProperty("n", fmt.Sprint(i)))
		}
		all := s.files.Locations() // 8 names 7 and 6, 6 names 5 and 4, 4 names 3 and 2
		s.delete(all[4])
		orphan := dir + "00005" + orphanEnd
		s.copy(all[8], orphan)
		s.copy(all[8], dir+"00004"+orphanEnd)
		time.Sleep(grace + time.Second)
		want := reclaim.SweepReport{Tables: 1, Orphans: 1, Files: []string{orphan}}
		if diff := cmp.Diff(want, s.sweep(true)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestSweepSkips: tables that cannot be looked at are passed over, and others are not.
func TestSweepSkips(t *testing.T) {
	run(t, func(s *stack) {
		damaged, foreign := s.create("damaged", nil), s.create("foreign", nil)
		s.create("t", nil)
		s.commit("t", setProperty("n", "1"))
		s.copy(s.files.Locations()[slices.IndexFunc(s.files.Locations(), func(l string) bool { return strings.HasPrefix(l, dir+"00001-") })], dir+"00001"+orphanEnd)
		s.copy(damaged, strings.Replace(damaged, "00000-", "00001-", 1))
		s.files.Replace(damaged, []byte("{"))
		// It was registered: what came after its file may be registered again.
		s.copy(foreign, "file:///w/main/hadoop/metadata/v1.metadata.json")
		s.copy(foreign, "file:///w/main/hadoop/metadata/00001"+orphanEnd)
		data, err := s.files.Read(s.Context(), scope, foreign, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s.files.Replace("file:///w/main/hadoop/metadata/v1.metadata.json", []byte(strings.ReplaceAll(string(data), "/w/main/foreign", "/w/main/hadoop")))
		s.must(&catalog.RegisterTable{Request: catalog.RegisterTableRequest{
			Warehouse: "main", Table: ident("hadoop"), MetadataLocation: "file:///w/main/hadoop/metadata/v1.metadata.json",
		}})
		time.Sleep(grace + time.Second)

		errBroken := errors.New("the disk is broken")
		s.files.fail(faults{read: func(location string) error {
			if location == foreign {
				return errBroken
			}
			return nil
		}})
		report, err := s.reclaimer().Sweep(s.Context(), "main", true)
		if !errors.Is(err, errBroken) {
			t.Errorf("error %v", err)
		}
		want := reclaim.SweepReport{Tables: 4, Skipped: 3, Orphans: 1, Files: []string{dir + "00001" + orphanEnd}}
		if diff := cmp.Diff(want, report); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.files.fail(faults{mark: blob.ErrMarkMissing})
		if report, err := s.reclaimer().Sweep(s.Context(), "main", true); !errors.Is(err, blob.ErrMarkMissing) || report.Tables != 0 {
			t.Errorf("a root that is not mounted: %+v, %v", report, err)
		}
		s.files.fail(faults{})
		if _, err := s.reclaimer().Sweep(s.Context(), "no-such-warehouse", true); !errors.Is(err, catalog.ErrNoSuchWarehouse) {
			t.Errorf("a warehouse that is not there: %v", err)
		}
	})
}

// TestSweepOfOverlapping: where locations may overlap, nothing can be told from the files of others.
func TestSweepOfOverlapping(t *testing.T) {
	run(t, func(s *stack) {
		s.must(&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
			Name: "lax", ID: "lax-id", Root: blob.Root{URI: "file:///w/lax", Dir: "/w/lax"}, Properties: map[string]string{catalog.PropertyAllowOverlap: "true"},
		}})
		s.must(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "lax", Levels: []string{"ns"}}})
		create := &catalog.CreateTable{Request: catalog.CreateTableRequest{
			Warehouse: "lax", Table: ident("t"), Location: "file:///w/lax/t", Schema: []byte(`{"type":"struct","schema-id":0,"fields":[]}`),
		}}
		s.must(create)
		s.files.Replace("file:///w/lax/t/metadata/00001"+orphanEnd, create.Result.Metadata)
		time.Sleep(grace + time.Second)
		report, err := s.reclaimer().Sweep(s.Context(), "lax", true)
		if diff := cmp.Diff(reclaim.SweepReport{Tables: 1, Skipped: 1}, report); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// TestSweepNeverTakesACommit sweeps while a table is written to, at every moment of a commit.
func TestSweepNeverTakesACommit(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		ctx, cancel := context.WithCancel(s.Context())
		r := s.reclaimer()
		s.begin(r)
		swept := make(chan struct{})
		go func() {
			defer close(swept)
			for ctx.Err() == nil {
				if _, err := r.Sweep(ctx, "main", false); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
			}
		}()
		for i := range 50 {
			s.commit("t", setProperty("n", fmt.Sprint(i)))
			time.Sleep(47 * time.Second)
		}
		cancel()
		<-swept
		synctest.Wait()
		if n := len(s.files.Locations()); n != 51 {
			t.Errorf("%d files are left of 51", n)
		}
	})
}

// TestSweepAfterRestore: when the catalog was restored from a backup, the metadata of later commits
// is there, and nothing names it. It may still be registered, so it stays; so does all else of the table.
func TestSweepAfterRestore(t *testing.T) {
	run(t, func(s *stack) {
		s.create("t", nil)
		s.commit("t", setProperty("n", "1"))
		files := s.files.Locations()
		orphan := dir + "00001" + orphanEnd
		s.copy(files[1], orphan)
		lost := []string{dir + "00002" + orphanEnd, dir + "00003" + orphanEnd}
		data, err := s.files.Read(s.Context(), scope, files[1], 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s.write(lost[0], bytes.ReplaceAll(data, []byte(files[0]), []byte(files[1])))
		s.write(lost[1], bytes.ReplaceAll(data, []byte(files[0]), []byte(lost[0])))
		time.Sleep(grace + time.Second)
		if diff := cmp.Diff(reclaim.SweepReport{Tables: 1, Skipped: 1}, s.sweep(false)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.delete(lost[1])
		if diff := cmp.Diff(reclaim.SweepReport{Tables: 1, Orphans: 1, Files: []string{orphan}}, s.sweep(true)); diff != "" {
			t.Errorf("with one lost commit (-want +got):\n%s", diff)
		}
	})
}
