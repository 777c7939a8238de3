package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/tablemeta"
)

// RegisterView binds a name to a view's metadata file that exists, as it is.
type RegisterView struct {
	Request RegisterViewRequest `json:"request"`
	Result  ViewState           `json:"result"`
}

// RegisterViewRequest names the view and the file.
type RegisterViewRequest struct {
	Warehouse        string `json:"warehouse"`
	View             Ident  `json:"view"`
	MetadataLocation string `json:"metadata-location"`
}

// Plan implements kernel.Operation.
func (op *RegisterView) Plan() kernel.Plan {
	return kernel.Plan{
		Op:    "register-view",
		Locks: tableLocks(op.Request.Warehouse, op.Request.View).With(lock.W(key.LocationGuard())),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.View.Namespace),
	}
}

// Decide implements kernel.Operation.
func (op *RegisterView) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = ViewState{}
	req := &op.Request
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, req.Warehouse)
	if err != nil {
		return err
	}
	n, err := newName(ctx, tx, w, KindView, req.View)
	if err != nil {
		return err
	}
	id := tx.NewID()
	v, err := readForeign(ctx, tx, w.Value, KindView, req.View, req.MetadataLocation, id, tablemeta.ParseView)
	if err != nil {
		return err
	}
	op.Result = viewState(req.MetadataLocation, v)
	return bindForeign(ctx, tx, w.Value, n, id, KindView, req.View, v, req.MetadataLocation)
}
