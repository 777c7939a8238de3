package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/sim/check"
	"github.com/landfast/landfast/internal/sim/history"
)

var options = check.Options{Warehouses: []string{"w"}}

// name reads `a.c/t` as table t of the namespace a.c, and `a` as a namespace.
func name(text string) history.Name {
	namespace, table, _ := strings.Cut(text, "/")
	return history.Name{Warehouse: "w", Namespace: namespace, Name: table}
}

// script writes a history, one operation after the other.
type script struct {
	ops   []history.Operation
	clock int64
}

// add appends an operation that was done.
func (s *script) add(kind history.Kind, at string) *history.Operation {
	s.clock += 10
	s.ops = append(s.ops, history.Operation{
		ID: len(s.ops), Kind: kind, Name: name(at), Call: s.clock, Return: s.clock + 5, Outcome: history.Done, Replays: -1,
	})
	return &s.ops[len(s.ops)-1]
}

func (s *script) refused(kind history.Kind, at string, why history.Refusal) *history.Operation {
	o := s.add(kind, at)
	o.Outcome, o.Refusal = history.Refused, why
	return o
}

// state is what answers show of a version of the table that has the uuid `u`.
func state(token string, snapshot int64) history.State {
	return history.State{Token: token, Snapshot: snapshot, UUID: "u", Location: "f-" + token}
}

func (s *script) create(at, token string) *history.Operation {
	o := s.add(history.CreateTable, at)
	o.Token, o.Seen = token, state(token, 0)
	return o
}

// commit adds a snapshot; without one it only writes its token, and shows main.
func (s *script) commit(at, token string, snapshot, main int64) *history.Operation {
	o := s.add(history.Commit, at)
	o.Token, o.Seen = token, state(token, main)
	o.Parts = []history.Part{{Name: o.Name, Snapshot: snapshot}}
	return o
}

func (s *script) load(at string, seen history.State) *history.Operation {
	o := s.add(history.LoadTable, at)
	o.Seen = seen
	return o
}

func (s *script) transaction(token string, at ...string) *history.Operation {
	o := s.add(history.Transaction, "")
	o.Name, o.Token = history.Name{}, token
	for _, text := range at {
		o.Parts = append(o.Parts, history.Part{Name: name(text)})
	}
	return o
}

// unknown takes an operation's answer away.
func unknown(o *history.Operation) *history.Operation {
	o.Outcome, o.Return, o.Seen = history.Unknown, history.Forever, history.State{}
	return o
}

// replay repeats an operation under its key, which it gets if it has none.
func (s *script) replay(of *history.Operation) *history.Operation {
	if of.Key == "" {
		of.Key = fmt.Sprintf("k%d", of.ID)
	}
	first := *of
	o := s.add(first.Kind, "")
	id, call, returned := o.ID, o.Call, o.Return
	*o = first
	o.ID, o.Call, o.Return, o.Outcome, o.Replays = id, call, returned, history.Done, first.ID
	return o
}

// other is the same version as another table's.
func other(seen history.State) history.State {
	seen.UUID, seen.Location = "u2", seen.Location+"-2"
	return seen
}

// newScript has two namespaces and two tables, a/t and a/s.
func newScript() *script {
	s := &script{ops: make([]history.Operation, 0, 50)} // pointers into it stay
	s.add(history.CreateNamespace, "a").Token = "n"
	s.add(history.CreateNamespace, "b").Token = "m"
	s.create("a/t", "c")
	o := s.create("a/s", "d")
	o.Seen = other(o.Seen)
	return s
}

func TestLinearizable(t *testing.T) {
	for _, test := range []struct {
		name   string
		happen func(*script)
		want   string // is in the text; empty: it holds
	}{
		{"nothing", func(*script) {}, ""},
		{"commits and a load", func(s *script) {
			s.commit("a/t", "1", 7, 7)
			s.commit("a/t", "2", 0, 7)
			s.load("a/t", state("2", 7))
		}, ""},
		{"a busy refusal tells nothing", func(s *script) { s.refused(history.DropTable, "a/t", history.Busy) }, ""},
		{"an answer that showed a later change of the same batch", func(s *script) {
			o := s.commit("a/t", "1", 7, 7)
			last := s.commit("a/t", "2", 0, 7)
			o.Return = last.Return
			o.Show(last.Seen)
			s.load("a/t", state("2", 7))
		}, ""},
		{"an answer that showed a change which was not sent yet", func(s *script) {
			o := s.commit("a/t", "1", 7, 7)
			o.Show(s.commit("a/t", "2", 0, 7).Seen)
		}, "the token was shown before it was written"},
		{"an answer that showed a state which was over", func(s *script) {
			s.commit("a/t", "1", 7, 7)
			s.commit("a/t", "2", 0, 7)
			s.commit("a/t", "3", 0, 7).Show(state("1", 7))
		}, "no order"},
		{"an answer that showed what was refused", func(s *script) {
			o := s.commit("a/t", "1", 0, 0)
			o.Outcome, o.Refusal, o.Seen = history.Refused, history.Busy, history.State{}
			s.commit("a/t", "2", 0, 0).Show(state("1", 0))
		}, "phantom"},
		{"commits that tell what they were made on", func(s *script) {
			s.commit("a/t", "1", 0, 0).Parts[0].Onto = "f-c"
			s.commit("a/t", "2", 0, 0).Parts[0].Onto = "f-1"
		}, ""},
		{"a commit that was made on what was there no more", func(s *script) {
			s.commit("a/t", "1", 0, 0)
			s.commit("a/t", "2", 0, 0).Parts[0].Onto = "f-c"
		}, "it was made on another metadata file"},
		{"an unknown commit that was", func(s *script) {
			unknown(s.commit("a/t", "1", 7, 7))
			s.load("a/t", state("1", 7))
		}, ""},
		{"an unknown commit that was not", func(s *script) {
			unknown(s.commit("a/t", "1", 7, 7))
			s.load("a/t", state("c", 0))
		}, ""},
		{"an unknown commit that was later", func(s *script) {
			unknown(s.commit("a/t", "1", 7, 7))
			s.load("a/t", state("c", 0))
			s.commit("a/t", "2", 0, 0)
			s.load("a/t", state("1", 7))
		}, ""},
		{"an unknown drop, and the name is free", func(s *script) {
			unknown(s.add(history.DropTable, "a/t"))
			s.refused(history.LoadTable, "a/t", history.NoSuchTable)
			o := s.create("a/t", "2")
			o.Seen.UUID = "u3"
		}, ""},
		{"an unknown rename that explains much", func(s *script) {
			o := unknown(s.add(history.RenameTable, "a/t"))
			o.To = name("b/t")
			s.commit("b/t", "1", 7, 7)
			s.refused(history.DropNamespace, "b", history.NotEmpty)
			s.refused(history.LoadTable, "a/t", history.NoSuchTable)
		}, ""},
		{"a replay of what was unknown", func(s *script) {
			o := s.commit("a/t", "1", 7, 7)
			seen := o.Seen
			unknown(o)
			s.replay(o).Seen = seen
			s.load("a/t", seen)
		}, ""},
		{"a replay after others", func(s *script) {
			o := s.commit("a/t", "1", 7, 7)
			s.commit("a/t", "2", 8, 8)
			s.replay(o)
			s.load("a/t", state("2", 8))
		}, ""},
		{"a refused request is decided again", func(s *script) {
			o := s.refused(history.CreateTable, "a/t", history.AlreadyExists)
			o.Token = "1"
			s.add(history.DropTable, "a/t")
			again := s.replay(o)
			again.Refusal, again.Seen = "", history.State{Token: "1", UUID: "u3", Location: "f-1"}
		}, ""},
		{"a registration shows its file", func(s *script) {
			s.add(history.Unregister, "a/t").Seen = state("c", 0)
			o := s.add(history.RegisterTable, "b/r")
			o.From, o.Seen = "f-c", state("c", 0)
			s.load("b/r", state("c", 0))
		}, ""},
		{"an unknown registration shows its file", func(s *script) {
			s.commit("a/t", "1", 7, 7)
			o := unknown(s.add(history.RegisterTable, "a/t"))
			o.From, o.Overwrite = "f-c", true
			s.load("a/t", state("c", 0))
		}, ""},
		{"a transaction", func(s *script) {
			s.transaction("1", "a/t", "a/s")
			s.load("a/t", state("1", 0))
			s.load("a/s", other(state("1", 0)))
		}, ""},
		{"a view and a table share names", func(s *script) {
			s.refused(history.CreateView, "a/t", history.AlreadyExists).Token = "1"
			s.refused(history.LoadView, "a/t", history.NoSuchTable)
		}, ""},
		{"requirements that fail", func(s *script) {
			o := s.refused(history.Commit, "a/t", history.Requirement)
			o.Parts = []history.Part{{Name: o.Name, Expect: new(int64(7))}}
			o = s.refused(history.Commit, "a/t", history.Requirement)
			o.Parts = []history.Part{{Name: o.Name, Creates: true}}
			o = s.refused(history.Commit, "a/t", history.Requirement)
			o.Parts = []history.Part{{Name: o.Name, UUID: "u9"}}
		}, ""},

		{"a lost update", func(s *script) {
			s.commit("a/t", "1", 7, 7).Parts[0].Expect = new(int64(0))
			s.commit("a/t", "2", 8, 8).Parts[0].Expect = new(int64(0))
		}, "main was not what was required"},
		{"another table than was required", func(s *script) {
			s.commit("a/t", "1", 7, 7).Parts[0].UUID = "u9"
		}, "it had another uuid than was required"},
		{"a stale read after an acknowledged write", func(s *script) {
			s.commit("a/t", "1", 7, 7)
			s.load("a/t", state("c", 0))
		}, "a later answer shows what was to be overwritten"},
		{"a stale read of a namespace", func(s *script) {
			s.add(history.SetNamespace, "a").Token = "1"
			s.add(history.LoadNamespace, "a").Seen.Token = "n"
		}, "a later answer shows what was to be overwritten"},
		{"an acknowledged write is gone", func(s *script) {
			s.commit("a/t", "1", 7, 7)
			s.commit("a/t", "2", 0, 0)
		}, "the answer showed another snapshot"},
		{"an unknown commit was twice", func(s *script) {
			unknown(s.commit("a/t", "1", 0, 0))
			s.load("a/t", state("1", 0))
			s.commit("a/t", "2", 0, 0)
			s.load("a/t", state("1", 0))
		}, "a later answer shows what was to be overwritten"},
		{"an unknown commit comes and goes", func(s *script) {
			unknown(s.commit("a/t", "1", 0, 0))
			s.load("a/t", state("1", 0))
			s.load("a/t", state("c", 0))
		}, "the answer showed another token"},
		{"a replay was carried out again", func(s *script) {
			o := s.commit("a/t", "1", 7, 7)
			s.commit("a/t", "2", 8, 8)
			s.replay(o)
			s.load("a/t", state("1", 7))
		}, "a later answer shows what was to be overwritten"},
		{"a replay was refused", func(s *script) {
			o := s.add(history.DropTable, "a/t")
			again := s.replay(o)
			again.Outcome, again.Refusal = history.Refused, history.NoSuchTable
		}, "it was carried out before under its idempotency key"},
		{"a replay shows something else", func(s *script) {
			s.replay(s.commit("a/t", "1", 7, 7)).Seen.Location = "f-2"
		}, "a replay was answered otherwise than its request"},
		{"two tables under one name", func(s *script) {
			s.create("a/t", "1").Seen.UUID = "u3"
		}, "that was there already"},
		{"a table and a view under one name", func(s *script) {
			o := s.add(history.CreateView, "a/t")
			o.Token, o.Seen = "1", history.State{Token: "1", UUID: "v", Location: "f-1"}
		}, "that was there already"},
		{"a dropped table is back", func(s *script) {
			s.add(history.DropTable, "a/t")
			s.load("a/t", state("c", 0))
		}, "a later answer shows what was to be overwritten"},
		{"a dropped table takes commits", func(s *script) {
			s.add(history.DropTable, "a/t")
			s.commit("a/t", "1", 0, 0)
		}, "that was not there"},
		{"a renamed table has both names", func(s *script) {
			s.add(history.RenameTable, "a/t").To = name("b/t")
			s.load("b/t", state("c", 0))
			s.load("a/t", state("c", 0))
		}, "that was not there"},
		{"a rename over another", func(s *script) {
			s.add(history.RenameTable, "a/t").To = name("a/s")
		}, "that was there already"},
		{"half of a transaction", func(s *script) {
			s.transaction("1", "a/t", "a/s")
			s.load("a/t", state("1", 0))
			s.load("a/s", other(state("d", 0)))
		}, "a later answer shows what was to be overwritten"},
		{"half of an unknown transaction", func(s *script) {
			unknown(s.transaction("1", "a/t", "a/s"))
			s.load("a/t", state("1", 0))
			s.load("a/s", other(state("d", 0)))
		}, "the answer showed another token"},
		{"a transaction whose second table is missing", func(s *script) {
			s.transaction("1", "a/t", "a/x")
		}, "that was not there"},
		{"a table in no namespace", func(s *script) { s.create("x/t", "1").Seen.UUID = "u3" }, "that was not there"},
		{"a namespace in no namespace", func(s *script) { s.add(history.CreateNamespace, "x.y") }, "that was not there"},
		{"a namespace is dropped under its table", func(s *script) { s.add(history.DropNamespace, "a") }, "it was not empty"},
		{"a namespace is dropped under its child", func(s *script) {
			s.add(history.CreateNamespace, "b.c")
			s.add(history.DropNamespace, "b")
		}, "it was not empty"},
		{"a warehouse is dropped under its namespaces", func(s *script) { s.add(history.DropWarehouse, "") }, "it was not empty"},
		{"a dropped namespace is there", func(s *script) {
			s.add(history.DropNamespace, "b")
			s.add(history.LoadNamespace, "b").Seen.Token = "m"
		}, "a later answer shows what was to be overwritten"},
		{"a dropped namespace is listed from", func(s *script) {
			s.add(history.DropNamespace, "b")
			s.add(history.ListTables, "b")
		}, "that was not there"},

		{"no such table, and there is one", func(s *script) {
			s.refused(history.LoadTable, "a/t", history.NoSuchTable)
		}, "what is said to be missing was there"},
		{"no such table for a transaction, and there are", func(s *script) {
			o := s.transaction("1", "a/t", "a/s")
			o.Outcome, o.Refusal = history.Refused, history.NoSuchTable
		}, "the reason that it was refused for was not there"},
		{"no such namespace, and there is one", func(s *script) {
			s.refused(history.CreateTable, "a/x", history.NoSuchNamespace)
		}, "what is said to be missing was there"},
		{"no such warehouse, and there is one", func(s *script) {
			s.refused(history.CreateNamespace, "x", history.NoSuchWarehouse)
		}, "what is said to be missing was there"},
		{"already there, and it is not", func(s *script) {
			s.refused(history.CreateTable, "a/x", history.AlreadyExists)
		}, "the reason that it was refused for was not there"},
		{"already there, for a rename, and it is not", func(s *script) {
			s.refused(history.RenameTable, "a/t", history.AlreadyExists).To = name("a/x")
		}, "what is said to be in the way was not there"},
		{"overwriting what is said to be in the way", func(s *script) {
			s.refused(history.RegisterTable, "a/t", history.AlreadyExists).Overwrite = true
		}, "what is said to be in the way was not there"},
		{"not empty, and it is", func(s *script) { s.refused(history.DropNamespace, "b", history.NotEmpty) }, "it was empty"},
		{"a requirement fails that holds", func(s *script) {
			o := s.refused(history.Commit, "a/t", history.Requirement)
			o.Parts = []history.Part{{Name: o.Name, Expect: new(int64(0)), UUID: "u"}}
		}, "the reason that it was refused for was not there"},

		{"a token that nobody wrote", func(s *script) { s.load("a/t", state("x", 0)) }, "phantom: nobody wrote"},
		{"a token that was refused", func(s *script) {
			s.refused(history.Commit, "a/t", history.Busy).Token = "1"
			s.load("a/t", state("1", 0))
		}, "phantom: the operation was refused"},
		{"a token before it was sent", func(s *script) {
			s.load("a/t", state("1", 0))
			s.commit("a/t", "1", 0, 0)
		}, "the token was shown before it was written"},
		{"a commit that shows another", func(s *script) { s.commit("a/t", "1", 0, 0).Seen = state("c", 0) }, "the answer showed another token"},
		{"one file with two contents", func(s *script) {
			s.commit("a/t", "1", 7, 7)
			s.load("a/t", history.State{Token: "1", Snapshot: 7, UUID: "u", Location: "f-c"})
		}, "one metadata file was shown with two contents"},
		{"one version in two files", func(s *script) {
			seen := s.commit("a/t", "1", 7, 7).Seen
			seen.Location = "f-2"
			s.load("a/t", seen)
		}, "the answer showed another metadata file"},
		{"another table without a drop", func(s *script) {
			seen := s.commit("a/t", "1", 7, 7).Seen
			seen.UUID, seen.Location = "u3", ""
			s.load("a/t", seen)
		}, "the answer showed another uuid"},
		{"two creations with one uuid", func(s *script) { s.create("b/t", "1") }, "two creations were answered with one uuid"},
		{"a replay of something else", func(s *script) {
			o := s.create("b/t", "1")
			o.Replays, o.Key = 2, "k"
		}, "this is no replay of that"},
		{"an answer before the call", func(s *script) { s.add(history.TableExists, "a/t").Return = 0 }, "it returned before it was called"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript()
			test.happen(s)
			r := check.Linearizable(s.ops, options)
			switch {
			case test.want == "" && r.Verdict != check.Holds:
				t.Errorf("%s\n%s", r.Verdict, r.Text)
			case test.want != "" && (r.Verdict != check.Violated || !strings.Contains(r.Text, test.want)):
				t.Errorf("%s, and does not say %q:\n%s", r.Verdict, test.want, r.Text)
			}
		})
	}
}

// What is wrong is drawn, if that is wanted.
func TestVisualize(t *testing.T) {
	s := newScript()
	s.add(history.DropTable, "a/x")
	o := options
	o.Visualize = filepath.Join(t.TempDir(), "picture.html")
	check.Linearizable(s.ops, o)
	if page, err := os.ReadFile(o.Visualize); err != nil || !strings.Contains(string(page), "drop-table w/a/x") {
		t.Errorf("%v, %d bytes", err, len(page))
	}
}

// Tables in a namespace that stays have nothing to do with each other; those that a
// transaction or a rename ties together have, and so have all in a namespace that is dropped.
func TestPartitions(t *testing.T) {
	for _, test := range []struct {
		name   string
		happen func(*script)
		want   int
	}{
		{"two tables", func(*script) {}, 4}, // and two namespaces
		{"a transaction", func(s *script) { s.transaction("1", "a/t", "a/s") }, 3},
		{"a rename", func(s *script) { s.add(history.RenameTable, "a/t").To = name("b/t") }, 4},
		{"a drop that fails", func(s *script) { s.refused(history.DropNamespace, "a", history.NotEmpty) }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript()
			test.happen(s)
			r := check.Linearizable(s.ops, options)
			if r.Verdict != check.Holds || r.Partitions != test.want {
				t.Errorf("%s, %d partitions, want %d\n%s", r.Verdict, r.Partitions, test.want, r.Text)
			}
		})
	}
}
