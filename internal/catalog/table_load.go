package catalog

import (
	"context"
	"slices"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// LoadTable reads a table's metadata.
type LoadTable struct {
	Request LoadTableRequest `json:"request"`
	Result  LoadTableResult  `json:"result"`
}

// LoadTableRequest names the table and the representation.
type LoadTableRequest struct {
	Warehouse string    `json:"warehouse"`
	Table     Ident     `json:"table"`
	Snapshots Snapshots `json:"snapshots,omitempty"`
	// Known are the entity tags that the client holds, without quotes; "*" matches any.
	Known []string `json:"known,omitempty"`
}

// LoadTableResult is the table.
type LoadTableResult struct {
	TableState
	NotModified bool `json:"not-modified,omitempty"` // the client knows it: Metadata is empty
}

// Plan implements kernel.Operation.
func (op *LoadTable) Plan() kernel.Plan {
	return kernel.Plan{Op: "load-table", Route: key.RouteOf(op.Request.Warehouse, op.Request.Table.Namespace)}
}

// Decide implements kernel.Operation.
func (op *LoadTable) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = LoadTableResult{}
	req := &op.Request
	w, p, err := find(ctx, tx, req.Warehouse, KindTable, req.Table)
	if err != nil {
		return err
	}
	tag := etag(p.Value.MetadataLocation, req.Snapshots)
	known := slices.Contains(req.Known, tag) || slices.Contains(req.Known, "*")
	if known {
		// What the client holds is of no use without the file: the load says what is wrong.
		there, err := tx.FileExists(ctx, w.Value.Scope(), p.Value.MetadataLocation)
		known = there && err == nil
	}
	if known {
		op.Result.TableState = TableState{MetadataLocation: p.Value.MetadataLocation, ETag: tag, Root: w.Value.Root.Public()}
		op.Result.NotModified = true
		return nil
	}
	m, err := tableMetadata(ctx, tx, w.Value, req.Table, p.Value.MetadataLocation)
	if err != nil {
		return err
	}
	op.Result.TableState = tableState(w.Value, p.Value.MetadataLocation, m, req.Snapshots)
	return nil
}
