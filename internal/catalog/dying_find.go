package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// FindDying reads a list of dying files, or a page of the lists that there are.
type FindDying struct {
	Request FindDyingRequest `json:"request"`
	Result  FindDyingResult  `json:"result"`
}

// FindDyingRequest names a list; without an id, it asks for a page of all.
type FindDyingRequest struct {
	Warehouse string `json:"warehouse"`
	ID        string `json:"id,omitempty"`
	Page      Page   `json:"page,omitzero"`
}

// FindDyingResult is the lists. One that was asked for by its id and has ended is
// not there.
type FindDyingResult struct {
	Lists     []Dying    `json:"lists,omitempty"`
	NextToken string     `json:"next-token,omitempty"` // empty: there are no more
	Scope     blob.Scope `json:"scope,omitempty"`
}

// Plan implements kernel.Operation.
func (op *FindDying) Plan() kernel.Plan { return kernel.Plan{Op: "find-dying"} }

// Decide implements kernel.Operation.
func (op *FindDying) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = FindDyingResult{}
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	op.Result.Scope = w.Value.Scope()
	add := func(id string, d dyingRecord) {
		op.Result.Lists = append(op.Result.Lists, Dying{
			ID: id, Metadata: d.Metadata, Places: d.Places, Registered: d.Registered, Files: d.Files, AtMillis: d.AtMillis, Grace: d.Grace,
		})
	}
	if op.Request.ID != "" {
		d, err := read[dyingRecord](ctx, tx, (*kernel.Tx).Get, key.ForDying(w.Value.Name, op.Request.ID))
		if err == nil && d.Exists() {
			add(d.ID, d.Value)
		}
		return err
	}
	records, next, err := listPage(ctx, tx, key.DyingIn(w.Value.Name), op.Request.Page)
	for _, r := range records {
		d, err := decode[dyingRecord](r)
		if err != nil {
			return err
		}
		add(r.ID, d)
	}
	op.Result.NextToken = next
	return err
}
