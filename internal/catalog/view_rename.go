package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// RenameView gives a view another name, in the same namespace or another of the
// warehouse. Its files stay where they are.
type RenameView struct {
	Request RenameTableRequest `json:"request"`
	Result  struct{}           `json:"result"`
}

// Plan implements kernel.Operation.
func (op *RenameView) Plan() kernel.Plan {
	return kernel.Plan{
		Op:    "rename-view",
		Locks: tableLocks(op.Request.Warehouse, op.Request.Source, op.Request.Destination),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Source.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *RenameView) Decide(ctx context.Context, tx *kernel.Tx) error {
	return rename(ctx, tx, op.Request.Warehouse, KindView, op.Request.Source, op.Request.Destination)
}
