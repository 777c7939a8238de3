// Package duty has each piece of background work done by one of several instances at a
// time, and taken over when that one dies.
//
// A duty is a record with an owner and an end, which the owner moves on while it works. It
// saves work that would be done twice; what must not be done twice needs more. For a process
// that was frozen may find that its duty has another owner only after it has gone on: so
// it asks Has right before each step that cannot be taken back.
package duty

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
)

const (
	// Lifetime is how long a duty outlives its last prolongation: after so long another takes over.
	Lifetime = time.Minute
	// margin is how long before its end an owner stops, for clocks that differ.
	margin = 20 * time.Second
	// prolongEvery leaves several tries.
	prolongEvery = 10 * time.Second
)

// Roster is the duties of one process. A nil one is that of a process which is alone: it has all
// duties. It is safe for concurrent use.
type Roster struct {
	run   kernel.Runner
	owner string
	log   *slog.Logger

	// changing is held while records change, so that none is prolonged after it has ended.
	changing sync.Mutex

	mu   sync.Mutex
	held map[string]time.Time // by name: until when it is certainly ours
}

// New makes the Roster of a process. The owner is a fresh id.
func New(run kernel.Runner, owner string, log *slog.Logger) *Roster {
	return &Roster{run: run, owner: owner, log: log, held: map[string]time.Time{}}
}

// Take takes the duties of these names that nobody has, and gives them. Each is ours, as long as Run runs, until
// Done or Recurs. every is the least time since one was last done; 0 for what does not come again. No two
// goroutines may take one name. After an error there are none.
func (r *Roster) Take(ctx context.Context, every time.Duration, names ...string) ([]string, error) {
	if r == nil || len(names) == 0 {
		return names, nil
	}
	return r.take(ctx, every, names)
}

func (r *Roster) take(ctx context.Context, every time.Duration, names []string) ([]string, error) {
	until := time.Now().Add(Lifetime - margin) // by our clock, from before the record says so
	op := &catalog.TakeDuties{Request: catalog.TakeDutiesRequest{Names: names, Owner: r.owner, Lifetime: Lifetime, Every: every}}
	if err := r.run.Do(ctx, op); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range op.Result.Taken {
		r.held[name] = until
	}
	return op.Result.Taken, nil
}

// Has tells whether a duty that was taken is certainly ours at this moment.
func (r *Roster) Has(name string) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	until, held := r.held[name]
	r.mu.Unlock()
	return held && time.Now().Before(until)
}

// Done gives up duties that were taken, done or not. Where that fails another takes them when
// their time is over.
func (r *Roster) Done(ctx context.Context, names ...string) { r.end(ctx, false, names) }

// Recurs gives up duties that were done and come again.
func (r *Roster) Recurs(ctx context.Context, names ...string) { r.end(ctx, true, names) }

func (r *Roster) end(ctx context.Context, recurs bool, names []string) {
	if r == nil || len(names) == 0 {
		return
	}
	r.mu.Lock()
	for _, name := range names {
		delete(r.held, name)
	}
	r.mu.Unlock()
	r.changing.Lock()
	defer r.changing.Unlock()
	op := &catalog.EndDuties{Request: catalog.EndDutiesRequest{Names: names, Owner: r.owner, Recurs: recurs}}
	if err := r.run.Do(context.WithoutCancel(ctx), op); err != nil {
		r.log.LogAttrs(ctx, slog.LevelWarn, "work that has ended stays taken for a minute", slog.Any("names", names), slog.Any("err", err))
	}
}

// Run prolongs what is taken until ctx is done.
func (r *Roster) Run(ctx context.Context) {
	if r == nil {
		return
	}
	tick := time.NewTicker(prolongEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.prolong(ctx)
	}
}

func (r *Roster) prolong(ctx context.Context) {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.mu.Lock()
	names := slices.Sorted(maps.Keys(r.held))
	r.mu.Unlock()
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, prolongEvery)
	defer cancel()
	until := time.Now().Add(Lifetime - margin)
	op := &catalog.TakeDuties{Request: catalog.TakeDutiesRequest{Names: names, Owner: r.owner, Lifetime: Lifetime}}
	if err := r.run.Do(ctx, op); err != nil {
		if ctx.Err() == nil {
			r.log.LogAttrs(ctx, slog.LevelWarn, "work in progress could not be prolonged; it is tried again", slog.Any("err", err))
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range op.Result.Taken {
		if _, held := r.held[name]; held { // else it ends at this moment
			r.held[name] = until
		}
	}
}
