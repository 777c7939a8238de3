package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// recoverLimit is how long Recover tries again what failed, and recoverPause the time between two tries: the one is no
// multiple of the other, so that the last try is not a matter of chance.
const (
	recoverLimit = 5 * time.Second
	recoverPause = 300 * time.Millisecond
)

// Recover rewrites the files of all records, and removes those of which every file is durable then. It must have
// returned before anything reads the files. What fails is tried again until recoverLimit has passed; not so what waits for
// a volume that is not mounted or for a newer version. What it could not settle it logs and leaves to Run, which tries
// again each second, and the start goes on: a file that is missing or short until then cannot be read or parsed, so
// loads and commits of its table alone are refused. An error means that the records could not be listed, or ctx is done.
func (j *Journal) Recover(ctx context.Context) error {
	found, after := 0, ""
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
		maps.Copy(j.stuck, left)
		j.mu.Unlock()
		found += len(page)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	j.insist(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	recovered := found - len(j.stuck)
	j.mu.Unlock()
	if recovered > 0 {
		j.opt.Log.Info("the last stop was no clean one: metadata files were written anew", "batches", recovered)
	}
	return nil
}

// insist tries again what failed in Recover, until nothing does, recoverLimit has passed or ctx is done.
func (j *Journal) insist(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, recoverLimit)
	defer cancel()
	pause := time.NewTicker(recoverPause)
	defer pause.Stop()
	for {
		faulty := j.left(func(l leftover) bool { return l.failed })
		if len(faulty) == 0 {
			return
		}
		select {
		case <-pause.C:
		case <-limited.Done():
		}
		if limited.Err() == nil {
			j.retry(limited, faulty)
			continue
		}
		if ctx.Err() == nil {
			j.opt.Log.Error("metadata files that a stop may have left missing or short could not be written anew; put the disk right or free space on it. "+
				"Until that works, which is tried each second, a table that lacks its file is refused: neither restore nor drop it", "batches", len(faulty), "warehouses", j.warehousesOf(faulty))
		}
		return
	}
}

// leftover is a record that Recover could not settle.
type leftover struct {
	warehouses []string // whose files it holds
	failed     bool     // by a fault; else it waits for a volume or a newer version, or for its removal alone
}

// left gives the leftovers for which a condition holds, in their order.
func (j *Journal) left(which func(leftover) bool) (versions []store.Version) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for version, l := range j.stuck {
		if which(l) {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return versions
}

func (j *Journal) warehousesOf(left []store.Version) (names []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, version := range left {
		names = append(names, j.stuck[version].warehouses...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// retryAll settles what Recover has left.
func (j *Journal) retryAll(ctx context.Context) {
	j.retry(ctx, j.left(func(leftover) bool { return true }))
}

func (j *Journal) retry(ctx context.Context, stuck []store.Version) {
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
			delete(j.stuck, version)
		}
		maps.Copy(j.stuck, left)
		j.mu.Unlock()
	}
}

// look tries all again that is left, and finds the records of batches whose outcome nobody knew. What it finds is
// settled with the next group.
func (j *Journal) look(ctx context.Context) {
	j.retryAll(ctx)
	clear(j.warned)
	j.mu.Lock()
	clear(j.places) // a marker may have come, or a volume gone
	j.mu.Unlock()
	if err := j.adopt(ctx); err != nil {
		j.complain("the records of metadata files could not be listed; this is tried again", err)
	}
}

// adopt makes a group of each record that has none: that of a batch whose outcome nobody knew, since its files are not
// admitted any more.
func (j *Journal) adopt(ctx context.Context) error {
	after := ""
	for {
		page, err := j.opt.Store.List(ctx, key.Unsynceds(), after, pageMax)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Key.Path
		j.mu.Lock()
		for _, r := range page {
			if _, left := j.stuck[r.Version]; !left && j.applied[string(r.Version)] == nil && !j.onItsWay(r) {
				// What Sync says of its files is not known. That it was settled since the list was made does not matter.
				j.applied[string(r.Version)] = &group{warehouses: warehouses(r), suspect: true}
			}
		}
		j.mu.Unlock()
	}
}

// onItsWay tells whether a record is that of a batch that is between Write and Applied. The mutex is held.
func (j *Journal) onItsWay(r store.Record) bool {
	files, _ := decode(r.Value) // it is this process's own
	return slices.ContainsFunc(files, func(f placed) bool { return j.admitted[f.location] != nil })
}

// settleRecords rewrites the files of records, removes those whose files are durable, and gives the others.
func (j *Journal) settleRecords(ctx context.Context, records []store.Record, missing bool) (left map[store.Version]leftover) {
	left = map[store.Version]leftover{}
	var batches []string
	for i, state := range j.rewrite(ctx, records, missing) {
		if r := records[i]; state == durable {
			batches = append(batches, string(r.Version))
		} else {
			left[r.Version] = leftover{warehouses(r), state == failed}
		}
	}
	stay, err := j.remove(ctx, batches)
	if err != nil {
		j.complain("records of durable metadata files could not be removed; this is tried again", err)
	}
	for _, r := range records {
		if slices.Contains(stay, string(r.Version)) {
			left[r.Version] = leftover{warehouses: warehouses(r)}
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

// state is what has become of the files of a record.
type state uint8

const (
	durable state = iota // every one
	waiting              // for a volume, or for a version that can read the record
	failed               // by a fault of a disk or of the store, which may pass
)

// rewrite makes the files of records durable, whatever is there, and tells of each record what has become of them. With
// missing, files that are not there are made again; without, they were deleted. Files of a warehouse that is gone
// need nothing. What could not be done is logged.
func (j *Journal) rewrite(ctx context.Context, records []store.Record, missing bool) []state {
	type work struct {
		placed
		record int
	}
	states := make([]state, len(records))
	var todo []work
	checked := map[place]error{}
	for i, r := range records {
		files, err := decode(r.Value)
		if err != nil {
			states[i] = waiting
			j.complain("metadata files cannot be written anew; start the newest version that was used, or check the tables of that time", err, "record", r.Key.String())
		}
		for _, f := range files {
			err, known := checked[f.place]
			if !known {
				err = j.check(ctx, f.place)
				checked[f.place] = err
				j.complainOf(f.place, err)
			}
			switch {
			case err == nil:
				todo = append(todo, work{f, i})
			case errors.Is(err, errGone):
			case errors.Is(err, blob.ErrMarkMissing):
				states[i] = max(states[i], waiting)
			default:
				states[i] = failed
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
				faults[n] = j.rewriteFile(ctx, todo[n].placed, missing)
			}
		})
	}
	workers.Wait()
	for n, err := range faults {
		if err != nil {
			states[todo[n].record] = failed
			j.complain("a metadata file, perhaps among others, could not be written anew; this is tried again", err)
		}
	}
	return states
}

// complainOf says why files cannot be written in a place.
func (j *Journal) complainOf(p place, err error) {
	about := []any{"warehouse", p.warehouse, "root", p.uri}
	switch {
	case err == nil, errors.Is(err, errGone):
	case errors.Is(err, blob.ErrMarkMissing):
		j.complain("metadata files that a stop has left wait for their warehouse; mount its volume, and they are written within a second", err, about...)
	default:
		j.complain("the warehouse of metadata files that a stop has left cannot be looked at; this is tried again", err, about...)
	}
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
