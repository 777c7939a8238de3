package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
)

// The ids that new tables start with. The id 0 means unsorted, and nothing else.
const (
	unsortedID     = 0
	firstSortOrder = 1
)

// SortOrder says how rows are to be sorted within a file. It is immutable.
type SortOrder struct {
	// id == unsortedID exactly if there are no fields.
	id     int
	fields []sortField
	extra  []rawjson.Member // members that this package does not know
}

type sortField struct {
	transform transform
	sources   sources
	direction string // asc or desc
	nullOrder string // nulls-first or nulls-last
	extra     []rawjson.Member
}

// String is the field as messages show it: bucket[4](3) ASC NULLS FIRST.
func (f sortField) String() string {
	return fmt.Sprintf("%s(%s) %s %s", f.transform.text, f.sources, strings.ToUpper(f.direction),
		strings.ToUpper(strings.ReplaceAll(f.nullOrder, "-", " ")))
}

// Unsorted is the order without fields.
func Unsorted() *SortOrder { return &SortOrder{} }

// ID is the id within the table; 0 if and only if the order is unsorted.
func (o *SortOrder) ID() int { return o.id }

// IsUnsorted reports whether there are no fields.
func (o *SortOrder) IsUnsorted() bool { return len(o.fields) == 0 }

// WithID is the same order under another id, which must be 0 for the unsorted order
// and must not be 0 for others: anything else is a mistake of the caller, and panics.
func (o *SortOrder) WithID(id int) *SortOrder {
	if (id == unsortedID) != o.IsUnsorted() {
		panic(fmt.Sprintf("schema: sort order of %d fields cannot have id %d", len(o.fields), id))
	}
	other := *o
	other.id = id
	return &other
}

// SameAs reports whether both have the same fields in the same order: sources,
// transforms, directions and null orders. Order ids and unknown members do not
// matter.
func (o *SortOrder) SameAs(other *SortOrder) bool {
	return slices.EqualFunc(o.fields, other.fields, func(a, b sortField) bool {
		return a.transform.text == b.transform.text && slices.Equal(a.sources, b.sources) &&
			a.direction == b.direction && a.nullOrder == b.nullOrder
	})
}

// CheckCompatible reports why the table's rows cannot be sorted: a source is missing
// from the schema, is not primitive, or has a type that the transform does not take.
// The reference implementation checks an order that is added, and the default order
// of every commit.
func (o *SortOrder) CheckCompatible(s *Schema) error {
	for _, f := range o.fields {
		for _, id := range f.sources {
			source, ok := s.Field(id)
			if !ok {
				return invalid("Cannot find source column for sort field: %s", excerpt(f.String()))
			}
			l, ok := primitive(source.Type)
			if !ok {
				return invalid("Cannot sort by non-primitive source field: %s", excerpt(source.String()))
			}
			if !f.transform.accepts(l) {
				return invalid("Invalid source type %s for transform: %s", excerpt(l.String()), excerpt(f.transform.text))
			}
		}
	}
	return nil
}

// CheckSources reports a transform of several sources. There are tables that have
// one; no table is given one.
func (o *SortOrder) CheckSources() error {
	for _, f := range o.fields {
		if err := f.sources.checkSingle(f); err != nil {
			return err
		}
	}
	return nil
}

// Fresh makes the order of a new table out of the one in the request: the schema of
// the request was old and became fresh by [Schema.AssignFreshIDs]. Sources are
// followed by name; the id is 1, or 0 when unsorted. The result passed
// CheckCompatible; CheckSources is the caller's to call.
func (o *SortOrder) Fresh(old, fresh *Schema) (*SortOrder, error) {
	if o.IsUnsorted() {
		return o, nil
	}
	moved := o.WithID(firstSortOrder)
	moved.fields = slices.Clone(o.fields)
	for i := range moved.fields {
		f := &moved.fields[i]
		followed, ok := f.sources.follow(old, fresh)
		if !ok {
			return nil, invalid("Cannot find source column for sort field: %s", excerpt(f.String()))
		}
		f.sources = followed
	}
	if err := moved.CheckCompatible(fresh); err != nil {
		return nil, err
	}
	return moved, nil
}
