package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/landfast/landfast/internal/store/postgres"
)

// postgresMetrics are what a store in PostgreSQL adds to /metrics.
type postgresMetrics struct {
	batches    *prometheus.CounterVec   // by outcome
	roundTrips *prometheus.HistogramVec // by kind
	readKeys   prometheus.Histogram
	rowsLocked prometheus.Counter
	rowWaits   prometheus.Histogram
	undone     *prometheus.CounterVec // by reason
}

// newPostgresMetrics adds them, with labels for all that can happen, so that a rate is 0 until it does. Those of the embedded
// store go: nothing would feed them, and zeros would say that its disk is quick.
func newPostgresMetrics(m *metrics) *postgresMetrics {
	p := &postgresMetrics{
		batches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_postgres_batches_total", Help: "Batches that were sent to PostgreSQL, by outcome: applied, conflict, blocked, unavailable, unknown, failed.",
		}, []string{"outcome"}),
		roundTrips: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "landfast_postgres_round_trip_seconds", Help: "Time from a statement to its answer, waiting for rows included, by kind: apply, outcome, read, list.", Buckets: commitBuckets,
		}, []string{"kind"}),
		readKeys: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "landfast_postgres_read_keys", Help: "Records that one read has asked for: loads that wait at the same moment share it.", Buckets: groupBuckets,
		}),
		rowsLocked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "landfast_postgres_rows_locked_total", Help: "Attempts to lock rows that found one locked by another transaction.",
		}),
		rowWaits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "landfast_postgres_row_wait_seconds", Help: "Time that a batch waited for a locked row on its connection, at most 200 ms at a time.", Buckets: commitBuckets,
		}),
		undone: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "landfast_postgres_undone_total", Help: "Batches that PostgreSQL undid in favour of another transaction, by reason: deadlock, serialization. They are sent again.",
		}, []string{"reason"}),
	}
	for _, w := range []string{"applied", "conflict", "blocked", "unavailable", "unknown", "failed"} {
		p.batches.WithLabelValues(w)
	}
	for _, w := range []string{"apply", "outcome", "read", "list"} {
		p.roundTrips.WithLabelValues(w)
	}
	for _, w := range []string{"deadlock", "serialization"} {
		p.undone.WithLabelValues(w)
	}
	m.registry.Unregister(m.groupBatches)
	m.registry.Unregister(m.commitSeconds)
	m.registry.MustRegister(p.batches, p.roundTrips, p.readKeys, p.rowsLocked, p.rowWaits, p.undone)
	return p
}

// happened is the store's observer.
func (p *postgresMetrics) happened(e postgres.Event) {
	switch e.Kind {
	case postgres.BatchEnded:
		p.batches.WithLabelValues(e.Word).Inc()
	case postgres.RoundTrip:
		p.roundTrips.WithLabelValues(e.Word).Observe(e.Took.Seconds())
		if e.Keys > 0 {
			p.readKeys.Observe(float64(e.Keys))
		}
	case postgres.RowLocked:
		p.rowsLocked.Inc()
	case postgres.SliceEnded:
		p.rowWaits.Observe(e.Took.Seconds())
	case postgres.Undone:
		p.undone.WithLabelValues(e.Word).Inc()
	}
}

// poolMetrics reads how the connections are used whenever somebody asks.
type poolMetrics struct{ of func() postgres.Connections }

var (
	poolConnections = prometheus.NewDesc("landfast_postgres_connections", "Connections to PostgreSQL by state: in-use, idle; and max, how many there may be.", []string{"state"}, nil)
	poolOpened      = prometheus.NewDesc("landfast_postgres_connections_opened_total", "Connections to PostgreSQL that were opened; one that was lost is opened anew.", nil, nil)
	poolWaits       = prometheus.NewDesc("landfast_postgres_connection_waits_total", "Times that no connection was idle.", nil, nil)
	poolWaited      = prometheus.NewDesc("landfast_postgres_connection_wait_seconds_total", "Time that was waited for a connection.", nil, nil)
)

// Describe implements prometheus.Collector.
func (poolMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolConnections, poolOpened, poolWaits, poolWaited} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p poolMetrics) Collect(to chan<- prometheus.Metric) {
	c := p.of()
	for state, n := range map[string]int{"in-use": c.InUse, "idle": c.Idle, "max": c.Max} {
		to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(n), state)
	}
	to <- prometheus.MustNewConstMetric(poolOpened, prometheus.CounterValue, float64(c.Opened))
	to <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(c.Waits))
	to <- prometheus.MustNewConstMetric(poolWaited, prometheus.CounterValue, c.Waited.Seconds())
}
