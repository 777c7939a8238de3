package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// ListTables lists the tables directly in a namespace by name.
type ListTables struct {
	Request ListTablesRequest `json:"request"`
	Result  ListTablesResult  `json:"result"`
}

// ListTablesRequest names the namespace.
type ListTablesRequest struct {
	Warehouse string   `json:"warehouse"`
	Namespace []string `json:"namespace"`
	Page      Page     `json:"page,omitzero"`
}

// ListTablesResult is a page of names.
type ListTablesResult struct {
	Names     []string `json:"names"`
	NextToken string   `json:"next-token,omitempty"` // empty: there are no more
}

// Plan implements kernel.Operation.
func (op *ListTables) Plan() kernel.Plan {
	return kernel.Plan{Op: "list-tables", Route: key.RouteOf(op.Request.Warehouse, op.Request.Namespace)}
}

// Decide implements kernel.Operation.
func (op *ListTables) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = ListTablesResult{}
	w, err := readWarehouse(ctx, tx.Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	if _, err := readNamespace(ctx, tx.Peek, w, op.Request.Namespace); err != nil {
		return err
	}
	records, next, err := listPage(ctx, tx, key.TableNamesIn(op.Request.Warehouse, op.Request.Namespace), op.Request.Page)
	if err != nil {
		return err
	}
	for _, r := range records {
		name, err := decode[nameRecord](r)
		if err != nil {
			return err
		}
		if name.Kind == KindTable {
			op.Result.Names = append(op.Result.Names, r.Key.Name())
		}
	}
	op.Result.NextToken = next
	return nil
}
