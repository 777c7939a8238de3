package tablemeta

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/schema"
)

// Parse reads a metadata document. The metadata owns data from then on.
//
// What every reader needs is checked here: scalars, ids that must be unique or
// must exist, the order of the logs. Schemas, specs and sort orders are read
// when a commit needs them; [Metadata.Verify] reads all.
// Errors are [*InvalidError].
func Parse(data []byte) (*Metadata, error) {
	members, err := rawjson.Object(data)
	if err != nil {
		return nil, &InvalidError{Message: "Invalid table metadata: " + err.Error(), Err: err}
	}
	d := document{fields: fields{what: "Invalid table metadata", object: data}, members: members}
	m := &Metadata{doc: data, members: members}
	d.read(&m.state)
	if d.err != nil {
		return nil, d.err
	}
	return m, nil
}

// document is a metadata document that is being read.
type document struct {
	fields
	members []rawjson.Member
	state   *state
}

func (d *document) member(name string) (rawjson.Member, bool) {
	for _, m := range d.members {
		if m.Name == name {
			return m, !rawjson.IsNull(m.Value)
		}
	}
	return rawjson.Member{}, false
}

// scalar reads an integer. If it is absent, it is missing from version since on,
// and fallback before.
func (d *document) scalar(name string, since int, fallback, low, high int64) int64 {
	m, ok := d.member(name)
	if !ok {
		if d.state.formatVersion >= since {
			d.fail("%s must exist in format v%d", name, d.state.formatVersion)
		}
		return fallback
	}
	return d.asInt(name, m.Value, low, high)
}

func (d *document) text(name string) string {
	m, ok := d.member(name)
	if !ok {
		return ""
	}
	return d.asString(name, m.Value)
}

func (d *document) read(s *state) {
	d.state = s
	s.formatVersion = d.int("format-version")
	if d.err == nil && (s.formatVersion < formatMin || s.formatVersion > formatMax) {
		d.err = invalid("Cannot read unsupported version %d", s.formatVersion)
	}
	if d.err != nil {
		return
	}
	d.readScalars(s)
	d.readSchemas(s)
	d.readSpecs(s)
	d.readOrders(s)
	d.readProperties(&s.properties)
	d.readSnapshots(s)
	d.readRefs(s)
	d.readLogs(s)
	d.readFiles(s)
	d.check(s)
}

func (d *document) readScalars(s *state) {
	const always = formatMin
	s.uuid = d.text("table-uuid")
	if s.uuid == "" && s.formatVersion > 1 {
		d.fail("UUID is required in format v%d", s.formatVersion)
	}
	s.location = stripTrailingSlash(d.text("location"))
	if s.location == "" && s.formatVersion < formatOptionalLocation {
		d.fail("Table location is required in format v%d", s.formatVersion)
	}
	if s.formatVersion > 1 {
		s.lastSequence = d.scalar("last-sequence-number", 2, 0, 0, math.MaxInt64)
	}
	s.lastUpdated = d.scalar("last-updated-ms", always, 0, math.MinInt64, math.MaxInt64)
	s.lastColumnID = int(d.scalar("last-column-id", always, 0, math.MinInt32, math.MaxInt32))
	s.currentSnapshot = d.scalar("current-snapshot-id", formatMax+1, noSnapshot, math.MinInt64, math.MaxInt64)
	if s.currentSnapshot < 0 {
		s.currentSnapshot = noSnapshot
	}
	if s.formatVersion >= formatRowLineage {
		s.nextRowID = d.scalar("next-row-id", formatRowLineage, 0, 0, math.MaxInt64)
	}
}

func (d *document) readSchemas(s *state) {
	if !d.predates("schemas") {
		s.schemas = readIDs(d, "schemas", "schema-id", false)
		s.currentSchemaID = int(d.scalar("current-schema-id", formatMin, 0, math.MinInt32, math.MaxInt32))
		return
	}
	only, ok := d.member("schema")
	if !ok {
		d.fail("schema must exist in format v1 without schemas")
		return
	}
	if only.Value[0] != '{' {
		d.fail("schema must be an object, got %s", excerpt(only.Value))
		return
	}
	id := d.id("schema", only.Value, "schema-id", false)
	s.schemas = single(id, withMember(only.Value, "schema-id", int64(id)))
	s.currentSchemaID = id
}

// withMember is the object with an integer member, which it may have already.
func withMember(object []byte, name string, n int64) []byte {
	if _, ok := rawjson.Lookup(object, name); ok || len(object) == 0 || object[0] != '{' {
		return object
	}
	out := rawjson.AppendName([]byte{'{'}, name)
	out = rawjson.AppendInt(out, n)
	if rest := bytes.TrimLeft(object[1:], " \n\r\t"); rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, object[1:]...)
}

func (d *document) readSpecs(s *state) {
	if !d.predates("partition-specs") {
		s.specs = readIDs(d, "partition-specs", "spec-id", true)
		s.defaultSpecID = int(d.scalar("default-spec-id", formatMin, 0, math.MinInt32, math.MaxInt32))
	} else {
		partitionFields, ok := d.member("partition-spec")
		if !ok {
			d.fail("partition-spec must exist in format v1 without partition-specs")
			return
		}
		s.specs = single(0, firstSpec(partitionFields.Value))
	}
	last := firstPartitionID - 1
	if d.err == nil && s.formatVersion == 1 {
		// Version 1 quotes the fields of the default spec, so that they must be
		// there.
		for i := range s.specs.entries {
			spec, err := schema.ParseSpec(s.specs.value(i))
			if err != nil {
				d.fail("%v", err)
				return
			}
			last = max(last, spec.LastAssignedID())
		}
		s.specs, last = numbered(s.specs, last)
	}
	s.lastPartitionID = int(d.scalar("last-partition-id", 2, int64(last), math.MinInt32, math.MaxInt32))
}

func (d *document) readOrders(s *state) {
	if !d.predates("sort-orders") {
		s.orders = readIDs(d, "sort-orders", "order-id", true)
		s.defaultOrderID = int(d.scalar("default-sort-order-id", formatMin, 0, math.MinInt32, math.MaxInt32))
		return
	}
	s.orders = single(0, []byte(`{"order-id":0,"fields":[]}`))
}

// predates reports whether the document was written before the format had the
// list, as documents in version 1 may have been.
func (d *document) predates(name string) bool {
	_, ok := d.member(name)
	return !ok && d.state.formatVersion == 1
}

func (d *document) readProperties(properties *list[string]) {
	*properties = readObject(d, "properties", func(name string, value []byte) string {
		if value[0] != '"' {
			d.fail("properties: the value of %q must be a string, got %s", excerpt(name), excerpt(value))
		}
		return name
	})
}

func (d *document) readSnapshots(s *state) {
	names := []string{"snapshot-id", "sequence-number", "timestamp-ms"}
	values := make([][]byte, len(names))
	s.snapshots = readArray(d, "snapshots", func(element []byte) (head snapshot) {
		rawjson.Pick(element, names, values)
		d.elementInt("snapshots", element, names[2], values[2], true)
		return snapshot{
			id:       d.elementInt("snapshots", element, names[0], values[0], true),
			sequence: d.elementInt("snapshots", element, names[1], values[1], false),
		}
	})
}

func (d *document) readRefs(s *state) {
	read := func(name string, value []byte) ref {
		f := fields{what: fmt.Sprintf("%s: ref %q", d.what, excerpt(name)), object: value}
		r := f.ref(name)
		if f.err != nil && d.err == nil {
			d.err = f.err
		}
		return r
	}
	if _, ok := d.member("refs"); ok {
		s.refs = readObject(d, "refs", read)
	} else if s.currentSnapshot != noSnapshot {
		r := ref{name: mainBranch, snapshotID: s.currentSnapshot}
		value := appendRef(nil, &r, nil)
		raw := append(append([]byte(`{"main":`), value...), '}')
		start := len(`{"main":`)
		s.refs = list[ref]{raw: raw, entries: []entry[ref]{{r, start, start + len(value)}}}
	}
}

// ref reads a ref's value. It checks what the value alone can show.
func (f *fields) ref(name string) ref {
	r := ref{
		name:       name,
		snapshotID: f.int64("snapshot-id"),
		minKeep:    f.optionalInt("min-snapshots-to-keep"),
		maxAge:     f.optionalInt64("max-snapshot-age-ms"),
		maxRefAge:  f.optionalInt64("max-ref-age-ms"),
	}
	switch kind := f.string("type"); {
	case strings.EqualFold(kind, "tag"):
		r.tag = true
	case !strings.EqualFold(kind, "branch"):
		f.fail("Invalid snapshot ref type: %s", excerpt(kind))
	}
	positive := func(n *int64) bool { return n == nil || *n > 0 }
	switch {
	case r.tag && r.minKeep != nil:
		f.fail("Tags do not support setting minSnapshotsToKeep")
	case r.tag && r.maxAge != nil:
		f.fail("Tags do not support setting maxSnapshotAgeMs")
	case !positive(r.minKeep):
		f.fail("Min snapshots to keep must be greater than 0")
	case !positive(r.maxAge):
		f.fail("Max snapshot age must be greater than 0 ms")
	case !positive(r.maxRefAge):
		f.fail("Max reference age must be greater than 0")
	}
	return r
}

func (d *document) readLogs(s *state) {
	names := []string{"timestamp-ms", "snapshot-id"}
	values := make([][]byte, len(names))
	s.snapshotLog = readArray(d, "snapshot-log", func(element []byte) logEntry {
		rawjson.Pick(element, names, values)
		return logEntry{
			timestamp:  d.elementInt("snapshot-log", element, names[0], values[0], true),
			snapshotID: d.elementInt("snapshot-log", element, names[1], values[1], true),
		}
	})
	files := []string{"timestamp-ms", "metadata-file"}
	s.metadataLog = readArray(d, "metadata-log", func(element []byte) int64 {
		rawjson.Pick(element, files, values)
		if len(values[1]) == 0 || values[1][0] != '"' {
			d.fail("metadata-log: no metadata-file in %s", excerpt(element))
		}
		return d.elementInt("metadata-log", element, files[0], values[0], true)
	})
}

func (d *document) readFiles(s *state) {
	bySnapshot := func(list string) func([]byte) int64 {
		return func(element []byte) int64 {
			id, _ := rawjson.Lookup(element, "snapshot-id")
			return d.elementInt(list, element, "snapshot-id", id, true)
		}
	}
	s.statistics = readArray(d, "statistics", bySnapshot("statistics"))
	s.partitionStatistics = readArray(d, "partition-statistics", bySnapshot("partition-statistics"))
	s.encryptionKeys = readArray(d, "encryption-keys", func(element []byte) string {
		id, _ := rawjson.Lookup(element, "key-id")
		text, ok := rawjson.String(id)
		if !ok {
			d.fail("encryption-keys: no key-id in %s", excerpt(element))
		}
		return text
	})
}

func (d *document) elementInt(list string, element []byte, name string, value []byte, required bool) int64 {
	if value == nil || rawjson.IsNull(value) {
		if required {
			d.fail("%s: no %s in %s", list, name, excerpt(element))
		}
		return 0
	}
	n, ok := rawjson.Int64(value)
	if !ok {
		d.fail("%s: %s must be an integer of 64 bits, got %s", list, name, excerpt(value))
	}
	return n
}

// id reads the id of a schema, spec or sort order. Schemas written before ids
// were known have none, which means 0.
func (d *document) id(list string, element []byte, name string, required bool) int {
	value, _ := rawjson.Lookup(element, name)
	n := d.elementInt(list, element, name, value, required)
	if n != int64(int32(n)) {
		d.fail("%s: %s must be an integer of 32 bits, got %s", list, name, excerpt(value))
	}
	return int(n)
}

// readIDs reads a list that must be there.
func readIDs(d *document, list, name string, required bool) list[int] {
	if _, ok := d.member(list); !ok {
		d.fail("%s must exist in format v%d", list, d.state.formatVersion)
	}
	return readArray(d, list, func(element []byte) int { return d.id(list, element, name, required) })
}

func readArray[H any](d *document, name string, read func(element []byte) H) list[H] {
	m, ok := d.member(name)
	if !ok || d.err != nil {
		return list[H]{}
	}
	if m.Value[0] != '[' {
		d.fail("%s must be an array, got %s", name, excerpt(m.Value))
		return list[H]{}
	}
	// The entries grow as they turn out to be sound: an array of two bytes for each
	// element must not cost an entry for each.
	var entries []entry[H]
	for span := range rawjson.Spans(m.Value) {
		element := m.Value[span.Start:span.End]
		if element[0] != '{' {
			d.fail("%s: element %d must be an object, got %s", name, len(entries), excerpt(element))
			break
		}
		entries = append(entries, entry[H]{read(element), span.Start, span.End})
		if d.err != nil {
			break
		}
	}
	return list[H]{raw: m.Value, entries: entries}
}

func readObject[H any](d *document, name string, read func(name string, value []byte) H) list[H] {
	m, ok := d.member(name)
	if !ok || d.err != nil {
		return list[H]{}
	}
	if m.Value[0] != '{' {
		d.fail("%s must be an object, got %s", name, excerpt(m.Value))
		return list[H]{}
	}
	var entries []entry[H]
	for key, span := range rawjson.MemberSpans(m.Value) {
		entries = append(entries, entry[H]{read(key, m.Value[span.Start:span.End]), span.Start, span.End})
		if d.err != nil {
			break
		}
	}
	return list[H]{raw: m.Value, entries: entries}
}

// single is the list of one element that older versions write without a list.
func single(id int, value []byte) list[int] {
	raw := append(append([]byte{'['}, value...), ']')
	return list[int]{raw: raw, entries: []entry[int]{{id, 1, len(raw) - 1}}}
}

// numbered is the specs with the partition field ids that version 1 may leave
// out: 1000 and up, in order, in each spec. It also returns the highest id, which
// is last without it.
func numbered(specs list[int], last int) (list[int], int) {
	complete := true
	fieldsOf := func(i int) (spec, fields []byte) {
		spec = specs.value(i)
		fields, _ = rawjson.Lookup(spec, "fields")
		return spec, fields
	}
	for i := range specs.entries {
		_, fields := fieldsOf(i)
		for field := range rawjson.Elements(fields) {
			_, ok := rawjson.Lookup(field, "field-id")
			complete = complete && ok
		}
	}
	if complete {
		return specs, last
	}
	raw := []byte{'['}
	entries := make([]entry[int], specs.len())
	for i := range specs.entries {
		spec, fields := fieldsOf(i)
		if i > 0 {
			raw = append(raw, ',')
		}
		start := len(raw)
		raw = append(raw, '{')
		for name, value := range rawjson.Members(spec) {
			raw = rawjson.AppendName(raw, name)
			if name != "fields" {
				raw = append(raw, value...)
				continue
			}
			raw = append(raw, '[')
			id := int64(firstPartitionID)
			for field := range rawjson.Elements(fields) {
				if id > firstPartitionID {
					raw = append(raw, ',')
				}
				raw = append(raw, withMember(field, "field-id", id)...)
				last = max(last, int(id))
				id++
			}
			raw = append(raw, ']')
		}
		raw = append(raw, '}')
		entries[i] = entry[int]{specs.entries[i].head, start, len(raw)}
	}
	return list[int]{raw: append(raw, ']'), entries: entries}, last
}

// firstSpec is the spec that version 1 writes as its bare fields.
func firstSpec(partitionFields []byte) []byte {
	return append(append([]byte(`{"spec-id":0,"fields":`), partitionFields...), '}')
}

// check compares the parts of the document with each other.
func (d *document) check(s *state) {
	if d.err != nil {
		return
	}
	d.err = s.check()
	if d.err != nil {
		d.err.Message = d.what + ": " + d.err.Message
	}
}

// check holds of all metadata that this package reads or makes.
func (s *state) check() *InvalidError {
	has := func(ids *list[int], id int) bool {
		return ids.index(func(other *int) bool { return *other == id }) >= 0
	}
	switch {
	case s.formatVersion == 1 && s.lastSequence != 0:
		return invalid("Sequence number must be 0 in v1: %d", s.lastSequence)
	case !has(&s.schemas, s.currentSchemaID):
		return invalid("Cannot find schema with current-schema-id=%d from schemas", s.currentSchemaID)
	case !has(&s.specs, s.defaultSpecID):
		return invalid("Cannot find partition spec with default-spec-id=%d from partition-specs", s.defaultSpecID)
	case !has(&s.orders, s.defaultOrderID):
		return invalid("Cannot find sort order with default-sort-order-id=%d from sort-orders", s.defaultOrderID)
	}
	for _, ids := range []struct {
		name string
		list *list[int]
	}{{"schemas", &s.schemas}, {"partition-specs", &s.specs}, {"sort-orders", &s.orders}} {
		sorted := sortedIDs(ids.list, func(id *int) int64 { return int64(*id) })
		if i := repeated(sorted); i >= 0 {
			return invalid("%s: id %d is used twice", ids.name, sorted[i])
		}
	}
	if err := s.checkSnapshots(); err != nil {
		return err
	}
	return s.checkLogs()
}

func (s *state) checkSnapshots() *InvalidError {
	ids := sortedIDs(&s.snapshots, func(s *snapshot) int64 { return s.id })
	exists := func(id int64) bool { _, ok := slices.BinarySearch(ids, id); return ok }
	if i := repeated(ids); i >= 0 {
		return invalid("Snapshot %d appears twice", ids[i])
	}
	for i := range s.snapshots.entries {
		if sequence := s.snapshots.entries[i].head.sequence; sequence > s.lastSequence {
			return invalid("Invalid snapshot with sequence number %d greater than last sequence number %d", sequence, s.lastSequence)
		}
	}
	for i := range s.refs.entries {
		r := &s.refs.entries[i].head
		if !exists(r.snapshotID) {
			return invalid("Snapshot for reference %q does not exist in the existing snapshots list: %d", excerpt(r.name), r.snapshotID)
		}
	}
	main := s.refIndex(mainBranch)
	switch {
	case main >= 0 && s.refs.entries[main].head.snapshotID < 0:
		return negativeSnapshotID(s.refs.entries[main].head.snapshotID)
	case s.currentSnapshot == noSnapshot && main >= 0:
		return invalid("Current snapshot is not set, but main branch exists: %d", s.refs.entries[main].head.snapshotID)
	case s.currentSnapshot != noSnapshot && main >= 0 && s.refs.entries[main].head.snapshotID != s.currentSnapshot:
		return invalid("Current snapshot ID does not match main branch (%d != %d)", s.currentSnapshot, s.refs.entries[main].head.snapshotID)
	case s.currentSnapshot != noSnapshot && !exists(s.currentSnapshot):
		return invalid("Cannot find current version")
	}
	return nil
}

// before reports whether a is earlier than b by more than clocks may differ.
func before(a, b int64) bool { return a < b && uint64(b)-uint64(a) > skewMax }

func (s *state) checkLogs() *InvalidError {
	last := int64(math.MinInt64)
	for i := range s.snapshotLog.entries {
		timestamp := s.snapshotLog.entries[i].head.timestamp
		if before(timestamp, last) {
			return invalid("Expected sorted snapshot log entries: %d comes after %d", timestamp, last)
		}
		last = timestamp
	}
	if before(s.lastUpdated, last) {
		return invalid("Invalid update timestamp %d: before last snapshot log entry at %d", s.lastUpdated, last)
	}
	last = math.MinInt64
	for i := range s.metadataLog.entries {
		timestamp := s.metadataLog.entries[i].head
		if before(timestamp, last) {
			return invalid("Expected sorted previous metadata log entries: %d comes after %d", timestamp, last)
		}
		last = timestamp
	}
	if before(s.lastUpdated, last) {
		return invalid("Invalid update timestamp %d: before the latest metadata log entry timestamp %d", s.lastUpdated, last)
	}
	return nil
}

// sortedIDs is quick on what writers make, who append: a sorted list.
func sortedIDs[H any](l *list[H], id func(*H) int64) []int64 {
	ids := make([]int64, l.len())
	for i := range l.entries {
		ids[i] = id(&l.entries[i].head)
	}
	slices.Sort(ids)
	return ids
}

// repeated is the position of an id that the one before it equals, or -1.
func repeated(sorted []int64) int {
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return i
		}
	}
	return -1
}

// stripTrailingSlash is the location as paths are appended to it. The slashes
// of a bare "scheme://" stay.
func stripTrailingSlash(location string) string {
	for strings.HasSuffix(location, "/") && !strings.HasSuffix(location, "://") {
		location = location[:len(location)-1]
	}
	return location
}
