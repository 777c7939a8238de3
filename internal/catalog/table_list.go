package catalog

import (
	"context"
	"slices"

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
	var err error
	op.Result.Names, op.Result.NextToken, err = listNames(ctx, tx, op.Request.Warehouse, op.Request.Namespace, KindTable, op.Request.Page)
	return err
}

// listNames lists the names in a namespace that are bound to one kind. Names of the
// other kind count in the size of a page, which may therefore come out short.
func listNames(ctx context.Context, tx *kernel.Tx, warehouse string, namespace []string, kind Kind, page Page) (names []string, next string, err error) {
	namespaceAhead(ctx, tx, warehouse, namespace)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, warehouse)
	if err != nil {
		return nil, "", err
	}
	if _, err := readNamespace(ctx, tx, (*kernel.Tx).Peek, w, namespace); err != nil {
		return nil, "", err
	}
	records, next, err := listPage(ctx, tx, key.TableNamesIn(warehouse, namespace), page)
	if err != nil {
		return nil, "", err
	}
	names = slices.Grow(names, len(records))
	for _, r := range records {
		bound, err := boundKind(r)
		if err != nil {
			return nil, "", err
		}
		if bound == kind {
			names = append(names, r.Key.Name())
		}
	}
	return names, next, nil
}
