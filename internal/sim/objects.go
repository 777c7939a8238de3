package sim

import (
	"context"
	"fmt"

	"github.com/landfast/landfast/internal/store"
)

// objects are a bucket behind a network.
type objects struct {
	w     *world
	inner store.Objects
}

var _ store.Objects = (*objects)(nil)

// Get implements store.Objects.
func (o *objects) Get(ctx context.Context, name string) (found store.Object, err error) {
	err = callerOf(ctx).read(ctx, "get", name, func() (string, error) {
		found, err = o.inner.Get(context.WithoutCancel(ctx), name)
		return tagText(found.Tag), err
	})
	if err != nil {
		return store.Object{}, err
	}
	return found, nil
}

func tagText(t store.Tag) string {
	if t == store.NoTag {
		return "absent"
	}
	return string(t[:min(8, len(t))])
}

// Put implements store.Objects. A duplicate may be what is answered, as when a layer below
// has sent the bytes again because it missed the answer: then the caller meets itself.
func (o *objects) Put(ctx context.Context, name string, match store.Tag, data []byte) (tag store.Tag, err error) {
	c := callerOf(ctx)
	met := false
	err = c.write(ctx, "put", name, store.ErrOutcomeUnknown, func(wanted bool) (string, error) {
		t, err := o.inner.Put(context.WithoutCancel(ctx), name, match, data)
		if wanted && err == nil {
			tag = t
			s := c.stream("meets itself", name)
			met = c.fault(&s, []string{meetsItself}, []int{c.w.profile.rates.duplicate}) != ""
		}
		c.w.detail(c.label, func() string { return fmt.Sprintf("%s if %s: %s", name, tagText(match), data) })
		return tagText(match) + " -> " + tagText(t) + " " + outcomeOf(err), err
	})
	if err == nil && met {
		err = store.ErrMismatch
	}
	if err != nil {
		return store.NoTag, err
	}
	return tag, nil
}

const meetsItself = "write done, answered with the conflict with itself"

// List implements store.Objects.
func (o *objects) List(ctx context.Context, prefix, after string, limit int) (found []string, err error) {
	err = callerOf(ctx).read(ctx, "list", prefix, func() (string, error) {
		found, err = o.inner.List(context.WithoutCancel(ctx), prefix, after, limit)
		return fmt.Sprintf("%d", len(found)), err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Delete implements store.Objects. What is not known counts as a failure.
func (o *objects) Delete(ctx context.Context, name string) error {
	return callerOf(ctx).write(ctx, "delete", name, errCutOff, func(bool) (string, error) {
		err := o.inner.Delete(context.WithoutCancel(ctx), name)
		return outcomeOf(err), err
	})
}
