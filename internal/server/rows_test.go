package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/landfast/landfast/internal/contention"
	"github.com/landfast/landfast/internal/kernel"
	locklocal "github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store/postgres"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

const oneCommit = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`

// TestRowsOfPostgres: somebody has locked a row of the catalog and gone. The commit that needs it waits; another
// instance shows which one, of whom, for whom it waits, and how to end that. All others go on.
func TestRowsOfPostgres(t *testing.T) {
	url := database(t)
	c := postgresConfig(t, url)
	c.Instance = "catalog-1"
	a := run(t, c)
	c.Instance = "catalog-2"
	b := run(t, c)
	a.want(t, "POST", "/v1/namespaces", `{"namespace":["ns"]}`, 200, "ns")
	a.want(t, "POST", "/v1/namespaces/ns/tables", s3Table, 200, "")
	a.want(t, "POST", "/v1/namespaces/ns/tables", strings.Replace(s3Table, `"t"`, `"free"`, 1), 200, "")

	other, err := pgx.Connect(t.Context(), url+"&application_name=psql")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	if _, err := other.Exec(t.Context(), "BEGIN; SELECT FROM landfast.records WHERE level IN (4, 5) AND value NOT LIKE '%free%' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	const request = "0198a000-0000-7000-8000-000000000001"
	answered := make(chan int, 1)
	go func() {
		response, _ := a.do(t, "POST", "/v1/namespaces/ns/tables/t", oneCommit, "X-Request-Id", request)
		answered <- response.StatusCode
	}()
	look := func(i *instance) contention.Database {
		t.Helper()
		response, body := i.do(t, "GET", "/management/v1/locks", "")
		var r contention.Report
		if err := json.Unmarshal([]byte(body), &r); err != nil || response.StatusCode != 200 || r.Database == nil || r.Database.Problem != "" {
			t.Fatalf("%s %s: %v", response.Status, body, err)
		}
		return *r.Database
	}
	// Between two slices nobody waits on a connection, and a request that came since its instance looked at its queue is still cut.
	await := func(i *instance, shown string) contention.RowWaiter {
		t.Helper()
		for began := time.Now(); ; {
			if d := look(i); len(d.Waiters) > 0 && d.Waiters[0].RequestID == shown {
				return d.Waiters[0]
			} else if time.Since(began) > 20*time.Second {
				t.Fatalf("%s never waited: %+v\n%s", shown, d, a.log)
			}
		}
	}
	pid := int(other.PgConn().PID())
	for i, shown := range map[*instance]string{a: request, b: request[:31]} { // the other sees what PostgreSQL has room for
		w := await(i, shown)
		if w.Instance != "catalog-1" || w.Operation != "commit-table" || len(w.BlockedBy) != 1 {
			t.Fatalf("it shows %+v", w)
		}
		by := w.BlockedBy[0]
		if by.PID != pid || by.User != "postgres" || by.Application != "psql" || by.Address != "127.0.0.1" || by.State != "idle in transaction" || by.TransactionForMillis <= 0 {
			t.Errorf("it waits for %+v", by)
		}
	}
	if d := look(b); len(d.Foreign) != 1 || d.Foreign[0].PID != pid {
		t.Errorf("foreign sessions: %+v", d.Foreign)
	}
	for _, i := range []*instance{a, b} {
		i.want(t, "POST", "/v1/namespaces/ns/tables/free", oneCommit, 200, `"k":"v"`)
		i.want(t, "GET", "/v1/namespaces/ns/tables/t", "", 200, "")
		i.want(t, "GET", "/readyz", "", 200, "ready")
	}
	// The advice has the command.
	_, body := b.do(t, "GET", "/management/v1/locks", "")
	command := regexp.MustCompile(`SELECT pg_terminate_backend\(\d+\)`).FindString(body)
	for began := time.Now(); command == ""; command = regexp.MustCompile(`SELECT pg_terminate_backend\(\d+\)`).FindString(body) {
		if _, body = b.do(t, "GET", "/management/v1/locks", ""); time.Since(began) > 20*time.Second {
			t.Fatalf("no advice: %s", body)
		}
	}
	operator, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close(context.WithoutCancel(t.Context()))
	if _, err := operator.Exec(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != 200 {
		t.Errorf("the commit was answered with %d\n%s", status, a.log)
	}
	_, metrics := a.do(t, "GET", "/metrics", "")
	for _, m := range []string{`landfast_postgres_rows_locked_total`, `landfast_postgres_row_wait_seconds_count`, `landfast_postgres_batches_total{outcome="applied"}`,
		`landfast_postgres_round_trip_seconds_count{kind="apply"}`, `landfast_postgres_round_trip_seconds_count{kind="read"}`, `landfast_postgres_read_keys_count`,
		`landfast_postgres_connections{state="max"}`, `landfast_postgres_connections_opened_total`} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m) + ` [1-9]`).MatchString(metrics) {
			t.Errorf("/metrics has no %s above 0", m)
		}
	}
	if d := look(b); len(d.Waiters) != 0 || len(d.Foreign) != 0 {
		t.Errorf("afterwards: %+v", d)
	}
}

// TestConflictsOfInstances: two instances write one table. Their writers meet in PostgreSQL, and advice names the table and what to do.
func TestConflictsOfInstances(t *testing.T) {
	c := postgresConfig(t, database(t))
	c.Instance = "catalog-1"
	a := run(t, c)
	c.Instance = "catalog-2"
	b := run(t, c)
	a.want(t, "POST", "/v1/namespaces", `{"namespace":["ns"]}`, 200, "ns")
	a.want(t, "POST", "/v1/namespaces/ns/tables", s3Table, 200, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var writers sync.WaitGroup
	for _, i := range []*instance{a, b} {
		for range 4 {
			writers.Go(func() {
				for ctx.Err() == nil {
					if response, body := i.do(t, "POST", "/v1/namespaces/ns/tables/t", oneCommit); response.StatusCode != 200 {
						t.Errorf("%s %s", response.Status, body)
						return
					}
				}
			})
		}
	}
	var body string
	advised := func() bool {
		_, body = a.do(t, "GET", "/management/v1/locks", "")
		var r contention.Report
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(r.Advice, func(l contention.Advice) bool {
			return l.Key == "table main/ns/t" && l.Pattern == "conflicts" && strings.HasSuffix(l.Text, "send the writers of this table to one instance")
		})
	}
	for !advised() && ctx.Err() == nil {
	}
	late := ctx.Err() != nil
	cancel()
	writers.Wait()
	if late {
		t.Errorf("no advice: %s", body)
	}
	_, metrics := a.do(t, "GET", "/metrics", "")
	if !regexp.MustCompile(`(?m)^landfast_conflicts_total\{level="pointer",op="commit-table"\} [1-9]`).MatchString(metrics) || strings.Contains(metrics, "landfast_store_") {
		t.Errorf("/metrics lacks conflicts at the pointer, or has those of the embedded store:\n%s", metrics)
	}
}

// TestCommitThatHangs: PostgreSQL waits at a COMMIT for a synchronous standby that is not there. Nobody else waits for a row, and the
// advice says all the same which batch it is, and for what it waits.
func TestCommitThatHangs(t *testing.T) {
	cluster, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}()
	i := run(t, postgresConfig(t, cluster.Database(t)))
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["ns"]}`, 200, "ns")
	i.want(t, "POST", "/v1/namespaces/ns/tables", s3Table, 200, "")
	operator, err := pgx.Connect(t.Context(), cluster.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close(context.WithoutCancel(t.Context()))
	standbys := func(names string) {
		t.Helper()
		for _, command := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
			if _, err := operator.Exec(context.WithoutCancel(t.Context()), command); err != nil {
				t.Fatal(err)
			}
		}
	}
	standbys("nobody")
	var seen string // a reload takes a moment to be seen by all sessions
	for began := time.Now(); seen != "nobody"; {
		if err := operator.QueryRow(t.Context(), "SHOW synchronous_standby_names").Scan(&seen); err != nil || time.Since(began) > 20*time.Second {
			t.Fatalf("%q: %v", seen, err)
		}
	}
	answered := make(chan int, 1)
	var began time.Time
	commit := func() {
		began = time.Now()
		go func() {
			response, _ := i.do(t, "POST", "/v1/namespaces/ns/tables/t", oneCommit, "X-Request-Id", "hangs")
			answered <- response.StatusCode
		}()
	}
	commit()
	want := regexp.MustCompile(`"pattern":"slow-batch","text":"a batch of \S+ \(commit-table, request hangs\) has run for \S+, batches that wait for it: 0; it waits for SyncRep; PostgreSQL itself is slow`)
	_, body := i.do(t, "GET", "/management/v1/locks", "")
	for first := time.Now(); !want.MatchString(body); _, body = i.do(t, "GET", "/management/v1/locks", "") {
		select {
		case status := <-answered: // a COMMIT waits only when PostgreSQL's checkpointer has seen the setting, too
			if status != 200 || time.Since(first) > 20*time.Second {
				t.Fatalf("the commit did not hang, and was answered with %d", status)
			}
			commit()
		default:
		}
		if time.Since(began) > 10*time.Second { // less than applyLimit
			t.Errorf("no advice: %s", body)
			break
		}
	}
	if strings.Contains(body, "long-hold") {
		t.Errorf("something else is blamed, too: %s", body)
	}
	standbys("")
	if status := <-answered; status != 200 {
		t.Errorf("the commit was answered with %d\n%s", status, i.log)
	}
}

// TestPostgresMetricsAreDocumented: docs/postgres.md explains each metric of the store, and none that is not there.
func TestPostgresMetricsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile(`landfast_[a-z_]+`).FindAllString(string(data), -1) {
		documented[regexp.MustCompile(`_bucket$`).ReplaceAllString(name, "")] = true
	}
	m := newMetrics("v")
	newPostgresMetrics(m)
	m.registry.MustRegister(poolMetrics{func() postgres.Connections { return postgres.Connections{} }})
	m.operation(kernel.Report{Op: "commit-table", Err: kernel.ErrBlocked})
	m.waited(locklocal.Wait{Op: "commit-table"})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range families {
		there[f.GetName()] = true
		if strings.HasPrefix(f.GetName(), "landfast_store_") {
			t.Errorf("%s is of the embedded store", f.GetName())
		}
		if strings.HasPrefix(f.GetName(), "landfast_postgres_") && !documented[f.GetName()] {
			t.Errorf("%s is not explained", f.GetName())
		}
	}
	for name := range documented {
		if !there[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestPostgresLabels: whatever happens, each label has one of few values, all of them there from the start.
func TestPostgresLabels(t *testing.T) {
	m := newMetrics("v")
	p := newPostgresMetrics(m)
	m.registry.MustRegister(poolMetrics{func() postgres.Connections {
		return postgres.Connections{Open: 3, InUse: 1, Idle: 2, Max: 16, Opened: 5, Waits: 7, Waited: 1500 * time.Millisecond}
	}})
	want := map[string][]string{
		"outcome": {"applied", "blocked", "conflict", "failed", "unavailable", "unknown"}, "kind": {"apply", "list", "outcome", "read"},
		"reason": {"deadlock", "serialization"}, "state": {"idle", "in-use", "max"}, "class": {"tables", "whole-namespace"},
	}
	before := labelValues(t, m)
	for _, e := range []postgres.Event{
		{Kind: postgres.BatchEnded, Word: "blocked"}, {Kind: postgres.RoundTrip, Word: "read", Took: time.Millisecond, Keys: 3}, {Kind: postgres.RowLocked},
		{Kind: postgres.SliceEnded, Took: 200 * time.Millisecond}, {Kind: postgres.Undone, Word: "deadlock"},
	} {
		p.happened(e)
	}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Errorf("at first: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, labelValues(t, m)); diff != "" {
		t.Errorf("afterwards: -want +got:\n%s", diff)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			if !strings.HasPrefix(f.GetName(), "landfast_postgres_") {
				continue
			}
			name := strings.TrimPrefix(f.GetName(), "landfast_postgres_")
			for _, l := range one.GetLabel() {
				name += " " + l.GetValue()
			}
			if h := one.GetHistogram(); h != nil && h.GetSampleCount() > 0 {
				got[name] = fmt.Sprintf("%d, %v", h.GetSampleCount(), h.GetSampleSum())
			} else if v := one.GetCounter().GetValue() + one.GetGauge().GetValue(); v != 0 {
				got[name] = fmt.Sprint(v)
			}
		}
	}
	values := map[string]string{
		"batches_total blocked": "1", "round_trip_seconds read": "1, 0.001", "read_keys": "1, 3", "rows_locked_total": "1", "row_wait_seconds": "1, 0.2",
		"undone_total deadlock": "1", "connections idle": "2", "connections in-use": "1", "connections max": "16", "connections_opened_total": "5",
		"connection_waits_total": "7", "connection_wait_seconds_total": "1.5",
	}
	if diff := cmp.Diff(values, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
