package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// PropertyAllowOverlap is the warehouse property that opts out of the location
// index when it is "true": locations that clients choose may then meet.
const PropertyAllowOverlap = "landfast.allow-location-overlap"

// CreateWarehouse makes a warehouse. Its roots were resolved, and Root marked
// with ID, before: a mark that no warehouse follows does no harm.
type CreateWarehouse struct {
	Request CreateWarehouseRequest `json:"request"`
	Result  Warehouse              `json:"result"`
}

// CreateWarehouseRequest is the warehouse to make.
type CreateWarehouseRequest struct {
	ID         string            `json:"id"` // fresh
	Name       string            `json:"name"`
	Root       blob.Root         `json:"root"`
	Allowed    []blob.Root       `json:"allowed,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// CheckWarehouseName refuses what can be no warehouse's name, so that nothing is
// made for it on disk.
func CheckWarehouseName(name string) error { return checkWarehouseName(name) }

// Plan implements kernel.Operation.
func (op *CreateWarehouse) Plan() kernel.Plan {
	k := key.ForWarehouse(op.Request.Name)
	return kernel.Plan{Op: "create-warehouse", Locks: lock.NewSet(lock.W(k)), Route: key.RouteOf(op.Request.Name, nil)}
}

// Decide implements kernel.Operation.
func (op *CreateWarehouse) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = Warehouse{}
	if err := checkWarehouseName(op.Request.Name); err != nil {
		return err
	}
	k := key.ForWarehouse(op.Request.Name)
	there, err := tx.Get(ctx, k)
	if err != nil {
		return err
	}
	if there.Exists() {
		return refuse(ErrAlreadyExists, "Warehouse already exists: %s", op.Request.Name)
	}
	op.Result = Warehouse{
		ID:              op.Request.ID,
		Name:            op.Request.Name,
		Root:            op.Request.Root,
		Allowed:         op.Request.Allowed,
		Properties:      op.Request.Properties,
		CreatedAtMillis: tx.Now().UnixMilli(),
		OverlapAllowed:  op.Request.Properties[PropertyAllowOverlap] == "true",
	}
	tx.Create(k, op.Request.ID, encode(op.Result))
	return nil
}
