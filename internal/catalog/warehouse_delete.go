package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// DeleteWarehouse deletes an empty warehouse. Its files stay.
type DeleteWarehouse struct {
	Request DeleteWarehouseRequest `json:"request"`
	Result  struct{}               `json:"result"`
}

// DeleteWarehouseRequest names the warehouse.
type DeleteWarehouseRequest struct {
	Name string `json:"name"`
}

// Plan implements kernel.Operation.
func (op *DeleteWarehouse) Plan() kernel.Plan {
	k := key.ForWarehouse(op.Request.Name)
	return kernel.Plan{Op: "delete-warehouse", Locks: lock.NewSet(lock.W(k)), Route: key.RouteOf(op.Request.Name, nil)}
}

// Decide implements kernel.Operation.
func (op *DeleteWarehouse) Decide(ctx context.Context, tx *kernel.Tx) error {
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Get, op.Request.Name)
	if err != nil {
		return err
	}
	for _, under := range []struct {
		prefix key.Prefix
		what   string
	}{
		{key.NamespacesIn(w.Value.Name, nil), "it has namespaces; drop them first"},
		{key.DyingIn(w.Value.Name), "files of purged tables are still being deleted; try again later"},
	} {
		inTheWay, err := tx.RequireEmpty(ctx, w.Key, under.prefix)
		if err != nil {
			return err
		}
		if inTheWay.Exists() {
			return refuse(ErrNotEmpty, "Warehouse %s is not empty: %s", w.Value.Name, under.what)
		}
	}
	tx.Delete(w.Key)
	return nil
}
