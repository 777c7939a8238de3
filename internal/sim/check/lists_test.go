package check_test

import (
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/sim/check"
	"github.com/landfast/landfast/internal/sim/history"
)

func (s *script) list(kind history.Kind, at string, listed ...string) *history.Operation {
	o := s.add(kind, at)
	o.Listed = listed
	return o
}

// during lets the last operation take place while the one before it does.
func (s *script) during() *history.Operation {
	o := &s.ops[len(s.ops)-1]
	o.Call = s.ops[len(s.ops)-2].Call
	return o
}

// oneProblem wants one problem that holds a text, or none where the text is empty.
func oneProblem(t *testing.T, problems []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(problems) > 0:
		t.Errorf("problems:\n%s", strings.Join(problems, "\n"))
	case want != "" && (len(problems) == 0 || !strings.Contains(strings.Join(problems, "\n"), want)):
		t.Errorf("no problem tells of %q; there are %d:\n%s", want, len(problems), strings.Join(problems, "\n"))
	}
}

func TestLists(t *testing.T) {
	const tables, namespaces = history.ListTables, history.ListNamespaces
	for _, test := range []struct {
		name   string
		happen func(*script)
		want   string
	}{
		{"what is there", func(s *script) {
			s.list(tables, "a", "s", "t")
			s.list(tables, "b")
			s.list(namespaces, "", "a", "b")
			s.list(namespaces, "a")
		}, ""},
		{"what is being made may be listed or not", func(s *script) {
			s.create("b/x", "1")
			s.list(tables, "b", "x")
			s.during()
			s.create("b/y", "2")
			s.list(tables, "b", "x")
			s.during()
		}, ""},
		{"what may have been dropped may be listed or not", func(s *script) {
			unknown(s.add(history.DropTable, "a/t"))
			s.list(tables, "a", "s")
			s.list(tables, "a", "s", "t")
		}, ""},
		{"what is renamed while it is listed may be there twice", func(s *script) {
			s.add(history.RenameTable, "a/t").To = name("a/x")
			s.list(tables, "a", "s", "t", "x")
			s.during()
		}, ""},
		{"views are not listed", func(s *script) {
			s.add(history.CreateView, "a/v").Token = "1"
			s.list(tables, "a", "s", "t")
		}, ""},
		{"what was refused may be there all the same", func(s *script) {
			s.refused(history.DropTable, "a/t", history.Busy)
			s.list(tables, "a", "s", "t")
		}, ""},
		{"dropped and made again", func(s *script) {
			s.add(history.DropTable, "a/t")
			s.create("a/t", "1")
			s.list(tables, "a", "s", "t")
		}, ""},
		{"made by a replay", func(s *script) {
			o := unknown(s.create("b/x", "1"))
			s.replay(o)
			s.list(tables, "b", "x")
		}, ""},

		{"a list misses a table", func(s *script) { s.list(tables, "a", "s") }, "a list misses w/a/t"},
		{"a list misses a table that was loaded", func(s *script) {
			unknown(s.create("b/x", "1"))
			s.load("b/x", state("1", 0))
			s.list(tables, "b")
		}, "a list misses w/b/x"},
		{"a list misses a table that a transaction changed", func(s *script) {
			unknown(s.create("b/x", "1"))
			s.transaction("2", "b/x")
			s.list(tables, "b")
		}, "a list misses w/b/x"},
		{"a list misses a renamed table", func(s *script) {
			s.add(history.RenameTable, "a/t").To = name("b/x")
			s.list(tables, "b")
		}, "a list misses w/b/x"},
		{"a list misses a table that a replay has made", func(s *script) {
			o := unknown(s.create("b/x", "1"))
			s.replay(o)
			s.list(tables, "b")
		}, "a list misses w/b/x"},
		{"a list misses a namespace", func(s *script) { s.list(namespaces, "", "a") }, "a list misses w/b"},
		{"a table is listed twice", func(s *script) { s.list(tables, "a", "s", "t", "t") }, "a list shows w/a/t twice"},
		{"a table is listed that nobody made", func(s *script) { s.list(tables, "b", "x") }, "a list shows w/b/x, which was not there at any moment of it (nobody made it)"},
		{"a table is listed whose creation was refused", func(s *script) {
			s.refused(history.CreateTable, "b/x", history.Busy)
			s.list(tables, "b", "x")
		}, "a list shows w/b/x"},
		{"a dropped table is listed", func(s *script) {
			s.add(history.DropTable, "a/t")
			s.list(tables, "a", "s", "t")
		}, "shows that it was gone"},
		{"a table is listed that was not found", func(s *script) {
			unknown(s.add(history.DropTable, "a/t"))
			s.refused(history.TableExists, "a/t", history.NoSuchTable)
			s.list(tables, "a", "s", "t")
		}, "shows that it was gone"},
		{"a renamed table is listed", func(s *script) {
			s.add(history.RenameTable, "a/t").To = name("b/x")
			s.list(tables, "a", "s", "t")
		}, "a list shows w/a/t"},
		{"a dropped namespace is listed", func(s *script) {
			s.add(history.DropNamespace, "b")
			s.list(namespaces, "", "a", "b")
		}, "a list shows w/b"},
		{"a namespace is listed that was not found", func(s *script) {
			unknown(s.add(history.DropNamespace, "b"))
			s.refused(history.LoadNamespace, "b", history.NoSuchNamespace)
			s.list(namespaces, "", "a", "b")
		}, "a list shows w/b"},
		{"a child is listed as a child of the warehouse", func(s *script) {
			s.add(history.CreateNamespace, "a.c")
			s.list(namespaces, "a")
		}, "a list misses w/a.c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript()
			test.happen(s)
			oneProblem(t, check.Lists(s.ops), test.want)
		})
	}
}

func TestTransactionsAtomic(t *testing.T) {
	for _, test := range []struct {
		name   string
		happen func(*script)
		want   string
	}{
		{"both new", func(s *script) {
			s.transaction("1", "a/t", "a/s")
			s.load("a/t", state("1", 0))
			s.load("a/s", other(state("1", 0)))
		}, ""},
		{"both old", func(s *script) {
			unknown(s.transaction("1", "a/t", "a/s"))
			s.load("a/t", state("c", 0))
			s.load("a/s", other(state("d", 0)))
		}, ""},
		{"first old, then new", func(s *script) {
			unknown(s.transaction("1", "a/t", "a/s"))
			s.load("a/s", other(state("d", 0)))
			s.load("a/t", state("1", 0))
		}, ""},
		{"old while the new is looked at", func(s *script) {
			unknown(s.transaction("1", "a/t", "a/s"))
			s.load("a/t", state("1", 0))
			s.load("a/s", other(state("d", 0)))
			s.during()
		}, ""},
		{"a later commit", func(s *script) {
			s.transaction("1", "a/t", "a/s")
			s.commit("a/s", "2", 0, 0)
			s.load("a/t", state("1", 0))
			s.load("a/s", other(state("2", 0)))
		}, ""},
		{"a replay shows what the request saw", func(s *script) {
			o := s.add(history.Unregister, "a/s")
			o.Seen = other(state("d", 0))
			s.create("a/s", "1").Seen.UUID = "u3"
			s.transaction("2", "a/t", "a/s")
			s.replay(o)
		}, ""},
		{"another table came under the name", func(s *script) {
			s.transaction("1", "a/t", "a/s")
			s.add(history.DropTable, "a/s")
			o := s.add(history.RegisterTable, "a/s")
			o.From, o.Seen = "f-d-2", other(state("d", 0))
			s.load("a/s", other(state("d", 0)))
		}, ""},

		{"first new, then old", func(s *script) {
			unknown(s.transaction("1", "a/t", "a/s"))
			s.load("a/t", state("1", 0))
			s.load("a/s", other(state("d", 0)))
		}, "half of a transaction: w/a/s"},
		{"acknowledged, then half old", func(s *script) {
			s.transaction("1", "a/t", "a/s")
			s.load("a/s", other(state("d", 0)))
		}, "half of a transaction: w/a/s"},
		{"replayed, then half old", func(s *script) {
			o := unknown(s.transaction("1", "a/t", "a/s"))
			s.replay(o)
			s.load("a/t", state("c", 0))
		}, "half of a transaction: w/a/t"},
		{"new in one, and another is unregistered as it was", func(s *script) {
			unknown(s.transaction("1", "a/t", "a/s"))
			s.load("a/t", state("1", 0))
			s.add(history.Unregister, "a/s").Seen = other(state("d", 0))
		}, "half of a transaction: w/a/s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript()
			test.happen(s)
			oneProblem(t, check.TransactionsAtomic(s.ops), test.want)
		})
	}
}
