package check_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/sim/check"
	"github.com/landfast/landfast/internal/sim/history"
)

// scene is a short history, and what is there in the end.
type scene struct {
	*world
	*script
	dying   []string
	earlier func(string) bool
	broken  string         // a file that cannot be read
	copies  []history.Name // tables that were registered, beside those that have the files for their own
}

// do has the world carry out an operation.
func (s *scene) do(kind history.Kind, at, token string, parts ...history.Part) *history.Operation {
	o := s.add(kind, at)
	o.Token, o.Parts = token, parts
	if kind == history.Transaction {
		o.Name = history.Name{}
	}
	s.world.do(o)
	return o
}

func (s *scene) change(at, token string, snapshot int64) *history.Operation {
	return s.do(history.Commit, at, token, history.Part{Name: name(at), Snapshot: snapshot})
}

// showLatest has the answer to an operation show what a later one of its batch left.
func (s *scene) showLatest(o, last *history.Operation) {
	o.Return = max(o.Return, last.Return)
	o.Show(last.Seen)
}

// lose has an acknowledged operation leave no trace: f is the operation.
func (s *scene) lose(f func()) {
	before := map[history.Name]*thing{}
	for n, t := range s.tables {
		before[n] = t
	}
	f()
	s.tables = before
}

func newScene() *scene {
	s := &scene{world: newWorld(rand.New(rand.NewPCG(1, 2))), script: &script{ops: make([]history.Operation, 0, 50)}}
	s.do(history.CreateNamespace, "a", "n")
	for _, at := range []string{"a/t", "a/s"} {
		s.do(history.CreateTable, at, "made "+at)
		s.head(at).keeps = 100
		s.change(at, "1 "+at, 7)
		s.change(at, "2 "+at, 8)
	}
	s.do(history.Transaction, "", "both", history.Part{Name: name("a/t"), Snapshot: 9}, history.Part{Name: name("a/s")})
	s.do(history.CreateView, "a/v", "view")
	s.do(history.ReplaceView, "a/v", "view 2", history.Part{Name: name("a/v")})
	return s
}

func (s *scene) head(at string) *metadata { return s.files[s.tables[name(at)].at] }

// former is the metadata file before the last.
func (s *scene) former(at string) string {
	log := s.head(at).MetadataLog
	return log[len(log)-1].File
}

func (s *scene) read(location string) ([]byte, error) {
	if location == s.broken {
		return nil, errors.New("the disk is on fire")
	}
	return s.world.read(location)
}

// shorten has a table keep one former file, and delete the others.
func (s *scene) shorten(at string) { s.head(at).keeps, s.head(at).deletesDropped = 1, true }

func TestChains(t *testing.T) {
	for _, test := range []struct {
		name   string
		happen func(*scene)
		want   string
	}{
		{"nothing", func(*scene) {}, ""},
		{"unknown commits, applied and not", func(s *scene) {
			unknown(s.change("a/t", "3", 10))
			s.lose(func() { unknown(s.change("a/s", "4", 10)) })
		}, ""},
		{"a dropped table", func(s *scene) { s.do(history.DropTable, "a/t", "") }, ""},
		{"a table that may have been dropped", func(s *scene) { unknown(s.do(history.DropTable, "a/t", "")) }, ""},
		{"a renamed table, dropped", func(s *scene) {
			o := s.add(history.RenameTable, "a/t")
			o.To = name("a/x")
			s.world.do(o)
			s.do(history.DropTable, "a/x", "")
		}, ""},
		{"registered as it was before", func(s *scene) {
			file := s.former("a/t")
			s.do(history.Unregister, "a/t", "")
			o := s.add(history.RegisterTable, "a/x")
			o.From = file
			s.world.do(o)
		}, ""},
		{"overwritten with another", func(s *scene) {
			o := s.add(history.RegisterTable, "a/t")
			o.From, o.Overwrite = s.former("a/s"), true
			s.world.do(o)
		}, ""},
		{"a copy that is registered", func(s *scene) {
			o := s.add(history.RegisterTable, "a/x")
			o.From = s.former("a/t")
			s.world.do(o)
			s.registered = map[string]bool{}
			s.copies = []history.Name{name("a/x")}
		}, ""},
		{"a log that was cut off", func(s *scene) {
			s.shorten("a/t")
			for _, token := range []string{"3", "4", "5"} {
				s.change("a/t", token, 0)
			}
		}, ""},
		{"clocks that are a minute apart", func(s *scene) {
			m := s.head("a/t")
			m.SnapshotLog[len(m.SnapshotLog)-1].Time = m.LastUpdated + 60_000
		}, ""},
		{"tokens from before", func(s *scene) {
			s.head("a/t").Properties["token"] = "old"
			s.ops = s.ops[:1]
			s.earlier = func(string) bool { return true }
		}, ""},

		{"an answer that showed a later change", func(s *scene) {
			o := s.change("a/t", "3", 10)
			s.showLatest(o, s.change("a/t", "4", 0))
		}, ""},
		{"an answer that showed a later change of a view", func(s *scene) {
			o := s.do(history.ReplaceView, "a/v", "3", history.Part{Name: name("a/v")})
			s.showLatest(o, s.do(history.ReplaceView, "a/v", "4", history.Part{Name: name("a/v")}))
		}, ""},

		{"an answer that showed an older state than its own", func(s *scene) {
			o := s.change("a/t", "3", 10)
			s.showLatest(s.change("a/t", "4", 0), o)
		}, "showed an older state than its own"},
		{"a commit is lost, and its answer showed a later one", func(s *scene) {
			var o *history.Operation
			s.lose(func() { o = s.change("a/t", "3", 10) })
			s.showLatest(o, s.change("a/t", "4", 11))
		}, "lost: w/a/t was acknowledged"},
		{"a change of a view is lost, and its answer showed a later one", func(s *scene) {
			s.lose(func() {
				o := s.do(history.ReplaceView, "a/v", "3", history.Part{Name: name("a/v")})
				s.showLatest(o, s.do(history.ReplaceView, "a/v", "4", history.Part{Name: name("a/v")}))
			})
		}, "lost: the view w/a/v"},
		{"a commit is lost", func(s *scene) { s.lose(func() { s.change("a/t", "3", 10) }) }, "lost: w/a/t was acknowledged"},
		{"a commit is lost, and another came", func(s *scene) {
			s.lose(func() { s.change("a/t", "3", 10) })
			s.change("a/t", "4", 11)
		}, "lost: w/a/t was acknowledged"},
		{"half of a transaction is lost", func(s *scene) {
			before := s.tables[name("a/s")]
			s.do(history.Transaction, "", "3", history.Part{Name: name("a/t")}, history.Part{Name: name("a/s")})
			s.tables[name("a/s")] = before
		}, "lost: w/a/s was acknowledged"},
		{"a creation is lost", func(s *scene) { s.lose(func() { s.do(history.CreateTable, "a/x", "3") }) }, "lost: w/a/x was acknowledged"},
		{"a table is gone", func(s *scene) { delete(s.tables, name("a/t")) }, "lost: w/a/t was acknowledged"},
		{"a table is gone that was dropped before", func(s *scene) {
			s.do(history.DropTable, "a/t", "")
			s.lose(func() { s.do(history.CreateTable, "a/t", "3") })
		}, "lost: w/a/t was acknowledged"},
		{"a commit is lost although the log is cut off", func(s *scene) {
			s.shorten("a/t")
			s.change("a/t", "3", 0)
			s.lose(func() { s.change("a/t", "4", 0) })
			s.change("a/t", "5", 0)
		}, "lost: w/a/t was acknowledged"},
		{"a view's change is lost", func(s *scene) {
			s.lose(func() { s.do(history.ReplaceView, "a/v", "3", history.Part{Name: name("a/v")}) })
		}, "lost: the view w/a/v"},
		{"a refused commit is there", func(s *scene) {
			o := s.change("a/t", "3", 10)
			o.Outcome, o.Refusal, o.Seen = history.Refused, history.Busy, history.State{}
		}, "phantom: what was refused"},
		{"a commit that nobody sent", func(s *scene) {
			s.change("a/t", "3", 10)
			s.ops = s.ops[:len(s.ops)-1]
		}, `phantom: nobody wrote the token "3"`},
		{"a commit twice", func(s *scene) {
			s.change("a/t", "3", 0)
			s.change("a/t", "4", 0)
			s.ops[len(s.ops)-1].Seen = history.State{}
			s.head("a/t").Properties["token"] = "3"
		}, "was applied twice"},
		{"the wrong order", func(s *scene) {
			a, b := s.change("a/t", "3", 0), s.change("a/t", "4", 0)
			a.Token, b.Token = b.Token, a.Token
		}, "wrong order"},
		{"the file of a pointer is missing", func(s *scene) { delete(s.files, s.tables[name("a/t")].at) }, "its metadata file is missing"},
		{"the file of a view is missing", func(s *scene) { delete(s.files, s.tables[name("a/v")].at) }, "its metadata file is missing"},
		{"a file of the log is missing", func(s *scene) { delete(s.files, s.former("a/t")) }, "is missing, and is in the metadata log"},
		{"a file cannot be read", func(s *scene) { s.broken = s.former("a/t") }, "cannot be read: the disk is on fire"},
		{"a file that is dying", func(s *scene) { s.dying = []string{s.tables[name("a/t")].at} }, "is dying, and the table refers to it"},
		{"a file of the log that is dying", func(s *scene) { s.dying = []string{s.former("a/t")} }, "is dying, and the table refers to it"},
		{"two tables of one file", func(s *scene) { s.tables[name("a/s")] = s.tables[name("a/t")] }, "is also that of another table"},
		{"a log in a circle", func(s *scene) {
			first := s.files[s.head("a/t").MetadataLog[0].File]
			first.MetadataLog = []fileEntry{{first.LastUpdated, s.tables[name("a/t")].at}}
		}, "leads in a circle"},
		{"another uuid", func(s *scene) { s.head("a/t").UUID = "u99" }, "the uuid changes"},
		{"last-updated-ms runs back", func(s *scene) { s.head("a/t").LastUpdated = s.files[s.former("a/t")].LastUpdated - 1 }, "last-updated-ms runs back"},
		{"last-updated-ms before the metadata log", func(s *scene) {
			m := s.head("a/t")
			m.MetadataLog[len(m.MetadataLog)-1].Time = m.LastUpdated + 60_001
		}, "more than 60 s before the last entry of the metadata log"},
		{"last-updated-ms before the snapshot log", func(s *scene) {
			m := s.head("a/t")
			m.SnapshotLog[len(m.SnapshotLog)-1].Time = m.LastUpdated + 60_001
		}, "more than 60 s before the last entry of the snapshot log"},
		{"the metadata log runs back", func(s *scene) { s.head("a/t").MetadataLog[0].Time += 1 << 40 }, "the metadata log runs back"},
		{"the snapshot log runs back", func(s *scene) { s.head("a/t").SnapshotLog[0].Time += 1 << 40 }, "the snapshot log runs back"},
		{"sequence numbers run back", func(s *scene) { s.head("a/t").LastSequence = 1 }, "last-sequence-number runs back"},
		{"a snapshot from the future", func(s *scene) { s.head("a/t").Snapshots[0].Sequence = 99 }, "later than the last"},
		{"the current snapshot is not there", func(s *scene) { s.head("a/t").CurrentID = 99 }, "the current snapshot 99 is not in"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene()
			test.happen(s)
			pointers := s.pointers()
			slices.SortFunc(pointers, func(a, b check.Pointer) int { return -strings.Compare(a.Name.String(), b.Name.String()) })
			for i := range pointers {
				pointers[i].Registered = pointers[i].Registered || slices.Contains(s.copies, pointers[i].Name)
			}
			files := check.Files{Pointers: pointers, Read: s.read, Dying: s.dying, Earlier: s.earlier}
			oneProblem(t, check.Chains(s.ops, files), test.want)
		})
	}
}
