package embedded

import (
	"log/slog"
	"os"
	"time"
)

// Options of a store; the zero value of each field stands for its default.
type Options struct {
	// GroupBatches is how many batches share a COMMIT at most. Default 256.
	GroupBatches int
	// GroupBytes is how many bytes of values share a COMMIT at most; a single
	// larger batch has one for itself. Default 16 MiB.
	GroupBytes int
	// Queue is how many batches wait for the writer at most. Beyond that Apply
	// waits for room, as long as its ctx lasts. Default 4096.
	Queue int
	// Readers is how many reads run at once, at least 2, because a backup takes
	// one of them. Default 4.
	Readers int
	// CacheBytes is about how much memory the records take that were last read or
	// written, with the knowledge of what is not there. Negative: none are kept.
	// Default 64 MiB.
	CacheBytes int
	// ApplyTimeout is how long Apply waits for the answer of a batch that is
	// queued before it gives ErrOutcomeUnknown. Default 10 s.
	ApplyTimeout time.Duration
	// Retention is how long batch ids are remembered. It must be longer than any
	// caller takes to ask for an outcome. Default 1 h.
	Retention time.Duration

	// Now is the clock by which batch ids are forgotten. Default time.Now.
	Now func() time.Time
	// Forgot is told, by Open and on the writer's goroutine, of the greatest batch id that is forgotten, or how it begins;
	// empty: none is. The outcome of a batch with a lower one counts as unknown, so a new one needs a greater: see
	// [store.IDs]. It must not block. Default: nothing.
	Forgot func(id string)
	// Observe is told of each durable group: how many batches and outcomes it
	// held and how long its COMMIT took. It runs on the writer's goroutine, so it
	// must not block. Default: nothing.
	Observe func(size int, commit time.Duration)
	// Fatal is called, on the writer's goroutine, when an fsync failed. From then
	// on the kernel may have dropped pages that SQLite takes for written, so the
	// only safe way on is a new process that recovers from the log. The group's
	// batches are answered with ErrOutcomeUnknown when Fatal returns, and the
	// store refuses all others. It must not call Close, which waits for the
	// writer. Default: log and os.Exit(1).
	Fatal func(error)
	// Log is told what an operator should know. Default slog.Default().
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	positive := func(n *int, byDefault int) {
		if *n <= 0 {
			*n = byDefault
		}
	}
	positive(&o.GroupBatches, 256)
	positive(&o.GroupBytes, 16<<20)
	positive(&o.Queue, 4096)
	positive(&o.Readers, 4)
	o.Readers = max(o.Readers, 2)
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	if o.ApplyTimeout <= 0 {
		o.ApplyTimeout = 10 * time.Second
	}
	if o.Retention <= 0 {
		o.Retention = time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Forgot == nil {
		o.Forgot = func(string) {}
	}
	if o.Observe == nil {
		o.Observe = func(int, time.Duration) {}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Fatal == nil {
		log := o.Log
		o.Fatal = func(err error) {
			log.Error("stopping: the catalog's file could not be made durable; start again to recover from its log", "error", err)
			os.Exit(1)
		}
	}
	return o
}
