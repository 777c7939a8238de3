package tablemeta

import (
	"bytes"
	"fmt"
	"unsafe"
)

// Rereads checks what holds of all metadata that is made here: the document
// parses to the same state that the metadata holds, no span of it leads outside
// of the document, and no list of it can be changed. It is for the tests in tablemeta_test.
func Rereads(m *Metadata) error {
	again, err := Parse(bytes.Clone(m.doc))
	if err != nil {
		return fmt.Errorf("the document cannot be read: %w", err)
	}
	a, b := summary(&m.state), summary(&again.state)
	if a != b {
		return fmt.Errorf("held:\n%s\nread again:\n%s", a, b)
	}
	for _, raw := range [][]byte{
		m.schemas.raw, m.specs.raw, m.orders.raw, m.properties.raw, m.refs.raw, m.snapshots.raw, m.snapshotLog.raw,
		m.metadataLog.raw, m.statistics.raw, m.partitionStatistics.raw, m.encryptionKeys.raw,
	} {
		if len(raw) > 0 && !within(raw, m.doc) {
			return fmt.Errorf("a list is not a span of the document: %.80s", raw)
		}
	}
	// A list that is still being edited would share its entries with the next commit.
	for i, edited := range []bool{
		m.schemas.edited, m.specs.edited, m.orders.edited, m.properties.edited, m.refs.edited, m.snapshots.edited,
		m.snapshotLog.edited, m.metadataLog.edited, m.statistics.edited, m.partitionStatistics.edited, m.encryptionKeys.edited,
	} {
		if edited {
			return fmt.Errorf("list %d is still being edited", i)
		}
	}
	for _, member := range m.members {
		if !within(member.Value, m.doc) || !bytes.HasPrefix(m.doc[member.Offset:], member.Value) {
			return fmt.Errorf("member %s is not a span of the document", member.Name)
		}
	}
	return nil
}

// LastUpdatedMillis is the time of the last commit.
func (m *Metadata) LastUpdatedMillis() int64 { return m.lastUpdated }

// CurrentSnapshotID is the snapshot that the branch main points at.
func (m *Metadata) CurrentSnapshotID() (id int64, ok bool) {
	return max(m.currentSnapshot, 0), m.currentSnapshot != noSnapshot
}

// RefSnapshotID is the snapshot that a branch or tag points at.
func (m *Metadata) RefSnapshotID(name string) (id int64, ok bool) {
	if i := m.refIndex(name); i >= 0 {
		return m.refs.entries[i].head.snapshotID, true
	}
	return 0, false
}

// Equal reports whether both were decoded from the same JSON; go-cmp calls it.
func (r Requirement) Equal(o Requirement) bool { return bytes.Equal(r.raw, o.raw) }

// Equal reports whether both were decoded from the same JSON; go-cmp calls it.
func (u Update) Equal(o Update) bool { return bytes.Equal(u.raw, o.raw) }

// Equal reports whether both were decoded from the same JSON; go-cmp calls it.
func (u ViewUpdate) Equal(o ViewUpdate) bool { return bytes.Equal(u.raw, o.raw) }

func within(span, whole []byte) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(span)))
	return at >= start && at+uintptr(len(span)) <= start+uintptr(len(whole))
}

// summary is everything that a state says.
func summary(s *state) string {
	var out bytes.Buffer
	fmt.Fprintln(&out, s.formatVersion, s.uuid, s.location, s.lastSequence, s.lastUpdated, s.lastColumnID, s.currentSchemaID,
		s.defaultSpecID, s.lastPartitionID, s.defaultOrderID, s.currentSnapshot, s.nextRowID)
	summarize(&out, "schema", &s.schemas)
	summarize(&out, "spec", &s.specs)
	summarize(&out, "order", &s.orders)
	summarize(&out, "property", &s.properties)
	for i := range s.refs.entries {
		r := s.refs.entries[i].head
		fmt.Fprintln(&out, "ref", r.name, r.snapshotID, r.tag, deref(r.minKeep), deref(r.maxAge), deref(r.maxRefAge), string(s.refs.value(i)))
	}
	summarize(&out, "snapshot", &s.snapshots)
	summarize(&out, "snapshot-log", &s.snapshotLog)
	summarize(&out, "metadata-log", &s.metadataLog)
	summarize(&out, "statistics", &s.statistics)
	summarize(&out, "partition-statistics", &s.partitionStatistics)
	summarize(&out, "key", &s.encryptionKeys)
	return out.String()
}

func deref(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func summarize[H any](out *bytes.Buffer, name string, l *list[H]) {
	for i := range l.entries {
		fmt.Fprintln(out, name, l.entries[i].head, string(l.value(i)))
	}
}
