package catalog

import (
	"context"
	"slices"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/tablemeta"
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
	file := fileOf(p)
	if err := stillThere(ctx, tx, w.Value, KindTable, req.Table, file.location, tablemeta.Parse); err != nil {
		return err
	}
	op.Result.TableState = TableState{MetadataLocation: file.location, ETag: etag(file, req.Snapshots), Root: w.Value.Root.Public()}
	if slices.Contains(req.Known, op.Result.ETag) || slices.Contains(req.Known, "*") {
		op.Result.NotModified = true
		return nil
	}
	op.Result.Metadata, err = representation(ctx, tx, w.Value, req.Table, file, op.Result.ETag, req.Snapshots)
	if err != nil {
		op.Result = LoadTableResult{}
	}
	return err
}

// representation is the document of a load: that of the metadata, or a part of it, which
// is remembered by its entity tag.
func representation(ctx context.Context, tx *kernel.Tx, w Warehouse, t Ident, file metadataFile, tag string, snapshots Snapshots) ([]byte, error) {
	load := func() (*tablemeta.Metadata, error) {
		return loadMetadata(ctx, tx, w, KindTable, t, file, tablemeta.Parse)
	}
	if snapshots == SnapshotsRefs {
		return kernel.Memo(tx, kernel.MemoID{Name: tag, Version: store.Version(file.binding)}, func() ([]byte, int, error) {
			m, err := load()
			if err != nil {
				return nil, 0, err
			}
			json := m.RefsOnlyJSON()
			return json, cap(json), nil
		})
	}
	m, err := load()
	if err != nil {
		return nil, err
	}
	return m.JSON(), nil
}
