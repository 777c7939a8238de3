package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// UnregisterTable unbinds a table's name and returns the table as every commit
// before has left it; every later one finds no table. Its files stay.
type UnregisterTable struct {
	Request UnregisterTableRequest `json:"request"`
	Result  TableState             `json:"result"`
}

// UnregisterTableRequest names the table.
type UnregisterTableRequest struct {
	Warehouse string `json:"warehouse"`
	Table     Ident  `json:"table"`
}

// Plan implements kernel.Operation.
func (op *UnregisterTable) Plan() kernel.Plan {
	return kernel.Plan{
		Op:    "unregister-table",
		Locks: tableLocks(op.Request.Warehouse, op.Request.Table),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Table.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *UnregisterTable) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = TableState{}
	w, p, err := find(ctx, tx, op.Request.Warehouse, KindTable, op.Request.Table)
	if err != nil {
		return err
	}
	m, err := tableMetadata(ctx, tx, w.Value, op.Request.Table, fileOf(p))
	if err != nil {
		return err
	}
	op.Result = tableState(w.Value, fileOf(p), m, SnapshotsAll)
	return forget(ctx, tx, w.Value, p)
}
