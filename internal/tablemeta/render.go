package tablemeta

import (
	"bytes"

	"github.com/landfast/landfast/internal/rawjson"
)

// member is one of the members of a document that this package writes.
type member struct {
	name string
	// written is false for members that the state has no use for, like
	// next-row-id before version 3. They are left out even if the base has them.
	written func(s *state) bool
	// append writes the value, and gives the state's list, if it is one, its
	// entries in the new document. It is nil for the two members that quote from
	// lists: see renderer.quotes.
	append func(dst []byte, s *state) []byte
	// bind tells the state's list, if it is one, where its bytes have come to be:
	// nil for nowhere, because it was empty and is not written.
	bind func(s *state, raw []byte)
}

// members is in the order in which the reference implementation writes.
var members = []member{
	integer("format-version", always, func(s *state) int64 { return int64(s.formatVersion) }),
	text("table-uuid", func(s *state) string { return s.uuid }),
	text("location", func(s *state) string { return s.location }),
	integer("last-sequence-number", since(2), func(s *state) int64 { return s.lastSequence }),
	integer("last-updated-ms", always, func(s *state) int64 { return s.lastUpdated }),
	integer("last-column-id", always, func(s *state) int64 { return int64(s.lastColumnID) }),
	// Readers older than schema evolution look for these two.
	{name: "schema", written: only(1)},
	integer("current-schema-id", always, func(s *state) int64 { return int64(s.currentSchemaID) }),
	array("schemas", always, func(s *state) *list[int] { return &s.schemas }),
	{name: "partition-spec", written: only(1)},
	integer("default-spec-id", always, func(s *state) int64 { return int64(s.defaultSpecID) }),
	array("partition-specs", always, func(s *state) *list[int] { return &s.specs }),
	integer("last-partition-id", always, func(s *state) int64 { return int64(s.lastPartitionID) }),
	integer("default-sort-order-id", always, func(s *state) int64 { return int64(s.defaultOrderID) }),
	array("sort-orders", always, func(s *state) *list[int] { return &s.orders }),
	object("properties", func(s *state) *list[string] { return &s.properties }, func(name *string) string { return *name }),
	{
		name: "current-snapshot-id", written: always,
		append: func(dst []byte, s *state) []byte {
			if s.currentSnapshot == noSnapshot && s.formatVersion >= formatNullCurrent {
				return append(dst, "null"...)
			}
			return rawjson.AppendInt(dst, s.currentSnapshot)
		},
	},
	integer("next-row-id", since(formatRowLineage), func(s *state) int64 { return s.nextRowID }),
	array("encryption-keys", func(s *state) bool { return s.encryptionKeys.len() > 0 },
		func(s *state) *list[string] { return &s.encryptionKeys }),
	object("refs", func(s *state) *list[ref] { return &s.refs }, func(r *ref) string { return r.name }),
	array("snapshots", always, func(s *state) *list[snapshot] { return &s.snapshots }),
	array("statistics", always, func(s *state) *list[int64] { return &s.statistics }),
	array("partition-statistics", always, func(s *state) *list[int64] { return &s.partitionStatistics }),
	array("snapshot-log", always, func(s *state) *list[logEntry] { return &s.snapshotLog }),
	array("metadata-log", always, func(s *state) *list[int64] { return &s.metadataLog }),
}

// membersByName has the indices of members by their names: what is not in it is unknown.
var membersByName = func() map[string]int {
	byName := make(map[string]int, len(members))
	for i := range members {
		byName[members[i].name] = i
	}
	return byName
}()

func always(*state) bool { return true }

func since(version int) func(*state) bool {
	return func(s *state) bool { return s.formatVersion >= version }
}

func only(version int) func(*state) bool {
	return func(s *state) bool { return s.formatVersion == version }
}

func integer(name string, written func(*state) bool, value func(*state) int64) member {
	return member{
		name: name, written: written,
		append: func(dst []byte, s *state) []byte { return rawjson.AppendInt(dst, value(s)) },
	}
}

func text(name string, value func(*state) string) member {
	return member{
		name:    name,
		written: func(s *state) bool { return value(s) != "" },
		append:  func(dst []byte, s *state) []byte { return rawjson.AppendString(dst, value(s)) },
	}
}

func array[H any](name string, written func(*state) bool, of func(*state) *list[H]) member {
	return listMember(name, written, of, nil)
}

func object[H any](name string, of func(*state) *list[H], key func(*H) string) member {
	return listMember(name, always, of, key)
}

func listMember[H any](name string, written func(*state) bool, of func(*state) *list[H], key func(*H) string) member {
	return member{
		name: name, written: written,
		append: func(dst []byte, s *state) []byte {
			dst, *of(s) = of(s).appendTo(dst, key)
			return dst
		},
		bind: func(s *state, raw []byte) {
			if raw == nil {
				*of(s) = list[H]{}
			}
			of(s).raw = raw
		},
	}
}

// currentSchemaJSON is for a state whose list of schemas is not being written,
// when it has no bytes; as defaultSpecFields is for the specs.
func (s *state) currentSchemaJSON() []byte {
	return s.schemas.value(position(&s.schemas, s.currentSchemaID))
}

func (s *state) defaultSpecFields() []byte {
	fields, _ := rawjson.Lookup(s.specs.value(position(&s.specs, s.defaultSpecID)), "fields")
	return fields
}

// render writes the document of the builder's state, and leaves the builder
// useless: its lists move to the result.
//
// Members come in the order of the base, known ones that it lacks behind them.
// What did not change and what is unknown keeps its bytes.
func (b *builder) render() *Metadata {
	r := renderer{state: &b.state}
	var old []rawjson.Member
	size := 4096
	if b.base != nil { // most of it stays
		old = b.base.members
		size = len(b.base.doc) + len(b.base.doc)/16 + 512
	}
	for _, list := range [][][]byte{b.snapshots.fresh, b.schemas.fresh, b.properties.fresh, b.statistics.fresh} {
		for _, value := range list {
			size += len(value) + len(value)/8 + 16
		}
	}
	r.doc = append(make([]byte, 0, size), '{')
	r.members = make([]rawjson.Member, 0, max(len(old), len(members)-4)+4)
	r.ends = make([]int, 0, cap(r.members))

	if b.formatVersion == 1 {
		r.quote(b)
	}
	present := make([]bool, len(members))
	for _, m := range old {
		i, ok := membersByName[m.Name]
		if !ok {
			start := r.begin(m.Name)
			r.doc = append(r.doc, m.Value...)
			r.end(m.Name, start)
			continue
		}
		present[i] = true
		if members[i].written(r.state) {
			r.known(&members[i])
		}
	}
	for i := range members {
		if !present[i] && members[i].written(r.state) {
			r.known(&members[i])
		}
	}
	return r.finish()
}

// renderer writes one document.
type renderer struct {
	state *state
	// quotes are the values of the members that repeat, in version 1, the current
	// schema and the fields of the default spec. They are taken before the lists
	// are written, which moves the bytes.
	quotes  map[string][]byte
	doc     []byte
	members []rawjson.Member
	ends    []int // of the members' values
}

// quote sets quotes. What the base has there, which may hold something unknown,
// stays if it is about the same schema or the same spec. That is told by their
// bytes: an id may have been removed and given again.
func (r *renderer) quote(b *builder) {
	r.quotes = map[string][]byte{
		"schema":         bytes.Clone(b.currentSchemaJSON()),
		"partition-spec": bytes.Clone(b.defaultSpecFields()),
	}
	if b.base == nil {
		return
	}
	sameSchema := bytes.Equal(b.currentSchemaJSON(), b.base.currentSchemaJSON())
	sameSpec := bytes.Equal(b.defaultSpecFields(), b.base.defaultSpecFields())
	for _, m := range b.base.members {
		if m.Name == "schema" && sameSchema || m.Name == "partition-spec" && sameSpec {
			r.quotes[m.Name] = m.Value
		}
	}
}

// begin writes the name of a member whose value follows, and gives where that starts.
func (r *renderer) begin(name string) (start int) {
	r.doc = rawjson.AppendName(r.doc, name)
	return len(r.doc)
}

func (r *renderer) end(name string, start int) {
	r.members = append(r.members, rawjson.Member{Name: name, Offset: start})
	r.ends = append(r.ends, len(r.doc))
}

func (r *renderer) known(m *member) {
	start := r.begin(m.name)
	if m.append == nil {
		r.doc = append(r.doc, r.quotes[m.name]...)
	} else {
		r.doc = m.append(r.doc, r.state)
	}
	r.end(m.name, start)
}

func (r *renderer) finish() *Metadata {
	doc := append(r.doc, '}')
	if cap(doc) > 2*len(doc) { // a small new table: kept for long, it should not keep the room to grow
		doc = bytes.Clone(doc)
	}
	written := make([][]byte, len(members))
	for i := range r.members {
		m, end := &r.members[i], r.ends[i]
		m.Value = doc[m.Offset:end:end]
		if at, ok := membersByName[m.Name]; ok {
			written[at] = m.Value
		}
	}
	for i := range members {
		if m := &members[i]; m.bind != nil {
			m.bind(r.state, written[i])
		}
	}
	return &Metadata{doc: doc, members: r.members, state: *r.state}
}
