package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// Apply is that of [store.Atomic].
func (s *Store) Apply(ctx context.Context, b store.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d, err := divide(s.layout, b)
	if err != nil {
		return err
	}
	if planted.Is(planted.LiteralProtocol) {
		return s.applyLiterally(ctx, d)
	}
	if len(d.shares) == 1 {
		return s.applyOne(ctx, b, d)
	}
	return s.applyMany(ctx, b, d)
}

// errApplied: this batch was applied before.
var errApplied = errors.New("txn: applied before")

// recall judges a batch by a page's memory of it; nil: the page has none.
func (p *page) recall(batch string) error {
	switch d, ok := p.memory(batch); {
	case !ok:
		return nil
	case d.applied:
		return errApplied
	}
	return &store.ConflictError{}
}

// applyOne changes one page, and makes births that it leads to.
func (s *Store) applyOne(ctx context.Context, b store.Batch, d division) error {
	home := d.shares[0]
	p, err := s.readPage(ctx, home.page)
	if err != nil {
		return err
	}
	var births []string
	first := p.remembered()
	if len(d.births) > 0 && p.recall(b.ID) == nil {
		if err := s.lookAfresh(ctx, &p, home); err != nil {
			return err
		}
		for _, birth := range d.births {
			births = append(births, birth.page)
			_, err := s.place(ctx, &page{name: birth.page}, birth, home.page, "")
			if errors.Is(err, errApplied) {
				return nil // by another who was sent the same batch
			}
			if err != nil {
				return s.unborn(ctx, home.page, births, b.ID, first, certain(err))
			}
		}
	}
	last := first
	_, err = s.change(ctx, p, func(p *page) (bool, error) {
		if err := p.recall(b.ID); err != nil && !planted.Is(planted.OwnWriteIsConflict) {
			return false, err
		}
		switch {
		case p.remembered()-last > recentMax/2:
			return false, store.ErrOutcomeUnknown // the page may have forgotten that it was applied
		case p.remembered()-first > recentMax/2:
			return false, s.blockedBy(home.page) // before the page can forget that it was made void
		}
		last = p.remembered()
		if err := s.look(ctx, p, home); err != nil {
			return false, err
		}
		for _, w := range home.writes {
			e := p.open(w.Key)
			if w.Delete {
				e.version, e.id, e.value = store.Absent, "", nil
			} else {
				e.version, e.id, e.value = store.Version(b.ID), w.ID, w.Value
			}
		}
		p.remember(done{batch: b.ID, applied: true, births: births})
		return true, nil
	})
	if errors.Is(err, errApplied) {
		err = nil // a reply was lost
	}
	if errors.Is(err, store.ErrOutcomeUnknown) {
		if planted.Is(planted.LostReplyIsFailure) {
			return &store.ConflictError{}
		}
		err = s.resolveAt(ctx, home.page, b.ID, first, err)
	}
	switch {
	case err == nil:
		for _, birth := range births {
			_ = s.clear(ctx, nil, birth, b.ID, true) // the home remembers what is left
		}
		return nil
	case errors.Is(err, store.ErrOutcomeUnknown):
		return err
	}
	return s.unborn(ctx, home.page, births, b.ID, first, err)
}

// lookAfresh looks before anything is written, with a newer page if need be.
func (s *Store) lookAfresh(ctx context.Context, p **page, sh *share) error {
	for {
		err := s.look(ctx, *p, sh)
		if !errors.Is(err, errStale) {
			return err
		}
		if *p, err = s.readPage(ctx, sh.page); err != nil {
			return err
		}
	}
}

// unborn takes back the births of a batch that was not applied, as far as it can: what it leaves is
// read by nobody. The home comes first: it says whether another who was sent the same batch applied it, and
// makes that impossible otherwise.
func (s *Store) unborn(ctx context.Context, home string, births []string, batch string, first uint64, because error) error {
	if len(births) == 0 {
		return because
	}
	p, err := s.readPage(ctx, home)
	if err != nil {
		return because
	}
	known, err := s.void(ctx, p, batch, first)
	switch {
	case err != nil:
		return because
	case known.applied:
		return nil
	}
	for _, birth := range births {
		_ = s.clear(ctx, nil, birth, batch, false)
	}
	return because
}

// resolveAt finds out about a swap of one page that was sent and not answered, and makes it
// impossible if it was not done. It was not when the page had remembered so many batches as first.
func (s *Store) resolveAt(ctx context.Context, name, batch string, first uint64, because error) error {
	p, err := s.readPage(ctx, name)
	var known done
	if err == nil {
		known, err = s.void(ctx, p, batch, first)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w (asked again: %v)", because, err)
	case known.applied:
		return nil
	}
	return certain(because)
}

// resolve asks for the outcome of a batch whose swap was sent and not answered.
func (s *Store) resolve(ctx context.Context, b store.Batch, because error) error {
	outcome, err := s.Outcome(ctx, b)
	switch {
	case err != nil:
		return fmt.Errorf("%w (asked again: %v)", because, err)
	case outcome == store.Applied:
		return nil
	}
	return certain(because)
}

// certain turns the error of a batch that was certainly not applied into one that says so.
func certain(err error) error {
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return conflict
	}
	if blocked, ok := errors.AsType[*store.BlockedError](err); ok {
		return blocked
	}
	if errors.Is(err, store.ErrOutcomeUnknown) {
		return &store.ConflictError{} // the swap was lost, and can not arrive any more
	}
	return err
}

// place puts a share's intents into its page.
func (s *Store) place(ctx context.Context, p *page, sh *share, home, digest string) (*page, error) {
	return s.change(ctx, p, func(p *page) (bool, error) {
		if err := p.recall(sh.batch.ID); err != nil {
			return false, err
		}
		if p.holds(sh.batch.ID) {
			return false, nil
		}
		if err := s.look(ctx, p, sh); err != nil {
			return false, err
		}
		for _, mine := range sh.intents() {
			i := mine.intents[0]
			if !i.mode.writes() && planted.Is(planted.ConditionWithoutIntent) {
				continue
			}
			i.home, i.digest = home, digest
			e := p.open(mine.key)
			e.intents = append(e.intents, i)
		}
		for _, prefix := range sh.seals {
			if !planted.Is(planted.EmptyWithoutSeal) {
				p.seals = append(p.seals, seal{batch: sh.batch.ID, digest: digest, prefix: prefix})
			}
		}
		return true, nil
	})
}

// applyMany changes several pages: see the protocol in the package's documentation.
func (s *Store) applyMany(ctx context.Context, b store.Batch, d division) error {
	pages, err := s.lookAtAll(ctx, d)
	if errors.Is(err, errApplied) {
		return nil
	}
	if err != nil {
		return err
	}
	st, err := s.begin(ctx, b, d)
	if err != nil {
		return err
	}
	if st.State != pending {
		return s.resolve(ctx, b, store.ErrOutcomeUnknown) // it was ended before it began
	}
	if planted.Is(planted.CommitBeforeIntents) {
		_, _ = s.end(ctx, st, committed)
	}
	for n, sh := range d.shares {
		if pages[n], err = s.place(ctx, pages[n], sh, "", st.Digest); err != nil {
			return s.abandon(ctx, st, b, d.shares[:n+1], err)
		}
	}
	if err := s.commit(ctx, st); err != nil {
		if errors.Is(err, store.ErrOutcomeUnknown) {
			return err
		}
		return s.abandon(ctx, st, b, d.shares, err)
	}
	for n, sh := range d.shares {
		if err := s.clear(ctx, pages[n], sh.page, b.ID, true); err != nil {
			return nil // it is committed; whoever meets the rest carries it out
		}
	}
	_ = s.objects.Delete(ctx, statusName(b.ID))
	return nil
}

// lookAtAll reads every page and looks, before anything is written. It names every condition that
// fails. A fresh page is taken for absent without being read.
func (s *Store) lookAtAll(ctx context.Context, d division) ([]*page, error) {
	pages := make([]*page, len(d.shares))
	var failed []store.Cond
	var blocked error
	for n, sh := range d.shares {
		if sh.fresh {
			pages[n] = &page{name: sh.page}
			continue
		}
		var err error
		if pages[n], err = s.readPage(ctx, sh.page); err != nil {
			return nil, err
		}
		if err := pages[n].recall(sh.batch.ID); err != nil {
			return nil, err
		}
		err = s.lookAfresh(ctx, &pages[n], sh)
		if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
			for _, c := range conflict.Conds {
				if !slices.Contains(failed, c) { // Empty is looked at in several pages
					failed = append(failed, c)
				}
			}
		} else if _, ok := errors.AsType[*store.BlockedError](err); ok {
			blocked = err
		} else if err != nil {
			return nil, err
		}
	}
	if len(failed) > 0 {
		return nil, &store.ConflictError{Conds: failed}
	}
	return pages, blocked
}

// begin makes the status record, or finds the one that is there.
func (s *Store) begin(ctx context.Context, b store.Batch, d division) (*status, error) {
	st := &status{Batch: b.ID, State: pending, Pages: d.names(), Digest: digestOf(b), LeaseMillis: s.lease.Milliseconds()}
	for try := 0; try < swapsMax; try++ {
		tag, err := s.objects.Put(ctx, statusName(b.ID), store.NoTag, st.encode())
		switch {
		case err == nil:
			st.tag = tag
			return st, nil
		case errors.Is(err, store.ErrOutcomeUnknown):
			if err := pause(ctx, try); err != nil {
				return nil, err
			}
		case !errors.Is(err, store.ErrMismatch):
			return nil, err
		}
		there, err := s.readStatus(ctx, b.ID)
		if err != nil || there != nil {
			return there, err
		}
	}
	return nil, s.blockedBy(b.ID)
}

// commit swaps the status record to COMMITTED. A *store.ConflictError: it is aborted, and
// stays so. Once a swap was sent that was not answered, any other error is ErrOutcomeUnknown: it may arrive yet.
func (s *Store) commit(ctx context.Context, st *status) error {
	for try := 0; try < swapsMax; try++ {
		ended, err := s.end(ctx, st, committed)
		switch {
		case ended:
			return nil
		case err != nil && try > 0:
			return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
		case err != nil:
			return err
		}
		now, err := s.readStatus(ctx, st.Batch)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
		case now == nil:
			return store.ErrOutcomeUnknown // ended, finished and deleted by somebody else
		}
		*st = *now
		switch st.State {
		case committed:
			return nil
		case aborted:
			return &store.ConflictError{}
		}
		if err := pause(ctx, try); err != nil {
			return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
		}
	}
	return store.ErrOutcomeUnknown
}

// abandon ends a batch that cannot be committed, as far as it can: its lease does the rest.
func (s *Store) abandon(ctx context.Context, st *status, b store.Batch, tried []*share, because error) error {
	if st.State == pending {
		if ended, err := s.end(ctx, st, aborted); err == nil && !ended {
			if now, err := s.readStatus(ctx, b.ID); err == nil && now != nil {
				*st = *now
			}
		}
	}
	if st.State == committed {
		return nil
	}
	if st.State == aborted {
		for _, sh := range tried {
			_ = s.clear(ctx, nil, sh.page, b.ID, false)
		}
		if planted.Is(planted.AbortedDeletedAtOnce) {
			_ = s.objects.Delete(ctx, statusName(b.ID))
		}
	}
	if errors.Is(because, errApplied) {
		return nil // by another who was sent the same batch: if the record is still there, it is his
	}
	return certain(because)
}
