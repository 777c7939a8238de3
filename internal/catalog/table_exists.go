package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// TableExists refuses unless there is a table of that name.
type TableExists struct {
	Request TableExistsRequest `json:"request"`
	Result  struct{}           `json:"result"`
}

// TableExistsRequest names the table.
type TableExistsRequest struct {
	Warehouse string `json:"warehouse"`
	Table     Ident  `json:"table"`
}

// Plan implements kernel.Operation.
func (op *TableExists) Plan() kernel.Plan {
	return kernel.Plan{Op: "table-exists", Route: key.RouteOf(op.Request.Warehouse, op.Request.Table.Namespace)}
}

// Decide implements kernel.Operation.
func (op *TableExists) Decide(ctx context.Context, tx *kernel.Tx) error {
	_, _, err := find(ctx, tx, op.Request.Warehouse, KindTable, op.Request.Table)
	return err
}
