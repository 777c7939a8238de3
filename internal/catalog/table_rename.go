package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// RenameTable gives a table another name, in the same namespace or another of the
// warehouse. Its files stay where they are.
type RenameTable struct {
	Request RenameTableRequest `json:"request"`
	Result  struct{}           `json:"result"`
}

// RenameTableRequest names the table, and the name it gets.
type RenameTableRequest struct {
	Warehouse   string `json:"warehouse"`
	Source      Ident  `json:"source"`
	Destination Ident  `json:"destination"`
}

// Plan implements kernel.Operation.
func (op *RenameTable) Plan() kernel.Plan {
	return kernel.Plan{
		Op:    "rename-table",
		Locks: tableLocks(op.Request.Warehouse, op.Request.Source, op.Request.Destination),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Source.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *RenameTable) Decide(ctx context.Context, tx *kernel.Tx) error {
	req := &op.Request
	w, err := readWarehouse(ctx, tx.Peek, req.Warehouse)
	if err != nil {
		return err
	}
	p, err := readTable(ctx, tx, w, req.Source)
	if err != nil {
		return err
	}
	if req.Destination.equal(req.Source) {
		return nil // as the reference: it has that name
	}
	if err := checkIdent(req.Destination); err != nil {
		return err
	}
	n, err := readNamespace(ctx, tx.Peek, w, req.Destination.Namespace)
	if err != nil {
		return err
	}
	tx.RequireLive(n.Key, n.ID)
	destination := key.ForTableName(req.Warehouse, req.Destination.Namespace, req.Destination.Name)
	taken, err := read[nameRecord](ctx, tx.Get, destination)
	if err != nil {
		return err
	}
	if taken.Exists() {
		what := "Table"
		if taken.Value.Kind == KindView {
			what = "View"
		}
		return refuse(ErrAlreadyExists, "Cannot rename %s to %s. %s already exists", req.Source, req.Destination, what)
	}
	if err := unbind(ctx, tx, w.Value, p); err != nil {
		return err
	}
	renamed := p.Value
	renamed.Ident, renamed.NamespaceID = req.Destination, n.ID
	tx.Create(destination, p.ID, encode(nameRecord{Kind: KindTable}))
	tx.Put(p.Key, p.ID, encode(renamed))
	return nil
}
