package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// DropNamespace drops an empty namespace.
type DropNamespace struct {
	Request DropNamespaceRequest `json:"request"`
	Result  struct{}             `json:"result"`
}

// DropNamespaceRequest names the namespace.
type DropNamespaceRequest struct {
	Warehouse string   `json:"warehouse"`
	Levels    []string `json:"levels"`
}

// Plan implements kernel.Operation.
func (op *DropNamespace) Plan() kernel.Plan {
	return kernel.Plan{
		Op:       "drop-namespace",
		Locks:    namespaceLocks(op.Request.Warehouse, op.Request.Levels),
		Patience: lock.WholeNamespace,
		Route:    key.RouteOf(op.Request.Warehouse, op.Request.Levels),
	}
}

// Decide implements kernel.Operation.
func (op *DropNamespace) Decide(ctx context.Context, tx *kernel.Tx) error {
	namespaceAhead(ctx, tx, op.Request.Warehouse, op.Request.Levels)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	n, err := readNamespace(ctx, tx, (*kernel.Tx).Get, w, op.Request.Levels)
	if err != nil {
		return err
	}
	for _, under := range []struct {
		prefix key.Prefix
		what   string
	}{
		{key.TableNamesIn(op.Request.Warehouse, op.Request.Levels), "table or view"},
		{key.NamespacesIn(op.Request.Warehouse, op.Request.Levels), "namespace"},
	} {
		inTheWay, err := tx.RequireEmpty(ctx, n.Key, under.prefix)
		if err != nil {
			return err
		}
		if inTheWay.Exists() {
			return refuse(ErrNotEmpty, "Namespace %s is not empty: it contains at least the %s %s",
				dotted(op.Request.Levels), under.what, inTheWay.Key.Name())
		}
	}
	tx.Delete(n.Key)
	return nil
}
