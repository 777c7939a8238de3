package tablemeta

import (
	"math"
	"reflect"

	"github.com/landfast/landfast/internal/rawjson"
)

const (
	// formatMin to formatCreateMax are the versions that tables are made in and
	// upgraded to; formatMax is the newest that is read.
	formatMin       = 1
	formatCreateMax = 3
	formatMax       = 4
	formatDefault   = 2

	// formatRowLineage is the first version whose snapshots assign row ids.
	formatRowLineage = 3
	// formatNullCurrent is the first version that writes "no current snapshot"
	// as null. Before it is written as -1.
	formatNullCurrent = 3
	// formatOptionalLocation is the first version that may be without location.
	formatOptionalLocation = 4

	// skewMax is how far apart two clocks may be, in milliseconds: log entries
	// may be out of order by that much, and a snapshot ahead by that much.
	skewMax = 60_000

	// noSnapshot stands for the absence of a snapshot, as it does on the wire.
	noSnapshot = int64(-1)

	mainBranch = "main"

	// firstPartitionID - 1 is last-partition-id before any partition field.
	firstPartitionID = 1000
)

// Metadata is the metadata of one table at one time. It is immutable and safe
// for concurrent use.
type Metadata struct {
	// doc is the JSON document. Everything below is read from it or, after a
	// commit, written to it: no span leads into another document, so that a
	// table does not hold the history of its metadata in memory.
	doc     []byte
	members []rawjson.Member // of doc, in order

	state
}

// state is what commits look at and change.
type state struct {
	formatVersion   int
	uuid            string // empty: v1 without a uuid
	location        string // without trailing slash; empty: v4 without a location
	lastSequence    int64  // 0 in v1
	lastUpdated     int64  // ms since the epoch
	lastColumnID    int
	currentSchemaID int
	defaultSpecID   int
	lastPartitionID int
	defaultOrderID  int
	currentSnapshot int64 // noSnapshot, or equal to the snapshot of the ref main
	nextRowID       int64 // 0 before v3

	schemas             list[int] // by schema-id
	specs               list[int] // by spec-id
	orders              list[int] // by order-id
	properties          list[string]
	refs                list[ref]
	snapshots           list[snapshot]
	snapshotLog         list[logEntry]
	metadataLog         list[int64]  // timestamps, ms
	statistics          list[int64]  // snapshot ids
	partitionStatistics list[int64]  // snapshot ids
	encryptionKeys      list[string] // key ids
}

type snapshot struct {
	id       int64 // unique in the table
	sequence int64 // <= lastSequence
}

// ref is a named branch or tag. The pointers are nil where retention is left to
// the table.
type ref struct {
	name       string
	snapshotID int64
	tag        bool
	minKeep    *int64 // snapshots, > 0, branches only
	maxAge     *int64 // of snapshots, ms, > 0, branches only
	maxRefAge  *int64 // ms, > 0
}

func (r *ref) kind() string {
	if r.tag {
		return "tag"
	}
	return "branch"
}

func (r *ref) same(o *ref) bool {
	equal := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return r.snapshotID == o.snapshotID && r.tag == o.tag &&
		equal(r.minKeep, o.minKeep) && equal(r.maxAge, o.maxAge) && equal(r.maxRefAge, o.maxRefAge)
}

// logEntry says that a snapshot became the current one at a time.
type logEntry struct{ timestamp, snapshotID int64 }

// LogEntry is a former metadata file of a table, and the last-updated-ms that it
// holds.
type LogEntry struct {
	File            string
	TimestampMillis int64
}

// JSON is the document: the bytes given to [Parse], or those that [New] or
// [Commit] wrote. The caller must not change them.
func (m *Metadata) JSON() []byte { return m.doc }

// Size is about how many bytes the metadata takes in memory.
func (m *Metadata) Size() int {
	n := int(reflect.TypeFor[Metadata]().Size()) + documentSize(m.doc, m.members)
	n += m.schemas.size() + m.specs.size() + m.orders.size() + m.properties.size() + m.refs.size() + m.snapshots.size()
	n += m.snapshotLog.size() + m.metadataLog.size() + m.statistics.size() + m.partitionStatistics.size() + m.encryptionKeys.size()
	return n
}

// documentSize is that of a document and the spans of its members.
func documentSize(doc []byte, members []rawjson.Member) int {
	return cap(doc) + cap(members)*int(reflect.TypeFor[rawjson.Member]().Size())
}

// Location is the table's base location, without trailing slash; empty in
// format version 4 if the table has none.
func (m *Metadata) Location() string { return m.location }

// SnapshotCount is the number of snapshots.
func (m *Metadata) SnapshotCount() int { return m.snapshots.len() }

// MetadataLog is the former metadata files, oldest first.
func (m *Metadata) MetadataLog() []LogEntry {
	log := make([]LogEntry, m.metadataLog.len())
	for i := range log {
		file, _ := rawjson.Lookup(m.metadataLog.value(i), "metadata-file")
		log[i].File, _ = rawjson.String(file)
		log[i].TimestampMillis = m.metadataLog.entries[i].head
	}
	return log
}

// RefsOnlyJSON is the document without the snapshots that no branch or tag
// points at directly, except the current one, which is main's even where other
// writers have not said so. Nothing else differs from [Metadata.JSON], which it
// is if there are none. The caller must not change it.
func (m *Metadata) RefsOnlyJSON() []byte {
	wanted := map[int64]bool{m.currentSnapshot: true}
	for i := range m.refs.entries {
		wanted[m.refs.entries[i].head.snapshotID] = true
	}
	kept := m.snapshots
	if kept.remove(func(s *snapshot) bool { return !wanted[s.id] }) == 0 {
		return m.doc
	}
	var at rawjson.Member
	for _, member := range m.members {
		if member.Name == "snapshots" {
			at = member
		}
	}
	size := len(m.doc) - len(at.Value) + len("[]")
	for i := range kept.entries {
		size += len(kept.value(i)) + len(",")
	}
	out := append(make([]byte, 0, size), m.doc[:at.Offset]...)
	out, _ = kept.appendTo(out, nil)
	return append(out, m.doc[at.Offset+len(at.Value):]...)
}

func (s *state) property(key string) (value string, ok bool) {
	return property(&s.properties, key)
}

func property(properties *list[string], key string) (value string, ok bool) {
	i := properties.index(func(name *string) bool { return *name == key })
	if i < 0 {
		return "", false
	}
	return rawjson.String(properties.value(i))
}

func (s *state) refIndex(name string) int {
	return s.refs.index(func(r *ref) bool { return r.name == name })
}

// newestLogTime is the latest time that the logs name.
func (s *state) newestLogTime() int64 {
	newest := int64(math.MinInt64)
	if n := s.snapshotLog.len(); n > 0 {
		newest = s.snapshotLog.entries[n-1].head.timestamp
	}
	if n := s.metadataLog.len(); n > 0 {
		newest = max(newest, s.metadataLog.entries[n-1].head)
	}
	return newest
}
