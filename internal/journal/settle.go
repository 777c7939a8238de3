package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

const (
	// removeMax is how many records one batch removes, and pageMax how many are listed at once: a record may hold
	// as much as rides at once.
	removeMax = 256
	pageMax   = 64
	// lookInterval is how often all records are looked through, and how long the same warning is not repeated.
	lookInterval = time.Minute
	// lastLimit bounds the last settling, when the server stops. What it leaves is for Recover.
	lastLimit = 10 * time.Second
)

// Run settles what was applied, every Interval or when much rides, until ctx is done; then once more, so that a
// clean stop leaves no record. It must not run beside itself or Recover.
func (j *Journal) Run(ctx context.Context) {
	settle, look := time.NewTicker(j.opt.Interval), time.NewTicker(lookInterval)
	defer settle.Stop()
	defer look.Stop()
	for {
		// With ctx done it does not matter which case comes first: what is tried with that ctx fails before it begins, and all
		// is left to the last settling, or to Recover.
		select {
		case <-settle.C:
			j.settle(ctx)
			j.retryAll(ctx)
		case <-j.wake:
			j.settle(ctx)
		case <-look.C:
			j.look(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
			j.settle(last)
			cancel()
			return
		}
	}
}

// settledLimit bounds Settled: what takes longer is asked again later.
const settledLimit = 20 * time.Second

var errRiding = errors.New("journal: files ride that a start would write anew")

// Settled returns once no start writes a file of the warehouse anew whose batch was applied before the call, whether anybody
// knew that or not: who deletes such a file then has deleted it for good. It waits for Run, but not for files of other
// warehouses that cannot be written, nor for records that cannot be read.
func (j *Journal) Settled(ctx context.Context, warehouse string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settledLimit, errRiding)
	defer cancel()
	j.mu.Lock()
	admitted := maps.Clone(j.admitted) // the batches of some may be applied
	j.mu.Unlock()
	if err := j.until(ctx, func() bool {
		maps.DeleteFunc(admitted, func(location string, r *riding) bool { return j.admitted[location] != r })
		return len(admitted) == 0
	}); err != nil {
		return err
	}
	if err := j.adopt(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	applied := maps.Clone(j.applied)
	j.mu.Unlock()
	j.hurry()
	return j.until(ctx, func() bool {
		maps.DeleteFunc(applied, func(batch string, g *group) bool {
			return j.applied[batch] != g || g.suspect && !slices.Contains(g.warehouses, warehouse)
		})
		for _, l := range j.stuck {
			if slices.Contains(l.warehouses, warehouse) {
				return false
			}
		}
		return len(applied) == 0
	})
}

// until waits until a condition holds, which is asked under the mutex.
func (j *Journal) until(ctx context.Context, met func() bool) error {
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	for {
		j.mu.Lock()
		done := met()
		j.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle makes the files of all applied batches durable, and then removes their records.
func (j *Journal) settle(ctx context.Context) {
	j.mu.Lock()
	groups := maps.Clone(j.applied)
	j.mu.Unlock()
	// Files of batches that came to nothing are synced too: until then their directories are held open.
	if made := j.made.Swap(false); len(groups) == 0 && !made {
		return
	}
	start := time.Now()
	if planted.Is(planted.RecordsBeforeFiles) {
		_, _ = j.remove(ctx, slices.Sorted(maps.Keys(groups)))
	}
	if err := j.opt.Files.Sync(ctx); err != nil {
		if errors.Is(err, ctx.Err()) { // nothing was tried
			j.made.Store(true)
			return
		}
		j.opt.Log.Error("metadata files could not be made durable together, each is written anew; check the disk", "error", err)
		j.suspectAll()
	}
	if len(groups) == 0 {
		return
	}
	safe := j.safe(ctx, groups)
	left, err := j.remove(ctx, safe)
	if err != nil {
		j.complain("records of durable metadata files could not be removed; this is tried again", err)
	}
	safe = slices.DeleteFunc(safe, func(batch string) bool { return slices.Contains(left, batch) })

	files := 0
	j.mu.Lock()
	for _, batch := range safe {
		files += groups[batch].files
		j.inFlight -= groups[batch].bytes
		delete(j.applied, batch)
	}
	inFlight := j.inFlight
	j.mu.Unlock()
	j.opt.Observe(files, inFlight, time.Since(start))
}

// suspectAll marks all files that ride, after a failed Sync.
func (j *Journal) suspectAll() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.admitted {
		r.suspect = true
	}
	for _, g := range j.applied {
		g.suspect = true
	}
}

// safe gives the batches whose files are durable, after a Sync. Suspect ones are rewritten first, except those
// that were deleted meanwhile.
func (j *Journal) safe(ctx context.Context, groups map[string]*group) (batches []string) {
	var suspect []string
	j.mu.Lock()
	for batch, g := range groups {
		if g.suspect {
			suspect = append(suspect, batch)
		} else {
			batches = append(batches, batch)
		}
	}
	j.mu.Unlock()
	slices.Sort(suspect)
	for some := range slices.Chunk(suspect, pageMax) {
		var records []store.Record
		for _, batch := range some {
			r, err := j.opt.Store.Get(ctx, key.ForUnsynced(batch))
			switch {
			case err != nil:
				j.complain("the record of metadata files could not be read; this is tried again", err)
			case !r.Exists():
				batches = append(batches, batch) // a removal whose outcome was unknown
			default:
				records = append(records, r)
			}
		}
		states := j.rewrite(ctx, records, false)
		j.mu.Lock()
		for i, r := range records {
			if states[i] == durable {
				groups[string(r.Version)].suspect = false
				batches = append(batches, string(r.Version))
			}
		}
		j.mu.Unlock()
	}
	slices.Sort(batches)
	return batches
}

// remove deletes the records of batches, which are durable. It gives those that may still be there, and why.
func (j *Journal) remove(ctx context.Context, batches []string) (left []string, err error) {
	for some := range slices.Chunk(batches, removeMax) {
		rest, failed := j.removeSome(ctx, some)
		left = append(left, rest...)
		err = errors.Join(err, failed)
	}
	return left, err
}

func (j *Journal) removeSome(ctx context.Context, batches []string) (left []string, err error) {
	left = slices.Clone(batches)
	for len(left) > 0 {
		b := store.Batch{ID: j.opt.NewID()}
		for _, batch := range left {
			k := key.ForUnsynced(batch)
			b.Conds = append(b.Conds, store.Is(k, store.Version(batch)))
			b.Writes = append(b.Writes, store.Write{Key: k, Delete: true})
		}
		err := j.opt.Store.Apply(ctx, b)
		if err == nil {
			return nil, nil
		}
		conflict, ok := errors.AsType[*store.ConflictError](err)
		if !ok {
			return left, err
		}
		// A record is written once: what is not there in this version is gone, by a removal whose outcome was unknown.
		before := len(left)
		left = slices.DeleteFunc(left, func(batch string) bool {
			return slices.ContainsFunc(conflict.Conds, func(c store.Cond) bool { return c.Key == key.ForUnsynced(batch) })
		})
		if len(left) == before {
			return left, err
		}
	}
	return nil, nil
}

// complain warns, but not once a second while a fault lasts.
func (j *Journal) complain(message string, err error, about ...any) {
	said := fmt.Sprint(message, about, err)
	if !j.warned[said] {
		j.warned[said] = true
		j.opt.Log.Warn(message, append(about, "error", err)...)
	}
}
