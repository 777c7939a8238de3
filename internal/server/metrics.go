package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	locklocal "github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
)

// metrics are what /metrics shows. The registry is the server's own, so that
// several servers fit in one process. No label has a value that a client chose.
type metrics struct {
	registry *prometheus.Registry

	requests        *prometheus.CounterVec   // by route, method, status
	requestSeconds  *prometheus.HistogramVec // by route, method
	requestsRunning atomic.Int64

	operations    *prometheus.CounterVec   // by op, outcome
	refusals      *prometheus.CounterVec   // by op, kind
	decisions     *prometheus.CounterVec   // by op
	retries       *prometheus.CounterVec   // by op
	conflicts     *prometheus.CounterVec   // by level, op
	blocked       *prometheus.CounterVec   // by op
	batches       *prometheus.HistogramVec // by op
	uploadedBytes prometheus.Counter

	waitSeconds *prometheus.HistogramVec // by level, mode, op
	holdSeconds *prometheus.HistogramVec // by level, mode, op
	queueLength *prometheus.HistogramVec // by level, mode, op
	timeouts    *prometheus.GaugeVec     // by class

	// Finding a metric by its labels takes longer than counting, so what was found is kept.
	outcomes  found[outcomeLabels, prometheus.Counter]
	byOp      found[string, opMetrics]
	byRequest found[requestLabels, requestMetrics]
	byBatch   found[string, prometheus.Observer] // of operations that write
	byLock    found[lockLabels, lockMetrics]

	groupBatches  prometheus.Histogram
	commitSeconds prometheus.Histogram
}

// Buckets of the histograms. Commits of the store take as long as an fsync: 0.1 ms
// on a good disk, 10 ms and more on a bad one.
var (
	requestBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	lockBuckets    = []float64{0, .0001, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10, 30, 60}
	lengthBuckets  = []float64{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
	commitBuckets  = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5}
	groupBuckets   = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}
)

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_http_requests_total", Help: "Requests answered, by the template of their route.",
		}, []string{"route", "method", "status"}),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "landfast_http_request_seconds", Help: "Time from a request's header to the end of its answer.", Buckets: requestBuckets,
		}, []string{"route", "method"}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_operations_total", Help: "Operations of the catalog that ended, by outcome: done, refused, contended, overloaded, cancelled, unknown, failed.",
		}, []string{"op", "outcome"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_decisions_total", Help: "Times that an operation was decided; more than once after a conflict.",
		}, []string{"op"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_conflicts_total", Help: "Operations whose batch was refused because something else came first, once for each attempt and each operation in the batch, by the level of the key that had changed: the coarsest, if there were several.",
		}, []string{"level", "op"}),
		blocked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_blocked_total", Help: "Operations whose batch was refused because another transaction had locked what it needed, once for each attempt and each operation in the batch; it is sent again.",
		}, []string{"op"}),
		uploadedBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "landfast_uploaded_bytes_total", Help: "Bytes of the metadata files that operations wrote.",
		}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_refusals_total", Help: "Operations that were refused, contended or overloaded, by the kind of refusal.",
		}, []string{"op", "kind"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_retries_total", Help: "Times that an operation was decided beyond the first.",
		}, []string{"op"}),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "landfast_batch_operations", Help: "How many operations were landed by the batch of an operation, itself included; each of them counts.", Buckets: groupBuckets,
		}, []string{"op"}),
		waitSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "landfast_queue_wait_seconds", Help: "Time that a key held an operation up, by the key's level; 0 where it was free.", Buckets: lockBuckets,
		}, []string{"level", "mode", "op"}),
		holdSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "landfast_lock_hold_seconds", Help: "Time that an operation held a key, by the key's level. One that was landed in the batch of another is left out.", Buckets: lockBuckets,
		}, []string{"level", "mode", "op"}),
		queueLength: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "landfast_queue_length", Help: "How many a key held up already when an operation came, by the key's level.", Buckets: lengthBuckets,
		}, []string{"level", "mode", "op"}),
		timeouts: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "landfast_queue_timeout_seconds", Help: "How long operations wait in a queue at most, by their class; learned from how long they had to.",
		}, []string{"class"}),
		groupBatches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "landfast_store_group_batches", Help: "Batches that shared one durable commit of the embedded store.", Buckets: groupBuckets,
		}),
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "landfast_store_commit_seconds", Help: "Time that one durable commit of the embedded store took.", Buckets: commitBuckets,
		}),
	}
	for _, c := range lock.Classes {
		m.patience(c, c.NewTimeout(nil).Current())
	}
	requestsRunning := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "landfast_http_requests_running", Help: "Requests that are not answered yet.",
	}, func() float64 { return float64(m.requestsRunning.Load()) })
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "landfast_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.requests, m.requestSeconds, requestsRunning,
		m.operations, m.refusals, m.decisions, m.retries, m.conflicts, m.blocked, m.batches, m.uploadedBytes,
		m.waitSeconds, m.holdSeconds, m.queueLength, m.timeouts,
		m.groupBatches, m.commitSeconds, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// handler serves the metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// opMetrics are those of one operation.
type opMetrics struct{ decisions, retries, blocked prometheus.Counter }

type outcomeLabels struct{ op, outcome string }

// operation is the kernel's observer.
func (m *metrics) operation(r kernel.Report) {
	op, outcome := opWord(r.Op), outcomeOf(r.Err)
	m.outcomes.get(outcomeLabels{op, outcome}, func() prometheus.Counter {
		return m.operations.WithLabelValues(op, outcome)
	}).Inc()
	switch outcome {
	case "refused", "contended", "overloaded":
		m.refusals.WithLabelValues(op, refusalOf(r.Err)).Inc()
	}
	of := m.byOp.get(op, func() opMetrics {
		return opMetrics{m.decisions.WithLabelValues(op), m.retries.WithLabelValues(op), m.blocked.WithLabelValues(op)}
	})
	of.decisions.Add(float64(r.Decisions))
	of.retries.Add(float64(max(r.Decisions-1, 0)))
	of.blocked.Add(float64(r.Blocked))
	if r.Batch > 0 {
		m.byBatch.get(op, func() prometheus.Observer { return m.batches.WithLabelValues(op) }).Observe(float64(r.Batch))
	}
	m.uploadedBytes.Add(float64(r.Bytes))
}

// lost counts the operations of a batch that the store refused. The kernel also reports conflicts that no batch had, such
// as of reads that did not fit each other: those are retries here, and nothing else, for they have no key.
func (m *metrics) lost(b store.Batch, conds []store.Cond) {
	level := "none" // the batch was declared not applied, by somebody who had waited for it
	if len(conds) > 0 {
		level = slices.MinFunc(conds, func(a, b store.Cond) int { return key.Compare(a.Key, b.Key) }).Key.Level.String()
	}
	for _, op := range b.Ops {
		m.conflicts.WithLabelValues(level, opWord(op.Name)).Inc()
	}
}

// opWord is an operation's name as a label: one that the catalog knows, or a word for all others.
func opWord(op string) string {
	if _, known := catalog.Operations[op]; known || op == "sweep" {
		return op
	}
	if op == "" {
		return "background" // nobody asked for it
	}
	return "other"
}

// outcomeOf says in a word how an operation ended. Unknown comes first: an error
// may also tell that the time was up, and what matters is that nobody knows.
func outcomeOf(err error) string {
	if err == nil {
		return "done"
	}
	_, refused := errors.AsType[*catalog.Error](err)
	switch {
	case errors.Is(err, store.ErrOutcomeUnknown):
		return "unknown"
	case refused, errors.Is(err, store.ErrUnstorable):
		return "refused"
	case errors.Is(err, kernel.ErrContended):
		return "contended"
	case errors.Is(err, kernel.ErrOverloaded), errors.Is(err, store.ErrUnavailable):
		return "overloaded"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "failed"
}

// refusalKinds are the words for what an operation was refused with: the first that fits.
var refusalKinds = []struct {
	err  error
	word string
}{
	{lock.ErrQueueFull, "queue-full"},
	{lock.ErrClosed, "stopping"},
	{lock.ErrTimeout, "timed-out"},
	{lock.ErrBusy, "busy"},
	{kernel.ErrBlocked, "blocked"},
	{kernel.ErrContended, "conflicts"},
	{kernel.ErrOverloaded, "overloaded"},
	{store.ErrUnavailable, "store-unavailable"},
	{store.ErrUnstorable, "unstorable"},
	{catalog.ErrRequirement, "requirement"},
	{catalog.ErrStale, "stale"},
	{catalog.ErrAlreadyExists, "already-exists"},
	{catalog.ErrNotEmpty, "not-empty"},
	{catalog.ErrNoSuchWarehouse, "no-such-warehouse"},
	{catalog.ErrNoSuchNamespace, "no-such-namespace"},
	{catalog.ErrNoSuchTable, "no-such-table"},
	{catalog.ErrNoSuchView, "no-such-view"},
	{catalog.ErrMissingFile, "missing-file"},
	{catalog.ErrInvalid, "invalid"},
	{catalog.ErrUnprocessable, "unprocessable"},
	{catalog.ErrDamaged, "damaged"},
	{catalog.ErrWarehouseUnavailable, "warehouse-unavailable"},
}

func refusalOf(err error) string {
	for _, k := range refusalKinds {
		if errors.Is(err, k.err) {
			return k.word
		}
	}
	return "other"
}

type lockLabels struct {
	level key.Level
	mode  lock.Mode
	op    string
}

// lockMetrics are those of one level, mode and operation.
type lockMetrics struct{ wait, hold, length prometheus.Observer }

func (m *metrics) lock(level key.Level, mode lock.Mode, op string) lockMetrics {
	l := lockLabels{level, mode, opWord(op)}
	return m.byLock.get(l, func() lockMetrics {
		mode := "shared"
		if l.mode == lock.Exclusive {
			mode = "exclusive"
		}
		words := []string{l.level.String(), mode, l.op}
		return lockMetrics{m.waitSeconds.WithLabelValues(words...), m.holdSeconds.WithLabelValues(words...), m.queueLength.WithLabelValues(words...)}
	})
}

// waited is told by the lock table how long a key held an operation up.
func (m *metrics) waited(w locklocal.Wait) {
	of := m.lock(w.Key.Level, w.Mode, w.Op)
	of.wait.Observe(w.Waited.Seconds())
	of.length.Observe(float64(w.Behind))
}

// held is told by the lock table how long an operation held a key.
func (m *metrics) held(k key.Key, mode lock.Mode, op string, held time.Duration) {
	m.lock(k.Level, mode, op).hold.Observe(held.Seconds())
}

// patience shows how long a class of operations waits at most.
func (m *metrics) patience(c lock.Class, to time.Duration) {
	m.timeouts.WithLabelValues(c.String()).Set(to.Seconds())
}

// committed is the embedded store's observer.
func (m *metrics) committed(batches int, took time.Duration) {
	m.groupBatches.Observe(float64(batches))
	m.commitSeconds.Observe(took.Seconds())
}

type requestLabels struct {
	pattern, method string
	status          int
}

// requestMetrics are those of one route, method and status.
type requestMetrics struct {
	count prometheus.Counter
	took  prometheus.Observer
}

// request counts one answer. The pattern is empty where no route matched.
func (m *metrics) request(pattern, method string, status int, took time.Duration) {
	if pattern == "" && !isCommonMethod(method) {
		method = "other" // clients may send any word as the method
	}
	of := m.byRequest.get(requestLabels{pattern, method, status}, func() requestMetrics {
		_, route, matched := strings.Cut(pattern, " ")
		if !matched {
			route = "none"
		}
		return requestMetrics{m.requests.WithLabelValues(route, method, strconv.Itoa(status)), m.requestSeconds.WithLabelValues(route, method)}
	})
	of.count.Inc()
	of.took.Observe(took.Seconds())
}

func isCommonMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return true
	}
	return false
}

// found keeps what was found once. It never forgets, so its keys must be few: names of
// operations and the like. It is safe for concurrent use, and a look at what is
// there takes no lock.
type found[K comparable, V any] struct {
	all atomic.Pointer[map[K]V] // never changed, only replaced
	mu  sync.Mutex              // held by who replaces it
}

func (f *found[K, V]) get(k K, find func() V) V {
	if all := f.all.Load(); all != nil {
		if v, ok := (*all)[k]; ok {
			return v
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v := find()
	next := map[K]V{k: v}
	if all := f.all.Load(); all != nil {
		maps.Copy(next, *all)
	}
	f.all.Store(&next)
	return v
}
