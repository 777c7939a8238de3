package server

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

// metrics are what /metrics shows. The registry is the server's own, so that
// several servers fit in one process. No label has a value that a client chose.
type metrics struct {
	registry *prometheus.Registry

	requests        *prometheus.CounterVec   // by route, method, status
	requestSeconds  *prometheus.HistogramVec // by route, method
	requestsRunning prometheus.Gauge

	operations    *prometheus.CounterVec // by op, outcome
	decisions     *prometheus.CounterVec // by op
	conflicts     *prometheus.CounterVec // by op
	uploadedBytes prometheus.Counter
	queueSeconds  *prometheus.HistogramVec // by level, mode

	groupBatches  prometheus.Histogram
	commitSeconds prometheus.Histogram
}

// Buckets of the histograms. Commits of the store take as long as an fsync: 0.1 ms
// on a good disk, 10 ms and more on a bad one.
var (
	requestBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	queueBuckets   = []float64{0, .0001, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60}
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
		requestsRunning: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "landfast_http_requests_running", Help: "Requests that are not answered yet.",
		}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_operations_total", Help: "Operations of the catalog that ended, by outcome: done, refused, contended, overloaded, cancelled, unknown, failed.",
		}, []string{"op", "outcome"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_decisions_total", Help: "Times that an operation was decided; more than once after a conflict.",
		}, []string{"op"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_conflicts_total", Help: "Batches that were refused because something else came first.",
		}, []string{"op"}),
		uploadedBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "landfast_uploaded_bytes_total", Help: "Bytes of the metadata files that operations wrote.",
		}),
		queueSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "landfast_queue_wait_seconds", Help: "Time that a key held an operation up, by the key's level; 0 where it was free.", Buckets: queueBuckets,
		}, []string{"level", "mode"}),
		groupBatches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "landfast_store_group_batches", Help: "Batches that shared one durable commit of the embedded store.", Buckets: groupBuckets,
		}),
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "landfast_store_commit_seconds", Help: "Time that one durable commit of the embedded store took.", Buckets: commitBuckets,
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "landfast_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.requests, m.requestSeconds, m.requestsRunning,
		m.operations, m.decisions, m.conflicts, m.uploadedBytes, m.queueSeconds,
		m.groupBatches, m.commitSeconds, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// handler serves the metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// operation is the kernel's observer.
func (m *metrics) operation(r kernel.Report) {
	m.operations.WithLabelValues(r.Op, outcomeOf(r.Err)).Inc()
	m.decisions.WithLabelValues(r.Op).Add(float64(r.Decisions))
	m.conflicts.WithLabelValues(r.Op).Add(float64(r.Conflicts))
	m.uploadedBytes.Add(float64(r.Bytes))
}

// outcomeOf says in a word how an operation ended. Unknown comes first: an error
// may also tell that the time was up, and what matters is that nobody knows.
func outcomeOf(err error) string {
	var refusal *catalog.Error
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, store.ErrOutcomeUnknown):
		return "unknown"
	case errors.As(err, &refusal):
		return "refused"
	case errors.Is(err, kernel.ErrContended):
		return "contended"
	case errors.Is(err, kernel.ErrOverloaded):
		return "overloaded"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "failed"
}

// queued is the lock table's observer.
func (m *metrics) queued(level key.Level, mode lock.Mode, waited time.Duration) {
	word := "shared"
	if mode == lock.Exclusive {
		word = "exclusive"
	}
	m.queueSeconds.WithLabelValues(level.String(), word).Observe(waited.Seconds())
}

// committed is the embedded store's observer.
func (m *metrics) committed(batches int, took time.Duration) {
	m.groupBatches.Observe(float64(batches))
	m.commitSeconds.Observe(took.Seconds())
}

// request counts one answer. The pattern is empty where no route matched.
func (m *metrics) request(pattern, method string, status int, took time.Duration) {
	_, route, matched := strings.Cut(pattern, " ")
	if !matched {
		route = "none"
		if !isCommonMethod(method) {
			method = "other" // clients may send any word as the method
		}
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.requestSeconds.WithLabelValues(route, method).Observe(took.Seconds())
}

func isCommonMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return true
	}
	return false
}
