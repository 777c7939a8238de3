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

// tableMetadata reads the metadata of a table, and says what to do where that cannot be.
func tableMetadata(ctx context.Context, tx *kernel.Tx, w Warehouse, t Ident, location string) (*tablemeta.Metadata, error) {
	m, err := readMetadata(ctx, tx, w, location)
	var refusal *Error
	if errors.As(err, &refusal) && (errors.Is(err, ErrMissingFile) || errors.Is(err, ErrDamaged)) {
		return nil, refuse(refusal.Kind, "%s; restore this file of table %s from a copy, or drop the table and register an older metadata file",
			refusal.Message, t)
	}
	return m, err
}

// readMetadata reads and parses a metadata file.
func readMetadata(ctx context.Context, tx *kernel.Tx, w Warehouse, location string) (*tablemeta.Metadata, error) {
	if err := checkMounted(ctx, tx, w); err != nil {
		return nil, err // a file that is not there says nothing where no file is
	}
	damaged := func(err error) error {
		return refuse(ErrDamaged, "The metadata file %s cannot be used: %v", location, err)
	}
	data, err := tx.ReadFile(ctx, w.Scope(), location, metadataBytesMax)
	var bad *blob.LocationError
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, refuse(ErrMissingFile, "Failed to open input stream for file: %s", location)
	case errors.Is(err, blob.ErrTooLarge):
		return nil, damaged(errTooLarge)
	case errors.Is(err, blob.ErrNotRegular), errors.Is(err, blob.ErrOutside), errors.As(err, &bad):
		return nil, damaged(err)
	case err != nil:
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	json, err := tablemeta.Decode(data, metadataBytesMax)
	if errors.Is(err, tablemeta.ErrTooLarge) {
		return nil, damaged(errTooLarge)
	}
	if err != nil {
		return nil, damaged(err)
	}
	m, err := tablemeta.Parse(json)
	if err != nil {
		return nil, damaged(err)
	}
	return m, nil
}

var errTooLarge = fmt.Errorf("it has more than %d MiB", metadataBytesMax>>20)

// writeMetadata stages the next metadata file of a table and returns its location.
func writeMetadata(tx *kernel.Tx, w Warehouse, m *tablemeta.Metadata, previous string) (string, error) {
	location := tablemeta.FileName(m, previous, tx.NewID())
	if _, err := w.Scope().Canonical(location); err != nil {
		return "", fromLocation("place for metadata files", err)
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
