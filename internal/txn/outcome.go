package txn

import (
	"context"
	"errors"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// Outcome is that of [store.Atomic]. A batch of one page is looked for in the page's
// memory, and made void there if it is missing; one of several has its status record, or gets one
// that is aborted. A page that has forgotten batches tells nothing, unless what
// the batch would have changed is as it was.
func (s *Store) Outcome(ctx context.Context, b store.Batch) (store.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d, err := divide(s.layout, b)
	if err != nil {
		return 0, err
	}
	if len(d.shares) > 1 {
		return s.outcomeOfMany(ctx, b, d)
	}
	p, err := s.readPage(ctx, d.shares[0].page)
	if err != nil {
		return 0, err
	}
	if _, ok := p.memory(b.ID); !ok && p.mayHaveForgotten(d.shares[0]) {
		return 0, store.ErrOutcomeUnknown
	}
	if _, ok := p.memory(b.ID); !ok && planted.Is(planted.OutcomeNotFinal) {
		return store.NotApplied, nil
	}
	known, err := s.void(ctx, p, b.ID, p.remembered())
	switch {
	case err != nil:
		return 0, err
	case known.applied:
		return store.Applied, nil
	}
	return store.NotApplied, nil
}

// mayHaveForgotten reports whether a batch that the page has no memory of can have been applied in it.
func (p *page) mayHaveForgotten(sh *share) bool {
	if p.forgotten == 0 {
		return false
	}
	written := func(c store.Cond) bool {
		for _, w := range sh.writes {
			if c.Kind == store.KindIs && c.Key == w.Key && c.Version != store.Absent {
				return true
			}
		}
		return false
	}
	for _, c := range sh.conds {
		// A version never returns, so a record that still has this one was not written.
		if written(c) && holds(p.entry(c.Key), c) {
			return false
		}
	}
	return true
}

func (s *Store) outcomeOfMany(ctx context.Context, b store.Batch, d division) (store.Outcome, error) {
	for try := 0; try < swapsMax; try++ {
		st, err := s.readStatus(ctx, b.ID)
		if err != nil {
			return 0, err
		}
		switch {
		case st == nil:
			void := status{Batch: b.ID, State: aborted, Digest: digestOf(b)}
			_, err := s.objects.Put(ctx, statusName(b.ID), store.NoTag, void.encode())
			if err != nil && !errors.Is(err, store.ErrMismatch) && !errors.Is(err, store.ErrOutcomeUnknown) {
				return 0, err
			}
		case st.State == committed:
			return store.Applied, nil
		case st.State == pending:
			if _, err := s.end(ctx, st, aborted); err != nil {
				return 0, err
			}
		default:
			return s.outcomeOfAborted(ctx, st, d)
		}
		if try > 0 {
			if err := pause(ctx, try); err != nil {
				return 0, err
			}
		}
	}
	return 0, store.ErrOutcomeUnknown
}

// outcomeOfAborted: the record can be one that was made after the batch was applied, finished
// and its own record deleted. Then its pages remember it, and have no intents of it. Where all
// have forgotten, nothing is known.
func (s *Store) outcomeOfAborted(ctx context.Context, st *status, d division) (store.Outcome, error) {
	certain := false
	for _, sh := range d.shares {
		p, err := s.readPage(ctx, sh.page)
		if err != nil {
			return 0, err
		}
		if known, ok := p.memory(st.Batch); ok && known.applied {
			return store.Applied, nil
		}
		certain = certain || p.holds(st.Batch) || !p.mayHaveForgotten(sh)
	}
	if !certain {
		return 0, store.ErrOutcomeUnknown
	}
	return store.NotApplied, nil
}
