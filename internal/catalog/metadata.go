package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/tablemeta"
)

// metadataBytesMax bounds a metadata file, decompressed.
const metadataBytesMax = 256 << 20

// checkMounted refuses to touch the files of a warehouse whose root is not the
// one that was marked for it: most often a volume that is not mounted.
func checkMounted(ctx context.Context, tx *kernel.Tx, w Warehouse) error {
	if err := tx.CheckMark(ctx, w.Root, w.ID); err != nil {
		return refuse(ErrWarehouseUnavailable, "Warehouse %s is not available: %v", w.Name, err)
	}
	return nil
}

// readMetadata reads and parses the metadata file of a table.
func readMetadata(ctx context.Context, tx *kernel.Tx, w Warehouse, t Ident, location string) (*tablemeta.Metadata, error) {
	damaged := func(err error) error {
		return refuse(ErrDamaged, "The metadata file %s of table %s cannot be used: %v; restore the file from a copy, or drop the table and register an older metadata file",
			location, t, err)
	}
	data, err := tx.ReadFile(ctx, w.Scope(), location, metadataBytesMax)
	if err != nil {
		if err := checkMounted(ctx, tx, w); err != nil {
			return nil, err // a file that is not there says nothing where no file is
		}
	}
	var bad *blob.LocationError
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, refuse(ErrMissingFile, "Failed to open input stream for file: %s", location)
	case errors.Is(err, blob.ErrTooLarge), errors.Is(err, blob.ErrNotRegular), errors.Is(err, blob.ErrOutside), errors.As(err, &bad):
		return nil, damaged(err)
	case err != nil:
		return nil, fmt.Errorf("read the metadata of table %s: %w", t, err)
	}
	json, err := tablemeta.Decode(data, metadataBytesMax)
	if err != nil {
		return nil, damaged(err)
	}
	m, err := tablemeta.Parse(json)
	if err != nil {
		return nil, damaged(err)
	}
	return m, nil
}

// writeMetadata stages the next metadata file of a table and returns its location.
func writeMetadata(tx *kernel.Tx, w Warehouse, m *tablemeta.Metadata, previous string) (string, error) {
	location := tablemeta.FileName(m, previous, tx.NewID())
	if _, err := w.Scope().Canonical(location); err != nil {
		return "", fromLocation(err)
	}
	data, err := tablemeta.Encode(m)
	if err != nil {
		return "", fromMetadata(err)
	}
	if len(m.JSON()) > metadataBytesMax {
		return "", refuse(ErrInvalid, "The table's metadata would have %d bytes; at most %d are allowed: expire snapshots first", len(m.JSON()), metadataBytesMax)
	}
	tx.File(kernel.File{Scope: w.Scope(), Location: location, Data: data})
	return location, nil
}
