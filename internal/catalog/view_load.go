package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/tablemeta"
)

// LoadView reads a view's metadata.
type LoadView struct {
	Request ViewRequest `json:"request"`
	Result  ViewState   `json:"result"`
}

// ViewState is the answer of every operation that returns a view.
type ViewState struct {
	MetadataLocation string `json:"metadata-location"`
	Metadata         []byte `json:"metadata"` // the JSON document
}

func viewState(file string, v *tablemeta.View) ViewState {
	return ViewState{MetadataLocation: file, Metadata: v.JSON()}
}

// Plan implements kernel.Operation.
func (op *LoadView) Plan() kernel.Plan {
	return kernel.Plan{Op: "load-view", Route: key.RouteOf(op.Request.Warehouse, op.Request.View.Namespace)}
}

// Decide implements kernel.Operation.
func (op *LoadView) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = ViewState{}
	w, p, err := find(ctx, tx, op.Request.Warehouse, KindView, op.Request.View)
	if err != nil {
		return err
	}
	if err := stillThere(ctx, tx, w.Value, KindView, op.Request.View, p.Value.MetadataLocation, tablemeta.ParseView); err != nil {
		return err
	}
	v, err := loadMetadata(ctx, tx, w.Value, KindView, op.Request.View, fileOf(p), tablemeta.ParseView)
	if err != nil {
		return err
	}
	op.Result = viewState(p.Value.MetadataLocation, v)
	return nil
}
