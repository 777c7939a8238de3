package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/tablemeta"
)

// A file is deleted only after a durable batch has named it as dying, in one of
// two ways. The drop that purges a table leaves a list with the table's metadata
// file, and all that is reachable from it in the table's places; until the list ends,
// the table's locations are taken. Single metadata files, of a table that lives or of a decision
// that lost, are marked each by itself, and whoever would make a pointer name a
// marked file is refused. Package reclaim deletes what the lists name.
//
// That a metadata file is no other pointer's follows from the location that stands
// in it: whoever names the file lies there, and keeps the place as long as it lives; no
// two pointers have one place. Where locations may overlap nothing is ever given up.

// dyingRecord is the value of a list of dying files.
type dyingRecord struct {
	Metadata string   `json:"metadata,omitempty"`
	Places   []string `json:"places,omitempty"`
	Claims   []string `json:"claims,omitempty"` // of the table that was dropped; they end with the list
	// Registered is that of the table that was dropped.
	Registered bool     `json:"registered,omitempty"`
	Files      []string `json:"files,omitempty"`
	Marks      []string `json:"marks,omitempty"` // Files, normalised: each bears a mark, which ends with the list
	AtMillis   int64    `json:"at-ms"`
	Grace      bool     `json:"grace,omitempty"`
}

// Dying is a list of files that a durable batch has given up.
type Dying struct {
	ID string `json:"id"`
	// Metadata is the metadata file of a purged table. What is reachable from it goes,
	// and last the file itself. Empty: only Files go.
	Metadata string `json:"metadata,omitempty"`
	// Places are normalised locations: what is reachable goes only if it lies there.
	Places []string `json:"places,omitempty"`
	// Registered says that older metadata files may be named by another table: one of
	// them goes only if the location that stands in it is in Places.
	Registered bool `json:"registered,omitempty"`
	// Files are metadata files that go as they are.
	Files    []string `json:"files,omitempty"`
	AtMillis int64    `json:"at-ms"` // when they were given up
	// Grace says that a client may still be reading: they are deleted only some time after AtMillis.
	Grace bool `json:"grace,omitempty"`
}

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
	w, err := readWarehouse(ctx, tx.Peek, op.Request.Warehouse)
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
		d, err := read[dyingRecord](ctx, tx.Get, key.ForDying(w.Value.Name, op.Request.ID))
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

// EndDying forgets lists of dying files: all of them are gone. It writes the guard of
// the location index, so that who is about to register one of them learns of it.
type EndDying struct {
	Request EndDyingRequest `json:"request"`
	Result  struct{}        `json:"result"`
}

// EndDyingRequest names the lists. One that has ended is no error.
type EndDyingRequest struct {
	Warehouse string   `json:"warehouse"`
	IDs       []string `json:"ids"`
}

// Plan implements kernel.Operation.
func (op *EndDying) Plan() kernel.Plan {
	return kernel.Plan{Op: "end-dying", Locks: lock.NewSet(lock.W(key.LocationGuard()))}
}

// Decide implements kernel.Operation.
func (op *EndDying) Decide(ctx context.Context, tx *kernel.Tx) error {
	for _, id := range op.Request.IDs {
		d, err := read[dyingRecord](ctx, tx.Peek, key.ForDying(op.Request.Warehouse, id))
		if err != nil {
			return err
		}
		if !d.Exists() {
			continue
		}
		if err := tx.Keep(d.Record); err != nil {
			return err
		}
		tx.Delete(d.Key)
		for _, canonical := range d.Value.Marks {
			// A mark ends only with its list, whose record is a condition: it is there.
			mark, err := tx.Peek(ctx, key.ForDyingFile(canonical))
			if err != nil {
				return err
			}
			if mark.ID != d.ID {
				return kernel.ErrAgain
			}
			if err := tx.Keep(mark); err != nil {
				return err
			}
			tx.Delete(mark.Key)
		}
		if err := openIndex(ctx, tx); err != nil {
			return err
		}
		if err := release(ctx, tx, d.Value.Claims, d.ID); err != nil {
			return err
		}
	}
	return nil
}

// FindTables reads a page of the pointers of a warehouse, of tables and views, in
// no order that means anything.
type FindTables struct {
	Request FindTablesRequest `json:"request"`
	Result  FindTablesResult  `json:"result"`
}

// FindTablesRequest names the warehouse.
type FindTablesRequest struct {
	Warehouse string `json:"warehouse"`
	Page      Page   `json:"page,omitzero"`
}

// FindTablesResult is the pointers.
type FindTablesResult struct {
	Tables    []TablePointer `json:"tables,omitempty"`
	NextToken string         `json:"next-token,omitempty"` // empty: there are no more
	Scope     blob.Scope     `json:"scope,omitempty"`
}

// TablePointer is what the catalog knows of a table or a view.
type TablePointer struct {
	ID               string `json:"id"`
	Kind             Kind   `json:"kind"`
	Ident            Ident  `json:"ident"`
	MetadataLocation string `json:"metadata-location"`
	// Places are normalised locations that are its alone.
	Places []string `json:"places,omitempty"`
	// Registered says that its metadata was registered, perhaps more than once.
	Registered bool `json:"registered,omitempty"`
}

// Plan implements kernel.Operation.
func (op *FindTables) Plan() kernel.Plan { return kernel.Plan{Op: "find-tables"} }

// Decide implements kernel.Operation.
func (op *FindTables) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = FindTablesResult{}
	w, err := readWarehouse(ctx, tx.Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	op.Result.Scope = w.Value.Scope()
	records, next, err := listPage(ctx, tx, key.PointersIn(w.Value.Name), op.Request.Page)
	if err != nil {
		return err
	}
	for _, r := range records {
		p, err := decode[pointerRecord](r)
		if err != nil {
			return err
		}
		op.Result.Tables = append(op.Result.Tables, TablePointer{
			ID: r.ID, Kind: p.Kind, Ident: p.Ident, MetadataLocation: p.MetadataLocation, Places: p.places(w.Value), Registered: p.Registered,
		})
	}
	op.Result.NextToken = next
	return nil
}

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
	w, err := readWarehouse(ctx, tx.Peek, op.Request.Warehouse)
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
	if m, err := readMetadata(ctx, tx, w, location, tablemeta.Parse); err == nil {
		return m, nil
	}
	v, err := readMetadata(ctx, tx, w, location, tablemeta.ParseView)
	if errors.Is(err, ErrMissingFile) || errors.Is(err, ErrDamaged) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return v, nil
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
	p, err := read[pointerRecord](ctx, tx.Peek, key.ForPointer(w.Value.Name, id))
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

// dyingFilesMax bounds the writes of a batch that marks files. A commit, or a transaction,
// that drops more from logs leaves the others where they are.
const dyingFilesMax = 1000

// deleteAfterCommit is the property that has metadata files deleted once they have
// left the metadata log.
const deleteAfterCommit = "write.metadata.delete-after-commit.enabled"

// giveUpDropped names as dying the metadata files that a commit drops from the
// table's log, if the table asks for it and they are nobody else's.
func giveUpDropped(ctx context.Context, tx *kernel.Tx, w found[Warehouse], p pointerRecord, base, next *tablemeta.Metadata) error {
	if wanted, _ := next.Property(deleteAfterCommit); !strings.EqualFold(wanted, "true") || w.Value.OverlapAllowed {
		return nil
	}
	kept := map[string]bool{}
	for _, e := range next.MetadataLog() {
		kept[e.File] = true
	}
	var files []string
	for _, e := range base.MetadataLog() {
		if kept[e.File] || len(tx.Writes())+len(files) >= dyingFilesMax {
			continue
		}
		own, err := isOwn(ctx, tx, w.Value, p, e.File)
		if err != nil {
			return err
		}
		if own {
			files = append(files, e.File)
		}
	}
	_, _, err := nameDying(ctx, tx, w, files)
	return err
}

// isOwn tells whether a file in a table's metadata log is the table's alone. Of a
// table that was made here all are; of one that was registered those that name one of
// its places as their location.
func isOwn(ctx context.Context, tx *kernel.Tx, w Warehouse, p pointerRecord, file string) (bool, error) {
	if _, err := w.Scope().Canonical(file); err != nil || !p.Registered {
		return err == nil, nil
	}
	d, err := readEither(ctx, tx, w, file)
	if err != nil || d == nil {
		return false, err
	}
	place, err := w.Scope().Canonical(d.Location())
	return err == nil && p.owns(w, place), nil
}

// nameDying stages a list of dying files and the mark of each. A file that is
// dying already is left to the list that names it.
func nameDying(ctx context.Context, tx *kernel.Tx, w found[Warehouse], files []string) (id string, named []string, err error) {
	d := dyingRecord{AtMillis: tx.Now().UnixMilli(), Grace: true}
	for _, f := range files {
		canonical, err := w.Value.Scope().Canonical(f)
		if err != nil {
			return "", nil, err
		}
		mark, err := tx.Peek(ctx, key.ForDyingFile(canonical))
		if err != nil {
			return "", nil, err
		}
		if !mark.Exists() && !slices.Contains(d.Marks, canonical) {
			d.Files, d.Marks = append(d.Files, f), append(d.Marks, canonical)
		}
	}
	if len(d.Files) == 0 {
		return "", nil, nil
	}
	id = tx.NewID()
	for _, canonical := range d.Marks {
		tx.Create(key.ForDyingFile(canonical), id, encode(struct{}{}))
	}
	// Who registers a file has the condition that nothing marks it, and writes the guard.
	tx.RequireLive(key.LocationGuard(), guardID)
	tx.RequireLive(w.Key, w.ID)
	tx.Create(key.ForDying(w.Value.Name, id), id, encode(d))
	return id, d.Files, nil
}

// refuseDying refuses a file that is marked as dying, and adds the condition that it
// is not. The index must be open.
func refuseDying(ctx context.Context, tx *kernel.Tx, canonical, location string) error {
	mark, err := tx.RequireEmpty(ctx, key.LocationGuard(), key.DyingFile(canonical))
	if err == nil && mark.Exists() {
		return refuse(ErrMissingFile, "Failed to open input stream for file: %s (it has been given up, and is being deleted)", location)
	}
	return err
}
