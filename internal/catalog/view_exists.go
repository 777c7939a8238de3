package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// ViewExists succeeds if there is a view with the name, and refuses if not.
type ViewExists struct {
	Request ViewRequest `json:"request"`
	Result  struct{}    `json:"result"`
}

// ViewRequest names a view.
type ViewRequest struct {
	Warehouse string `json:"warehouse"`
	View      Ident  `json:"view"`
}

// Plan implements kernel.Operation.
func (op *ViewExists) Plan() kernel.Plan {
	return kernel.Plan{Op: "view-exists", Route: key.RouteOf(op.Request.Warehouse, op.Request.View.Namespace)}
}

// Decide implements kernel.Operation.
func (op *ViewExists) Decide(ctx context.Context, tx *kernel.Tx) error {
	_, _, err := find(ctx, tx, op.Request.Warehouse, KindView, op.Request.View)
	return err
}
