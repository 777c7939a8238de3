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
	if err := checkNeighbours(ctx, tx, op.Result); err != nil {
		return err
	}
	tx.Create(k, op.Request.ID, encode(op.Result))
	return nil
}

// checkNeighbours refuses a warehouse whose roots meet those of another, where one of the
// two lets locations overlap and the other does not: what a purge in the one may delete, a
// table of the other could name. It makes the creation of warehouses serial.
func checkNeighbours(ctx context.Context, tx *kernel.Tx, w Warehouse) error {
	if err := openIndex(ctx, tx); err != nil {
		return err
	}
	for after := ""; ; {
		page, err := tx.Look(ctx, key.Warehouses(), after, scanSize)
		if err != nil {
			return err
		}
		for _, r := range page {
			other, err := decode[Warehouse](r)
			if err != nil {
				return err
			}
			if a, b, meet := meeting(w, other); meet && other.OverlapAllowed != w.OverlapAllowed {
				return refuse(ErrInvalid, "Location %s meets location %s of warehouse %s, which differs in %s: choose another place, or the same setting",
					a, b, other.Name, PropertyAllowOverlap)
			}
			after = r.Key.Path
		}
		if len(page) < scanSize {
			return nil
		}
	}
}

// meeting finds two roots of two warehouses of which one lies in the other.
func meeting(a, b Warehouse) (one, other string, meet bool) {
	for _, x := range a.Scope() {
		for _, y := range b.Scope() {
			if p, q := x.Place(), y.Place(); blob.Within(p, q) || blob.Within(q, p) {
				return x.URI, y.URI, true
			}
		}
	}
	return "", "", false
}
