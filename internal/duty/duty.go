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
	"github.com/landfast/landfast/internal/store"
)

const (
	// Lifetime is how long a duty outlives its last renewal: after so long another takes over.
	Lifetime = time.Minute
	// margin is how long before its end an owner stops, for clocks that differ and for the step that it has just begun.
	margin = 20 * time.Second
	// renewEvery leaves several tries.
	renewEvery = 10 * time.Second
	// seenMax bounds the records of others that are remembered. Beyond it, all are looked at anew.
	seenMax = 10_000
)

// Roster is the duties of one process. A nil one is that of a process which is alone: it has all
// duties. It is safe for concurrent use.
type Roster struct {
	run   kernel.Runner
	owner string
	log   *slog.Logger
	now   func() moment

	// changing is held while records change, so that none is renewed after it has ended.
	changing sync.Mutex

	mu   sync.Mutex
	held map[string]*hold // by name: from before Take asks for it until it has been given up
	seen map[string]sighting
}

// A sighting is what the record of a duty that another process has looked like, when Take asked for it.
type sighting struct {
	version store.Version
	since   time.Time // for how long it has stood is told by the monotonic clock: it never tells too long
}

// A hold is one taking of a duty. When the duty is taken again that is another hold, so that nothing which is learned
// about the one is believed of the other.
type hold struct {
	ours  bool   // it was taken, and has been neither lost nor given up since: once false after that, it stays false
	until moment // as long as it is certainly ours
}

// New makes the Roster of a process. The owner is a fresh id.
func New(run kernel.Runner, owner string, log *slog.Logger) *Roster {
	return &Roster{run: run, owner: owner, log: log, now: now, held: map[string]*hold{}, seen: map[string]sighting{}}
}

// Take takes the duties of these names that nobody has, or somebody who is dead, and gives them. Each is ours, as long as
// Run runs, until Done or Recurs, or until it is lost, which Has tells. every is the least time since one was last done; 0
// for what does not come again, or is done out of turn. What this process has taken it does not take again before Done or Recurs has returned, even if it was
// lost: whoever is still at it would mistake the new taking for its own. After an error there are none.
func (r *Roster) Take(ctx context.Context, every time.Duration, names ...string) ([]string, error) {
	if r == nil || len(names) == 0 {
		return names, nil
	}
	names = r.reserve(names)
	if len(names) == 0 {
		return nil, nil
	}
	asked := r.now() // by our clocks, from before the record says so
	op := &catalog.TakeDuties{Request: catalog.TakeDutiesRequest{
		Names: names, Owner: r.owner, Lifetime: Lifetime, Every: every, Stood: r.stood(names, asked),
	}}
	err := r.run.Do(ctx, op)
	var taken []string
	if err == nil {
		taken = op.Result.Taken
		r.sight(names, op.Result.Busy)
	}
	r.settle(names, taken, asked.add(Lifetime-margin))
	return taken, err
}

// reserve gives those of the names that this process has nothing to do with, and keeps them for the caller.
func (r *Roster) reserve(names []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var free []string
	for _, name := range names {
		if r.held[name] == nil {
			r.held[name] = &hold{}
			free = append(free, name)
		}
	}
	return free
}

// stood gives the versions in which we saw records of others a lifetime ago. Who has not renewed them since has stopped
// trusting them by now, the margin ago. No clock is compared with that of another machine for this.
func (r *Roster) stood(names []string, now moment) map[string]store.Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	var versions map[string]store.Version
	for _, name := range names {
		if s, ok := r.seen[name]; ok && now.mono.Sub(s.since) >= Lifetime {
			if versions == nil {
				versions = map[string]store.Version{}
			}
			versions[name] = s.version
		}
	}
	return versions
}

// sight remembers what the records of those of the names look like that others have.
func (r *Roster) sight(names []string, busy map[string]store.Version) {
	now := r.now() // after the records were read
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		version, ok := busy[name]
		if !ok {
			delete(r.seen, name)
			continue
		}
		if r.seen[name].version == version {
			continue
		}
		if len(r.seen) >= seenMax {
			clear(r.seen)
		}
		r.seen[name] = sighting{version, now.mono}
	}
}

// settle ends a reservation: what was taken is ours, and the rest is free.
func (r *Roster) settle(reserved, taken []string, until moment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range reserved {
		delete(r.held, name)
	}
	for _, name := range taken {
		r.held[name] = &hold{ours: true, until: until}
	}
}

// Has tells whether a duty that was taken is certainly ours at this moment.
func (r *Roster) Has(name string) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[name]
	return h != nil && h.ours && r.now().before(h.until)
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
	r.disown(names)
	defer r.free(names) // only now: a taking that came before the record has ended would end with it
	r.changing.Lock()
	defer r.changing.Unlock()
	op := &catalog.EndDuties{Request: catalog.EndDutiesRequest{Names: names, Owner: r.owner, Recurs: recurs}}
	if err := r.run.Do(context.WithoutCancel(ctx), op); err != nil {
		r.log.LogAttrs(ctx, slog.LevelWarn, "work that has ended stays taken for a minute", slog.Any("names", names), slog.Any("err", err))
	}
}

// disown says of duties that they are ours no more, whatever a renewal that is under way finds.
func (r *Roster) disown(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if h := r.held[name]; h != nil {
			h.ours = false
		}
	}
}

// free lets duties be taken again.
func (r *Roster) free(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		delete(r.held, name)
	}
}

// Run renews what is taken until ctx is done.
func (r *Roster) Run(ctx context.Context) {
	if r == nil {
		return
	}
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.renew(ctx)
	}
}

// renew moves on the ends of what is ours, and finds out what is not any more. An error says neither, even if the outcome is
// unknown: each stays ours until the end it had, and the next renewal asks again.
func (r *Roster) renew(ctx context.Context) {
	r.changing.Lock()
	defer r.changing.Unlock()
	holds := r.ours()
	if len(holds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	until := r.now().add(Lifetime - margin)
	op := &catalog.RenewDuties{Request: catalog.RenewDutiesRequest{Names: slices.Sorted(maps.Keys(holds)), Owner: r.owner, Lifetime: Lifetime}}
	if err := r.run.Do(ctx, op); err != nil {
		if ctx.Err() == nil {
			r.log.LogAttrs(ctx, slog.LevelWarn, "work in progress could not be prolonged; it is tried again", slog.Any("err", err))
		}
		return
	}
	if lost := r.renewed(holds, op.Result.Renewed, until); len(lost) > 0 {
		r.log.LogAttrs(ctx, slog.LevelWarn, "work in progress was taken over, for it was not prolonged in time", slog.Any("names", lost))
	}
}

// ours gives what is ours now.
func (r *Roster) ours() map[string]*hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	holds := map[string]*hold{}
	for name, h := range r.held {
		if h.ours {
			holds[name] = h
		}
	}
	return holds
}

// renewed believes what a renewal of holds has found, but of those that were given up meanwhile, and gives what was lost.
func (r *Roster) renewed(holds map[string]*hold, names []string, until moment) (lost []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		holds[name].until = until
	}
	for _, name := range slices.Sorted(maps.Keys(holds)) {
		if h := holds[name]; h.ours && !slices.Contains(names, name) {
			h.ours = false
			lost = append(lost, name)
		}
	}
	return lost
}
