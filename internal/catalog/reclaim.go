package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// FindDying reads a list of dying files, or finds the lists that are left.
type FindDying struct {
	Request FindDyingRequest `json:"request"`
	Result  FindDyingResult  `json:"result"`
}

// FindDyingRequest names a list; without an id, it asks for a page of those there are.
type FindDyingRequest struct {
	Warehouse string `json:"warehouse"`
	ID        string `json:"id,omitempty"`
	Page      Page   `json:"page,omitzero"`
}

// FindDyingResult is the list, or the ids of lists.
type FindDyingResult struct {
	IDs       []string   `json:"ids,omitempty"`
	NextToken string     `json:"next-token,omitempty"` // empty: there are no more
	Files     []string   `json:"files,omitempty"`
	Scope     blob.Scope `json:"scope,omitempty"`
}

// Plan implements kernel.Operation.
func (op *FindDying) Plan() kernel.Plan { return kernel.Plan{Op: "find-dying"} }

// Decide implements kernel.Operation.
func (op *FindDying) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = FindDyingResult{}
	w, err := readWarehouse(ctx, tx.Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	op.Result.Scope = w.Value.Scope()
	if op.Request.ID != "" {
		d, err := read[dyingRecord](ctx, tx.Get, key.ForDying(w.Value.Name, op.Request.ID))
		op.Result.Files = d.Value.Files
		return err
	}
	records, next, err := listPage(ctx, tx, key.DyingIn(w.Value.Name), op.Request.Page)
	for _, r := range records {
		op.Result.IDs = append(op.Result.IDs, r.Key.Name())
	}
	op.Result.NextToken = next
	return err
}

// EndDying forgets a list of dying files: all of them are gone. It writes the
// guard of the location index, so that who registers a file learns of it.
type EndDying struct {
	Request EndDyingRequest `json:"request"`
	Result  struct{}        `json:"result"`
}

// EndDyingRequest names the list.
type EndDyingRequest struct {
	Warehouse string `json:"warehouse"`
	ID        string `json:"id"`
}

// Plan implements kernel.Operation.
func (op *EndDying) Plan() kernel.Plan {
	return kernel.Plan{Op: "end-dying", Locks: lock.NewSet(lock.W(key.LocationGuard()))}
}

// Decide implements kernel.Operation.
func (op *EndDying) Decide(ctx context.Context, tx *kernel.Tx) error {
	d, err := read[dyingRecord](ctx, tx.Get, key.ForDying(op.Request.Warehouse, op.Request.ID))
	if err != nil || !d.Exists() {
		return err
	}
	tx.Delete(d.Key)
	if err := openIndex(ctx, tx); err != nil {
		return err
	}
	if d.Value.Claim == "" {
		return nil
	}
	return release(ctx, tx, d.Value.Claim, d.ID)
}

// Deleter deletes a file; one that is gone is no error.
type Deleter interface {
	Delete(ctx context.Context, scope blob.Scope, location string) error
}

// Reclaim deletes the files of one list of dying files and forgets the list. It
// may be repeated, and run by several at once. It goes on past a file that cannot
// be deleted now; the first such error is returned, and the list stays for the next
// attempt. What is no file of ours (a directory, a link that leads elsewhere) is left.
func Reclaim(ctx context.Context, run kernel.Runner, files Deleter, warehouse, id string) error {
	fail := func(err error) error { return fmt.Errorf("reclaim %s in %s: %w", id, warehouse, err) }
	find := &FindDying{Request: FindDyingRequest{Warehouse: warehouse, ID: id}}
	if err := run.Do(ctx, find); err != nil {
		return fail(err)
	}
	var first error
	for _, f := range find.Result.Files {
		var notOurs *blob.LocationError
		err := files.Delete(ctx, find.Result.Scope, f)
		if err != nil && !errors.As(err, &notOurs) && !errors.Is(err, blob.ErrNotRegular) && first == nil {
			first = err
		}
	}
	if first != nil {
		return fail(first)
	}
	if err := run.Do(ctx, &EndDying{Request: EndDyingRequest{Warehouse: warehouse, ID: id}}); err != nil {
		return fail(err)
	}
	return nil
}

// reclaimPage is how many lists ReclaimAll reads at a time: a list may be long.
const reclaimPage = 10

// ReclaimAll reclaims what is left in a warehouse, as after a restart. It goes on
// past a list that fails, and returns the first error.
func ReclaimAll(ctx context.Context, run kernel.Runner, files Deleter, warehouse string) error {
	var first error
	page := Page{Size: reclaimPage}
	for {
		find := &FindDying{Request: FindDyingRequest{Warehouse: warehouse, Page: page}}
		if err := run.Do(ctx, find); err != nil {
			return err
		}
		for _, id := range find.Result.IDs {
			if err := Reclaim(ctx, run, files, warehouse, id); err != nil && first == nil {
				first = err
			}
		}
		if page.Token = find.Result.NextToken; page.Token == "" {
			return first
		}
	}
}
