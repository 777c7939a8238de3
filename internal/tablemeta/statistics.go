package tablemeta

import (
	"math"

	"github.com/landfast/landfast/internal/rawjson"
)

// This file holds what a table is told of its statistics files. They are removed
// as snapshots are: see removal.

// setStatistics replaces the statistics file of a snapshot, or its partition
// statistics file.
type setStatistics struct {
	snapshotID int64
	partition  bool
	value      []byte
}

func decodeSetStatistics(f *fields) change {
	// The snapshot-id beside it is an older spelling; the one inside counts.
	c := setStatistics{value: f.kept("statistics")}
	if f.err != nil {
		return nil
	}
	file := fields{what: f.what, object: c.value}
	c.snapshotID = file.statistics()
	f.err = file.err
	return c
}

// statistics reads a statistics file, and returns the id of its snapshot.
func (f *fields) statistics() (snapshotID int64) {
	snapshotID = f.int64("snapshot-id")
	f.string("statistics-path")
	f.int64("file-size-in-bytes")
	f.int64("file-footer-size-in-bytes")
	blobs, ok := f.required("blob-metadata")
	if ok && blobs[0] != '[' {
		f.fail("field %q must be an array, got %s", "blob-metadata", excerpt(blobs))
	}
	for element := range rawjson.Elements(blobs) {
		blob := fields{what: f.what + ": blob-metadata", object: element}
		blob.string("type")
		blob.int64("snapshot-id")
		blob.int64("sequence-number")
		blob.int64s("fields", math.MinInt32, math.MaxInt32)
		blob.notNull("properties")
		blob.optionalStringMap("properties")
		if blob.err != nil && f.err == nil {
			f.err = blob.err
		}
	}
	return snapshotID
}

func decodeSetPartitionStatistics(f *fields) change {
	c := setStatistics{value: f.kept("partition-statistics"), partition: true}
	if f.err != nil {
		return nil
	}
	file := fields{what: f.what, object: c.value}
	c.snapshotID = file.partitionStatistics()
	f.err = file.err
	return c
}

// partitionStatistics reads a partition statistics file, and returns the id of its
// snapshot.
func (f *fields) partitionStatistics() (snapshotID int64) {
	snapshotID = f.int64("snapshot-id")
	f.string("statistics-path")
	f.int64("file-size-in-bytes")
	return snapshotID
}

func (b *builder) statisticsList(partition bool) *list[int64] {
	if partition {
		return &b.partitionStatistics
	}
	return &b.statistics
}

func (c setStatistics) apply(b *builder) error {
	files := b.statisticsList(c.partition)
	// Other writers may have left more than one.
	found := false
	files.remove(func(id *int64) bool {
		again := found && *id == c.snapshotID
		found = found || *id == c.snapshotID
		return again
	})
	if found {
		files.replace(files.index(func(id *int64) bool { return *id == c.snapshotID }), c.snapshotID, c.value)
	} else {
		files.add(c.snapshotID, c.value)
	}
	b.changed = true
	return nil
}
