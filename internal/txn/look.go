package txn

import (
	"context"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// look is one look of a batch at one page: whether its conditions hold there.
type look struct {
	s       *Store
	share   *share
	page    *page
	fates   *fates
	failed  []store.Cond
	blocked string // a batch whose pending intent stands in the way
}

// look judges a share by a page that was read after everything else the caller knows. It
// carries out, in its copy of the page, what it finds decided. The error is a
// *store.ConflictError, a *store.BlockedError, errStale, or a fault of the store.
func (s *Store) look(ctx context.Context, p *page, sh *share) error {
	l := &look{s: s, share: sh, page: p, fates: s.newFates(p, true)}
	if err := l.run(ctx); err != nil {
		return err
	}
	return l.verdict()
}

func (l *look) verdict() error {
	switch {
	case len(l.failed) > 0:
		return &store.ConflictError{Conds: l.failed}
	case l.blocked != "":
		return l.s.blockedBy(l.blocked)
	}
	return nil
}

func (s *Store) blockedBy(batch string) error {
	return &store.BlockedError{By: batch, Until: time.Now().Add(s.retry)}
}

func (l *look) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{l.seals, l.records, l.prefixes, l.parents} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// others finds out about the batch of an intent or a seal of somebody else. true: it
// is pending, and stays in the way.
func (l *look) others(ctx context.Context, batch, home, digest string) (bool, error) {
	if batch == l.share.batch.ID {
		return false, nil
	}
	fate, err := l.fates.of(ctx, batch, home, digest)
	if err != nil {
		return false, err
	}
	if fate == pending {
		if planted.Is(planted.PendingIsOldValue) {
			return false, nil
		}
		l.blocked = batch
		return true, nil
	}
	l.page.settle(batch, fate == committed)
	return false, nil
}

// seals: nothing is written under the seal of another.
func (l *look) seals(ctx context.Context) error {
	for _, sl := range slices.Clone(l.page.seals) {
		if slices.ContainsFunc(l.share.writes, func(w store.Write) bool { return sl.prefix.Covers(w.Key) }) {
			if _, err := l.others(ctx, sl.batch, "", sl.digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// intents of this share: one for each record that it conditions or writes, in key order.
func (sh *share) intents() []*entry {
	var p page
	own := func(k key.Key) *intent {
		e := p.open(k)
		if len(e.intents) == 0 {
			e.intents = []intent{{batch: sh.batch.ID}}
		}
		return &e.intents[0]
	}
	for _, c := range sh.conds {
		m := holdLive
		if c.Kind == store.KindIs {
			m = holdIs
		}
		i := own(c.Key)
		i.mode = max(i.mode, m)
	}
	for _, w := range sh.writes {
		i := own(w.Key)
		i.mode, i.id, i.value = put, w.ID, w.Value
		if w.Delete {
			i.mode = remove
		}
	}
	return p.entries
}

// compatible reports whether two batches may have their intents on one record at once:
// conditions go together, and Live goes with a write that keeps the incarnation.
func compatible(e *entry, a, b intent) bool {
	keeps := func(i intent) bool {
		return i.mode <= holdIs || i.mode == put && e.version != store.Absent && i.id == e.id
	}
	switch {
	case !a.mode.writes() && !b.mode.writes():
		return true
	case a.mode == holdLive:
		return keeps(b)
	case b.mode == holdLive:
		return keeps(a)
	}
	return false
}

// records: no incompatible intent of another is on a record, and its conditions hold.
func (l *look) records(ctx context.Context) error {
	busy := map[key.Key]bool{}
	for _, mine := range l.share.intents() {
		e := l.page.entry(mine.key)
		if e == nil {
			continue
		}
		for _, other := range slices.Clone(e.intents) {
			if compatible(e, mine.intents[0], other) {
				continue
			}
			inTheWay, err := l.others(ctx, other.batch, other.home, other.digest)
			if err != nil {
				return err
			}
			busy[e.key] = busy[e.key] || inTheWay
		}
	}
	for _, c := range l.share.conds {
		if !busy[c.Key] && !holds(l.page.entry(c.Key), c) {
			l.failed = append(l.failed, c)
		}
	}
	return nil
}

// holds judges Is and Live by the settled value.
func holds(e *entry, c store.Cond) bool {
	if e == nil {
		e = &entry{}
	}
	if c.Kind == store.KindIs {
		return e.version == c.Version
	}
	return e.version != store.Absent && e.id == c.ID
}

// prefixes: nothing lies where it must be empty, and nobody is about to write where
// this batch seals.
func (l *look) prefixes(ctx context.Context) error {
	own := func(k key.Key) bool {
		return slices.ContainsFunc(l.share.writes, func(w store.Write) bool { return w.Key == k })
	}
	for _, e := range slices.Clone(l.page.entries) {
		if own(e.key) || !slices.ContainsFunc(l.share.seals, func(p key.Prefix) bool { return p.Covers(e.key) }) {
			continue
		}
		busy := false
		for _, i := range slices.Clone(e.intents) {
			if !i.mode.writes() {
				continue
			}
			inTheWay, err := l.others(ctx, i.batch, i.home, i.digest)
			if err != nil {
				return err
			}
			busy = busy || inTheWay
		}
		if busy || e.version == store.Absent {
			continue
		}
		for _, c := range l.share.empties {
			if c.Prefix.Covers(e.key) && !slices.Contains(l.failed, c) {
				l.failed = append(l.failed, c)
			}
		}
	}
	return nil
}

// parents: Live of records in other pages, looked at after this page was read. Whoever deletes
// one of them seals this page first, and so changes its tag.
func (l *look) parents(ctx context.Context) error {
	for _, c := range l.share.parents {
		if planted.Is(planted.ParentUnread) {
			continue
		}
		var busy string
		var e *entry
		err := l.s.view(ctx, l.s.layout.Page(c.Key), func(p *page, _ *fates) error {
			busy, e = "", p.entry(c.Key)
			if e == nil {
				return nil
			}
			fates := l.s.newFates(p, true)
			for _, i := range slices.Clone(e.intents) {
				if compatible(e, intent{mode: holdLive}, i) {
					continue
				}
				fate, err := fates.of(ctx, i.batch, i.home, i.digest)
				if err != nil {
					return err
				}
				if fate == pending {
					busy = i.batch
				} else {
					e.settle(i.batch, fate == committed)
				}
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case busy == l.share.batch.ID: // it deletes its own parent: that page judges
		case busy != "":
			l.blocked = busy
		case !holds(e, c):
			l.failed = append(l.failed, c)
		}
	}
	return nil
}
