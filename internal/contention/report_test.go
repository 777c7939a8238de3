package contention

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

var (
	now    = time.UnixMilli(1_700_000_000_000)
	sales  = key.ForNamespace("main", []string{"sales"})
	orders = key.ForTableName("main", []string{"sales"}, "orders")
	items  = key.ForTableName("main", []string{"sales"}, "items")
)

// entry is a request "op id", which came or was granted so long before now.
func entry(who string, ago time.Duration) lock.Entry {
	op, id, _ := strings.Cut(who, " ")
	return lock.Entry{Owner: lock.Owner{Op: op, RequestID: id, Client: "10.0.0.1:5000"}, Mode: lock.Exclusive, Since: now.Add(-ago)}
}

// state is a key with one holder, "" for none, and those who wait for the key.
func state(k key.Key, holder string, waiters ...string) lock.KeyState {
	s := lock.KeyState{Key: k}
	if holder != "" {
		s.Holders = []lock.Entry{entry(holder, 20*time.Millisecond)}
	}
	for _, w := range waiters {
		e := entry(w, 10*time.Millisecond)
		e.WaitsAt = k
		s.Waiters = append(s.Waiters, e)
	}
	return s
}

// elsewhere adds one who keeps its place at the key while it waits at another.
func elsewhere(s lock.KeyState, who string, at key.Key) lock.KeyState {
	e := entry(who, 5*time.Millisecond)
	e.WaitsAt, e.Elsewhere = at, true
	s.Waiters = append(s.Waiters, e)
	return s
}

func TestLook(t *testing.T) {
	batch := state(orders, "commit-table c1", "commit-table c3")
	batch.Holders = append(batch.Holders, entry("commit-table c2", time.Millisecond))
	batch.Holders[0].Batch, batch.Holders[1].Batch = "c1", "c1"
	shared := state(sales, "x s1")
	shared.Holders[0].Mode = lock.Shared
	got := Look([]lock.KeyState{
		shared,
		elsewhere(state(items, ""), "commit-transaction t1", orders),
		batch,
	}, []HotKey{{Key: orders, Waits: 3, Waited: 1500 * time.Microsecond, Conflicts: 1, Missing: 2}}, Server{QueueMax: 1024}, now)
	want := Report{
		AtMillis: 1_700_000_000_000, Held: 2, Awaited: 1, Waiting: 1,
		Keys: []Key{
			{Key: "table main/sales/orders", QueueLength: 1,
				Holders: []Request{
					{"commit-table", "c1", "10.0.0.1:5000", "exclusive", 1_699_999_999_980, 20, "c1", nil},
					{"commit-table", "c2", "10.0.0.1:5000", "exclusive", 1_699_999_999_999, 1, "c1", nil},
				},
				Waiters: []Request{
					{"commit-table", "c3", "10.0.0.1:5000", "exclusive", 1_699_999_999_990, 10, "", &Blocker{"table main/sales/orders", "commit-table", "c1"}},
				}},
			{Key: "namespace main/sales", Holders: []Request{{"x", "s1", "10.0.0.1:5000", "shared", 1_699_999_999_980, 20, "", nil}}},
			{Key: "table main/sales/items",
				Waiters: []Request{
					{"commit-transaction", "t1", "10.0.0.1:5000", "exclusive", 1_699_999_999_995, 5, "", &Blocker{"table main/sales/orders", "commit-table", "c1"}},
				}},
		},
		Hot: []Hottest{{"table main/sales/orders", 3, 1, 1, 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whatever is in the table, the report has a bound, begins with the worst, and counts what it leaves out.
func TestLookIsBounded(t *testing.T) {
	var states []lock.KeyState
	for i := range 1000 {
		s := state(key.ForTableName("main", []string{"sales"}, fmt.Sprintf("t%04d", i)), fmt.Sprintf("commit-table h%d", i))
		for w := range i {
			s.Waiters = append(s.Waiters, state(s.Key, "", fmt.Sprintf("commit-table w%d", w)).Waiters...)
		}
		states = append(states, s)
	}
	hot := make([]HotKey, 50)
	got := Look(states, hot, Server{QueueMax: 1024}, now)
	if len(got.Keys) != 100 || got.KeysLeftOut != 900 || got.Held != 1000 || got.Awaited != 999 || got.Waiting != 999*1000/2 {
		t.Errorf("%d keys, %d left out, %d held, %d awaited, %d waiting", len(got.Keys), got.KeysLeftOut, got.Held, got.Awaited, got.Waiting)
	}
	first := got.Keys[0]
	if first.Key != "table main/sales/t0999" || first.QueueLength != 999 || len(first.Waiters) != 100 || first.WaitersLeftOut != 899 {
		t.Errorf("first is %s with %d waiters, %d shown, %d left out", first.Key, first.QueueLength, len(first.Waiters), first.WaitersLeftOut)
	}
	if len(got.Hot) != 20 || len(got.Advice) != 20 {
		t.Errorf("%d hot keys, %d lines of advice", len(got.Hot), len(got.Advice))
	}
	if states[0].Key.Name() != "t0000" {
		t.Error("Look has sorted its argument")
	}
}

func TestName(t *testing.T) {
	for want, k := range map[string]key.Key{
		"warehouse main":                    key.ForWarehouse("main"),
		"namespace main/sales":              sales,
		"namespace main/sales/eu":           key.ForNamespace("main", []string{"sales", "eu"}),
		"table main/sales/orders":           orders,
		"table main/sales/eu/a%2Fb":         key.ForTableName("main", []string{"sales", "eu"}, "a/b"),
		"idempotency key main/1":            key.ForOnce("main", "1"),
		"location index":                    key.LocationGuard(),
		"location file:///srv/main/orders/": key.ForLocation("file:///srv/main/orders"),
		"pointer main/p":                    key.ForPointer("main", "p"),
	} {
		if got := Name(k); got != want {
			t.Errorf("%v: got %q, want %q", k, got, want)
		}
	}
}

// many are the waiters "op 1", "op 2" and so on.
func many(n int, op string) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s %d", op, i+1))
	}
	return all
}

func TestAdvice(t *testing.T) {
	old := state(orders, "commit-table c1", many(5, "commit-table")...)
	old.Holders[0].Since = now.Add(-12340 * time.Millisecond)
	oldOnce := elsewhere(state(key.ForOnce("main", "k"), "commit-table c1"), "commit-table c2", orders)
	oldOnce.Holders[0].Since = old.Holders[0].Since
	together := state(orders, "commit-table c1", many(5, "commit-table")...)
	together.Holders = append(together.Holders, together.Holders[0], together.Holders[0])
	var creates []lock.KeyState
	for i := range 8 {
		creates = append(creates, state(table(i), fmt.Sprintf("create-table c%d", i)))
	}
	for name, c := range map[string]struct {
		states []lock.KeyState
		hot    []HotKey
		want   []string // key: pattern: how the text begins
	}{
		"nothing":                    {nil, nil, nil},
		"free of waiters":            {[]lock.KeyState{state(orders, "commit-table c1")}, nil, nil},
		"a few wait for a table":     {[]lock.KeyState{state(orders, "commit-table c1", many(3, "commit-table")...)}, nil, nil},
		"a hot table":                {[]lock.KeyState{state(orders, "commit-table c1", many(4, "commit-table")...)}, nil, []string{"table main/sales/orders: hot-table: 4 wait for one table: those"}},
		"a hot table with a batch":   {[]lock.KeyState{together}, nil, []string{"table main/sales/orders: hot-table: 5 wait for one table, while 3 commits are landed together"}},
		"held long":                  {[]lock.KeyState{old}, nil, []string{"table main/sales/orders: long-hold: commit-table (request c1) has it for 12.3s: "}},
		"held long, nobody waits":    {[]lock.KeyState{{Key: orders, Holders: old.Holders}}, nil, []string{"table main/sales/orders: long-hold: "}},
		"the queue is nearly full":   {[]lock.KeyState{state(orders, "commit-table c1", many(75, "commit-table")...)}, nil, []string{"table main/sales/orders: queue-full: 75 requests wait, and at most 100 may"}},
		"the queue is not so full":   {[]lock.KeyState{state(orders, "commit-table c1", many(74, "commit-table")...)}, nil, []string{"table main/sales/orders: hot-table: 74 "}},
		"full is graver than old":    {[]lock.KeyState{{Key: orders, Holders: old.Holders, Waiters: state(orders, "", many(80, "x")...).Waiters}}, nil, []string{"table main/sales/orders: queue-full: 80 "}},
		"a commit meets transaction": {[]lock.KeyState{state(orders, "commit-transaction t1", "commit-table c1")}, nil, []string{"table main/sales/orders: transactions: "}},
		"transactions overlap": {[]lock.KeyState{
			state(orders, "commit-transaction t1", "commit-transaction t2"), elsewhere(state(items, ""), "commit-transaction t2", orders),
		}, nil, []string{"table main/sales/orders: transactions: transactions over several tables meet here"}},
		"transactions meet at two tables": {[]lock.KeyState{
			state(items, "commit-transaction t1", "commit-transaction t2", "commit-transaction t3"), state(orders, "commit-transaction t1", "commit-transaction t2"),
		}, []HotKey{{Key: orders, Waits: 1000, Waited: time.Minute}}, []string{"table main/sales/items: transactions: "}},
		"one transaction alone":     {[]lock.KeyState{state(orders, "commit-transaction t1"), state(items, "commit-transaction t1")}, nil, nil},
		"one name is created twice": {[]lock.KeyState{state(orders, "create-table c1", "create-table c2")}, nil, []string{"table main/sales/orders: one-name: several create the same name"}},
		"bulk creation":             {creates, nil, []string{"namespace main/sales: bulk-creation: 8 tables are being created here"}},
		"less than bulk":            {creates[1:], nil, nil},
		"creates at locations of the client": {[]lock.KeyState{state(key.LocationGuard(), "create-table c1", "create-table c2")}, nil,
			[]string{"location index: client-locations: "}},
		"a namespace is dropped twice": {[]lock.KeyState{state(sales, "drop-namespace d1", "drop-namespace d2")}, nil,
			[]string{"namespace main/sales: namespace-drop: it is being dropped: those who wait"}},
		"a namespace is dropped with writers in it": {[]lock.KeyState{state(sales, "drop-namespace d1"), creates[0], state(orders, "commit-table c1")}, nil,
			[]string{"namespace main/sales: namespace-drop: it is being dropped while 2 of its table names are in use"}},
		"another namespace is dropped": {[]lock.KeyState{state(key.ForNamespace("main", []string{"sale"}), "drop-namespace d1"), state(orders, "commit-table c1")}, nil, nil},
		"changes of a namespace": {[]lock.KeyState{state(sales, "update-namespace-properties u1", "update-namespace-properties u2")}, nil,
			[]string{"namespace main/sales: structure: 2 changes of the namespace itself wait"}},
		"changes of a warehouse": {[]lock.KeyState{state(key.ForWarehouse("main"), "set-warehouse-s3 w1", "delete-warehouse w2")}, nil,
			[]string{"warehouse main: structure: 2 changes of the warehouse itself wait"}},
		"a retry": {[]lock.KeyState{state(key.ForOnce("main", "k"), "commit-table c1", "commit-table c1")}, nil,
			[]string{"idempotency key main/k: retry: "}},
		"a retry that waits for the table": {[]lock.KeyState{oldOnce, old}, nil,
			[]string{"table main/sales/orders: long-hold: ", "idempotency key main/k: retry: "}},
		"a first try that waits for the table": {[]lock.KeyState{state(orders, "commit-table c1"), elsewhere(state(key.ForOnce("main", "k"), ""), "commit-table c2", orders)}, nil, nil},
		"hot a while ago": {nil, []HotKey{{Key: orders, Waits: 120, Waited: 6 * time.Second}},
			[]string{"table main/sales/orders: hot-table: 120 requests of the last minute waited here, 50ms each"}},
		"hot, but quick":         {nil, []HotKey{{Key: orders, Waits: 100_000, Waited: 1000 * time.Second}}, nil},
		"not hot enough":         {nil, []HotKey{{Key: orders, Waits: 119, Waited: time.Hour}}, nil},
		"hot, but not a table":   {nil, []HotKey{{Key: sales, Waits: 1000}}, nil},
		"hot now and before":     {[]lock.KeyState{state(orders, "commit-table c1", many(4, "commit-table")...)}, []HotKey{{Key: orders, Waits: 1000}}, []string{"table main/sales/orders: hot-table: 4 wait"}},
		"conflicts of a minute":  {nil, []HotKey{{Key: sales, Conflicts: 120}}, []string{"namespace main/sales: conflicts: 120 batches"}},
		"conflicts now and then": {nil, []HotKey{{Key: sales, Conflicts: 119}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			wantAdvice(t, c.want, Look(c.states, c.hot, Server{QueueMax: 100}, now).Advice)
		})
	}
}

// TestAdviceWhereRecordsAreShared: what differs where other instances write, too.
func TestAdviceWhereRecordsAreShared(t *testing.T) {
	old := state(orders, "commit-table c1")
	old.Holders[0].Since = now.Add(-12 * time.Second)
	crowded := state(orders, "commit-table c1", many(5, "commit-table")...)
	const lost = ": conflicts: 120 batches of the last minute lost against another change here, and were decided again: "
	const instances = "its writers queue, but in each instance for itself, and those of several instances meet in PostgreSQL; send the writers of this table to one instance"
	pointer := key.ForPointer("main", "p")
	for name, c := range map[string]struct {
		states      []lock.KeyState
		hot         []HotKey
		alone, with string // key: pattern: how the text begins
	}{
		"conflicts at a table":   {nil, []HotKey{{Key: orders, Conflicts: 120}}, "table main/sales/orders" + lost + "what writes here does not queue for it; landfast", "table main/sales/orders" + lost + instances},
		"at one not known":       {nil, []HotKey{{Key: pointer, Conflicts: 120}}, "pointer main/p" + lost + "what writes here does not queue for it; landfast", "pointer main/p" + lost + instances},
		"at a namespace":         {nil, []HotKey{{Key: sales, Conflicts: 120}}, "namespace main/sales" + lost + "what writes here does not queue for it; landfast", "namespace main/sales" + lost + "what writes here does not queue for it, or goes to several instances"},
		"graver than a crowd":    {[]lock.KeyState{crowded}, []HotKey{{Key: orders, Waits: 9, Conflicts: 120}}, "table main/sales/orders" + lost, "table main/sales/orders" + lost + instances},
		"less than many":         {[]lock.KeyState{crowded}, []HotKey{{Key: orders, Waits: 9, Conflicts: 119}}, "table main/sales/orders: hot-table: ", "table main/sales/orders: hot-table: "},
		"crowd at another table": {[]lock.KeyState{crowded}, []HotKey{{Key: items, Waits: 9, Conflicts: 119}}, "table main/sales/orders: hot-table: ", "table main/sales/orders: hot-table: "},
		"held long": {[]lock.KeyState{old}, nil, "table main/sales/orders: long-hold: commit-table (request c1) has it for 12s: something that it does is slow: if landfast_store_commit_seconds is high the disk of the catalog, otherwise the place",
			`table main/sales/orders: long-hold: commit-table (request c1) has it for 12s: something that it does is slow: if landfast_postgres_round_trip_seconds{kind="apply"} is high PostgreSQL: its disk, or a synchronous standby that does not answer (SELECT * FROM pg_stat_replication), otherwise the place`},
	} {
		t.Run(name, func(t *testing.T) {
			for shared, want := range map[bool]string{false: c.alone, true: c.with} {
				wantAdvice(t, []string{want}, Look(c.states, c.hot, Server{QueueMax: 100, Shared: shared}, now).Advice)
			}
		})
	}
}

// wantAdvice compares with how the lines begin.
func wantAdvice(t *testing.T, want []string, got []Advice) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %v", got, want)
	}
	for i, a := range got {
		line := a.Key + ": " + a.Pattern + ": " + a.Text
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("got  %s\nwant %s", line, want[i])
		}
		if strings.ContainsAny(a.Text, "\n\t") || strings.Contains(a.Text, "%!") {
			t.Errorf("not one clean line: %q", a.Text)
		}
	}
}

// Every pattern that advice may name has its section in docs/contention.md, with an output in which it is named.
func TestPatternsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/contention.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"bulk-creation", "foreign-transaction", "prepared-transaction", "slow-batch"}
	for _, p := range patterns {
		names = append(names, p.name)
	}
	for _, name := range names {
		_, section, there := strings.Cut(string(page), "\n### "+name+": ")
		section, _, _ = strings.Cut(section, "\n##")
		if !there {
			t.Errorf("no section %s", name)
		} else if name != "hot-table" && !strings.Contains(section, "-->\n```text\n$ landfast locks\n") || !strings.Contains(string(page), ": "+name+": ") {
			t.Errorf("section %s has no output", name) // that of hot-table stands before it, and one of a moment later in it
		}
	}
}

func BenchmarkLook(b *testing.B) {
	var waiters []lock.KeyState
	for i := range 16 {
		waiters = append(waiters, state(table(i), "commit-table h", many(1024, "commit-table")...))
	}
	b.ReportAllocs()
	for b.Loop() {
		Look(waiters, nil, Server{QueueMax: 1024}, now)
	}
}
