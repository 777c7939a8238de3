package reclaim

import (
	"context"
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/tablemeta"
)

const (
	// metadataBytesMax bounds a metadata file, compressed and decompressed, as package catalog does.
	metadataBytesMax = 256 << 20
	// historyMax bounds the metadata files that are followed back. A table with more keeps the oldest.
	historyMax = 100_000
)

// errUnusable says that a file is there, or could be, and that trying again will not help to read it.
var errUnusable = errors.New("reclaim: unusable")

// read returns the bytes of a file. Errors: blob.ErrNotFound, errUnusable; every other is a fault of the store.
func (r *Reclaimer) read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	data, err := r.opt.Files.Read(ctx, scope, location, limit)
	if isForeign(err) || errors.Is(err, blob.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	return data, err
}

// readTable reads the metadata of a table. Errors are those of read.
func (r *Reclaimer) readTable(ctx context.Context, scope blob.Scope, location string) (*tablemeta.Metadata, error) {
	data, err := r.read(ctx, scope, location, metadataBytesMax)
	if err != nil {
		return nil, err
	}
	doc, err := tablemeta.Decode(data, metadataBytesMax)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUnusable, location, err)
	}
	m, err := tablemeta.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUnusable, location, err)
	}
	return m, nil
}

// history finds the former metadata files of a table, generation by generation: those
// in its metadata log, then those in the log of the oldest of them, and so on until one is
// missing or cannot be read. Errors are faults of the store.
func (r *Reclaimer) history(ctx context.Context, scope blob.Scope, location string, m *tablemeta.Metadata) (generations [][]string, err error) {
	known := map[string]bool{location: true}
	for len(known) < historyMax {
		log := m.MetadataLog()
		var files []string
		for _, e := range log {
			if !known[e.File] && len(e.File) <= locationMax {
				known[e.File] = true
				files = append(files, e.File)
			}
		}
		if len(files) == 0 {
			return generations, nil
		}
		generations = append(generations, files)
		m, err = r.readTable(ctx, scope, log[0].File)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, errUnusable) {
			return generations, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return generations, nil
}

// faultOnly is err if it is a fault of the store, and not a file that is missing or unusable.
func faultOnly(err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, errUnusable) {
		return nil
	}
	return err
}

// isForeign tells whether a store will never touch what has the location: it is outside of the
// warehouse's roots, or no regular file.
func isForeign(err error) bool {
	var refused *blob.LocationError
	return errors.As(err, &refused) || errors.Is(err, blob.ErrNotRegular)
}
