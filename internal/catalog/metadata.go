package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/tablemeta"
)

// metadataBytesMax bounds a metadata file, decompressed.
const metadataBytesMax = 256 << 20

// checkMounted refuses to touch the files of a warehouse whose root is not the
// one that was marked for it: most often a volume that is not mounted. A root that
// cannot be asked just now is a fault, which passes, and no refusal.
func checkMounted(ctx context.Context, tx *kernel.Tx, w Warehouse) error {
	err := tx.CheckMark(ctx, w.Root, w.ID)
	if errors.Is(err, blob.ErrMarkMissing) {
		return refuse(ErrWarehouseUnavailable, "Warehouse %s is not available: %v", w.Name, err)
	}
	if err != nil {
		return fmt.Errorf("warehouse %s: %w", w.Name, err)
	}
	return nil
}

// document is the metadata of a table or of a view.
type document interface {
	JSON() []byte
	UUID() string
	Location() string
	// Verify reads what parsing has left unread: it is for files from elsewhere.
	Verify() error
	// Size is about how many bytes it takes in memory.
	Size() int
}

// metadataFile is a metadata file as a pointer names it.
//
// Some catalogs give a file the name of one that is gone: another is put in its place, and registered there. So what is
// remembered of a file, and its entity tag, go by its binding, too: the id of the pointer, or what a registration over a
// table that was there has drawn. Both are in the pointer's record, so that all instances agree, also after a
// restart. The record's version would not do: a rename changes it, which changes no metadata, and a commit cannot
// tell it, because it is the id of a batch that is made later, but answers with the tag of the load that follows.
type metadataFile struct {
	location string
	binding  string
}

// fileOf is the metadata file that a pointer names.
func fileOf(p found[pointerRecord]) metadataFile {
	if p.Value.Binding != "" {
		return metadataFile{p.Value.MetadataLocation, p.Value.Binding}
	}
	return metadataFile{p.Value.MetadataLocation, p.ID}
}

// memo is the id of what is remembered of it. Where two pointers name one file they take turns.
func (f metadataFile) memo() kernel.MemoID {
	id := kernel.MemoOfFile(f.location)
	id.Version = store.Version(f.binding)
	return id
}

// tableMetadata reads the metadata of a table that is to change, and says what to do where that cannot be.
func tableMetadata(ctx context.Context, tx *kernel.Tx, w Warehouse, t Ident, file metadataFile) (*tablemeta.Metadata, error) {
	if err := checkMounted(ctx, tx, w); err != nil {
		return nil, err
	}
	return loadMetadata(ctx, tx, w, KindTable, t, file, tablemeta.Parse)
}

// viewMetadata is tableMetadata of a view.
func viewMetadata(ctx context.Context, tx *kernel.Tx, w Warehouse, v Ident, file metadataFile) (*tablemeta.View, error) {
	if err := checkMounted(ctx, tx, w); err != nil {
		return nil, err
	}
	return loadMetadata(ctx, tx, w, KindView, v, file, tablemeta.ParseView)
}

// loadMetadata gives the metadata that a pointer names: as it is remembered, for a file
// never changes while it is bound, or read. It then need not be there any more, nor its volume be mounted.
func loadMetadata[D document](ctx context.Context, tx *kernel.Tx, w Warehouse, kind Kind, t Ident, file metadataFile, parse func([]byte) (D, error)) (D, error) {
	d, err := kernel.Memo(tx, file.memo(), func() (document, int, error) {
		d, err := readMetadata(ctx, tx, w, file.location, parse)
		if err != nil {
			return nil, 0, err
		}
		return d, d.Size(), nil
	})
	m, ok := d.(D)
	if err == nil && !ok { // one file can be the metadata of a table and of a view
		m, err = readMetadata(ctx, tx, w, file.location, parse)
	}
	return m, withRemedy(err, kind, t)
}

// stillThere says what is wrong with a metadata file that is not where the pointer says, although it may be
// remembered: clients are told so by the reference, too. It is asked where that costs next to nothing, on local disks.
func stillThere[D document](ctx context.Context, tx *kernel.Tx, w Warehouse, kind Kind, t Ident, location string, parse func([]byte) (D, error)) error {
	if !tx.FileGone(w.Scope(), location) {
		return nil
	}
	_, err := readMetadata(ctx, tx, w, location, parse)
	return withRemedy(err, kind, t)
}

// withRemedy says what to do about a metadata file that a pointer names and that is
// missing or damaged; other errors pass.
func withRemedy(err error, kind Kind, t Ident) error {
	var refusal *Error
	if errors.As(err, &refusal) && (errors.Is(err, ErrMissingFile) || errors.Is(err, ErrDamaged)) {
		return refuse(refusal.Kind, "%s; restore this file of %s %s from a copy, or drop the %s and register an older metadata file",
			refusal.Message, kind, t, kind)
	}
	return err
}

// readMetadata reads and parses a metadata file.
func readMetadata[D document](ctx context.Context, tx *kernel.Tx, w Warehouse, location string, parse func([]byte) (D, error)) (none D, err error) {
	if err := checkMounted(ctx, tx, w); err != nil {
		return none, err // a file that is not there says nothing where no file is
	}
	damaged := func(err error) error {
		return refuse(ErrDamaged, "The metadata file %s cannot be used: %v", location, err)
	}
	data, err := tx.ReadFile(ctx, w.Scope(), location, metadataBytesMax)
	var bad *blob.LocationError
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return none, refuse(ErrMissingFile, "Failed to open input stream for file: %s", location)
	case errors.Is(err, blob.ErrTooLarge):
		return none, damaged(errTooLarge)
	case errors.Is(err, blob.ErrNotRegular), errors.Is(err, blob.ErrOutside), errors.As(err, &bad):
		return none, damaged(err)
	case err != nil:
		return none, fmt.Errorf("read metadata: %w", err)
	}
	json, err := tablemeta.Decode(data, metadataBytesMax)
	if errors.Is(err, tablemeta.ErrTooLarge) {
		return none, damaged(errTooLarge)
	}
	if err != nil {
		return none, damaged(err)
	}
	m, err := parse(json)
	if err != nil {
		return none, damaged(err)
	}
	return m, nil
}

var errTooLarge = fmt.Errorf("it has more than %d MiB", metadataBytesMax>>20)

// writeTable stages the metadata file of a table that follows the previous one, whose location is empty where the
// table is made.
func writeTable(tx *kernel.Tx, w Warehouse, m *tablemeta.Metadata, previous metadataFile) (metadataFile, error) {
	data, err := tablemeta.Encode(m)
	if err != nil {
		return metadataFile{}, fromMetadata(err)
	}
	return writeFile(tx, w, previous, tablemeta.FileName(m, previous.location, tx.NewID()), data, m)
}

// writeView is writeTable for a view.
func writeView(tx *kernel.Tx, w Warehouse, v *tablemeta.View, previous metadataFile) (metadataFile, error) {
	data, err := tablemeta.EncodeView(v)
	if err != nil {
		return metadataFile{}, fromMetadata(err)
	}
	return writeFile(tx, w, previous, tablemeta.ViewFileName(v, previous.location, tx.NewID()), data, v)
}

func writeFile(tx *kernel.Tx, w Warehouse, previous metadataFile, location string, data []byte, d document) (metadataFile, error) {
	if _, err := w.Scope().Canonical(location); err != nil {
		return metadataFile{}, fromLocation("place for metadata files", err)
	}
	if len(d.JSON()) > metadataBytesMax {
		return metadataFile{}, refuse(ErrInvalid, "The metadata would have %d bytes; at most %d are allowed: expire snapshots first", len(d.JSON()), metadataBytesMax)
	}
	tx.File(kernel.File{Warehouse: w.Name, Scope: w.Scope(), Location: location, Data: data})
	next := metadataFile{location, previous.binding}
	tx.Remember(next.memo(), d, d.Size()) // for the next commit, which may be in the same batch
	tx.Forget(previous.memo())
	return next, nil
}
