package exhaust

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/store"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the search keeps much and drops more
	goleak.VerifyTestMain(m)
}

func on(k kind, tables ...string) operation { return operation{kind: k, tables: tables} }

// by gives the operation a token.
func (o operation) by(token string) operation { o.token = token; return o }

func does(name string, ops ...operation) actor { return actor{name, ops} }

// What worlds begin with: a namespace, with tables.
var (
	noTable   = []operation{on(makeNamespace, "ns")}
	oneTable  = append(noTable, on(makeTable, "ns.a").by("0"))
	twoTables = append(oneTable, on(makeTable, "ns.b").by("0"))
)

// worlds are the pairs and threes that matter.
var worlds = []world{
	{name: "commit x commit", setup: oneTable, actors: []actor{
		does("one", on(commit, "ns.a").by("1")), does("two", on(commit, "ns.a").by("2")),
	}},
	{name: "first commit x first commit x load", setup: oneTable, actors: []actor{
		does("one", on(firstCommit, "ns.a").by("1")), does("two", on(firstCommit, "ns.a").by("2")), does("reader", on(load, "ns.a"), on(load, "ns.a")),
	}},
	{name: "commit x transaction", setup: twoTables, actors: []actor{
		does("commit", on(commit, "ns.a").by("1")), does("both", on(transact, "ns.a", "ns.b").by("2")),
	}},
	{name: "write a if b is as it was x write b if a is as it was", large: true, setup: twoTables, actors: []actor{
		does("b, then a", on(skew, "ns.b", "ns.a").by("1")), does("a, then b", on(skew, "ns.a", "ns.b").by("2")),
	}},
	{name: "transactions in opposite orders", large: true, setup: twoTables, actors: []actor{
		does("ab", on(transact, "ns.a", "ns.b").by("1")), does("ba", on(transact, "ns.b", "ns.a").by("2")),
	}},
	{name: "transaction x load x load", large: true, setup: twoTables, actors: []actor{
		does("both", on(transact, "ns.a", "ns.b").by("1")), does("a then b", on(load, "ns.a"), on(load, "ns.b")),
		does("b then a", on(load, "ns.b"), on(load, "ns.a")),
	}},
	{name: "create x drop namespace", large: true, setup: noTable, actors: []actor{
		does("create", on(makeTable, "ns.a").by("1")), does("drop", on(dropNamespace, "ns")),
	}},
	{name: "create x create", setup: noTable, actors: []actor{
		does("one", on(makeTable, "ns.a").by("1")), does("two", on(makeTable, "ns.a").by("2")),
	}},
	{name: "birth x load, list", setup: noTable, overlap: true, actors: []actor{
		does("create", on(makeTable, "ns.a").by("1")), does("reader", on(load, "ns.a"), on(listTables, "ns"), on(load, "ns.a")),
	}},
	{name: "birth x birth x commit", setup: noTable, overlap: true, actors: []actor{
		does("one", on(makeTable, "ns.a").by("1")), does("two", on(makeTable, "ns.a").by("2")), does("commit", on(commit, "ns.a").by("3")),
	}},
	{name: "rename x commit x load", large: true, setup: oneTable, actors: []actor{
		does("rename", on(rename, "ns.a", "ns.b")), does("commit", on(commit, "ns.a").by("1")), does("reader", on(load, "ns.a"), on(load, "ns.b")),
	}},
	{name: "rename x rename to one name", large: true, setup: twoTables, actors: []actor{
		does("a", on(rename, "ns.a", "ns.c")), does("b", on(rename, "ns.b", "ns.c")),
	}},
	{name: "rename x the same rename", large: true, setup: oneTable, actors: []actor{
		does("one", on(rename, "ns.a", "ns.b")), does("two", on(rename, "ns.a", "ns.b")),
	}},
	{name: "rename x transaction", large: true, setup: twoTables, actors: []actor{
		does("rename", on(rename, "ns.a", "ns.c")), does("both", on(transact, "ns.a", "ns.b").by("1")),
	}},
	{name: "drop x commit", setup: oneTable, actors: []actor{
		does("drop", on(drop, "ns.a")), does("commit", on(commit, "ns.a").by("1")),
	}},
	{name: "recovery x recovery x slow writer", setup: twoTables, actors: []actor{
		does("slow", on(transact, "ns.a", "ns.b").by("1")), does("recovery", on(recovery)), does("another", on(recovery)),
	}},
}

var deep = flag.Bool("deep", false, "explore the large worlds as the others: takes minutes")

// roundsOf are how a world is explored over objects. An actor gives up after so many conflicts: without
// a bound, two can conflict for ever. In a large world it gives up sooner where something goes wrong.
func roundsOf(w world) []round {
	retries := 2
	if w.large && !*deep {
		retries = 1
	}
	rounds := []round{
		{budget{}, 3},
		{budget{Copies: 1}, 2},
		{budget{Crashes: 1, Lost: 1}, retries},
		{budget{Crashes: 1, Ages: 1}, retries},
	}
	if !w.large || *deep {
		rounds = append(rounds, round{budget{Lost: 1, Fails: 1}, 1})
	}
	return rounds
}

// Over a store that applies batches nothing is left over, and no lease runs out.
func TestBatches(t *testing.T) {
	testWorlds(t, overBatches, func(world) []round { return []round{{budget{Crashes: 1, Lost: 1}, 3}} })
}

// Over a store that swaps one object at a time, as package txn does it.
func TestObjects(t *testing.T) { testWorlds(t, overObjects, roundsOf) }

// testWorlds explores worlds over one store, and prints a table of their sizes.
func testWorlds(t *testing.T, db func(*env) store.Atomic, rounds func(world) []round) {
	explored := make([]world, len(worlds))
	sizes := make([][]counts, len(worlds))
	t.Run("worlds", func(t *testing.T) {
		for i, w := range worlds {
			w.store, w.rounds = db, rounds(w)
			explored[i] = w
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				var wrong string
				if sizes[i], wrong = w.explore(t); wrong != "" {
					t.Error(wrong)
				}
			})
		}
	})
	t.Log("\n" + table(explored, sizes))
}

// table is what was explored, for docs.
func table(worlds []world, sizes [][]counts) string {
	var b strings.Builder
	b.WriteString("| world | faults | tries | schedules | states | steps | deepest | ends | gave up | unknown | crashes | lost, copied | late | leases over | failed reads | runs of code |\n")
	b.WriteString("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	row := func(name, faults, tries string, c counts) {
		fmt.Fprintf(&b, "| %s | %s | %s | %.3g |", name, faults, tries, c.schedules)
		for _, n := range []int{c.states, c.steps, c.deepest, c.ends, c.gaveUp, c.unknown, c.crashes, c.lost, c.late, c.ages, c.fails, c.runs} {
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n")
	}
	var sum counts
	for i, w := range worlds {
		for j, c := range sizes[i] {
			row(w.name, w.rounds[j].faults.String(), fmt.Sprint(w.rounds[j].attempts), c)
			sum.add(c)
		}
	}
	row("all", "", "", sum)
	return b.String()
}
