package reclaim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/manifest"
	"github.com/landfast/landfast/internal/tablemeta"
)

const (
	// readsMax is how many manifest lists of a table are followed at once, with one manifest each.
	readsMax = 4
	// listBytesMax and manifestBytesMax bound what is read into memory; larger files are left.
	listBytesMax     = 64 << 20
	manifestBytesMax = 256 << 20
	// locationMax is more than any store can open.
	locationMax = 4096
	// seenMax bounds the locations that are remembered in order not to do things twice. Beyond it,
	// some are done twice.
	seenMax = 100_000
	// faultsMax is how many files the store may fail to delete before a list is given up for this round.
	faultsMax = 100
)

// purge deletes the files of one list.
type purge struct {
	r     *Reclaimer
	scope blob.Scope
	list  catalog.Dying

	mu sync.Mutex
	// unread are the files, as they are spelled, that are there and cannot be read. They stay.
	unread  map[string]bool
	deleted int    // files, missing ones too
	kept    int    // files that lie elsewhere, or where no Store can reach
	example string // the first of them
	fault   error  // the first of the store
	faults  int
}

// reclaim deletes the files of a list. Nil: none is left that could be deleted.
func (r *Reclaimer) reclaim(ctx context.Context, warehouse string, scope blob.Scope, list catalog.Dying) error {
	p := &purge{r: r, scope: scope, list: list, unread: map[string]bool{}}
	began := r.opt.Now()
	err := p.run(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", list.ID, err)
	}
	level := slog.LevelDebug
	if list.Metadata != "" {
		level = slog.LevelInfo
	}
	r.opt.Log.LogAttrs(ctx, level, "files that were given up are deleted",
		slog.String("warehouse", warehouse), slog.String("list", list.ID), slog.String("metadata", list.Metadata),
		slog.Int("deleted", p.deleted), slog.Int("kept", p.kept), slog.String("kept_first", p.example), slog.Int("unreadable", len(p.unread)),
		slog.Duration("took", r.opt.Now().Sub(began)))
	return nil
}

func (p *purge) run(ctx context.Context) error {
	if err := p.deleteAll(ctx, anywhere, slices.Values(p.list.Files)); err != nil || p.list.Metadata == "" {
		return err
	}
	var err error
	if p.list.Kind == catalog.KindView {
		err = p.view(ctx)
	} else {
		err = p.table(ctx)
	}
	switch {
	case errors.Is(err, blob.ErrNotFound): // it went last, in an earlier attempt
		return nil
	case errors.Is(err, errUnusable):
		p.leave(ctx, p.list.Metadata, err)
		return nil
	}
	return err
}

// table deletes what the metadata of a table reaches: what is named before what names it.
func (p *purge) table(ctx context.Context) error {
	m, err := p.r.readTable(ctx, p.scope, p.list.Metadata)
	if err != nil {
		return err
	}
	generations, err := p.r.history(ctx, p.scope, p.list.Metadata, m)
	if err != nil {
		return err
	}
	if gcEnabled(m.Property) {
		if err := p.deleting(ctx, inPlaces, func(ctx context.Context, remove func(string)) error {
			return p.manifests(ctx, m, func(location string) error { return p.files(ctx, location, remove) })
		}); err != nil {
			return err
		}
	}
	if err := p.deleting(ctx, inPlaces, func(ctx context.Context, remove func(string)) error {
		return p.manifests(ctx, m, func(location string) error { remove(location); return nil })
	}); err != nil {
		return err
	}
	if err := p.deleteAll(ctx, inPlaces, m.ManifestLists()); err != nil {
		return err
	}
	if err := p.deleteAll(ctx, inPlaces, m.StatisticsFiles()); err != nil {
		return err
	}
	orphans, err := p.orphans(ctx, m, generations)
	if err != nil {
		return err
	}
	if err := p.deleteAll(ctx, inPlaces, slices.Values(orphans)); err != nil {
		return err
	}
	former := inPlaces
	if p.list.Registered {
		former = ofPlaces
	}
	// The oldest file of each generation leads to the next.
	for _, files := range slices.Backward(generations) {
		if err := p.deleteAll(ctx, former, slices.Values(files)); err != nil {
			return err
		}
	}
	return p.deleteAll(ctx, inPlaces, slices.Values([]string{p.list.Metadata}))
}

// orphans finds, beside the metadata file, what decisions of the table that lost have left there:
// once the table is gone no sweep looks for it. They are known as a sweep knows them; what may have been
// registered elsewhere stays.
func (p *purge) orphans(ctx context.Context, m *tablemeta.Metadata, history [][]string) (found []string, err error) {
	dir := parent(p.list.Metadata)
	inDir, err := p.scope.Canonical(dir)
	if err != nil || p.list.Registered || m.UUID() == "" {
		return nil, nil
	}
	known := map[string]bool{} // they go by themselves, in their order
	for _, f := range append(slices.Concat(history...), p.list.Metadata) {
		if canonical, err := p.scope.Canonical(f); err == nil {
			known[canonical] = true
		}
	}
	before := p.r.opt.Now().Add(-p.r.opt.Grace)
	err = p.r.opt.Files.List(ctx, p.scope, dir, func(e blob.Entry) error {
		canonical, err := p.scope.Canonical(e.Location)
		if err != nil || parent(canonical) != inDir || known[canonical] || len(found) >= candidatesMax {
			return nil
		}
		if e.Temporary && e.Modified.Before(before) {
			found = append(found, e.Location)
		}
		if _, ok := number(e.Location); !ok {
			return nil
		}
		other, err := p.r.readTable(ctx, p.scope, e.Location)
		if err != nil {
			return faultOnly(err)
		}
		place, err := p.scope.Canonical(other.Location())
		if err == nil && other.UUID() == m.UUID() && slices.Contains(p.list.Places, place) {
			found = append(found, e.Location)
		}
		return nil
	})
	var notOurs *blob.LocationError
	if errors.As(err, &notOurs) || errors.Is(err, blob.ErrNotRegular) {
		return nil, nil
	}
	return found, err
}

// view deletes the metadata file of a view, which names no others.
func (p *purge) view(ctx context.Context) error {
	v, err := p.r.readView(ctx, p.scope, p.list.Metadata)
	if err != nil || !gcEnabled(v.Property) {
		return err
	}
	return p.deleteAll(ctx, inPlaces, slices.Values([]string{p.list.Metadata}))
}

// gcEnabled tells whether files may be deleted that other tables may share, as the
// reference reads the property.
func gcEnabled(property func(string) (string, bool)) bool {
	value, ok := property("gc.enabled")
	return !ok || strings.EqualFold(value, "true")
}

// manifests calls visit for each manifest of a table, from several goroutines. An error ends it.
func (p *purge) manifests(ctx context.Context, m *tablemeta.Metadata, visit func(location string) error) error {
	g, reading := errgroup.WithContext(ctx)
	g.SetLimit(readsMax)
	var seen seen
	once := func(location string) error {
		if err := reading.Err(); err != nil || !seen.add(location) {
			return err
		}
		return visit(location)
	}
	for list := range m.ManifestLists() {
		if reading.Err() != nil {
			break
		}
		g.Go(func() error { return p.follow(reading, list, listBytesMax, manifest.Manifests, once) })
	}
	for location := range m.InlineManifests() {
		if reading.Err() != nil {
			break
		}
		g.Go(func() error { return once(location) })
	}
	return cmp.Or(g.Wait(), ctx.Err())
}

// files removes the data or delete files that a manifest names.
func (p *purge) files(ctx context.Context, location string, remove func(string)) error {
	return p.follow(ctx, location, manifestBytesMax, manifest.Files, func(file string) error {
		remove(file)
		return ctx.Err()
	})
}

// follow reads a file and calls visit for each location that it names. A file that
// is missing names none; one that cannot be read is left, as is what it might name.
func (p *purge) follow(ctx context.Context, location string, limit int64,
	names func([]byte) iter.Seq2[string, error], visit func(string) error,
) error {
	data, err := p.r.read(ctx, p.scope, location, limit)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil
	case errors.Is(err, errUnusable):
		p.leave(ctx, location, err)
		return nil
	case err != nil:
		return err
	}
	for named, err := range names(data) {
		if err != nil {
			p.leave(ctx, location, err)
			return nil
		}
		if len(named) > locationMax {
			p.keep(named[:locationMax])
			continue
		}
		if err := visit(named); err != nil {
			return err
		}
	}
	return nil
}

// leave notes that a file cannot be read, and stays.
func (p *purge) leave(ctx context.Context, location string, err error) {
	p.mu.Lock()
	known := p.unread[location]
	p.unread[location] = true
	p.mu.Unlock()
	if !known {
		p.r.opt.Log.LogAttrs(ctx, slog.LevelWarn, "a file of a purged table cannot be read: it stays, and so does what only it names",
			slog.String("list", p.list.ID), slog.String("file", location), slog.Any("err", err))
	}
}

// A guard says which files of a list go. Its errors are faults of the store.
type guard func(ctx context.Context, p *purge, location string) (bool, error)

// anywhere lets every file go: the batch named it itself.
func anywhere(context.Context, *purge, string) (bool, error) { return true, nil }

// inPlaces lets go what lies in the table's places.
func inPlaces(_ context.Context, p *purge, location string) (bool, error) {
	canonical, err := p.scope.CanonicalFile(location)
	own := func(place string) bool { return blob.Within(canonical, place) }
	return err == nil && slices.ContainsFunc(p.list.Places, own), nil
}

// ofPlaces lets go the metadata files in the table's places that are of a table in them: others may
// have been registered since.
func ofPlaces(ctx context.Context, p *purge, location string) (bool, error) {
	if in, _ := inPlaces(ctx, p, location); !in {
		return false, nil
	}
	m, err := p.r.readTable(ctx, p.scope, location)
	if err != nil {
		return false, faultOnly(err)
	}
	return inPlaces(ctx, p, m.Location())
}

// deleteAll deletes files, several at a time.
func (p *purge) deleteAll(ctx context.Context, allowed guard, files iter.Seq[string]) error {
	return p.deleting(ctx, allowed, func(ctx context.Context, remove func(string)) error {
		for f := range files {
			if err := ctx.Err(); err != nil {
				return err
			}
			remove(f)
		}
		return nil
	})
}

// deleting deletes the files that produce hands to remove, several at a time, and returns
// when they are gone. It goes on past what the store fails to delete, but not for
// ever, and returns the first such error. remove blocks while too many are on their way.
func (p *purge) deleting(ctx context.Context, allowed guard, produce func(ctx context.Context, remove func(string)) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		g    errgroup.Group
		seen seen
	)
	g.SetLimit(deletesMax)
	err := produce(ctx, func(location string) {
		if !seen.add(location) {
			return
		}
		g.Go(func() error {
			if p.delete(ctx, allowed, location) {
				cancel()
			}
			return nil
		})
	})
	_ = g.Wait() // faults are counted in p
	if p.fault != nil {
		return p.fault
	}
	return err
}

// delete deletes a file if it may go, and tells whether the store has failed too often.
func (p *purge) delete(ctx context.Context, allowed guard, location string) (giveUp bool) {
	goes, err := allowed(ctx, p, location)
	if err == nil && (!goes || p.isUnread(location)) {
		p.keep(location)
		return false
	}
	if err == nil {
		err = p.deleteNow(ctx, location)
	}
	var notOurs *blob.LocationError
	if errors.As(err, &notOurs) || errors.Is(err, blob.ErrNotRegular) {
		p.keep(location)
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.deleted++
		return false
	}
	p.fault = cmp.Or(p.fault, err)
	p.faults++
	return p.faults >= faultsMax
}

// deleteNow deletes a file once fewer than deletesMax others are being deleted.
func (p *purge) deleteNow(ctx context.Context, location string) error {
	select {
	case p.r.deleting <- struct{}{}:
		defer func() { <-p.r.deleting }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.r.opt.Files.Delete(ctx, p.scope, location)
}

func (p *purge) isUnread(location string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unread[location]
}

// keep counts a file that stays.
func (p *purge) keep(location string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept++
	p.example = cmp.Or(p.example, location)
}

// seen remembers locations, up to a bound. The zero value is empty; it is safe for
// concurrent use.
type seen struct {
	mu        sync.Mutex
	locations map[string]bool
}

// add tells whether a location is new, as far as is remembered.
func (s *seen) add(location string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locations[location] {
		return false
	}
	if s.locations == nil || len(s.locations) >= seenMax {
		s.locations = map[string]bool{}
	}
	s.locations[location] = true
	return true
}
