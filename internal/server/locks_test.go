package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/contention"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

// TestLocks: the endpoint shows the server's own queue: who holds a table, who waits for it
// as long as it waits, and afterwards that it was waited for.
func TestLocks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := start(ctx, Options{Config: testConfig(filepath.Join(plainTempDir(t), "data")), Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	i := &instance{url: s.url}
	look := func() contention.Report {
		t.Helper()
		response, body := i.do(t, "GET", "/management/v1/locks", "")
		var r contention.Report
		if err := json.Unmarshal([]byte(body), &r); err != nil || response.StatusCode != 200 {
			t.Fatalf("%s %s: %v", response.Status, body, err)
		}
		return r
	}
	idle := look()
	if age := time.Since(time.UnixMilli(idle.AtMillis)); age < -time.Second || age > time.Minute {
		t.Errorf("it is of %v ago", age)
	}
	idle.AtMillis = 0
	if diff := cmp.Diff(contention.Report{Keys: []contention.Key{}, Hot: []contention.Hottest{}, Advice: []contention.Advice{}}, idle); diff != "" {
		t.Errorf("of an idle server (-want +got):\n%s", diff)
	}

	orders := key.ForTableName("main", []string{"sales"}, "orders")
	owner := lock.Owner{Op: "test", RequestID: "holder"}
	hold, err := s.queue.Acquire(lock.WithOwner(ctx, owner), lock.NewSet(lock.W(orders)), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release()
	answered := make(chan int, 1)
	go func() {
		response, _ := i.do(t, "POST", "/v1/namespaces/sales/tables/orders", `{"requirements":[],"updates":[]}`, "X-Request-Id", "waiter")
		answered <- response.StatusCode
	}()
	var got contention.Report
	for began := time.Now(); got.Waiting == 0; got = look() {
		if time.Since(began) > 20*time.Second {
			t.Fatal("nobody ever waited")
		}
	}
	if len(got.Keys) != 1 || len(got.Keys[0].Holders) != 1 || len(got.Keys[0].Waiters) != 1 {
		t.Fatalf("got %+v", got)
	}
	k, waiter := got.Keys[0], got.Keys[0].Waiters[0]
	if k.Key != "table main/sales/orders" || k.QueueLength != 1 || k.Holders[0].RequestID != "holder" {
		t.Errorf("got %+v", k)
	}
	if waiter.RequestID != "waiter" || waiter.Operation != "commit-table" || !strings.HasPrefix(waiter.Client, "127.0.0.1:") ||
		*waiter.WaitsFor != (contention.Blocker{Key: k.Key, Operation: "test", RequestID: "holder"}) {
		t.Errorf("got %+v, which waits for %+v", waiter, waiter.WaitsFor)
	}
	hold.Release()
	if status := <-answered; status != 404 {
		t.Errorf("the commit was answered with %d", status)
	}
	if got := look(); len(got.Hot) != 1 || got.Hot[0].Key != k.Key || got.Hot[0].Waits != 1 {
		t.Errorf("hot: %+v", got.Hot)
	}
	i.want(t, "POST", "/management/v1/locks", "{}", 405, "")
}

// TestWatchedStore: what a batch conflicts on is hot and counted by its level, once for each operation in the batch, and the
// error passes.
func TestWatchedStore(t *testing.T) {
	sales := key.ForNamespace("main", []string{"sales"})
	orders := key.ForTableName("main", []string{"sales"}, "orders")
	pointer := key.ForPointer("main", "p")
	bound := `{"kind":"table","ident":{"namespace":["sales"],"name":"orders"}}`
	for name, c := range map[string]struct {
		writes []store.Write // which must not be there
		ops    []string
		hot    []contention.HotKey
		counts map[string]float64
	}{
		"a namespace": {[]store.Write{{Key: sales, ID: "i", Value: []byte("{}")}}, []string{"create-namespace"},
			[]contention.HotKey{{Key: sales, Conflicts: 2}}, map[string]float64{"namespace create-namespace": 2}},
		"a table, by two commits": {[]store.Write{{Key: pointer, ID: "i", Value: []byte(bound)}}, []string{"commit-table", "commit-table"},
			[]contention.HotKey{{Key: orders, Conflicts: 2}}, map[string]float64{"pointer commit-table": 4}},
		"a namespace and a table": {[]store.Write{{Key: pointer, ID: "i", Value: []byte(bound)}, {Key: sales, ID: "i", Value: []byte("{}")}}, []string{"a", "commit-table"},
			[]contention.HotKey{{Key: sales, Conflicts: 2}, {Key: orders, Conflicts: 2}}, map[string]float64{"namespace commit-table": 2, "namespace other": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			hot, m := contention.NewHot(time.Now), newMetrics("v")
			w := watchedStore{mem.New(), hot, m}
			for i := range 3 {
				b := store.Batch{ID: fmt.Sprintf("0198a000-0000-7000-8000-00000000000%d", i), Writes: c.writes}
				for _, w := range c.writes {
					b.Conds = append(b.Conds, store.Is(w.Key, store.Absent))
				}
				for j, op := range c.ops {
					b.Ops = append(b.Ops, store.OpRecord{ID: fmt.Sprintf("%d-%d", i, j), Name: op})
				}
				err := w.Apply(t.Context(), b)
				if _, lost := errors.AsType[*store.ConflictError](err); lost != (i > 0) || err != nil && !lost {
					t.Fatalf("batch %d: %v", i, err)
				}
			}
			if diff := cmp.Diff(c.hot, hot.Top(10)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.counts, conflictsOf(t, m)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// conflictsOf are the counts of conflicts by "level op".
func conflictsOf(t *testing.T, m *metrics) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "landfast_conflicts_total" {
			for _, one := range f.GetMetric() { // its labels are sorted
				counts[one.GetLabel()[0].GetValue()+" "+one.GetLabel()[1].GetValue()] = one.GetCounter().GetValue()
			}
		}
	}
	return counts
}

// TestPatience: a timeout that was learned is in the log, for who debugs, and in the metrics.
func TestPatience(t *testing.T) {
	log := newLogged()
	s := &server{log: newLog(log, config.Log{Level: slog.LevelDebug}), metrics: newMetrics("v")}
	s.patience(lock.Tables, 30*time.Second, 37500*time.Millisecond)
	if want := `level=DEBUG msg="the timeout of queues has changed" class=tables from=30s to=37.5s`; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %s: %s", want, log)
	}
	families, err := s.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "landfast_queue_timeout_seconds" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"tables": 37.5, "whole-namespace": 45}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
