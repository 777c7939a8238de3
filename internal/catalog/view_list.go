package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// ListViews lists the views directly in a namespace by name.
type ListViews struct {
	Request ListTablesRequest `json:"request"`
	Result  ListTablesResult  `json:"result"`
}

// Plan implements kernel.Operation.
func (op *ListViews) Plan() kernel.Plan {
	return kernel.Plan{Op: "list-views", Route: key.RouteOf(op.Request.Warehouse, op.Request.Namespace)}
}

// Decide implements kernel.Operation.
func (op *ListViews) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = ListTablesResult{}
	var err error
	op.Result.Names, op.Result.NextToken, err = listNames(ctx, tx, op.Request.Warehouse, op.Request.Namespace, KindView, op.Request.Page)
	return err
}
