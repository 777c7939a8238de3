package sim

import (
	"context"
	"fmt"
	"strings"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// records are a store of records behind a network.
type records struct {
	w     *world
	inner store.Atomic
}

var _ store.Atomic = (*records)(nil)

// Get implements store.Atomic.
func (r *records) Get(ctx context.Context, k key.Key) (found store.Record, err error) {
	err = callerOf(ctx).read(ctx, "get", k.String(), func() (string, error) {
		found, err = r.inner.Get(context.WithoutCancel(ctx), k)
		return versionOf(found), err
	})
	if err != nil {
		return store.Record{}, err
	}
	return found, nil
}

func versionOf(r store.Record) string {
	if !r.Exists() {
		return "absent"
	}
	return string(r.Version)
}

// List implements store.Atomic.
func (r *records) List(ctx context.Context, p key.Prefix, after string, limit int) (found []store.Record, err error) {
	err = callerOf(ctx).read(ctx, "list", p.String(), func() (string, error) {
		found, err = r.inner.List(context.WithoutCancel(ctx), p, after, limit)
		if len(found) == 0 {
			return "nothing", err
		}
		return "from " + found[0].Key.Path, err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Apply implements store.Atomic. A copy of a batch that was refused never comes: its conditions
// could hold by then, and who speaks to a store of this kind sends nothing again that was answered.
func (r *records) Apply(ctx context.Context, b store.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	c := callerOf(ctx)
	refused := false
	return c.write(ctx, "apply", b.ID, store.ErrOutcomeUnknown, func(wanted bool) (string, error) {
		if refused {
			return "no copy is sent", nil
		}
		err := r.inner.Apply(context.WithoutCancel(ctx), b)
		c.w.detail(c.label, func() string { return batchText(b) })
		refused = wanted && err != nil
		return outcomeOf(err), err
	})
}

// batchText is a batch in the transcript.
func batchText(b store.Batch) string {
	var s []string
	for _, c := range b.Conds {
		s = append(s, c.String())
	}
	s = append(s, "=>")
	for _, w := range b.Writes {
		s = append(s, fmt.Sprintf("%v", w))
	}
	return strings.Join(s, " ")
}

// Outcome implements store.Atomic.
func (r *records) Outcome(ctx context.Context, b store.Batch) (outcome store.Outcome, err error) {
	err = callerOf(ctx).read(ctx, "outcome", b.ID, func() (string, error) {
		outcome, err = r.inner.Outcome(context.WithoutCancel(ctx), b)
		return outcome.String(), err
	})
	if err != nil {
		return 0, err
	}
	return outcome, nil
}
