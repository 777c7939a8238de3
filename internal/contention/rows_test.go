package contention

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/lock"
)

// psql is somebody who has locked a row and gone for coffee.
var psql = Session{
	PID: 4711, User: "alice", Application: "psql", Address: "10.0.0.7", State: "idle in transaction", Transaction: 25100 * time.Millisecond,
}

// ours is a batch that has waited so long.
func ours(pid int, instance, request string, waited time.Duration, by ...int) Session {
	return Session{
		PID: pid, Instance: instance, Operation: "commit-table", RequestID: request, User: "landfast", Application: "landfast " + instance,
		Address: "10.0.0.1", State: "active", Transaction: waited, Attempt: waited, BlockedBy: by,
	}
}

func TestAddRows(t *testing.T) {
	held := state(orders, "commit-table 0198a000-0000-7000-8000-000000000001")
	held.Holders[0].Since = now.Add(-3 * time.Second)
	r := Look([]lock.KeyState{held}, nil, Server{QueueMax: 1024, Shared: true}, now)
	if len(r.Advice) != 1 || r.Advice[0].Pattern != "long-hold" {
		t.Fatalf("before: %+v", r.Advice)
	}
	r.AddRows("catalog-1", []Session{
		psql,
		ours(12, "catalog-2", "0198a000-0000-7000-8000", 150*time.Millisecond, 4711, 11),
		ours(11, "catalog-1", "0198a000-0000-7000-8000", 100*time.Millisecond, 4711),
		ours(13, "catalog-2", "", 10*time.Millisecond),
	}, nil)
	alice := RowHolder{PID: 4711, User: "alice", Application: "psql", Address: "10.0.0.7", State: "idle in transaction",
		TransactionMillis: 1_699_999_974_900, TransactionForMillis: 25_100}
	want := &Database{
		Instance: "catalog-1",
		Waiters: []RowWaiter{
			{PID: 11, Instance: "catalog-1", Operation: "commit-table", RequestID: "0198a000-0000-7000-8000-000000000001",
				SinceMillis: 1_699_999_997_000, ForMillis: 3000, BlockedBy: []RowHolder{alice}},
			{PID: 12, Instance: "catalog-2", Operation: "commit-table", RequestID: "0198a000-0000-7000-8000",
				SinceMillis: 1_699_999_999_850, ForMillis: 150, BlockedBy: []RowHolder{alice, {
					PID: 11, Instance: "catalog-1", Operation: "commit-table", RequestID: "0198a000-0000-7000-8000",
					User: "landfast", Application: "landfast catalog-1", Address: "10.0.0.1", State: "active",
					TransactionMillis: 1_699_999_999_900, TransactionForMillis: 100,
				}}},
		},
		Foreign: []RowHolder{alice},
	}
	if diff := cmp.Diff(want, r.Database); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(r.Advice) != 1 || r.Advice[0].Pattern != "foreign-transaction" { // which is why it is held long
		t.Errorf("advice: %+v", r.Advice)
	}
}

// What could not be read is said, and the rest of the report is as it was.
func TestAddRowsThatCouldNotBeRead(t *testing.T) {
	states := []lock.KeyState{state(orders, "commit-table c1", many(5, "commit-table")...)}
	want, got := Look(states, nil, Server{QueueMax: 1024, Shared: true}, now), Look(states, nil, Server{QueueMax: 1024, Shared: true}, now)
	got.AddRows("catalog-1", nil, errors.New("no connection"))
	want.Database = &Database{Instance: "catalog-1", Problem: "no connection"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAddRowsIsBounded(t *testing.T) {
	var sessions []Session
	for i := range 300 {
		foreign := psql
		foreign.PID = 1000 + i
		sessions = append(sessions, foreign, ours(i+1, "catalog-1", fmt.Sprint("r", i), time.Duration(i)*time.Millisecond, 1000+i))
	}
	r := Look([]lock.KeyState{state(orders, "commit-table c1", many(5, "commit-table")...)}, nil, Server{QueueMax: 1024, Shared: true}, now)
	r.AddRows("catalog-1", sessions, nil)
	d := r.Database
	if len(d.Waiters) != 100 || d.WaitersLeftOut != 200 || len(d.Foreign) != 100 || d.ForeignLeftOut != 200 || len(r.Advice) != 20 {
		t.Errorf("%d waiters and %d, %d foreign and %d, %d lines", len(d.Waiters), d.WaitersLeftOut, len(d.Foreign), d.ForeignLeftOut, len(r.Advice))
	}
	if d.Waiters[0].ForMillis != 299 {
		t.Errorf("the first has waited for %d ms", d.Waiters[0].ForMillis)
	}
}

func TestRowAdvice(t *testing.T) {
	syncing := ours(1, "a", "r", 12*time.Second)
	syncing.WaitEvent = "SyncRep"
	housekeeping := ours(1, "a", "", time.Minute)
	housekeeping.Operation = ""
	with := func(change func(*Session)) Session {
		s := psql
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		sessions []Session
		want     []string // key: pattern: text
	}{
		"nothing": {nil, nil},
		"a foreign session that is waited for": {[]Session{psql, ours(1, "a", "r", time.Millisecond, 4711), ours(2, "b", "q", time.Millisecond, 4711)},
			[]string{"session 4711: foreign-transaction: user alice with psql at 10.0.0.7 has a transaction open for 25.1s (idle in transaction); " +
				"batches of ours that wait for it: 2; let it end, or end it: SELECT pg_terminate_backend(4711)"}},
		"a foreign session that has been there for a while": {[]Session{psql},
			[]string{"session 4711: foreign-transaction: user alice with psql at 10.0.0.7 has a transaction open for 25.1s (idle in transaction); " +
				"it has locks of the catalog's tables; let it end, or end it: SELECT pg_terminate_backend(4711)"}},
		"a foreign session that has just come": {[]Session{with(func(s *Session) { s.Transaction = longHold - 1 })}, nil},
		"a foreign session of which little may be seen": {[]Session{{PID: 4711, User: "bob"}},
			[]string{"session 4711: foreign-transaction: user bob has a transaction open (GRANT pg_read_all_stats to our user to see since when); " +
				"it has locks of the catalog's tables; let it end, or end it: SELECT pg_terminate_backend(4711)"}},
		"a prepared transaction": {[]Session{ours(1, "a", "r", time.Millisecond, 0)},
			[]string{"PostgreSQL: prepared-transaction: batches of ours that wait for a transaction that was prepared and neither committed nor rolled back: 1; " +
				"find it with SELECT * FROM pg_prepared_xacts and end it with ROLLBACK PREPARED"}},
		"a slow batch of ours": {[]Session{ours(1, "a", "r", 1500*time.Millisecond), ours(2, "b", "q", time.Millisecond, 1)},
			[]string{"session 1: slow-batch: a batch of a (commit-table, request r) has run for 1.5s, batches that wait for it: 1; PostgreSQL itself is slow: its disk, " +
				"or a synchronous standby that does not answer (SELECT * FROM pg_stat_replication)"}},
		"a batch that hangs at its COMMIT, and nobody waits for it yet": {[]Session{syncing},
			[]string{"session 1: slow-batch: a batch of a (commit-table, request r) has run for 12s, batches that wait for it: 0; it waits for SyncRep; PostgreSQL itself is slow: " +
				"its disk, or a synchronous standby that does not answer (SELECT * FROM pg_stat_replication)"}},
		"a batch that is long, but not longer than some are": {[]Session{ours(1, "a", "r", longHold-1)}, nil},
		"a batch that waits itself, for one that is quick":   {[]Session{ours(1, "a", "r", 1500*time.Millisecond, 2), ours(2, "b", "q", time.Millisecond)}, nil},
		"what we do for no request, and nobody waits":        {[]Session{housekeeping}, nil},
		"what we do for no request, and a batch waits": {[]Session{housekeeping, ours(2, "b", "q", time.Millisecond, 1)},
			[]string{"session 1: slow-batch: a batch of a has run for 1m0s, batches that wait for it: 1; PostgreSQL itself is slow: its disk, or a synchronous " +
				"standby that does not answer (SELECT * FROM pg_stat_replication)"}},
		"batches that wait for each other, shortly": {[]Session{ours(1, "a", "r", 15*time.Millisecond), ours(2, "b", "q", time.Millisecond, 1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report{AtMillis: now.UnixMilli()}
			r.AddRows("a", c.sessions, nil)
			var got []string
			for _, a := range r.Advice {
				got = append(got, strings.Join([]string{a.Key, a.Pattern, a.Text}, ": "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
