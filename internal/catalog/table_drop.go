package catalog

import (
	"context"
	"errors"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// DropTable unbinds a table's name and forgets the table. With Purge the batch
// also names the table's metadata files as dying; who ran the operation then
// deletes them (see Reclaim).
type DropTable struct {
	Request DropTableRequest `json:"request"`
	Result  DropTableResult  `json:"result"`
}

// DropTableRequest names the table.
type DropTableRequest struct {
	Warehouse string `json:"warehouse"`
	Table     Ident  `json:"table"`
	Purge     bool   `json:"purge,omitempty"`
}

// DropTableResult tells what is left to do.
type DropTableResult struct {
	DyingID string `json:"dying-id,omitempty"` // of the list of dying files; empty: none
}

// dyingRecord is the value of a list of dying files. While it is there, nobody can
// come to lie where they lie.
type dyingRecord struct {
	Files []string `json:"files"`
	Claim string   `json:"claim,omitempty"` // of the table that was dropped; ends with the list
}

// Plan implements kernel.Operation.
func (op *DropTable) Plan() kernel.Plan {
	return kernel.Plan{
		Op:    "drop-table",
		Locks: tableLocks(op.Request.Warehouse, op.Request.Table),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Table.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *DropTable) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = DropTableResult{}
	req := &op.Request
	w, err := readWarehouse(ctx, tx.Peek, req.Warehouse)
	if err != nil {
		return err
	}
	p, err := readTable(ctx, tx, w, req.Table)
	if err != nil {
		return err
	}
	if err := unbind(ctx, tx, w.Value, p); err != nil {
		return err
	}
	tx.Delete(p.Key)
	if !req.Purge {
		if p.Value.Claim == "" {
			return nil
		}
		return release(ctx, tx, p.Value.Claim, p.ID)
	}
	files, err := ownMetadataFiles(ctx, tx, w.Value, p.Value)
	if err != nil {
		return err
	}
	tx.RequireLive(w.Key, w.ID)
	tx.Create(key.ForDying(w.Value.Name, p.ID), p.ID, encode(dyingRecord{Files: files, Claim: p.Value.Claim}))
	op.Result.DyingID = p.ID
	return nil
}

// unbind stages the deletion of the name that a pointer bears.
func unbind(ctx context.Context, tx *kernel.Tx, w Warehouse, p found[pointerRecord]) error {
	name, err := tx.Get(ctx, key.ForTableName(w.Name, p.Value.Ident.Namespace, p.Value.Ident.Name))
	if err != nil {
		return err
	}
	if name.ID != p.ID {
		return kernel.ErrAgain
	}
	tx.Delete(name.Key)
	return nil
}

// ownMetadataFiles are the metadata files that a purge may delete: those
// reachable from the table's current metadata that lie below its own location. No
// other table's pointer names one of them: below a location that is not theirs,
// nobody creates, moves or registers. Where locations may overlap that cannot be
// told, so there are none.
func ownMetadataFiles(ctx context.Context, tx *kernel.Tx, w Warehouse, p pointerRecord) ([]string, error) {
	if w.OverlapAllowed {
		return nil, nil
	}
	own, err := w.Scope().Canonical(p.Location)
	if err != nil {
		return nil, nil // not ours to open
	}
	reachable := []string{p.MetadataLocation}
	m, err := tableMetadata(ctx, tx, w, p.Ident, p.MetadataLocation)
	switch {
	case errors.Is(err, ErrMissingFile), errors.Is(err, ErrDamaged):
		// What it named can no longer be told. The table can still be dropped.
	case err != nil:
		return nil, err
	default:
		for _, e := range m.MetadataLog() {
			reachable = append(reachable, e.File)
		}
	}
	var files []string
	for _, f := range reachable {
		if c, err := w.Scope().Canonical(f); err == nil && blob.Within(c, own) {
			files = append(files, f)
		}
	}
	return files, nil
}
