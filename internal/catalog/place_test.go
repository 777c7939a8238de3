package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
)

func setLocation(dotted, location string) *catalog.CommitTable {
	return commitTable(dotted, noAssert, `[{"action":"set-location","location":"`+location+`"}]`)
}

// A table whose location is changed keeps the places where its files are, until it is gone.
func TestMovedTableKeepsItsPlaces(t *testing.T) {
	const l1, l2 = "file:///w/main/own/one", "file:///w/main/own/two"
	s := newPlainStack(t)
	chosen := createTable("ns.chosen")
	s.must(chosen)
	before, _, _ := strings.Cut(chosen.Result.MetadataLocation, "/metadata/")
	s.must(setLocation("ns.chosen", l1))
	s.must(setLocation("ns.chosen", l2))
	for _, place := range []string{before, before + "/deeper", l1, l1 + "/deeper", l2, "file:///w/main/own"} {
		s.refused(createTableAt("ns.other", place), catalog.ErrInvalid, "overlaps the location of another table")
		s.refused(createViewAt("ns.other", place), catalog.ErrInvalid, "overlaps the location of another table")
	}
	s.refused(register("ns.other", chosen.Result.MetadataLocation), catalog.ErrInvalid, "lies in the place")
	s.must(setLocation("ns.chosen", "file:///w/main/own")) // above what it has itself
	s.must(setLocation("ns.chosen", l1))                   // back
	s.must(renameTable("ns.chosen", "ns.renamed"))
	s.refused(createTableAt("ns.other", l2), catalog.ErrInvalid, "overlaps")
	s.must(dropTable("ns.renamed", false))
	s.must(createTableAt("ns.other", l2))
	s.must(register("ns.chosen", chosen.Result.MetadataLocation))
}

// A sweep or a lost decision never gives up what a pointer reaches, whoever owns the place
// where it lies.
func TestGiveUpSparesOthers(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTableAt("ns.host", "file:///w/main/host"))
	guest := createTable("ns.guest")
	guest.Request.Properties = map[string]string{"write.metadata.path": "file:///w/main/host/metadata"}
	s.must(guest)
	current := setProperty("ns.guest", "k", "v")
	s.must(current)
	s.must(createView("ns.v"))
	view := replaceView("ns.v", noAssert, `[{"action":"set-properties","updates":{"k":"v"}}]`)
	s.must(view)
	files := s.files.Locations()
	op := giveUp(append(files, "file:///w/main/host/metadata/00007-gone.metadata.json", "file:///elsewhere/x")...)
	s.must(op)
	// The view's first version is reachable from nothing.
	if len(op.Result.Files) != 1 || !strings.Contains(op.Result.Files[0], "/v-") || op.Result.Files[0] == view.Result.MetadataLocation {
		t.Errorf("given up: %q", op.Result.Files)
	}
	again := giveUp(files...)
	s.must(again)
	if len(again.Result.Files) != 0 {
		t.Errorf("given up twice: %q", again.Result.Files)
	}
}

// A commit that was decided before GiveUp wrote its pointer does not land: the file that
// it would name may have been given up.
func TestGiveUpRacesCommit(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.t"))
	orphan := strings.Replace(s.files.Locations()[0], "/00000-", "/00001-", 1)
	data, err := s.files.Read(t.Context(), blob.Scope{{URI: "file:///w/main", Dir: "/w/main"}}, s.files.Locations()[0], 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s.files.Replace(orphan, data)
	var between sync.Once
	fault := s.store.Fault
	s.store.Fault = func(b store.Batch) kerneltest.Fault {
		if b.Ops[0].Name == "commit-table" {
			between.Do(func() {
				op := giveUp(orphan)
				if err := s.runner.Do(t.Context(), op); err != nil || len(op.Result.Files) != 1 {
					t.Errorf("%v, given up: %q", err, op.Result.Files)
				}
			})
		}
		return fault(b)
	}
	files := len(s.files.Locations())
	s.must(setProperty("ns.t", "k", "v"))
	if n := len(s.files.Locations()) - files; n != 2 {
		t.Errorf("%d files were written: the first decision should have failed", n)
	}
}

// Metadata files that fall off the log are given up where the table asks for it; nobody can
// register one from then on. The table itself goes on.
func TestDeleteAfterCommit(t *testing.T) {
	s := newPlainStack(t)
	first := createTable("ns.t")
	first.Request.Properties = map[string]string{
		"write.metadata.delete-after-commit.enabled": "TRUE", "write.metadata.previous-versions-max": "2",
	}
	s.must(first)
	var written []string
	for range 4 {
		commit := setProperty("ns.t", "k", "v")
		s.must(commit)
		written = append(written, commit.Result.MetadataLocation)
	}
	find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}}
	s.must(find)
	var dying []string
	for _, list := range find.Result.Lists {
		if !list.Grace {
			t.Errorf("%s does not wait", list.ID)
		}
		dying = append(dying, list.Files...)
	}
	if diff := cmp.Diff([]string{first.Result.MetadataLocation, written[0]}, dying); diff != "" {
		t.Errorf("dying: -want +got\n%s", diff)
	}
	s.refused(overwriting(register("ns.t", written[0])), catalog.ErrMissingFile, "has been given up")
	s.must(dropTable("ns.t", false))
	s.refused(register("ns.again", written[0]), catalog.ErrMissingFile, "has been given up")
	for _, list := range find.Result.Lists {
		if err := reclaim(t.Context(), s.runner, s.files, "main", list.ID); err != nil {
			t.Fatal(err)
		}
	}
	s.must(register("ns.again", written[3]))
	left := s.files.Locations()
	if diff := cmp.Diff(written[1:], left); diff != "" {
		t.Errorf("left: -want +got\n%s", diff)
	}
}

// A purge reaches into the directory that metadata files were written to, unless somebody
// else's place is in it or around it.
func TestPurgePlaces(t *testing.T) {
	for _, c := range []struct{ name, path, other, want string }{
		{"of its own", "file:///w/main/meta/t", "", "file:///w/main/meta/t"},
		{"below its location", "file:///w/main/t/elsewhere", "", ""},
		{"inside another table", "file:///w/main/other/metadata", "file:///w/main/other", ""},
		{"above another table", "file:///w/main/shelf", "file:///w/main/shelf/other", ""},
		{"above an area", "file:///w/main/ns", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newPlainStack(t)
			if c.other != "" {
				s.must(createTableAt("ns.other", c.other))
			}
			table := createTableAt("ns.t", "file:///w/main/t")
			table.Request.Properties = map[string]string{"write.metadata.path": c.path}
			s.must(table)
			drop := dropTable("ns.t", true)
			s.must(drop)
			find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main", ID: drop.Result.DyingID}}
			s.must(find)
			want := []string{"file:///w/main/t"}
			if c.want != "" {
				want = append(want, c.want)
			}
			if len(find.Result.Lists) != 1 {
				t.Fatalf("%d lists", len(find.Result.Lists))
			}
			if diff := cmp.Diff(want, find.Result.Lists[0].Places); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// faintFiles cannot read one location, once.
type faintFiles struct {
	*kerneltest.Files
	location string
	failed   bool
}

func (f *faintFiles) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	if location == f.location && !f.failed {
		f.failed = true
		return nil, errFaint
	}
	return f.Files.Read(ctx, scope, location, limit)
}

var errFaint = errors.New("the disk hiccups")

// A file that cannot be read now is not taken for one that nobody knows: it would never be given up.
func TestGiveUpNeedsToRead(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTable("ns.t"))
	current := s.files.Locations()[0]
	orphan := strings.Replace(current, "/00000-", "/00001-", 1)
	data, err := s.files.Read(t.Context(), blob.Scope{{URI: "file:///w/main", Dir: "/w/main"}}, current, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s.files.Replace(orphan, data)
	for _, unreadable := range []string{orphan, current} {
		files := &faintFiles{Files: s.files, location: unreadable}
		run := kernel.New(kernel.Options{Store: s.store, Files: files, Queue: local.New(local.Options{})})
		if err := run.Do(t.Context(), giveUp(orphan)); !errors.Is(err, errFaint) {
			t.Errorf("%s cannot be read: %v", unreadable, err)
		}
	}
	op := giveUp(orphan)
	s.must(op)
	if len(op.Result.Files) != 1 {
		t.Errorf("given up: %q", op.Result.Files)
	}
}

// Some catalogs name their files v1, v2 and so on, and give a name again once its table is gone. What was remembered of the
// former file is not shown for the one that was registered, and no commit rests on it.
func TestRegisterAtRememberedLocation(t *testing.T) {
	s := newPlainStack(t)
	s.must(createTableAt("ns.a", "file:///w/main/x/a"))
	s.must(createTableAt("ns.b", "file:///w/main/x/b"))
	scope := blob.Scope{{URI: "file:///w/main", Dir: "/w/main"}}
	const file = "file:///w/main/x/h/metadata/v1.metadata.json"
	for i, name := range []string{"ns.a", "ns.b"} {
		load := loadTable(name)
		s.must(load)
		s.must(&catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: "main", Table: ident(name)}})
		if i > 0 {
			s.must(&catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: "main", Table: ident("ns.t")}})
			if err := s.files.Delete(t.Context(), scope, file); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.files.Create(t.Context(), scope, file, load.Result.Metadata); err != nil {
			t.Fatal(err)
		}
		s.must(register("ns.t", file))
		again := loadTable("ns.t")
		s.must(again)
		if diff := cmp.Diff(string(load.Result.Metadata), string(again.Result.Metadata)); diff != "" {
			t.Errorf("what is loaded is not what was registered (-want +got)\n%s", diff)
		}
	}
	commit := setProperty("ns.t", "k", "v")
	s.must(commit)
	if !bytes.Contains(commit.Result.Metadata, []byte("x/b")) {
		t.Errorf("the commit rests on what was there before: %s", commit.Result.Metadata)
	}
}

// A metadata file was replaced under its name, and its table registered anew. Each instance knows it from the
// former one, whatever it remembers and whatever tag its client holds; and the tag stays while the table does.
func TestRegisterReplacedFile(t *testing.T) {
	const file = "file:///w/main/x/h/metadata/v1.metadata.json"
	unregister := &catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: "main", Table: ident("ns.t")}}
	over := register("ns.t", file)
	over.Request.Overwrite = true
	for name, replace := range map[string][]kernel.Operation{
		"unregister": {unregister, register("ns.t", file)},
		"drop":       {dropTable("ns.t", false), register("ns.t", file)},
		"overwrite":  {over},
		"twice":      {over, over},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPlainStack(t)
			var files [2][]byte
			for i, at := range []string{"file:///w/main/x/a", "file:///w/main/x/b"} {
				create := createTableAt("ns.t", at)
				s.must(create)
				files[i] = create.Result.Metadata
				s.must(unregister)
			}
			s.files.Replace(file, files[0])
			s.must(register("ns.t", file))
			instances := []kernel.Runner{s.runner}
			s.restart()
			instances = append(instances, s.runner)

			load := func(i int, snapshots catalog.Snapshots, table string, known ...string) catalog.LoadTableResult {
				t.Helper()
				s.runner = instances[i]
				op := loadTable(table)
				op.Request.Snapshots, op.Request.Known = snapshots, known
				s.must(op)
				return op.Result
			}
			kinds := []catalog.Snapshots{catalog.SnapshotsAll, catalog.SnapshotsRefs}
			former := map[catalog.Snapshots]string{}
			for _, kind := range kinds {
				former[kind] = load(0, kind, "ns.t").ETag
				if !load(1, kind, "ns.t", former[kind]).NotModified {
					t.Errorf("%s: two instances know one table by two tags", kind)
				}
				load(1, kind, "ns.t")
			}

			s.files.Replace(file, files[1])
			for _, op := range replace {
				s.runner = instances[0]
				s.must(op)
			}
			tags := map[catalog.Snapshots]string{}
			for i := range instances {
				for _, kind := range kinds {
					got := load(i, kind, "ns.t", former[kind])
					if got.NotModified || !bytes.Contains(got.Metadata, []byte("x/b")) {
						t.Errorf("instance %d, %s: the former table, not modified %v: %s", i, kind, got.NotModified, got.Metadata)
					}
					tags[kind] = got.ETag
				}
			}
			if got := replace[len(replace)-1].(*catalog.RegisterTable).Result.ETag; got != tags[catalog.SnapshotsAll] {
				t.Errorf("registered with the tag %s, loaded with %s", got, tags[catalog.SnapshotsAll])
			}

			s.must(renameTable("ns.t", "ns.u"))
			s.restart()
			instances = append(instances, s.runner)
			for i := range instances {
				for _, kind := range kinds {
					if !load(i, kind, "ns.u", tags[kind]).NotModified {
						t.Errorf("instance %d, %s: a new name has changed the tag", i, kind)
					}
				}
			}
			s.runner = instances[1]
			commit := setProperty("ns.u", "k", "v")
			s.must(commit)
			if !bytes.Contains(commit.Result.Metadata, []byte("x/b")) {
				t.Errorf("the commit rests on what was there before: %s", commit.Result.Metadata)
			}
			for i := range instances {
				if !load(i, catalog.SnapshotsAll, "ns.u", commit.Result.ETag).NotModified {
					t.Errorf("instance %d: the tag of a commit is not that of the load", i)
				}
			}
		})
	}
}

// So it is with a view.
func TestRegisterReplacedView(t *testing.T) {
	const file = "file:///w/main/x/h/metadata/v1.metadata.json"
	s := newPlainStack(t)
	var files [2][]byte
	for i, at := range []string{"file:///w/main/x/a", "file:///w/main/x/b"} {
		create := createViewAt("ns.v", at)
		s.must(create)
		files[i] = create.Result.Metadata
		s.must(&catalog.DropView{Request: view("ns.v")})
	}
	s.files.Replace(file, files[0])
	s.must(registerView("ns.v", file))
	other := s.runner
	s.restart()
	s.must(&catalog.LoadView{Request: view("ns.v")})
	s.files.Replace(file, files[1])
	for _, op := range []kernel.Operation{&catalog.DropView{Request: view("ns.v")}, registerView("ns.v", file)} {
		if err := other.Do(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	again := &catalog.LoadView{Request: view("ns.v")}
	s.must(again)
	if diff := cmp.Diff(string(files[1]), string(again.Result.Metadata)); diff != "" {
		t.Errorf("what is loaded is not what was registered (-want +got)\n%s", diff)
	}
}
