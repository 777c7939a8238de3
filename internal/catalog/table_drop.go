package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// DropTable unbinds a table's name and forgets the table. With Purge the batch
// also names the table's files as dying: package reclaim then deletes them.
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
	w, p, err := find(ctx, tx, op.Request.Warehouse, KindTable, op.Request.Table)
	if err != nil {
		return err
	}
	places := p.Value.places(w.Value)
	if !op.Request.Purge || len(places) == 0 {
		return forget(ctx, tx, w.Value, p)
	}
	if err := checkMounted(ctx, tx, w.Value); err != nil {
		return err // files that are not there would count as deleted
	}
	aside, err := metadataPlace(ctx, tx, w.Value, p)
	if err != nil {
		return err
	}
	if aside != "" {
		places = append(places, aside)
	}
	if err := unbind(ctx, tx, w.Value, p); err != nil {
		return err
	}
	tx.Delete(p.Key)
	tx.RequireLive(w.Key, w.ID)
	tx.Create(key.ForDying(w.Value.Name, p.ID), p.ID, encode(dyingRecord{
		Metadata: p.Value.MetadataLocation, Places: places,
		Claims: p.Value.claims(), Registered: p.Value.Registered, AtMillis: tx.Now().UnixMilli(),
	}))
	op.Result.DyingID = p.ID
	return nil
}

// forget stages the end of a pointer, its name and its claims. Its files stay.
func forget(ctx context.Context, tx *kernel.Tx, w Warehouse, p found[pointerRecord]) error {
	if err := unbind(ctx, tx, w, p); err != nil {
		return err
	}
	tx.Delete(p.Key)
	return release(ctx, tx, p.Value.claims(), p.ID)
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
