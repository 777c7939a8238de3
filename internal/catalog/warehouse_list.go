package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// ListWarehouses lists the warehouses by name.
type ListWarehouses struct {
	Request ListWarehousesRequest `json:"request"`
	Result  ListWarehousesResult  `json:"result"`
}

// ListWarehousesRequest asks for a page.
type ListWarehousesRequest struct {
	Page Page `json:"page,omitzero"`
}

// ListWarehousesResult is a page of warehouses.
type ListWarehousesResult struct {
	Warehouses []Warehouse `json:"warehouses"`
	NextToken  string      `json:"next-token,omitempty"` // empty: there are no more
}

// Plan implements kernel.Operation.
func (op *ListWarehouses) Plan() kernel.Plan { return kernel.Plan{Op: "list-warehouses"} }

// Decide implements kernel.Operation.
func (op *ListWarehouses) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = ListWarehousesResult{}
	records, next, err := listPage(ctx, tx, key.Warehouses(), op.Request.Page)
	if err != nil {
		return err
	}
	for _, r := range records {
		w, err := decode[Warehouse](r)
		if err != nil {
			return err
		}
		op.Result.Warehouses = append(op.Result.Warehouses, w)
	}
	op.Result.NextToken = next
	return nil
}
