package reclaim

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/landfast/landfast/internal/blob"
)

const (
	// seenMax bounds the locations that are remembered in order not to do things twice. Beyond it,
	// some are done twice.
	seenMax = 100_000
	// faultsMax is how many files the store may fail to delete before a list is given up for this round.
	faultsMax = 100
)

// A filter says which files of a list go. Its errors are faults of the store.
type filter func(ctx context.Context, p *purge, location string) (bool, error)

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
func (p *purge) deleteAll(ctx context.Context, allowed filter, files iter.Seq[string]) error {
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
func (p *purge) deleting(ctx context.Context, allowed filter, produce func(ctx context.Context, remove func(string)) error) error {
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
func (p *purge) delete(ctx context.Context, allowed filter, location string) (giveUp bool) {
	goes, err := allowed(ctx, p, location)
	if err == nil && (!goes || p.isUnread(location)) {
		p.keep(location)
		return false
	}
	if err == nil {
		err = p.deleteNow(ctx, location)
	}
	if isForeign(err) {
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
	if !p.r.opt.Duties.Has(p.duty) {
		return errLost
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
