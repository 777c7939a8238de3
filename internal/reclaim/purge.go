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
	"github.com/landfast/landfast/internal/planted"
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
)

// purge deletes the files of one list.
type purge struct {
	r     *Reclaimer
	scope blob.Scope
	list  catalog.Dying
	duty  string // who has it may delete

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
	p := &purge{r: r, scope: scope, list: list, duty: listID{warehouse, list.ID}.duty(), unread: map[string]bool{}}
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
	err := p.table(ctx)
	switch {
	case errors.Is(err, blob.ErrNotFound): // it went last, in an earlier attempt
		return nil
	case errors.Is(err, errUnusable):
		p.leave(ctx, p.list.Metadata, err)
		return nil
	}
	return err
}

// table deletes what the metadata of a table reaches: what is named before what names it. The
// metadata file that the list names goes last.
func (p *purge) table(ctx context.Context) error {
	m, err := p.r.readTable(ctx, p.scope, p.list.Metadata)
	if err != nil {
		return err
	}
	if planted.Is(planted.PurgedByPrefix) {
		return p.r.opt.Files.List(ctx, p.scope, m.Location(), func(e blob.Entry) error {
			return p.deleteAll(ctx, anywhere, slices.Values([]string{e.Location}))
		})
	}
	generations, err := p.r.history(ctx, p.scope, p.list.Metadata, m)
	if err != nil {
		return err
	}
	if err := p.snapshots(ctx, m); err != nil {
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

// snapshots deletes what the snapshots of a table name.
func (p *purge) snapshots(ctx context.Context, m *tablemeta.Metadata) error {
	if gcEnabled(m) {
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
	return p.deleteAll(ctx, inPlaces, m.StatisticsFiles())
}

// orphans finds, beside the metadata file, what decisions of the table that lost have left there:
// once the table is gone no sweep looks for them. They are known by their name and by the uuid and the location in
// them. Of a table that was registered they stay, for another may have been registered from them.
func (p *purge) orphans(ctx context.Context, m *tablemeta.Metadata, generations [][]string) (found []string, err error) {
	dir := parent(p.list.Metadata)
	inDir, err := p.scope.Canonical(dir)
	if err != nil || p.list.Registered || m.UUID() == "" {
		return nil, nil
	}
	known := map[string]bool{} // they go by themselves, in their order
	for _, f := range append(slices.Concat(generations...), p.list.Metadata) {
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
	if isForeign(err) {
		return nil, nil
	}
	return found, err
}

// gcEnabled tells whether files may be deleted that other tables may share, as the
// reference reads the property.
func gcEnabled(m *tablemeta.Metadata) bool {
	value, ok := m.Property("gc.enabled")
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
