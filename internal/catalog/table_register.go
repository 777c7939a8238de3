package catalog

import (
	"context"
	"errors"
	"strings"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/tablemeta"
)

// RegisterTable binds a name to a metadata file that exists, as it is. With
// Overwrite, a table that has the name already gets that metadata instead.
type RegisterTable struct {
	Request RegisterTableRequest `json:"request"`
	Result  TableState           `json:"result"`
}

// RegisterTableRequest names the table and the file.
type RegisterTableRequest struct {
	Warehouse        string `json:"warehouse"`
	Table            Ident  `json:"table"`
	MetadataLocation string `json:"metadata-location"`
	Overwrite        bool   `json:"overwrite,omitempty"`
}

// Plan implements kernel.Operation.
func (op *RegisterTable) Plan() kernel.Plan {
	return kernel.Plan{
		Op:    "register-table",
		Locks: tableLocks(op.Request.Warehouse, op.Request.Table).With(lock.W(key.LocationGuard())),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Table.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *RegisterTable) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = TableState{}
	req := &op.Request
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, req.Warehouse)
	if err != nil {
		return err
	}
	if req.Overwrite {
		p, err := readPointer(ctx, tx, w, KindTable, req.Table)
		if err == nil {
			return op.overwrite(ctx, tx, w.Value, p)
		}
		if !errors.Is(err, ErrNoSuchTable) {
			return err
		}
	}
	n, err := newName(ctx, tx, w, KindTable, req.Table)
	if req.Overwrite && errors.Is(err, errTableExists) {
		return kernel.ErrAgain // it was free a moment ago
	}
	if err != nil {
		return err
	}
	id := tx.NewID()
	m, err := readForeign(ctx, tx, w.Value, KindTable, req.Table, req.MetadataLocation, id, tablemeta.Parse)
	if err != nil {
		return err
	}
	op.Result = tableState(w.Value, metadataFile{req.MetadataLocation, id}, m, SnapshotsAll)
	return bindForeign(ctx, tx, w.Value, n, id, KindTable, req.Table, m, req.MetadataLocation)
}

// overwrite points an existing table to the file.
func (op *RegisterTable) overwrite(ctx context.Context, tx *kernel.Tx, w Warehouse, p found[pointerRecord]) error {
	file := op.Request.MetadataLocation
	m, err := readForeign(ctx, tx, w, KindTable, op.Request.Table, file, p.ID, tablemeta.Parse)
	if err != nil {
		return err
	}
	next := p.Value
	if m.Location() != p.Value.Location {
		if err := move(ctx, tx, w, p, &next, m.Location()); err != nil {
			return err
		}
	}
	bound := metadataFile{file, tx.NewID()}
	next.MetadataLocation, next.Registered, next.Binding = file, true, bound.binding
	tx.Remember(bound.memo(), m, m.Size())
	op.Result = tableState(w, bound, m, SnapshotsAll)
	tx.Put(p.Key, p.ID, encode(next))
	return nil
}

// readForeign reads a metadata file that is to be registered, and checks all of
// it: what a load can overlook would only be refused by a later commit. The index is
// opened first: a file that is then there, and not in the place of another table, is
// not being deleted, and will not be.
func readForeign[D document](ctx context.Context, tx *kernel.Tx, w Warehouse, kind Kind, t Ident, file, pointerID string, parse func([]byte) (D, error)) (none D, err error) {
	canonical, err := w.Scope().Canonical(file)
	if err != nil {
		return none, fromLocation("metadata location", err)
	}
	if strings.HasSuffix(file, "/") {
		return none, refuse(ErrInvalid, "Invalid metadata location %q: it names a directory; name the file, without a slash behind it", file)
	}
	if !tablemeta.IsFileName(file) {
		return none, refuse(ErrInvalid, "%s is not a valid metadata file: its name has no .metadata.json in it", file)
	}
	if err := openIndex(ctx, tx); err != nil {
		return none, err
	}
	owner, err := ownerOf(ctx, tx, canonical, pointerID)
	if err != nil {
		return none, err
	}
	if owner != (placeOwner{}) {
		return none, refuse(errOverlap, "Cannot register %s %s: the file %s lies in the place of a table or view in warehouse %s that is there, or is being purged; unregister that one first, or write to it by its own name",
			kind, t, file, owner.warehouse)
	}
	if err := refuseDying(ctx, tx, canonical, file); err != nil {
		return none, err
	}
	d, err := readMetadata(ctx, tx, w, file, parse)
	var refusal *Error
	if errors.Is(err, ErrDamaged) && errors.As(err, &refusal) {
		return none, refuse(ErrInvalid, "Cannot register %s %s: %s", kind, t, refusal.Message)
	}
	if err != nil {
		return none, err
	}
	if err := d.Verify(); err != nil {
		return none, refuse(ErrInvalid, "Cannot register %s %s: The metadata file %s cannot be used: %v", kind, t, file, err)
	}
	return d, nil
}

// bindForeign stages the records of what was registered. Its location was not chosen
// by the server, whatever it looks like.
func bindForeign(ctx context.Context, tx *kernel.Tx, w Warehouse, n found[namespaceRecord], id string, kind Kind, t Ident, d document, file string) error {
	_, canonical, err := checkLocation(w, string(kind)+" location", d.Location())
	if err != nil {
		return err
	}
	tx.Remember(metadataFile{file, id}.memo(), d, d.Size())
	return bind(ctx, tx, w, n, id, kind, t, d, file, canonical, true)
}
