package schema

import (
	"fmt"
	"math"
	"slices"

	"github.com/landfast/landfast/internal/rawjson"
)

// firstPartitionID is the first id of a partition field. They are apart from the
// ids of schemas' fields.
const firstPartitionID = 1000

// Spec is a partition spec. It is immutable.
type Spec struct {
	id     int
	fields []partitionField
	extra  []rawjson.Member // members that this package does not know
}

type partitionField struct {
	// id is the partition field id, where assigned. Either all fields of a spec
	// are assigned or none is.
	id        int
	assigned  bool
	name      string
	transform transform
	sources   sources
	extra     []rawjson.Member
}

// String is the field as messages show it: 1000: day: day(4).
func (f partitionField) String() string {
	id := "null"
	if f.assigned {
		id = fmt.Sprint(f.id)
	}
	return fmt.Sprintf("%s: %s: %s(%s)", id, f.name, f.transform.text, f.sources)
}

// Unpartitioned is the spec without fields, under the id 0.
func Unpartitioned() *Spec { return &Spec{} }

// ID is the id within the table; 0 if the JSON had none.
func (sp *Spec) ID() int { return sp.id }

// WithID is the same spec under another id.
func (sp *Spec) WithID(id int) *Spec {
	other := *sp
	other.id = id
	return &other
}

// LastAssignedID is the highest partition field id, 999 when there is none above.
func (sp *Spec) LastAssignedID() int {
	last := firstPartitionID - 1
	for _, f := range sp.fields {
		if f.assigned {
			last = max(last, f.id)
		}
	}
	return last
}

// SameAs reports whether both have the same fields in the same order: sources,
// transforms and names. Ids of the spec and of its fields do not matter, nor do
// unknown members.
func (sp *Spec) SameAs(o *Spec) bool {
	return slices.EqualFunc(sp.fields, o.fields, func(a, b partitionField) bool {
		return a.name == b.name && sameSource(a, b)
	})
}

func sameSource(a, b partitionField) bool {
	return a.transform.text == b.transform.text && slices.Equal(a.sources, b.sources)
}

// CheckCompatible reports why the table's rows cannot be partitioned: a source is
// missing from the schema, is not primitive, lies in a list or a map, or has a type
// that the transform does not take. A void field needs no source. The reference
// implementation checks a spec that is added, and the default spec of every commit.
func (sp *Spec) CheckCompatible(s *Schema) error {
	for _, f := range sp.fields {
		if f.transform.name == transformVoid {
			continue
		}
		for _, id := range f.sources {
			if err := checkPartitionSource(s, f, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkPartitionSource(s *Schema, f partitionField, id int) *Error {
	e, ok := s.index.byID[id]
	if !ok {
		return invalid("Cannot find source column for partition field: %s", excerpt(f.String()))
	}
	l, ok := primitive(e.field.Type)
	if !ok {
		return invalid("Cannot partition by non-primitive source field: %s", excerpt(e.field.String()))
	}
	if !f.transform.accepts(l) {
		return invalid("Invalid source type %s for transform: %s", excerpt(l.String()), excerpt(f.transform.text))
	}
	for p := e.parent; p != nil; p = s.index.byID[p.ID].parent {
		if _, ok := p.Type.(*structType); !ok {
			return invalid("Invalid partition field parent: %s", excerpt(p.String()))
		}
	}
	return nil
}

// CheckNames reports a partition name that is empty or used twice, or that is the
// name of a field of the schema other than its own source: partition values and
// fields share names in predicates and metadata tables. A field whose source is gone
// is left alone, its spec is history. The reference implementation checks this for a
// new spec, and for all specs of a table whose current schema changes.
func (sp *Spec) CheckNames(s *Schema) error {
	seen := make(map[string]bool, len(sp.fields))
	for _, f := range sp.fields {
		sourceExists := slices.ContainsFunc(f.sources, func(id int) bool { _, ok := s.Field(id); return ok })
		other, shadows := s.FieldByName(f.name)
		switch {
		case sourceExists && shadows && !slices.Contains(f.sources, other.ID):
			return invalid("Cannot create identity partition sourced from different field in schema: %s", excerpt(f.name))
		case f.name == "":
			return invalid("Cannot use empty partition name: %s", excerpt(f.String()))
		case seen[f.name]:
			return invalid("Cannot use partition name more than once: %s", excerpt(f.name))
		}
		seen[f.name] = true
	}
	return nil
}

// CheckFormat reports what a table of the given format version is not given: in v1
// ids that are not 1000, 1001, ... in order, in all versions a transform of several
// sources, though there are tables that have one.
func (sp *Spec) CheckFormat(formatVersion int) error {
	for i, f := range sp.fields {
		if formatVersion == 1 && f.assigned && f.id != firstPartitionID+i {
			return invalid("Spec does not use sequential IDs that are required in v1: %s", excerpt(f.String()))
		}
		if err := f.sources.checkSingle(f); err != nil {
			return err
		}
	}
	return nil
}

// Bind makes a spec that a client sent one of a table with schema s, of the given
// format version. LastAssigned is the table's last-partition-id, existing are its
// specs. Fields without ids get them: the id of a field in existing with the same
// source, transform and name, because partition values are stored under it; else
// ids above lastAssigned. In v1 they are 1000, 1001, ... whatever else there is.
//
// The result passed CheckCompatible, CheckNames and CheckFormat, and its ids are
// distinct. Its spec id is that of sp.
func (sp *Spec) Bind(s *Schema, lastAssigned, formatVersion int, existing []*Spec) (*Spec, error) {
	if err := sp.CheckNames(s); err != nil {
		return nil, err
	}
	if err := sp.CheckCompatible(s); err != nil {
		return nil, err
	}
	bound := sp.clone()
	if formatVersion == 1 {
		lastAssigned, existing = 0, nil
	}
	lastAssigned = max(lastAssigned, firstPartitionID-1)
	for _, other := range existing {
		lastAssigned = max(lastAssigned, other.LastAssignedID())
	}
	if err := bound.assign(lastAssigned, existing); err != nil {
		return nil, err
	}
	if err := bound.CheckFormat(formatVersion); err != nil {
		return nil, err
	}
	return bound, nil
}

func (sp *Spec) clone() *Spec {
	other := *sp
	other.fields = slices.Clone(sp.fields)
	return &other
}

// assign gives ids to fields that have none.
func (sp *Spec) assign(last int, existing []*Spec) *Error {
	used := make(map[int]bool, len(sp.fields))
	for i := range sp.fields {
		f := &sp.fields[i]
		if !f.assigned {
			if id, ok := assignedBefore(*f, existing); ok && !used[id] {
				f.id = id
			} else if last == math.MaxInt32 {
				return invalid("partition spec: no partition field id above %d is left", last)
			} else {
				last++
				f.id = last
			}
			f.assigned = true
		}
		if used[f.id] {
			return invalid("partition spec: field %q: id %d is used twice", excerpt(f.name), f.id)
		}
		used[f.id] = true
	}
	return nil
}

func assignedBefore(f partitionField, existing []*Spec) (int, bool) {
	for _, spec := range existing {
		for _, other := range spec.fields {
			if other.assigned && other.name == f.name && sameSource(other, f) {
				return other.id, true
			}
		}
	}
	return 0, false
}

// Fresh makes the spec of a new table out of the one in the request: the schema of
// the request was old and became fresh by [Schema.AssignFreshIDs]. Sources are
// followed by name, partition field ids start at 1000, the spec id is 0. The result
// passed CheckCompatible and CheckNames; the format is the caller's to check.
func (sp *Spec) Fresh(old, fresh *Schema) (*Spec, error) {
	moved := sp.WithID(0).clone()
	for i := range moved.fields {
		f := &moved.fields[i]
		followed, ok := f.sources.follow(old, fresh)
		if !ok {
			return nil, invalid("Cannot find source column for partition field: %s", excerpt(f.String()))
		}
		f.sources = followed
		f.id, f.assigned = firstPartitionID+i, true
	}
	if err := moved.CheckNames(fresh); err != nil {
		return nil, err
	}
	if err := moved.CheckCompatible(fresh); err != nil {
		return nil, err
	}
	return moved, nil
}
