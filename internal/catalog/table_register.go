package catalog

import (
	"context"
	"errors"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
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
	w, err := readWarehouse(ctx, tx.Peek, req.Warehouse)
	if err != nil {
		return err
	}
	if req.Overwrite {
		p, err := readTable(ctx, tx, w, req.Table)
		if err == nil {
			return op.overwrite(ctx, tx, w.Value, p)
		}
		if !errors.Is(err, ErrNoSuchTable) {
			return err
		}
	}
	n, err := newTableName(ctx, tx, w, req.Table)
	if req.Overwrite && errors.Is(err, errTableExists) {
		return kernel.ErrAgain // it was free a moment ago
	}
	if err != nil {
		return err
	}
	id := tx.NewID()
	location, err := op.read(ctx, tx, w.Value, id)
	if err != nil {
		return err
	}
	_, canonical, err := checkLocation(w.Value, "table location", location)
	if err != nil {
		return err
	}
	if w.Value.OverlapAllowed {
		canonical = ""
	} else if err := claim(ctx, tx, w.Value, canonical, id, ""); err != nil {
		return err
	}
	bindName(tx, w.Value, n, id, pointerRecord{
		Kind: KindTable, Ident: req.Table, Location: location, MetadataLocation: req.MetadataLocation, Claim: canonical,
	})
	return nil
}

// overwrite points an existing table to the file.
func (op *RegisterTable) overwrite(ctx context.Context, tx *kernel.Tx, w Warehouse, p found[pointerRecord]) error {
	location, err := op.read(ctx, tx, w, p.ID)
	if err != nil {
		return err
	}
	next := p.Value
	if location != p.Value.Location {
		if next.Claim, err = move(ctx, tx, w, p, location); err != nil {
			return err
		}
	}
	next.Location, next.MetadataLocation = location, op.Request.MetadataLocation
	tx.Put(p.Key, p.ID, encode(next))
	return nil
}

// read checks the file, sets the result, and returns the location of the table.
// The index is opened first: a file that is then there, and not below the
// location of another table, is not being deleted, and will not be.
func (op *RegisterTable) read(ctx context.Context, tx *kernel.Tx, w Warehouse, pointerID string) (string, error) {
	file := op.Request.MetadataLocation
	canonical, err := w.Scope().Canonical(file)
	if err != nil {
		return "", fromLocation("metadata location", err)
	}
	if err := openIndex(ctx, tx); err != nil {
		return "", err
	}
	if err := checkAbove(ctx, tx, canonical, pointerID); err != nil {
		return "", err
	}
	m, err := readMetadata(ctx, tx, w, file)
	var refusal *Error
	if errors.Is(err, ErrDamaged) && errors.As(err, &refusal) {
		return "", refuse(ErrInvalid, "Cannot register table %s: %s", op.Request.Table, refusal.Message)
	}
	if err != nil {
		return "", err
	}
	// What a load can overlook would only be refused by a later commit.
	if err := m.Verify(); err != nil {
		return "", fromMetadata(err)
	}
	op.Result = TableState{file, m.JSON(), etag(file, SnapshotsAll)}
	return m.Location(), nil
}
