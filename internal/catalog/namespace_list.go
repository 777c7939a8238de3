package catalog

import (
	"context"
	"slices"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// ListNamespaces lists the namespaces directly under a parent, or under the warehouse.
type ListNamespaces struct {
	Request ListNamespacesRequest `json:"request"`
	Result  ListNamespacesResult  `json:"result"`
}

// ListNamespacesRequest names the parent; without levels it is the warehouse.
type ListNamespacesRequest struct {
	Warehouse string   `json:"warehouse"`
	Parent    []string `json:"parent,omitempty"`
	Page      Page     `json:"page,omitzero"`
}

// ListNamespacesResult is a page of namespaces, each with all its levels.
type ListNamespacesResult struct {
	Namespaces [][]string `json:"namespaces"`
	NextToken  string     `json:"next-token,omitempty"` // empty: there are no more
}

// Plan implements kernel.Operation.
func (op *ListNamespaces) Plan() kernel.Plan {
	return kernel.Plan{Op: "list-namespaces", Route: key.RouteOf(op.Request.Warehouse, op.Request.Parent)}
}

// Decide implements kernel.Operation.
func (op *ListNamespaces) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = ListNamespacesResult{}
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	if len(op.Request.Parent) > 0 {
		if _, err := readNamespace(ctx, tx, (*kernel.Tx).Peek, w, op.Request.Parent); err != nil {
			return err
		}
	}
	records, next, err := listPage(ctx, tx, key.NamespacesIn(op.Request.Warehouse, op.Request.Parent), op.Request.Page)
	if err != nil {
		return err
	}
	op.Result.Namespaces = slices.Grow(op.Result.Namespaces, len(records))
	for _, r := range records { // whose keys tell all
		op.Result.Namespaces = append(op.Result.Namespaces, append(slices.Clip(op.Request.Parent), r.Key.Name()))
	}
	op.Result.NextToken = next
	return nil
}
