package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/tablemeta"
)

// CreateView makes a view.
type CreateView struct {
	Request CreateViewRequest `json:"request"`
	Result  ViewState         `json:"result"`
}

// CreateViewRequest is the view to make. Schema and Version are JSON.
type CreateViewRequest struct {
	Warehouse  string            `json:"warehouse"`
	View       Ident             `json:"view"`
	Location   string            `json:"location,omitempty"` // empty: the server chooses
	Schema     []byte            `json:"schema"`
	Version    []byte            `json:"version"`
	Properties map[string]string `json:"properties,omitempty"`
}

// Plan implements kernel.Operation.
func (op *CreateView) Plan() kernel.Plan {
	locks := tableLocks(op.Request.Warehouse, op.Request.View)
	if op.Request.Location != "" {
		locks = locks.With(lock.W(key.LocationGuard()))
	}
	return kernel.Plan{
		Op:    "create-view",
		Locks: locks,
		Route: key.RouteOf(op.Request.Warehouse, op.Request.View.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *CreateView) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = ViewState{}
	req := &op.Request
	newAhead(ctx, tx, req.Warehouse, req.View)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, req.Warehouse)
	if err != nil {
		return err
	}
	n, err := newName(ctx, tx, w, KindView, req.View)
	if err != nil {
		return err
	}
	if err := checkMounted(ctx, tx, w.Value); err != nil {
		return err
	}
	id := tx.NewID()
	location, canonical := serverLocation(n.Value.Area, req.View.Name, id), ""
	if req.Location != "" {
		if location, canonical, err = checkLocation(w.Value, "view location", req.Location); err != nil {
			return err
		}
	}
	v, err := tablemeta.CreateView(tablemeta.NewView{
		UUID: id, Location: location, Schema: req.Schema, Version: req.Version, Properties: req.Properties, Now: tx.Now(),
	})
	if err != nil {
		return fromMetadata(err)
	}
	file, err := writeView(tx, w.Value, v, metadataFile{binding: id})
	if err != nil {
		return err
	}
	op.Result = viewState(file.location, v)
	return bind(ctx, tx, w.Value, n, id, KindView, req.View, v, file.location, canonical, false)
}
