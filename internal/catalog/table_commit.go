package catalog

import (
	"context"
	"errors"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// CommitTable checks requirements against a table and applies updates to it. With
// the requirement assert-create it makes the table that was staged.
type CommitTable struct {
	Request CommitTableRequest `json:"request"`
	Result  TableState         `json:"result"`
}

// CommitTableRequest is the change. Requirements and Updates are JSON arrays,
// read only once the table was found.
type CommitTableRequest struct {
	Warehouse    string `json:"warehouse"`
	Table        Ident  `json:"table"`
	Requirements []byte `json:"requirements"`
	Updates      []byte `json:"updates"`
	// Creates says that assert-create is among the requirements. It only adds to
	// what the commit queues for.
	Creates bool `json:"creates,omitempty"`
}

// Plan implements kernel.Operation.
func (op *CommitTable) Plan() kernel.Plan {
	locks := tableLocks(op.Request.Warehouse, op.Request.Table)
	if op.Request.Creates {
		locks = locks.With(lock.W(key.LocationGuard()))
	}
	return kernel.Plan{
		Op:    "commit-table",
		Locks: locks,
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Table.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *CommitTable) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = TableState{}
	req := &op.Request
	w, err := readWarehouse(ctx, tx.Peek, req.Warehouse)
	if err != nil {
		return err
	}
	var requirements []tablemeta.Requirement
	badRequirements := parse("requirements", req.Requirements, &requirements)
	p, err := readTable(ctx, tx, w, req.Table)
	if errors.Is(err, ErrNoSuchTable) && badRequirements == nil && tablemeta.IsCreate(requirements) {
		return op.create(ctx, tx, w, requirements)
	}
	if err != nil {
		return err
	}
	if badRequirements != nil {
		return badRequirements
	}
	var updates []tablemeta.Update
	if err := parse("updates", req.Updates, &updates); err != nil {
		return err
	}
	base, err := tableMetadata(ctx, tx, w.Value, req.Table, p.Value.MetadataLocation)
	if err != nil {
		return err
	}
	if err := tablemeta.Check(base, requirements); err != nil {
		return fromMetadata(err)
	}
	m, changed, err := tablemeta.Commit(tablemeta.Change{
		Base: base, BaseFile: p.Value.MetadataLocation, Updates: updates, UUID: p.ID, Now: tx.Now(),
	})
	if err != nil {
		return fromMetadata(err)
	}
	if !changed {
		op.Result = TableState{p.Value.MetadataLocation, base.JSON(), etag(p.Value.MetadataLocation, SnapshotsAll)}
		return nil
	}
	next := p.Value
	if m.Location() != p.Value.Location {
		if next.Claim, err = move(ctx, tx, w.Value, p, m.Location()); err != nil {
			return err
		}
		next.Location = m.Location()
	}
	if next.MetadataLocation, err = writeMetadata(tx, w.Value, m, p.Value.MetadataLocation); err != nil {
		return err
	}
	tx.Put(p.Key, p.ID, encode(next))
	op.Result = TableState{next.MetadataLocation, m.JSON(), etag(next.MetadataLocation, SnapshotsAll)}
	return nil
}

// create makes the table that was staged: all of it is in the updates.
func (op *CommitTable) create(ctx context.Context, tx *kernel.Tx, w found[Warehouse], requirements []tablemeta.Requirement) error {
	n, err := newTableName(ctx, tx, w, op.Request.Table)
	if errors.Is(err, errTableExists) {
		return kernel.ErrAgain // it was free a moment ago: now the requirement is what fails
	}
	if err != nil {
		return err
	}
	if err := checkMounted(ctx, tx, w.Value); err != nil {
		return err
	}
	if err := tablemeta.Check(nil, requirements); err != nil {
		return fromMetadata(err)
	}
	var updates []tablemeta.Update
	if err := parse("updates", op.Request.Updates, &updates); err != nil {
		return err
	}
	id := tx.NewID()
	m, _, err := tablemeta.Commit(tablemeta.Change{Updates: updates, UUID: id, Now: tx.Now()})
	if err != nil {
		return fromMetadata(err)
	}
	_, canonical, err := checkLocation(w.Value, "table location", m.Location())
	if err != nil {
		return err
	}
	file, err := bind(ctx, tx, w.Value, n, op.Request.Table, id, m, canonical)
	if err != nil {
		return err
	}
	op.Result = TableState{file, m.JSON(), etag(file, SnapshotsAll)}
	return nil
}

// move stages the change of a table's location: the client chose the new one. It
// returns the claim that the table then has.
func move(ctx context.Context, tx *kernel.Tx, w Warehouse, p found[pointerRecord], location string) (string, error) {
	_, canonical, err := checkLocation(w, "table location", location)
	if err != nil {
		return "", err
	}
	if w.OverlapAllowed || canonical == p.Value.Claim {
		return p.Value.Claim, nil
	}
	if err := claim(ctx, tx, w, canonical, p.ID, p.Value.Claim); err != nil {
		return "", err
	}
	if p.Value.Claim != "" {
		if err := release(ctx, tx, p.Value.Claim, p.ID); err != nil {
			return "", err
		}
	}
	return canonical, nil
}

// parse decodes a part of the request that was not read before the table was found.
func parse(what string, data []byte, v any) error {
	err := rawjson.Unmarshal(data, v)
	var (
		at    *rawjson.Error
		inner *tablemeta.InvalidError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &inner) && errors.As(err, &at):
		return refuse(ErrInvalid, "Malformed request: %s%s: %s", what, at.Pointer, inner.Message)
	}
	return refuse(ErrInvalid, "Malformed request: %s: %v", what, err)
}
