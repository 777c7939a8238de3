//go:build planted

package txn

import (
	"context"
	"slices"

	"github.com/landfast/landfast/internal/store"
)

// applyLiterally is the protocol that AIStor's documentation describes: look at everything, write
// page after page, and after a conflict write back what was there. Readers see halves, and what
// is written back was built on by others.
func (s *Store) applyLiterally(ctx context.Context, d division) error {
	d.shares = append(slices.Clone(d.shares), d.births...)
	pages, err := s.lookAtAll(ctx, d)
	if err != nil {
		return err
	}
	var undo []store.Write
	for n, sh := range d.shares {
		_, err := s.change(ctx, pages[n], func(p *page) (bool, error) {
			if err := s.look(ctx, p, sh); err != nil {
				return false, err
			}
			for _, w := range sh.writes {
				e := p.open(w.Key)
				undo = append(undo, store.Write{Key: w.Key, ID: e.id, Value: e.value, Delete: e.version == store.Absent})
				write(e, w, sh.batch.ID)
			}
			return len(sh.writes) > 0, nil
		})
		if err != nil {
			for _, w := range slices.Backward(undo) {
				p, err := s.readPage(ctx, s.layout.Page(w.Key))
				if err != nil {
					return err
				}
				if _, err := s.change(ctx, p, func(p *page) (bool, error) { write(p.open(w.Key), w, sh.batch.ID+"-undone"); return true, nil }); err != nil {
					return err
				}
			}
			return certain(err)
		}
	}
	return nil
}

func write(e *entry, w store.Write, batch string) {
	e.version, e.id, e.value = store.Version(batch), w.ID, w.Value
	if w.Delete {
		e.version, e.id, e.value = store.Absent, "", nil
	}
}
