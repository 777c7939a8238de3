package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// SchemaVersion is the version of the records that this program writes.
const SchemaVersion = 1

// MainWarehouse is the warehouse of routes without a prefix. It is made once,
// with the catalog itself, and does not return after it was deleted.
const MainWarehouse = "main"

// Bootstrap makes the catalog's own record, the guard of the location index and
// the main warehouse, in one batch, unless the catalog is there already. A catalog
// of a newer schema is refused.
type Bootstrap struct {
	Request BootstrapRequest `json:"request"`
	Result  BootstrapResult  `json:"result"`
}

// BootstrapRequest is the main warehouse to make.
type BootstrapRequest struct {
	MainID string    `json:"main-id"` // fresh; the root bears its mark already
	Root   blob.Root `json:"root"`
}

// BootstrapResult tells what there was.
type BootstrapResult struct {
	Created bool `json:"created"`
}

// Plan implements kernel.Operation.
func (op *Bootstrap) Plan() kernel.Plan {
	return kernel.Plan{Op: "bootstrap", Locks: lock.NewSet(lock.W(key.ForWarehouse(MainWarehouse)))}
}

// Decide implements kernel.Operation.
func (op *Bootstrap) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = BootstrapResult{}
	there, err := read[schemaRecord](ctx, tx, (*kernel.Tx).Get, key.ForCatalog())
	if err != nil {
		return err
	}
	if there.Exists() {
		if there.Value.Version > SchemaVersion {
			return refuse(ErrInvalid, "The catalog has schema version %d; this program knows versions up to %d: run a newer landfast",
				there.Value.Version, SchemaVersion)
		}
		return nil
	}
	now := tx.Now().UnixMilli()
	tx.Create(key.ForCatalog(), tx.NewID(), encode(schemaRecord{Version: SchemaVersion, CreatedAtMillis: now}))
	tx.Create(key.LocationGuard(), guardID, encode(struct{}{}))
	tx.Create(key.ForWarehouse(MainWarehouse), op.Request.MainID, encode(Warehouse{
		ID: op.Request.MainID, Name: MainWarehouse, Root: op.Request.Root, CreatedAtMillis: now,
	}))
	op.Result.Created = true
	return nil
}
