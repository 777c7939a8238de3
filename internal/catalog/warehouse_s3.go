package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// SetWarehouseS3 changes how the buckets of a warehouse are reached, as when its keys
// were replaced. Where its files lie cannot be changed.
type SetWarehouseS3 struct {
	Request SetWarehouseS3Request `json:"request"`
	Result  Warehouse             `json:"result"`
}

// SetWarehouseS3Request names the warehouse and its options, all of them: zero means
// those of the server's configuration.
type SetWarehouseS3Request struct {
	Name string         `json:"name"`
	S3   blob.S3Options `json:"s3,omitzero"`
}

// Plan implements kernel.Operation.
func (op *SetWarehouseS3) Plan() kernel.Plan {
	k := key.ForWarehouse(op.Request.Name)
	return kernel.Plan{Op: "set-warehouse-s3", Locks: lock.NewSet(lock.W(k)), Route: key.RouteOf(op.Request.Name, nil)}
}

// Decide implements kernel.Operation.
func (op *SetWarehouseS3) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = Warehouse{}
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Get, op.Request.Name)
	if err != nil {
		return err
	}
	next, ok := w.Value.WithS3(op.Request.S3)
	if !ok {
		return refuse(ErrInvalid, "Warehouse %s has no location that begins with s3://", op.Request.Name)
	}
	tx.Put(w.Key, w.ID, encode(next))
	op.Result = next
	return nil
}

// WithS3 is the warehouse with other options for its roots on S3; false: it has none.
func (w Warehouse) WithS3(options blob.S3Options) (Warehouse, bool) {
	found := false
	set := func(r *blob.Root) {
		if strings.HasPrefix(r.URI, "s3://") {
			r.S3, found = options, true
		}
	}
	set(&w.Root)
	w.Allowed = slices.Clone(w.Allowed)
	for i := range w.Allowed {
		set(&w.Allowed[i])
	}
	return w, found
}
