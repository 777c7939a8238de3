package catalog

import (
	"context"
	"errors"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/tablemeta"
)

// GiveUp names metadata files as dying that no pointer reaches: files of decisions
// that lost, and orphans. What a pointer reaches, what belongs to no table or view that
// lives, and what is dying already is passed over.
type GiveUp struct {
	Request GiveUpRequest `json:"request"`
	Result  GiveUpResult  `json:"result"`
}

// GiveUpRequest names the files: at most 100, of one table if the operation is to
// touch few records.
type GiveUpRequest struct {
	Warehouse string   `json:"warehouse"`
	Files     []string `json:"files"`
}

// GiveUpResult tells what was named.
type GiveUpResult struct {
	DyingID string   `json:"dying-id,omitempty"` // empty: nothing was
	Files   []string `json:"files,omitempty"`
}

// Plan implements kernel.Operation.
func (op *GiveUp) Plan() kernel.Plan {
	return kernel.Plan{Op: "give-up"}
}

// Decide implements kernel.Operation. It writes every pointer whose files it gives
// up: a commit which was decided before, and whose batch is still on its way with one
// of the files, then fails.
func (op *GiveUp) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = GiveUpResult{}
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil || w.Value.OverlapAllowed {
		return err
	}
	type candidate struct{ file, canonical, place, uuid string }
	var candidates []candidate
	for _, f := range op.Request.Files { // immutable, and slow to read: what may change is read last
		canonical, err := w.Value.Scope().Canonical(f)
		if err != nil {
			continue
		}
		d, err := readEither(ctx, tx, w.Value, f)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		if place, err := w.Value.Scope().Canonical(d.Location()); err == nil {
			candidates = append(candidates, candidate{f, canonical, place, d.UUID()})
		}
	}
	owners := map[string]*fileOwner{}
	var files []string
	for _, c := range candidates {
		at, err := ownerOf(ctx, tx, c.place, "")
		if err != nil {
			return err
		}
		if at.warehouse != w.Value.Name {
			continue
		}
		if owners[at.pointer] == nil {
			if owners[at.pointer], err = readFileOwner(ctx, tx, w, at.pointer); err != nil {
				return err
			}
		}
		if owner := owners[at.pointer]; owner.known && owner.uuid == c.uuid && !owner.reached[c.canonical] {
			files = append(files, c.file)
			if err := tx.Keep(owner.pointer); err != nil {
				return err
			}
			tx.Put(owner.pointer.Key, owner.pointer.ID, owner.pointer.Value)
		}
	}
	op.Result.DyingID, op.Result.Files, err = nameDying(ctx, tx, w, files)
	return err
}

// readEither reads a metadata file of a table or a view. Nil: it is gone, or neither.
func readEither(ctx context.Context, tx *kernel.Tx, w Warehouse, location string) (document, error) {
	m, err := readMetadata(ctx, tx, w, location, tablemeta.Parse)
	if err == nil {
		return m, nil
	}
	if !errors.Is(err, ErrDamaged) { // a file that cannot be read now may be either
		return nil, unlessMissing(err)
	}
	v, err := readMetadata(ctx, tx, w, location, tablemeta.ParseView)
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, ErrDamaged):
		return nil, nil
	}
	return nil, unlessMissing(err)
}

func unlessMissing(err error) error {
	if errors.Is(err, ErrMissingFile) {
		return nil
	}
	return err
}

// fileOwner is the pointer that a metadata file belongs to, and what it reaches.
type fileOwner struct {
	pointer store.Record
	known   bool            // it lives, and it can be told what it reaches
	uuid    string          // of its metadata
	reached map[string]bool // its metadata files, normalised
}

// readFileOwner reads a pointer and the metadata that it names.
func readFileOwner(ctx context.Context, tx *kernel.Tx, w found[Warehouse], id string) (*fileOwner, error) {
	o := &fileOwner{reached: map[string]bool{}}
	p, err := read[pointerRecord](ctx, tx, (*kernel.Tx).Peek, key.ForPointer(w.Value.Name, id))
	if err != nil || !p.Exists() {
		return o, err // it is being purged
	}
	o.pointer = p.Record
	current, err := readEither(ctx, tx, w.Value, p.Value.MetadataLocation)
	if err != nil || current == nil {
		return o, err
	}
	o.known, o.uuid = true, current.UUID()
	files := []string{p.Value.MetadataLocation}
	if m, ok := current.(*tablemeta.Metadata); ok {
		for _, e := range m.MetadataLog() {
			files = append(files, e.File)
		}
	}
	for _, f := range files {
		if c, err := w.Value.Scope().Canonical(f); err == nil {
			o.reached[c] = true
		}
	}
	return o, nil
}
