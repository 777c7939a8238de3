package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/store"
)

// Recover ends what others have left: it aborts batches whose lease is over,
// carries out those that are committed, takes the intents of both out of their pages,
// and deletes status records that nobody needs. It may run at any time, anywhere, more than once at
// a time. It returns the first error, after having tried everything.
func (s *Store) Recover(ctx context.Context) error {
	return s.each(ctx, statusPrefix, func(name string) error {
		return s.recoverOne(ctx, strings.TrimPrefix(name, statusPrefix))
	})
}

func (s *Store) recoverOne(ctx context.Context, batch string) error {
	st, err := s.readStatus(ctx, batch)
	if err != nil || st == nil {
		return err
	}
	if st.State == pending {
		if st.leased() {
			return nil
		}
		if ended, err := s.end(ctx, st, aborted); err != nil || !ended {
			return err // somebody else is at it
		}
	}
	for _, page := range st.Pages {
		if err := s.clear(ctx, nil, page, batch, st.State == committed); err != nil {
			return err
		}
	}
	if st.State == committed || st.age >= s.retention {
		return s.objects.Delete(ctx, statusName(batch))
	}
	return nil
}

// Scrub does what Recover does, and then looks into every page for intents that no status record
// leads to: late ones, which are void, and births.
func (s *Store) Scrub(ctx context.Context) error {
	err := s.Recover(ctx)
	return errors.Join(err, s.each(ctx, "", func(name string) error {
		if strings.HasPrefix(name, statusPrefix) {
			return nil
		}
		p, err := s.readPage(ctx, name)
		if err != nil || len(p.held()) == 0 {
			return err
		}
		_, err = s.change(ctx, p, func(p *page) (bool, error) {
			changed := false
			fates := s.newFates(p, true)
			for _, h := range p.held() {
				fate, err := fates.of(ctx, h.batch, h.home, h.digest)
				if err != nil {
					return false, err
				}
				if fate != pending && p.holds(h.batch) {
					p.settle(h.batch, fate == committed)
					changed = true
				}
			}
			return changed, nil
		})
		return err
	}))
}

// held is what a page holds of batches that are not settled in it.
func (p *page) held() []intent {
	var all []intent
	for _, e := range p.entries {
		all = append(all, e.intents...)
	}
	for _, sl := range p.seals {
		all = append(all, intent{batch: sl.batch, digest: sl.digest})
	}
	return all
}

// Leftovers tells what is under way or was left, one line each: nothing, at rest after
// Scrub, once every lease is over. The status records of aborted batches, which are kept for
// a while, are none.
func (s *Store) Leftovers(ctx context.Context) ([]string, error) {
	var left []string
	err := s.each(ctx, "", func(name string) error {
		o, err := s.objects.Get(ctx, name)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, statusPrefix) {
			st, err := decodeStatus(o)
			if err == nil && st != nil && st.State != aborted {
				left = append(left, fmt.Sprintf("%s is %s", name, st.State))
			}
			return err
		}
		p, err := decodePage(o)
		if err != nil {
			return err
		}
		for _, h := range p.held() {
			left = append(left, fmt.Sprintf("%s holds an intent or a seal of %s", name, h.batch))
		}
		return nil
	})
	slices.Sort(left)
	return left, err
}

// each runs f for every object whose name begins so, and gives the errors of all.
func (s *Store) each(ctx context.Context, prefix string, f func(name string) error) error {
	var errs []error
	for from := ""; ; {
		names, err := s.objects.List(ctx, prefix, from, listChunk)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, name := range names {
			if err := f(name); err != nil && !errors.Is(err, store.ErrOutcomeUnknown) {
				errs = append(errs, fmt.Errorf("txn: %s: %w", name, err))
			}
		}
		if len(names) < listChunk {
			return errors.Join(errs...)
		}
		from = names[len(names)-1]
	}
}
