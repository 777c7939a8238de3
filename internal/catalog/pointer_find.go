package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// FindTables reads a page of the pointers of a warehouse, of tables and views, in
// no order that means anything.
type FindTables struct {
	Request FindTablesRequest `json:"request"`
	Result  FindTablesResult  `json:"result"`
}

// FindTablesRequest names the warehouse.
type FindTablesRequest struct {
	Warehouse string `json:"warehouse"`
	Page      Page   `json:"page,omitzero"`
}

// FindTablesResult is the pointers.
type FindTablesResult struct {
	Tables    []TablePointer `json:"tables,omitempty"`
	NextToken string         `json:"next-token,omitempty"` // empty: there are no more
	Scope     blob.Scope     `json:"scope,omitempty"`
}

// TablePointer is what the catalog knows of a table or a view.
type TablePointer struct {
	ID               string `json:"id"`
	Kind             Kind   `json:"kind"`
	Ident            Ident  `json:"ident"`
	MetadataLocation string `json:"metadata-location"`
	// Places are normalised locations that are its alone.
	Places []string `json:"places,omitempty"`
	// Registered says that its metadata was registered, perhaps more than once.
	Registered bool `json:"registered,omitempty"`
}

// Plan implements kernel.Operation.
func (op *FindTables) Plan() kernel.Plan { return kernel.Plan{Op: "find-tables"} }

// Decide implements kernel.Operation.
func (op *FindTables) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = FindTablesResult{}
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	op.Result.Scope = w.Value.Scope()
	records, next, err := listPage(ctx, tx, key.PointersIn(w.Value.Name), op.Request.Page)
	if err != nil {
		return err
	}
	for _, r := range records {
		p, err := decode[pointerRecord](r)
		if err != nil {
			return err
		}
		op.Result.Tables = append(op.Result.Tables, TablePointer{
			ID: r.ID, Kind: p.Kind, Ident: p.Ident, MetadataLocation: p.MetadataLocation, Places: p.places(w.Value), Registered: p.Registered,
		})
	}
	op.Result.NextToken = next
	return nil
}
