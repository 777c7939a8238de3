package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// EndDying forgets lists of dying files: all of them are gone. It writes the guard of
// the location index, so that who is about to register one of them learns of it.
type EndDying struct {
	Request EndDyingRequest `json:"request"`
	Result  struct{}        `json:"result"`
}

// EndDyingRequest names the lists. One that has ended is no error.
type EndDyingRequest struct {
	Warehouse string   `json:"warehouse"`
	IDs       []string `json:"ids"`
}

// Plan implements kernel.Operation.
func (op *EndDying) Plan() kernel.Plan {
	return kernel.Plan{Op: "end-dying", Locks: lock.NewSet(lock.W(key.LocationGuard()))}
}

// Decide implements kernel.Operation.
func (op *EndDying) Decide(ctx context.Context, tx *kernel.Tx) error {
	for _, id := range op.Request.IDs {
		d, err := read[dyingRecord](ctx, tx, (*kernel.Tx).Peek, key.ForDying(op.Request.Warehouse, id))
		if err != nil {
			return err
		}
		if !d.Exists() {
			continue
		}
		if err := tx.Keep(d.Record); err != nil {
			return err
		}
		tx.Delete(d.Key)
		for _, canonical := range d.Value.Marks {
			// A mark ends only with its list, whose record is a condition: it is there.
			mark, err := tx.Peek(ctx, key.ForDyingFile(canonical))
			if err != nil {
				return err
			}
			if mark.ID != d.ID {
				return kernel.ErrAgain
			}
			if err := tx.Keep(mark); err != nil {
				return err
			}
			tx.Delete(mark.Key)
		}
		if err := openIndex(ctx, tx); err != nil {
			return err
		}
		if err := release(ctx, tx, d.Value.Claims, d.ID); err != nil {
			return err
		}
	}
	return nil
}
