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

// tableMetadata reads the metadata of a table that is to change, and says what to do where that cannot be.
func tableMetadata(ctx context.Context, tx *kernel.Tx, w Warehouse, t Ident, location string) (*tablemeta.Metadata, error) {
	if err := checkMounted(ctx, tx, w); err != nil {
		return nil, err
	}
	return loadMetadata(ctx, tx, w, KindTable, t, location, tablemeta.Parse)
}

// viewMetadata is tableMetadata of a view.
func viewMetadata(ctx context.Context, tx *kernel.Tx, w Warehouse, v Ident, location string) (*tablemeta.View, error) {
	if err := checkMounted(ctx, tx, w); err != nil {
		return nil, err
	}
	return loadMetadata(ctx, tx, w, KindView, v, location, tablemeta.ParseView)
}

// loadMetadata gives the metadata that a pointer names: as it is remembered, for a file
// never changes, or read. It then need not be there any more, nor its volume be mounted.
func loadMetadata[D document](ctx context.Context, tx *kernel.Tx, w Warehouse, kind Kind, t Ident, location string, parse func([]byte) (D, error)) (D, error) {
	d, err := kernel.Memo(tx, memoOfFile(w, location), func() (document, int, error) {
		d, err := readMetadata(ctx, tx, w, location, parse)
		if err != nil {
			return nil, 0, err
		}
		return d, d.Size(), nil
	})
	m, ok := d.(D)
	if err == nil && !ok { // one file can be the metadata of a table and of a view
		m, err = readMetadata(ctx, tx, w, location, parse)
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

// memoOfFile is the id of a metadata file. A location means what it does in one warehouse:
// two may have buckets of the same name in different places.
func memoOfFile(w Warehouse, location string) kernel.MemoID {
	id := kernel.MemoOfFile(location)
	id.Version = store.Version(w.ID)
	return id
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

// writeTable stages the next metadata file of a table and returns its location.
func writeTable(tx *kernel.Tx, w Warehouse, m *tablemeta.Metadata, previous string) (string, error) {
	data, err := tablemeta.Encode(m)
	if err != nil {
		return "", fromMetadata(err)
	}
	location, err := writeFile(tx, w, tablemeta.FileName(m, previous, tx.NewID()), data, m)
	if err == nil {
		tx.Remember(memoOfFile(w, location), m, m.Size()) // for the next commit, which may be in the same batch
		tx.Forget(memoOfFile(w, previous))
	}
	return location, err
}

// writeView stages the next metadata file of a view and returns its location.
func writeView(tx *kernel.Tx, w Warehouse, v *tablemeta.View, previous string) (string, error) {
	data, err := tablemeta.EncodeView(v)
	if err != nil {
		return "", fromMetadata(err)
	}
	location, err := writeFile(tx, w, tablemeta.ViewFileName(v, previous, tx.NewID()), data, v)
	if err == nil {
		tx.Remember(memoOfFile(w, location), v, v.Size())
		tx.Forget(memoOfFile(w, previous))
	}
	return location, err
}

func writeFile(tx *kernel.Tx, w Warehouse, location string, data []byte, d document) (string, error) {
	if _, err := w.Scope().Canonical(location); err != nil {
		return "", fromLocation("place for metadata files", err)
	}
	if len(d.JSON()) > metadataBytesMax {
		return "", refuse(ErrInvalid, "The metadata would have %d bytes; at most %d are allowed: expire snapshots first", len(d.JSON()), metadataBytesMax)
	}
	tx.File(kernel.File{Warehouse: w.Name, Scope: w.Scope(), Location: location, Data: data})
	return location, nil
}
