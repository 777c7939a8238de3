package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// GetNamespace reads a namespace.
type GetNamespace struct {
	Request GetNamespaceRequest `json:"request"`
	Result  NamespaceState      `json:"result"`
}

// GetNamespaceRequest names the namespace.
type GetNamespaceRequest struct {
	Warehouse string   `json:"warehouse"`
	Levels    []string `json:"levels"`
}

// Plan implements kernel.Operation.
func (op *GetNamespace) Plan() kernel.Plan {
	return kernel.Plan{Op: "get-namespace", Route: key.RouteOf(op.Request.Warehouse, op.Request.Levels)}
}

// Decide implements kernel.Operation.
func (op *GetNamespace) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = NamespaceState{}
	namespaceAhead(ctx, tx, op.Request.Warehouse, op.Request.Levels)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	n, err := readNamespace(ctx, tx, (*kernel.Tx).Get, w, op.Request.Levels)
	op.Result = NamespaceState{Levels: n.Value.Levels, Properties: n.Value.Properties}
	return err
}
