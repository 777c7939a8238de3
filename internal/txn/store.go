package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// Options are what a Store is made of. Objects and Layout are required.
type Options struct {
	Objects store.Objects
	Layout  Layout
	// Lease is how long a batch of several pages may take before others abort it. It costs
	// progress when it is too short, never correctness. Default 10 s.
	Lease time.Duration
	// Retry is when a blocked batch is told to come again. Default 10 ms.
	Retry time.Duration
	// Retention is how long the status record of an aborted batch is kept. It must be longer
	// than any request can be under way, copies included. Default 24 h.
	Retention time.Duration
}

// Store is a store.Atomic. It holds no state: any number of them, in any number of
// processes, may share the objects. It is safe for concurrent use and starts no goroutine.
type Store struct {
	objects   store.Objects
	layout    Layout
	lease     time.Duration
	retry     time.Duration
	retention time.Duration
}

var _ store.Atomic = (*Store)(nil)

// New makes a Store. It panics when a required option is missing.
func New(opt Options) *Store {
	if opt.Objects == nil || opt.Layout == nil {
		panic("txn: Objects and Layout are required")
	}
	s := &Store{objects: opt.Objects, layout: opt.Layout, lease: opt.Lease, retry: opt.Retry, retention: opt.Retention}
	if s.lease == 0 {
		s.lease = 10 * time.Second
	}
	if s.retry == 0 {
		s.retry = 10 * time.Millisecond
	}
	if s.retention == 0 {
		s.retention = 24 * time.Hour
	}
	return s
}

// Get is that of [store.Atomic]. It waits for no writer.
func (s *Store) Get(ctx context.Context, k key.Key) (store.Record, error) {
	r := store.Record{Key: k}
	err := s.view(ctx, s.layout.Page(k), func(p *page, fates *fates) error {
		e := p.entry(k)
		if e == nil {
			r = store.Record{Key: k}
			return nil
		}
		if err := fates.settleEntry(ctx, e); err != nil {
			return err
		}
		r = e.record()
		return nil
	})
	return r, err
}

// List is that of [store.Atomic].
func (s *Store) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("txn: list %v: limit %d is below 1", p, limit)
	}
	names, below, err := s.layout.Pages(p)
	if err != nil {
		return nil, err
	}
	var found []store.Record
	for _, name := range names {
		rs, err := s.listPage(ctx, name, p, after)
		if err != nil {
			return nil, err
		}
		found = append(found, rs...)
	}
	if below != "" {
		if found, err = s.listBelow(ctx, below, p, after, limit); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b store.Record) int { return key.Compare(a.Key, b.Key) })
	return found[:min(limit, len(found))], nil
}

// listPage gives the settled records of one page that lie under p, after a path.
func (s *Store) listPage(ctx context.Context, name string, p key.Prefix, after string) (found []store.Record, err error) {
	err = s.view(ctx, name, func(pg *page, fates *fates) error {
		found = nil
		for _, e := range pg.entries {
			if !p.Covers(e.key) || after != "" && e.key.Path <= after {
				continue
			}
			if err := fates.settleEntry(ctx, e); err != nil {
				return err
			}
			if e.version != store.Absent {
				found = append(found, e.record())
			}
		}
		return nil
	})
	return found, err
}

// listChunk is how many names of objects are asked for at once.
const listChunk = 1000

// listBelow lists pages whose names are in the order of their keys, until there are enough records.
func (s *Store) listBelow(ctx context.Context, below string, p key.Prefix, after string, limit int) (found []store.Record, err error) {
	from := ""
	if after > p.Path {
		if !p.Covers(key.Key{Level: p.Level, Path: after}) && after > p.Path+"\xff" {
			return nil, nil
		}
		from = s.layout.Page(key.Key{Level: p.Level, Path: after})
	}
	for {
		names, err := s.objects.List(ctx, below, from, listChunk)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			rs, err := s.listPage(ctx, name, p, after)
			if err != nil {
				return nil, err
			}
			if found = append(found, rs...); len(found) >= limit {
				return found, nil
			}
		}
		if len(names) < listChunk {
			return found, nil
		}
		from = names[len(names)-1]
	}
}

// errStale: the page that was read is not the newest any more, and what it says cannot be
// judged. Read it again.
var errStale = errors.New("txn: the page was replaced")

// view reads a page and shows it, again for as long as it is stale.
func (s *Store) view(ctx context.Context, name string, show func(*page, *fates) error) error {
	for {
		p, err := s.readPage(ctx, name)
		if err != nil {
			return err
		}
		if err := show(p, s.newFates(p, false)); !errors.Is(err, errStale) {
			return err
		}
	}
}

func (s *Store) readPage(ctx context.Context, name string) (*page, error) {
	o, err := s.objects.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return decodePage(o)
}

func (s *Store) readStatus(ctx context.Context, batch string) (*status, error) {
	o, err := s.objects.Get(ctx, statusName(batch))
	if err != nil {
		return nil, err
	}
	return decodeStatus(o)
}

// fates finds out what became of the batches whose intents are in one page.
type fates struct {
	s    *Store
	page *page
	// abort says that a batch whose lease is over is aborted: writers do, readers only look.
	abort bool
	known map[string]state
}

func (s *Store) newFates(p *page, abort bool) *fates {
	return &fates{s: s, page: p, abort: abort, known: map[string]state{}}
}

// settleEntry gives an entry the value that readers see: that of a committed
// batch, otherwise the one before. What is pending stays beside it.
func (f *fates) settleEntry(ctx context.Context, e *entry) error {
	for _, i := range slices.Clone(e.intents) {
		if !i.mode.writes() {
			continue
		}
		fate, err := f.of(ctx, i.batch, i.home, i.digest)
		if err != nil {
			return err
		}
		if fate == pending && planted.Is(planted.PendingIsRead) {
			fate = committed
		}
		if fate != pending {
			e.settle(i.batch, fate == committed)
		}
	}
	return nil
}

// of is the fate of a batch with an intent or a seal in the page: asked for after the
// page was read, so that what is pending now was pending then.
func (f *fates) of(ctx context.Context, batch, home, digest string) (state, error) {
	if fate, ok := f.known[batch]; ok {
		return fate, nil
	}
	var fate state
	var err error
	if home == "" {
		fate, err = f.byStatus(ctx, batch, digest)
	} else {
		fate, err = f.atHome(ctx, batch, home)
	}
	if err == nil {
		f.known[batch] = fate
	}
	return fate, err
}

// byStatus asks the status record. It is deleted once nothing of the batch is left, and a late
// copy of its creation may revive it then: so anything but COMMITTED is true only of a page that
// is still the newest.
func (f *fates) byStatus(ctx context.Context, batch, digest string) (state, error) {
	for {
		st, err := f.s.readStatus(ctx, batch)
		if err != nil {
			return "", err
		}
		switch {
		case st == nil, st.Digest != digest:
			return aborted, f.stale(ctx) // void: it came after the end, or is of something else
		case st.State == committed:
			return committed, nil
		case st.State == pending && f.abort && !st.leased() && planted.Is(planted.AbortedWithoutSwap):
			return aborted, nil
		case st.State == pending && f.abort && !st.leased():
			if _, err := f.s.end(ctx, st, aborted); err != nil {
				return "", err
			}
		default:
			return st.State, f.stale(ctx)
		}
	}
}

// stale gives errStale if the page is not the newest any more.
func (f *fates) stale(ctx context.Context) error {
	now, err := f.s.objects.Get(ctx, f.page.name)
	if err == nil && now.Tag != f.page.tag {
		return errStale
	}
	return err
}

func (f *fates) atHome(ctx context.Context, batch, home string) (state, error) {
	h, err := f.s.readPage(ctx, home)
	if err != nil {
		return "", err
	}
	d, ok := h.memory(batch)
	if !ok && h.forgotten > 0 {
		// What it bore is settled before it is forgotten. So either this page is old, or the batch
		// was not applied.
		if err := f.stale(ctx); err != nil {
			return "", err
		}
	}
	if !ok && f.abort && f.page.age >= f.s.lease {
		if d, err = f.s.void(ctx, h, batch, h.remembered()); err != nil {
			return "", err
		}
		ok = true
	}
	switch {
	case !ok:
		return pending, nil
	case d.applied:
		return committed, nil
	}
	return aborted, nil
}

// end swaps a pending status record, as it was read, to its final state. It reports
// false when somebody else changed it, or may have.
func (s *Store) end(ctx context.Context, st *status, final state) (bool, error) {
	ended := *st
	ended.State = final
	tag, err := s.objects.Put(ctx, statusName(st.Batch), st.tag, ended.encode())
	switch {
	case err == nil:
		st.State, st.tag = final, tag
		return true, nil
	case errors.Is(err, store.ErrMismatch), errors.Is(err, store.ErrOutcomeUnknown):
		return false, nil
	}
	return false, err
}

// void makes sure that a page's memory has a batch: as it is, or as one that never will be
// applied. The batch was not among those the page had remembered when they were so many as first.
func (s *Store) void(ctx context.Context, p *page, batch string, first uint64) (done, error) {
	p, err := s.change(ctx, p, func(p *page) (bool, error) {
		if _, ok := p.memory(batch); ok {
			return false, nil
		}
		if p.remembered()-first > recentMax/2 {
			return false, store.ErrOutcomeUnknown // the page may have forgotten it since
		}
		p.remember(done{batch: batch})
		return true, nil
	})
	if err != nil {
		return done{}, err
	}
	d, _ := p.memory(batch)
	return d, nil
}

// makeRoom settles the births of what the page is about to forget: only what is settled
// may be forgotten.
func (s *Store) makeRoom(ctx context.Context, p *page) error {
	for n := range p.recent[:max(0, len(p.recent)-recentMax)] {
		for _, birth := range p.recent[n].births {
			if err := s.clear(ctx, nil, birth, p.recent[n].batch, true); err != nil {
				return err
			}
		}
		p.recent[n].births = nil
	}
	return nil
}

// clear ends a batch in one page. p is the page as it was last seen; nil: it is read.
func (s *Store) clear(ctx context.Context, p *page, name, batch string, applied bool) error {
	if p == nil {
		var err error
		if p, err = s.readPage(ctx, name); err != nil {
			return err
		}
	}
	_, err := s.change(ctx, p, func(p *page) (bool, error) {
		if !p.holds(batch) {
			return false, nil
		}
		p.settle(batch, applied)
		return true, nil
	})
	return err
}

// swapsMax bounds how often one change of a page is beaten by others.
const swapsMax = 200

// change swaps a page, as it was read, for what edit makes of it. edit works on the
// newest page each time, and reports false when there is nothing to change any more: after a
// lost reply the change is there already. It returns the page as it is then. An
// error that wraps store.ErrOutcomeUnknown says that a swap was sent and may have happened; any
// other, that none did.
func (s *Store) change(ctx context.Context, p *page, edit func(*page) (bool, error)) (*page, error) {
	var sent error
	give := func(err error) error {
		if sent == nil || errors.Is(err, errApplied) || errors.Is(err, store.ErrOutcomeUnknown) {
			return err
		}
		return fmt.Errorf("%w: %v", sent, err) // nothing but unknown: whoever looks must not find a conflict in it
	}
	for try := 0; try < swapsMax; try++ {
		met := false // another, or itself: the page tells
		changed, err := edit(p)
		if err == nil && !changed {
			return p, nil
		}
		if err == nil {
			err = s.makeRoom(ctx, p)
		}
		if err != nil && !errors.Is(err, errStale) {
			return nil, give(err)
		}
		if err == nil {
			p.gen++
			data := p.encode()
			tag, err := s.objects.Put(ctx, p.name, p.tag, data)
			switch {
			case err == nil:
				p.tag, p.age = tag, 0
				return p, nil
			case errors.Is(err, store.ErrOutcomeUnknown):
				sent = err
				if err := pause(ctx, try); err != nil {
					return nil, give(err)
				}
			case errors.Is(err, store.ErrMismatch):
				met = true
			default:
				return nil, give(err)
			}
		}
		if p, err = s.readPage(ctx, p.name); err != nil {
			if met && sent == nil {
				sent = store.ErrOutcomeUnknown // it may have met itself
			}
			return nil, give(err)
		}
	}
	return nil, give(&store.BlockedError{By: p.name, Until: time.Now().Add(s.retry)})
}

// pause waits a little longer with each try.
func pause(ctx context.Context, try int) error {
	t := time.NewTimer(time.Millisecond << min(try, 6))
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
