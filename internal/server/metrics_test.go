package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	locklocal "github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
)

// labelValues are the values of each label of our metrics.
func labelValues(t *testing.T, m *metrics) map[string][]string {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]string{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "landfast_") || f.GetName() == "landfast_build_info" {
			continue
		}
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
	}
	for name, v := range values {
		slices.Sort(v)
		values[name] = slices.Compact(v)
	}
	return values
}

// TestLabels: whatever the observers are told, each label has one of few values that we chose.
func TestLabels(t *testing.T) {
	m := newMetrics("v")
	const evil = "a name that a client chose"
	m.request("", evil, 200, 0)
	m.request("GET /v1/{prefix}/namespaces", "GET", 200, 0)
	for _, op := range []string{"commit-table", "sweep", "", evil} {
		for _, err := range []error{
			nil, errors.New(evil), &catalog.Error{Kind: errors.New(evil), Message: evil}, fmt.Errorf("%w: %s", store.ErrOutcomeUnknown, evil),
			fmt.Errorf("%w: %w: %s", kernel.ErrContended, lock.ErrTimeout, evil),
		} {
			m.operation(kernel.Report{Op: op, Err: err, Decisions: 2, Batch: 1})
		}
		m.waited(locklocal.Wait{Key: key.ForTableName(evil, []string{evil}, evil), Mode: lock.Shared, Op: op})
		m.held(key.Key{Level: 200, Path: evil}, lock.Exclusive, op, time.Second)
		m.lost(store.Batch{Ops: []store.OpRecord{{Name: op}}}, []store.Cond{store.Is(key.ForPointer(evil, evil), evil)})
		m.lost(store.Batch{Ops: []store.OpRecord{{Name: op}}}, nil)
	}
	want := map[string][]string{
		"route": {"/v1/{prefix}/namespaces", "none"}, "method": {"GET", "other"}, "status": {"200"},
		"op":      {"background", "commit-table", "other", "sweep"},
		"outcome": {"contended", "done", "failed", "refused", "unknown"},
		"kind":    {"other", "timed-out"},
		"class":   {"tables", "whole-namespace"},
		"level":   {"level-200", "none", "pointer", "table-name"}, "mode": {"exclusive", "shared"},
	}
	if diff := cmp.Diff(want, labelValues(t, m)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLabelsOfARun: so it is when clients do choose.
func TestLabelsOfARun(t *testing.T) {
	i := run(t, testConfig(filepath.Join(plainTempDir(t), "data")))
	i.want(t, "POST", "/management/v1/warehouses", `{"name":"chosen"}`, 200, "")
	i.want(t, "POST", "/v1/chosen/namespaces", `{"namespace":["chosen"]}`, 200, "")
	table := `{"name":"chosen","schema":{"type":"struct","fields":[{"id":1,"name":"chosen","type":"int","required":false}]}}`
	i.want(t, "POST", "/v1/chosen/namespaces/chosen/tables", table, 200, "")
	i.want(t, "POST", "/v1/chosen/namespaces/chosen/tables", table, 409, "")
	i.want(t, "POST", "/v1/chosen/namespaces/chosen/tables/chosen", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"chosen":"chosen"}}]}`, 200, "")
	i.want(t, "POST", "/v1/chosen/namespaces/chosen/tables/chosen", `{"requirements":[{"type":"assert-table-uuid","uuid":"chosen"}],"updates":[]}`, 409, "")
	i.do(t, "CHOSEN", "/chosen", "")
	i.do(t, "DELETE", "/v1/chosen/namespaces/chosen", "", "X-Request-Id", "chosen", "Idempotency-Key", "c4053e00-0000-4000-8000-000000000000", "User-Agent", "chosen")
	_, got := i.do(t, "GET", "/metrics", "")
	if strings.Contains(got, "chosen") || strings.Contains(got, "CHOSEN") {
		t.Error("a label holds what a client chose")
	}
	word := regexp.MustCompile(`^[a-z0-9-]+$`)
	for _, m := range regexp.MustCompile(`(?:op|kind|level|class|mode|outcome|method|status)="([^"]*)"`).FindAllStringSubmatch(got, -1) {
		if v := m[1]; !word.MatchString(v) && !isCommonMethod(v) {
			t.Errorf("%s is not a word of ours", m[0])
		}
	}
	for _, want := range []string{
		`landfast_refusals_total{kind="requirement",op="commit-table"} 1`,
		`landfast_refusals_total{kind="not-empty",op="drop-namespace"} 1`,
		`landfast_lock_hold_seconds_count{level="table-name",mode="exclusive",op="commit-table"} 2`,
	} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// TestFound: each is looked for as often as several came for it at the same time, at most, and one metric counts all.
func TestFound(t *testing.T) {
	m := newMetrics("v")
	two := store.Batch{Ops: []store.OpRecord{{Name: "commit-table"}, {Name: "commit-table"}}}
	changed := []store.Cond{store.Is(key.ForWarehouse("main"), "v")}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				m.operation(kernel.Report{Op: "commit-table", Decisions: 3, Conflicts: 9, Batch: 4})
				m.lost(two, changed)
				m.waited(locklocal.Wait{Key: key.ForWarehouse("main"), Mode: lock.Exclusive, Op: "commit-table", Waited: time.Second, Behind: 3})
				m.held(key.ForWarehouse("main"), lock.Exclusive, "commit-table", time.Second)
			}
		})
	}
	all.Wait()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if metric := f.GetMetric()[0]; metric.GetHistogram() != nil {
			got[f.GetName()] = metric.GetHistogram().GetSampleSum()
		} else if strings.HasSuffix(f.GetName(), "_total") {
			got[f.GetName()] = metric.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"landfast_operations_total": 800, "landfast_decisions_total": 2400, "landfast_retries_total": 1600, "landfast_conflicts_total": 1600,
		"landfast_batch_operations": 3200, "landfast_queue_wait_seconds": 800, "landfast_lock_hold_seconds": 800, "landfast_queue_length": 2400,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// BenchmarkMetrics is what the metrics of one commit cost: it queued for one key, and landed.
func BenchmarkMetrics(b *testing.B) {
	m := newMetrics("v")
	k := key.ForTableName("main", []string{"sales"}, "orders")
	one := func() {
		m.waited(locklocal.Wait{Key: k, Mode: lock.Exclusive, Op: "commit-table", Waited: time.Millisecond})
		m.held(k, lock.Exclusive, "commit-table", time.Millisecond)
		m.operation(kernel.Report{Op: "commit-table", Wrote: true, Decisions: 1, Bytes: 1000, Batch: 7})
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			one()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one()
			}
		})
	})
	b.Run("looked-up-each-time", func(b *testing.B) { // what it would cost
		b.ReportAllocs()
		for b.Loop() {
			for _, v := range []*prometheus.HistogramVec{m.waitSeconds, m.holdSeconds, m.queueLength} {
				v.WithLabelValues(k.Level.String(), "exclusive", "commit-table").Observe(1)
			}
			m.operations.WithLabelValues("commit-table", "done").Inc()
			for _, v := range []*prometheus.CounterVec{m.decisions, m.retries, m.conflicts} {
				v.WithLabelValues("commit-table").Inc()
			}
			m.batches.WithLabelValues("commit-table").Observe(7)
		}
	})
}
