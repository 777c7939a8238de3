package tablemeta

import "fmt"

// This file checks the metadata of a table that somebody else wrote.

// Verify reads what [Parse] leaves unread: all schemas, specs and sort orders, and
// that the current ones fit each other; all snapshots, statistics files and
// encryption keys. It is for metadata from elsewhere, and refuses what the reference
// implementation cannot read, or a commit would stumble over. Errors are
// [*InvalidError].
func (m *Metadata) Verify() error {
	b := &builder{state: m.state}
	for i := range b.schemas.entries {
		if _, err := b.schema(i); err != nil {
			return err
		}
	}
	for i := range b.specs.entries {
		if _, err := b.spec(i); err != nil {
			return err
		}
	}
	for i := range b.orders.entries {
		if _, err := b.order(i); err != nil {
			return err
		}
	}
	if err := b.checkLayout(); err != nil {
		return err
	}
	return m.verifyEntries()
}

// verifyEntries reads the entries of the lists that this package hands on unread.
func (m *Metadata) verifyEntries() error {
	const what = "Invalid table metadata"
	d := fields{what: what, object: m.doc}
	d.notNull("schemas", "partition-specs", "sort-orders", "properties", "refs", "snapshots",
		"statistics", "partition-statistics", "encryption-keys")
	if d.err != nil {
		return d.err
	}
	for i := range m.snapshots.entries {
		id := m.snapshots.entries[i].head.id
		f := fields{what: fmt.Sprintf("%s: snapshot %d", what, id), object: m.snapshots.value(i)}
		f.notNull("sequence-number", "parent-snapshot-id", "summary", "manifest-list")
		s := f.snapshot()
		if id < 0 {
			f.fail("%v", negativeSnapshotID(id))
		}
		if !s.listed && m.formatVersion <= formatCreateMax {
			f.fail("neither manifest-list nor manifests")
		}
		if f.err != nil {
			return f.err
		}
	}
	for i := range m.statistics.entries {
		f := fields{what: fmt.Sprintf("%s: statistics of snapshot %d", what, m.statistics.entries[i].head), object: m.statistics.value(i)}
		if f.statistics(); f.err != nil {
			return f.err
		}
	}
	for i := range m.partitionStatistics.entries {
		f := fields{
			what:   fmt.Sprintf("%s: partition statistics of snapshot %d", what, m.partitionStatistics.entries[i].head),
			object: m.partitionStatistics.value(i),
		}
		if f.partitionStatistics(); f.err != nil {
			return f.err
		}
	}
	for i := range m.encryptionKeys.entries {
		f := fields{what: fmt.Sprintf("%s: encryption key %q", what, excerpt(m.encryptionKeys.entries[i].head)), object: m.encryptionKeys.value(i)}
		f.notNull("properties")
		if f.encryptionKey(); f.err != nil {
			return f.err
		}
	}
	return nil
}
