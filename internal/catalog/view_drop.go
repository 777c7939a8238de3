package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// DropView unbinds a view's name and forgets the view. Its metadata files stay: it
// can be registered again.
type DropView struct {
	Request ViewRequest `json:"request"`
	Result  struct{}    `json:"result"`
}

// Plan implements kernel.Operation.
func (op *DropView) Plan() kernel.Plan {
	return kernel.Plan{
		Op:    "drop-view",
		Locks: tableLocks(op.Request.Warehouse, op.Request.View),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.View.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *DropView) Decide(ctx context.Context, tx *kernel.Tx) error {
	w, p, err := find(ctx, tx, op.Request.Warehouse, KindView, op.Request.View)
	if err != nil {
		return err
	}
	return forget(ctx, tx, w.Value, p)
}
