package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// GetWarehouse reads a warehouse.
type GetWarehouse struct {
	Request GetWarehouseRequest `json:"request"`
	Result  Warehouse           `json:"result"`
}

// GetWarehouseRequest names the warehouse.
type GetWarehouseRequest struct {
	Name string `json:"name"`
}

// Plan implements kernel.Operation.
func (op *GetWarehouse) Plan() kernel.Plan {
	return kernel.Plan{Op: "get-warehouse", Route: key.RouteOf(op.Request.Name, nil)}
}

// Decide implements kernel.Operation.
func (op *GetWarehouse) Decide(ctx context.Context, tx *kernel.Tx) error {
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Get, op.Request.Name)
	op.Result = w.Value
	return err
}
