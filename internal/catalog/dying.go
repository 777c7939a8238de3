package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
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
	if planted.Is(planted.DyingIsRegistered) {
		return nil
	}
	mark, err := tx.RequireEmpty(ctx, key.LocationGuard(), key.DyingFile(canonical))
	if err == nil && mark.Exists() {
		return refuse(ErrMissingFile, "Failed to open input stream for file: %s (it has been given up, and is being deleted)", location)
	}
	return err
}
