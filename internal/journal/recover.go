package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// Recover rewrites the files of all records, and removes those of which every file is durable then. It must have
// returned before anything reads the files. What it could not settle, because a volume is not mounted or a
// disk is full, it logs and leaves to Run, which tries again; the start goes on, for the files of others
// are whole. An error means that the store could not be read.
func (j *Journal) Recover(ctx context.Context) error {
	recovered, after := 0, ""
	for {
		page, err := j.opt.Store.List(ctx, key.Unsynceds(), after, pageMax)
		if err != nil {
			return fmt.Errorf("list the files that were not durable: %w", err)
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Key.Path
		left := j.settleRecords(ctx, page, true)
		j.mu.Lock()
		for _, r := range left {
			j.stuck[r.Version] = warehouses(r)
		}
		j.mu.Unlock()
		recovered += len(page) - len(left)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if recovered > 0 {
		j.opt.Log.Info("the last stop was no clean one: metadata files were written anew", "batches", recovered)
	}
	return nil
}

// retry settles what Recover has left.
func (j *Journal) retry(ctx context.Context) {
	j.mu.Lock()
	stuck := slices.Sorted(maps.Keys(j.stuck))
	j.mu.Unlock()
	for some := range slices.Chunk(stuck, pageMax) {
		var records []store.Record
		for _, version := range some {
			r, err := j.opt.Store.Get(ctx, key.ForUnsynced(string(version)))
			if err != nil {
				j.complain("the record of metadata files could not be read; this is tried again", err)
				return
			}
			if r.Exists() {
				records = append(records, r)
			}
		}
		left := j.settleRecords(ctx, records, true)
		j.mu.Lock()
		for _, version := range some {
			if !slices.ContainsFunc(left, func(r store.Record) bool { return r.Version == version }) {
				delete(j.stuck, version)
			}
		}
		j.mu.Unlock()
	}
}

// look goes through all records for those of no group: those of batches whose outcome
// nobody knew. A record is of these if it was there a minute ago; a younger one may become a group at any moment.
func (j *Journal) look(ctx context.Context) {
	j.retry(ctx)
	clear(j.warned)
	j.mu.Lock()
	clear(j.places) // a marker may have come, or a volume gone
	j.mu.Unlock()
	seen, after := map[store.Version]bool{}, ""
	for {
		page, err := j.opt.Store.List(ctx, key.Unsynceds(), after, pageMax)
		if err != nil {
			j.complain("the records of metadata files could not be listed; this is tried again", err)
			return
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Key.Path
		var forgotten []store.Record
		for _, r := range page {
			j.mu.Lock()
			_, known := j.stuck[r.Version]
			known = known || j.applied[string(r.Version)] != nil
			j.mu.Unlock()
			switch {
			case known:
			case j.seen[r.Version]:
				forgotten = append(forgotten, r)
				seen[r.Version] = true
			default:
				seen[r.Version] = true
			}
		}
		j.settleRecords(ctx, forgotten, false)
	}
	j.seen = seen
}

// settleRecords rewrites the files of records, removes those whose files are durable, and gives the others.
func (j *Journal) settleRecords(ctx context.Context, records []store.Record, missing bool) (left []store.Record) {
	durable := map[store.Version]bool{}
	var batches []string
	for _, r := range j.rewrite(ctx, records, missing) {
		durable[r.Version] = true
		batches = append(batches, string(r.Version))
	}
	stay, err := j.remove(ctx, batches)
	if err != nil {
		j.complain("records of durable metadata files could not be removed; this is tried again", err)
	}
	for _, batch := range stay {
		delete(durable, store.Version(batch))
	}
	for _, r := range records {
		if !durable[r.Version] {
			left = append(left, r)
		}
	}
	return left
}

// warehouses tells whose files a record holds, by name: nobody's, as far as one knows, if it cannot be read.
func warehouses(r store.Record) (names []string) {
	files, _ := decode(r.Value) // rewrite has logged the error
	for _, f := range files {
		if !slices.Contains(names, f.place.warehouse) {
			names = append(names, f.place.warehouse)
		}
	}
	return names
}

// rewriteMax is how many files are rewritten at once: their fsyncs share the journal commits of the file system.
const rewriteMax = 32

// rewrite makes the files of records durable, whatever is there, and gives the records of which all files are. With
// missing, files that are not there are made again; without, they were deleted. Files of a warehouse that is gone
// need nothing. What could not be done is logged.
func (j *Journal) rewrite(ctx context.Context, records []store.Record, missing bool) (done []store.Record) {
	type work struct {
		placed
		record int
	}
	failed := make([]atomic.Bool, len(records))
	var todo []work
	checked := map[place]error{}
	for i, r := range records {
		files, err := decode(r.Value)
		if err != nil {
			failed[i].Store(true)
			j.complain("metadata files cannot be written anew; start the newest version that was used, or check the tables of that time", err, "record", r.Key.String())
		}
		for _, f := range files {
			err, known := checked[f.place]
			if !known {
				err = j.check(ctx, f.place)
				checked[f.place] = err
				if err != nil && !errors.Is(err, errGone) {
					j.complain("metadata files that a stop has left wait for their warehouse; mount its volume, and they are written within a minute", err,
						"warehouse", f.place.warehouse, "root", f.place.uri)
				}
			}
			switch {
			case err == nil:
				todo = append(todo, work{f, i})
			case !errors.Is(err, errGone):
				failed[i].Store(true)
			}
		}
	}
	var (
		next    atomic.Int64
		workers sync.WaitGroup
		faults  = make([]error, len(todo))
	)
	for range min(rewriteMax, len(todo)) {
		workers.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(todo)); n = next.Add(1) - 1 {
				w := todo[n]
				if faults[n] = j.rewriteFile(ctx, w.placed, missing); faults[n] != nil {
					failed[w.record].Store(true)
				}
			}
		})
	}
	workers.Wait()
	for _, err := range faults {
		if err != nil {
			j.complain("a metadata file, perhaps among others, could not be written anew; this is tried again", err)
		}
	}
	for i, r := range records {
		if !failed[i].Load() {
			done = append(done, r)
		}
	}
	return done
}

func (j *Journal) rewriteFile(ctx context.Context, f placed, missing bool) error {
	if !missing {
		there, err := j.opt.Files.Exists(ctx, f.place.scope(), f.location)
		if err != nil || !there {
			return err
		}
	}
	return j.opt.Files.Rewrite(ctx, f.place.scope(), f.location, f.data)
}

var errGone = errors.New("the warehouse is gone")

// check tells whether the root is the one that the warehouse has marked, and not the directory on which its volume should
// be mounted. The id of a warehouse is that of its record. Where another warehouse has the name by now, the root is
// nobody's, unless it is that one's too.
func (j *Journal) check(ctx context.Context, p place) error {
	w, err := j.opt.Store.Get(ctx, key.ForWarehouse(p.warehouse))
	if err != nil {
		return err
	}
	if !w.Exists() {
		return errGone
	}
	err = j.opt.Files.CheckMark(ctx, p.root(), w.ID)
	if w.ID != p.id && errors.Is(err, blob.ErrMarkMissing) {
		return errGone
	}
	return err
}
