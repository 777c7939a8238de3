package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/tablemeta"
)

// ReplaceView checks requirements against a view and applies updates to it.
type ReplaceView struct {
	Request ReplaceViewRequest `json:"request"`
	Result  ViewState          `json:"result"`
}

// ReplaceViewRequest is the change. Requirements and Updates are JSON arrays, read
// only once the view was found; Requirements may be empty.
type ReplaceViewRequest struct {
	Warehouse    string `json:"warehouse"`
	View         Ident  `json:"view"`
	Requirements []byte `json:"requirements,omitempty"`
	Updates      []byte `json:"updates"`
}

// Plan implements kernel.Operation.
func (op *ReplaceView) Plan() kernel.Plan {
	return kernel.Plan{
		Op:      "replace-view",
		Locks:   tableLocks(op.Request.Warehouse, op.Request.View),
		Combine: key.ForTableName(op.Request.Warehouse, op.Request.View.Namespace, op.Request.View.Name),
		Route:   key.RouteOf(op.Request.Warehouse, op.Request.View.Namespace),
	}
}

// ShowLatest implements kernel.Latest.
func (op *ReplaceView) ShowLatest(last kernel.Operation) {
	if last, ok := unwrapped(last).(*ReplaceView); ok {
		op.Result = last.Result
	}
}

// Decide implements kernel.Operation.
func (op *ReplaceView) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = ViewState{}
	req := &op.Request
	w, p, err := find(ctx, tx, req.Warehouse, KindView, req.View)
	if err != nil {
		return err
	}
	var requirements []tablemeta.Requirement
	if len(req.Requirements) > 0 {
		if err := parse("requirements", req.Requirements, &requirements); err != nil {
			return err
		}
	}
	var updates []tablemeta.ViewUpdate
	if err := parse("updates", req.Updates, &updates); err != nil {
		return err
	}
	base, err := viewMetadata(ctx, tx, w.Value, req.View, fileOf(p))
	if err != nil {
		return err
	}
	if err := tablemeta.CheckView(base, requirements); err != nil {
		return fromMetadata(err)
	}
	v, changed, err := tablemeta.CommitView(tablemeta.ViewChange{Base: base, Updates: updates, Now: tx.Now()})
	if err != nil {
		return fromMetadata(err)
	}
	if !changed {
		op.Result = viewState(p.Value.MetadataLocation, base)
		return nil
	}
	next := p.Value
	if v.Location() != next.Location {
		if err := move(ctx, tx, w.Value, p, &next, v.Location()); err != nil {
			return err
		}
	}
	file, err := writeView(tx, w.Value, v, fileOf(p))
	if err != nil {
		return err
	}
	next.MetadataLocation = file.location
	put(tx, p.Key, p.ID, next)
	op.Result = viewState(next.MetadataLocation, v)
	return nil
}
