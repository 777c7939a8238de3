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
	return rename(ctx, tx, op.Request.Warehouse, KindTable, op.Request.Source, op.Request.Destination)
}

// rename binds a pointer to another name.
func rename(ctx context.Context, tx *kernel.Tx, warehouse string, kind Kind, from, to Ident) error {
	w, p, err := find(ctx, tx, warehouse, kind, from)
	if err != nil {
		return err
	}
	if to.equal(from) {
		return nil // as the reference: it has that name
	}
	if err := checkIdent(kind, to); err != nil {
		return err
	}
	n, err := readNamespace(ctx, tx, (*kernel.Tx).Peek, w, to.Namespace)
	if err != nil {
		return err
	}
	tx.RequireLive(n.Key, n.ID)
	destination := key.ForTableName(warehouse, to.Namespace, to.Name)
	taken, err := read[nameRecord](ctx, tx, (*kernel.Tx).Get, destination)
	if err != nil {
		return err
	}
	if taken.Exists() {
		return refuse(ErrAlreadyExists, "Cannot rename %s to %s. %s already exists", from, to, taken.Value.Kind.title())
	}
	if err := unbind(ctx, tx, w.Value, p); err != nil {
		return err
	}
	renamed := p.Value
	renamed.Ident, renamed.NamespaceID = to, n.ID
	tx.Create(destination, p.ID, encode(nameRecord{Kind: kind}))
	tx.Put(p.Key, p.ID, encode(renamed))
	return nil
}
