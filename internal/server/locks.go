package server

import (
	"context"
	"errors"
	"time"

	"github.com/landfast/landfast/internal/contention"
	"github.com/landfast/landfast/internal/lock"
	locklocal "github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
)

const (
	// waitersPerKey is how many requests one key may hold up at a time.
	waitersPerKey = 1024
	// hotKeys is how many hot keys are looked at.
	hotKeys = 20
)

// openQueue makes the lock table, and what watches it.
func (s *server) openQueue() {
	s.hot = contention.NewHot(time.Now)
	s.queue = locklocal.New(locklocal.Options{
		MaxWaitersPerKey: waitersPerKey,
		Waited: func(w locklocal.Wait) {
			s.metrics.waited(w)
			if w.Waited > 0 {
				s.hot.Wait(w.Key, w.Waited)
			}
		},
		Held: s.metrics.held,
	})
}

// watched is the store, and counts what batches conflict on.
func (s *server) watched() store.Atomic {
	w := watchedStore{s.store, s.hot, s.metrics}
	if g, far := s.store.(store.Gatherer); far {
		return struct {
			watchedStore
			store.Gatherer
		}{w, g}
	}
	return w
}

type watchedStore struct {
	store.Atomic
	hot     *contention.Hot
	metrics *metrics
}

// Apply is that of [store.Atomic].
func (w watchedStore) Apply(ctx context.Context, b store.Batch) error {
	err := w.Atomic.Apply(ctx, b)
	if err == nil {
		return nil
	}
	if conflict, lost := errors.AsType[*store.ConflictError](err); lost {
		w.hot.Lost(b, conflict.Conds)
		w.metrics.lost(b, conflict.Conds)
	}
	return err
}

// patience is told by the kernel how long a class of operations has learned to wait.
func (s *server) patience(c lock.Class, from, to time.Duration) {
	s.log.Debug("the timeout of queues has changed", "class", c.String(), "from", from, "to", to)
	s.metrics.patience(c, to)
}

// locks is who waits for whom.
func (s *server) locks(ctx context.Context) contention.Report {
	report := contention.Look(s.queue.Snapshot(), s.hot.Top(hotKeys), contention.Server{QueueMax: waitersPerKey, Shared: s.postgres != nil}, time.Now())
	if s.postgres != nil {
		s.rows(ctx, &report)
	}
	return report
}
