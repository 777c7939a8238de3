package tablemeta

import (
	"maps"
	"math"

	"github.com/landfast/landfast/internal/rawjson"
)

// This file holds the changes to a table's history: snapshots, the branches and
// tags that point at them, and the log of which was current when.

// snapshotTracking is what the changes of one commit remember of each other.
type snapshotTracking struct {
	// added is the timestamps, in ms, of the snapshots that this commit adds.
	added map[int64]int64
	// movedTo is the snapshots, added by this commit, that main was moved to.
	movedTo []int64
	// removed is true when a snapshot was removed.
	removed bool
	// known indexes the ids of snapshots; nil until it is needed.
	known map[int64]bool
}

func (b *builder) hasSnapshot(id int64) bool {
	if b.known == nil {
		b.known = make(map[int64]bool, b.snapshots.len())
		for i := range b.snapshots.entries {
			b.known[b.snapshots.entries[i].head.id] = true
		}
	}
	return b.known[id]
}

type addSnapshot struct {
	snapshot
	timestamp  int64 // ms
	parent     *int64
	firstRowID *int64
	addedRows  *int64
	listed     bool // has a manifest-list or manifests
	value      []byte
}

func decodeAddSnapshot(f *fields) change {
	value := f.kept("snapshot")
	if f.err != nil {
		return nil
	}
	s := fields{what: "snapshot", object: value}
	c := s.snapshot()
	switch {
	case s.err != nil:
	case c.id < 0:
		s.fail("%v", negativeSnapshotID(c.id))
	case c.timestamp < 0:
		// Readers subtract the times of log entries from each other.
		s.fail("Invalid timestamp-ms (cannot be negative): %d", c.timestamp)
	case c.sequence < 0:
		s.fail("Invalid sequence number (cannot be negative): %d", c.sequence)
	}
	if s.err != nil {
		f.err = s.err
	}
	return c
}

func negativeSnapshotID(id int64) *InvalidError {
	return invalid("Invalid snapshot id %d: must be between 0 and %d", id, int64(math.MaxInt64))
}

// snapshot reads a snapshot, and refuses what the reference implementation cannot
// read. Whether its numbers fit the table is not looked at.
func (f *fields) snapshot() addSnapshot {
	c := addSnapshot{
		snapshot:   snapshot{id: f.int64("snapshot-id")},
		timestamp:  f.int64("timestamp-ms"),
		parent:     f.optionalInt64("parent-snapshot-id"),
		firstRowID: f.optionalInt64("first-row-id"),
		addedRows:  f.optionalInt64("added-rows"),
		value:      f.object,
	}
	if sequence := f.optionalInt64("sequence-number"); sequence != nil {
		c.sequence = *sequence
	}
	f.optionalInt("schema-id")
	f.optionalString("key-id")
	f.optionalStringMap("summary")
	if _, c.listed = f.optionalString("manifest-list"); !c.listed {
		if _, c.listed = f.lookup("manifests"); c.listed {
			f.strings("manifests")
			// They are older than row ids, which no reader takes from beside them.
			c.firstRowID, c.addedRows = nil, nil
		}
	}
	switch {
	case c.firstRowID != nil && *c.firstRowID < 0:
		f.fail("Invalid first-row-id (cannot be negative): %d", *c.firstRowID)
	case c.addedRows != nil && *c.addedRows < 0:
		f.fail("Invalid added-rows (cannot be negative): %d", *c.addedRows)
	case c.firstRowID != nil && c.addedRows == nil:
		f.fail("Invalid added-rows (required when first-row-id is set): null")
	}
	return c
}

func (c addSnapshot) apply(b *builder) error {
	switch {
	case b.schemas.len() == 0:
		return invalid("Attempting to add a snapshot before a schema is added")
	case b.specs.len() == 0:
		return invalid("Attempting to add a snapshot before a partition spec is added")
	case b.orders.len() == 0:
		return invalid("Attempting to add a snapshot before a sort order is added")
	case b.hasSnapshot(c.id):
		return invalid("Snapshot already exists for id: %d", c.id)
	case !c.listed && b.formatVersion <= formatCreateMax:
		return invalid("Cannot add snapshot %d: neither manifest-list nor manifests", c.id)
	case before(b.now, c.timestamp):
		return invalid("Cannot add snapshot %d: its timestamp %d is more than %d seconds ahead of the server's clock at %d",
			c.id, c.timestamp, skewMax/1000, b.now)
	case b.formatVersion == 1 && c.sequence != 0:
		return invalid("Sequence number must be 0 in v1: %d", c.sequence)
	case b.formatVersion > 1 && (c.sequence < b.lastSequence || c.sequence == b.lastSequence && c.parent != nil):
		return stale("Cannot add snapshot with sequence number %d older than last sequence number %d", c.sequence, b.lastSequence)
	}
	if b.formatVersion >= formatRowLineage {
		switch {
		case c.firstRowID == nil:
			return invalid("Cannot add a snapshot: first-row-id is null")
		case *c.firstRowID < b.nextRowID:
			return stale("Cannot add a snapshot, first-row-id is behind table next-row-id: %d < %d", *c.firstRowID, b.nextRowID)
		case *c.addedRows > math.MaxInt64-b.nextRowID:
			return invalid("Cannot add a snapshot: %d added-rows after next-row-id %d exceed 63 bits", *c.addedRows, b.nextRowID)
		}
		b.nextRowID += *c.addedRows
	}
	b.lastSequence = c.sequence
	b.snapshots.add(c.snapshot, c.value)
	b.known[c.id] = true
	if b.added == nil {
		b.added = map[int64]int64{}
	}
	b.added[c.id] = c.timestamp
	b.changed = true
	return nil
}

// removal is of snapshots, and of the statistics files of snapshots, by the
// snapshots' ids.
type removal struct{ snapshots, statistics, partitionStatistics map[int64]bool }

func isRemoval(u Update) bool {
	_, ok := u.change.(removal)
	return ok
}

func decodeRemoveStatistics(f *fields) change {
	return removal{statistics: map[int64]bool{f.int64("snapshot-id"): true}}
}

func decodeRemovePartitionStatistics(f *fields) change {
	return removal{partitionStatistics: map[int64]bool{f.int64("snapshot-id"): true}}
}

func decodeRemoveSnapshots(f *fields) change {
	ids := map[int64]bool{}
	for _, id := range f.int64s("snapshot-ids", math.MinInt64, math.MaxInt64) {
		ids[id] = true
	}
	return removal{snapshots: ids}
}

// and is this removal and those that more, which are removals too, ask for.
func (c removal) and(more []Update) removal {
	if len(more) == 0 {
		return c
	}
	all := removal{map[int64]bool{}, map[int64]bool{}, map[int64]bool{}}
	include := func(r removal) {
		maps.Copy(all.snapshots, r.snapshots)
		maps.Copy(all.statistics, r.statistics)
		maps.Copy(all.partitionStatistics, r.partitionStatistics)
	}
	include(c)
	for _, u := range more {
		include(u.change.(removal))
	}
	return all
}

// apply also drops what belonged to the snapshots that it removes: statistics, and
// refs, main not excepted.
func (c removal) apply(b *builder) error {
	gone := map[int64]bool{}
	b.snapshots.remove(func(s *snapshot) bool {
		if c.snapshots[s.id] {
			gone[s.id] = true
		}
		return c.snapshots[s.id]
	})
	removed := b.statistics.remove(func(id *int64) bool { return gone[*id] || c.statistics[*id] })
	removed += b.partitionStatistics.remove(func(id *int64) bool { return gone[*id] || c.partitionStatistics[*id] })
	b.changed = b.changed || removed > 0
	if len(gone) == 0 {
		return nil
	}
	b.refs.remove(func(r *ref) bool { return gone[r.snapshotID] })
	if gone[b.currentSnapshot] {
		b.currentSnapshot = noSnapshot
	}
	for id := range gone {
		delete(b.known, id)
	}
	b.removed, b.changed = true, true
	return nil
}

type setRef struct{ ref }

func (c setRef) apply(b *builder) error {
	i := b.refIndex(c.name)
	if i >= 0 && b.refs.entries[i].head.same(&c.ref) {
		return nil
	}
	if !b.hasSnapshot(c.snapshotID) {
		return invalid("Cannot set %s to unknown snapshot: %d", excerpt(c.name), c.snapshotID)
	}
	if c.name == mainBranch {
		if c.tag {
			return invalid("Cannot set %s to a tag, it must be a branch", mainBranch)
		}
		b.setMain(c.snapshotID)
	}
	if i < 0 {
		b.refs.add(c.ref, appendRef(nil, &c.ref, nil))
	} else {
		b.refs.replace(i, c.ref, appendRef(nil, &c.ref, b.refs.value(i)))
	}
	b.changed = true
	return nil
}

func (b *builder) setMain(id int64) {
	// A rollback happens now; a new snapshot became current when it was made.
	timestamp, added := b.added[id]
	if added {
		b.movedTo = append(b.movedTo, id)
	} else {
		timestamp = b.time()
	}
	if n := b.snapshotLog.len(); n > 0 {
		timestamp = max(timestamp, b.snapshotLog.entries[n-1].head.timestamp)
	}
	b.currentSnapshot = id
	b.snapshotLog.add(logEntry{timestamp, id}, appendSnapshotLogEntry(nil, timestamp, id))
}

type removeRef struct{ name string }

func (c removeRef) apply(b *builder) error {
	if b.refs.remove(func(r *ref) bool { return r.name == c.name }) == 0 && (c.name != mainBranch || b.currentSnapshot == noSnapshot) {
		return nil
	}
	if c.name == mainBranch {
		b.currentSnapshot = noSnapshot
	}
	b.changed = true
	return nil
}

// pruneSnapshotLog takes from the log what this commit made untrue.
//
// A snapshot that was added and replaced within the commit was never current for
// anyone. And where a snapshot in the log was removed, all before it goes too: in
// [(t1, s1), (t2, s2), (t3, s3)] without s2, s1 would seem to have been current
// until t3.
func (b *builder) pruneSnapshotLog() {
	intermediate := map[int64]bool{}
	for _, id := range b.movedTo {
		if id != b.currentSnapshot {
			intermediate[id] = true
		}
	}
	if len(intermediate) == 0 && !b.removed {
		return
	}
	if b.removed {
		gap := -1
		for i := range b.snapshotLog.entries {
			if !b.hasSnapshot(b.snapshotLog.entries[i].head.snapshotID) {
				gap = i
			}
		}
		b.snapshotLog.dropFirst(gap + 1)
	}
	b.snapshotLog.remove(func(e *logEntry) bool {
		return intermediate[e.snapshotID] || !b.hasSnapshot(e.snapshotID)
	})
}

func appendSnapshotLogEntry(dst []byte, timestamp, id int64) []byte {
	dst = append(dst, `{"timestamp-ms":`...)
	dst = rawjson.AppendInt(dst, timestamp)
	dst = append(dst, `,"snapshot-id":`...)
	return append(rawjson.AppendInt(dst, id), '}')
}

func appendMetadataLogEntry(dst []byte, timestamp int64, file string) []byte {
	dst = append(dst, `{"timestamp-ms":`...)
	dst = rawjson.AppendInt(dst, timestamp)
	dst = append(dst, `,"metadata-file":`...)
	return append(rawjson.AppendString(dst, file), '}')
}

// appendRef writes the value of a ref, and the members of the value that it
// replaces which this package does not know.
func appendRef(dst []byte, r *ref, replaced []byte) []byte {
	dst = append(dst, `{"snapshot-id":`...)
	dst = rawjson.AppendInt(dst, r.snapshotID)
	dst = append(dst, `,"type":"`...)
	dst = append(dst, r.kind()...)
	dst = append(dst, '"')
	for _, retention := range []struct {
		name  string
		value *int64
	}{{"min-snapshots-to-keep", r.minKeep}, {"max-snapshot-age-ms", r.maxAge}, {"max-ref-age-ms", r.maxRefAge}} {
		if retention.value != nil {
			dst = rawjson.AppendInt(rawjson.AppendName(dst, retention.name), *retention.value)
		}
	}
	for name, value := range rawjson.Members(replaced) {
		switch name {
		case "snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms":
		default:
			dst = append(rawjson.AppendName(dst, name), value...)
		}
	}
	return append(dst, '}')
}
