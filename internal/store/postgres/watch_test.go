package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
)

// counted are the events of a store, as "kind word".
type counted struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counted) observe(e postgres.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[strings.TrimSpace(fmt.Sprintf("%d %s", e.Kind, e.Word))]++
}

// take gives what was counted since the last call.
func (c *counted) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.of
	c.of = map[string]int{}
	return was
}

// A batch waits for a row that somebody else has locked: who both are can be seen, and what happened is told;
// through PgBouncer, too, where a session is everybody's.
func TestSessionsAndEvents(t *testing.T) {
	t.Run("own", func(t *testing.T) {
		url := cluster.Database(t)
		testSessionsAndEvents(t, url, postgres.Options{URL: url})
	})
	t.Run("pgbouncer", func(t *testing.T) {
		url := cluster.Database(t)
		testSessionsAndEvents(t, url, postgres.Options{URL: cluster.PgBouncer(t, 4)(url), Pooled: true})
	})
}

// url is that of PostgreSQL itself.
func testSessionsAndEvents(t *testing.T, url string, o postgres.Options) {
	events := &counted{of: map[string]int{}}
	o.Name, o.Slice, o.Observe = "catalog-1", 20*time.Second, events.observe
	s := open(t, o)
	k := key.ForNamespace("main", []string{"sales"})
	write := func(ctx context.Context, id string, v store.Version) error {
		return s.Apply(ctx, store.Batch{
			ID: id, Conds: []store.Cond{store.Is(k, v)}, Writes: []store.Write{{Key: k, ID: "incarnation", Value: []byte("{}")}},
			Ops: []store.OpRecord{{ID: id, Name: "create-namespace"}},
		})
	}
	const first, second = "0198a000-0000-7000-8000-000000000001", "0198a000-0000-7000-8000-000000000002"
	if err := write(t.Context(), first, store.Absent); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"0 applied": 1, "1 apply": 1}, events.take()); diff != "" {
		t.Errorf("of a batch that was applied (-want +got):\n%s", diff)
	}
	if idle, err := s.Sessions(t.Context()); err != nil || len(idle) != 0 {
		t.Errorf("of an idle database: %+v, %v", idle, err)
	}

	other, err := pgx.Connect(t.Context(), url+"&application_name=psql")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	if _, err := other.Exec(t.Context(), "BEGIN; SELECT FROM landfast.records WHERE level = 3 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ctx := lock.WithOwner(t.Context(), lock.Owner{Op: "update-namespace-properties", RequestID: strings.Repeat("r", 128)})
		ended <- write(ctx, second, store.Version(first))
	}()
	var got []postgres.Session
	// The first attempt waits for 1 ms only.
	for began := time.Now(); len(got) < 2 || len(got[1].BlockedBy) == 0 || got[1].Statement < 50*time.Millisecond; {
		if got, err = s.Sessions(t.Context()); err != nil || time.Since(began) > 20*time.Second {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	pid := int(other.PgConn().PID())
	want := []postgres.Session{
		{PID: pid, User: "postgres", Application: "psql", Address: "127.0.0.1", State: "idle in transaction", WaitEvent: "ClientRead", BlockedBy: []int{}},
		{
			Instance: "catalog-1", Operation: "update-namespa", Request: strings.Repeat("r", 29), User: "postgres",
			Application: "landfast catalog-1 update-namespa " + strings.Repeat("r", 29), Address: "127.0.0.1", State: "active", WaitEvent: "transactionid",
			BlockedBy: []int{pid},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(postgres.Session{}, "PID", "Transaction", "Statement")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got[0].Transaction < got[1].Transaction || got[1].Transaction <= 0 {
		t.Errorf("the transactions are %v and %v old", got[0].Transaction, got[1].Transaction)
	}
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"0 applied": 1, "1 apply": 2, "2": 1, "3": 1}, events.take()); diff != "" {
		t.Errorf("of a batch that waited (-want +got):\n%s", diff)
	}
	if _, err := s.Get(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"1 read": 1}, events.take()); diff != "" {
		t.Errorf("of a read (-want +got):\n%s", diff)
	}
	if c := s.Connections(); c.Open < 1 || c.Max != 16 || c.InUse != 0 || c.Opened < 1 {
		t.Errorf("%+v", c)
	}
}
