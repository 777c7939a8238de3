package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
)

// Field is a column, or a field nested in one. The elements of lists are fields
// named element, those of maps are named key and value.
type Field struct {
	ID       int // fits 32 bits
	Name     string
	Required bool
	Type     Type
	// Doc is nil if there is none, which is not the same as an empty one.
	Doc            *string
	InitialDefault Default
	WriteDefault   Default

	// extra are the members of the JSON object that this package does not know.
	extra []rawjson.Member
}

// String is the field as messages show it: 3: price: required decimal(9, 2).
func (f Field) String() string { return string(describeField(nil, &f)) }

func sameField(a, b *Field) bool {
	if a.ID != b.ID || a.Name != b.Name || a.Required != b.Required {
		return false
	}
	if (a.Doc == nil) != (b.Doc == nil) || a.Doc != nil && *a.Doc != *b.Doc {
		return false
	}
	return a.InitialDefault.same(b.InitialDefault) && a.WriteDefault.same(b.WriteDefault) && sameType(a.Type, b.Type)
}

// Schema is a table's or a view's columns. It is immutable.
type Schema struct {
	id int
	// root holds the columns, and the unknown members of the schema itself.
	root *structType
	// identifiers are ids of fields, distinct, in the order in which they were
	// given. Each satisfies checkIdentifier.
	identifiers []int
	index       *index
}

// newSchema checks what concerns the schema as a whole. Identifiers must be
// distinct.
func newSchema(id int, root *structType, identifiers []int) (*Schema, *Error) {
	index, err := newIndex(root)
	if err != nil {
		return nil, err
	}
	for _, field := range identifiers {
		if err := index.checkIdentifier(field); err != nil {
			return nil, err
		}
	}
	return &Schema{id: id, root: root, identifiers: identifiers, index: index}, nil
}

// ID is the id within the table; 0 if the JSON had none.
func (s *Schema) ID() int { return s.id }

// WithID is the same schema under another id.
func (s *Schema) WithID(id int) *Schema {
	other := *s
	other.id = id
	return &other
}

// SameAs reports whether both have the same columns (ids, names, types, required,
// docs, defaults, in the same order) and the same set of identifier fields. Schema
// ids and unknown members do not matter.
func (s *Schema) SameAs(o *Schema) bool {
	if len(s.identifiers) != len(o.identifiers) {
		return false
	}
	for _, id := range s.identifiers {
		if !slices.Contains(o.identifiers, id) {
			return false
		}
	}
	return sameType(s.root, o.root)
}

// HighestFieldID is the highest id of a field at any depth; 0 when there is none
// above.
func (s *Schema) HighestFieldID() int { return s.index.highest }

// Field finds a field at any depth.
func (s *Schema) Field(id int) (Field, bool) {
	e, ok := s.index.byID[id]
	if !ok {
		return Field{}, false
	}
	return *e.field, true
}

// FieldByName finds a field at any depth by its full name, like address.street,
// tags.element or prices.value. The step into a list or a map of structs may be
// left out where that is not another field's name: items.sku for items.element.sku.
func (s *Schema) FieldByName(dotted string) (Field, bool) {
	id, ok := s.index.byName[dotted]
	if !ok {
		id, ok = s.index.byShortName[dotted]
	}
	if !ok {
		return Field{}, false
	}
	return s.Field(id)
}

// Name is the full name of a field.
func (s *Schema) Name(id int) (string, bool) {
	e, ok := s.index.byID[id]
	return e.name, ok
}

// reservedIDsFrom is the first of the field ids that the specification keeps for
// metadata columns such as _file and _pos.
const reservedIDsFrom = math.MaxInt32 - 199

// CheckFormat reports everything that a table of the given format version may not
// have: types and non-null initial defaults of a later version, and field ids that
// are reserved in all versions.
func (s *Schema) CheckFormat(formatVersion int) error {
	const defaultsSince = 3
	const problemsMax = 20 // in one message
	var problems []string
	for _, id := range slices.Sorted(maps.Keys(s.index.byID)) {
		if len(problems) >= problemsMax {
			problems = append(problems, "... and more")
			break
		}
		e := s.index.byID[id]
		if l, ok := e.field.Type.(leaf); ok && formatVersion < sinceFormat[l.kind] {
			problems = append(problems, fmt.Sprintf("Invalid type for %s: %s is not supported until v%d",
				excerpt(e.name), excerpt(l.String()), sinceFormat[l.kind]))
		}
		if d := e.field.InitialDefault; !d.IsNull() && formatVersion < defaultsSince {
			problems = append(problems, fmt.Sprintf(
				"Invalid initial default for %s: non-null default (%s) is not supported until v%d",
				excerpt(e.name), excerpt(d.text()), defaultsSince))
		}
		if id >= reservedIDsFrom {
			problems = append(problems, fmt.Sprintf("Invalid id for %s: %d is reserved for metadata columns", excerpt(e.name), id))
		}
	}
	if problems == nil {
		return nil
	}
	return invalid("Invalid schema for v%d:\n- %s", formatVersion, strings.Join(problems, "\n- "))
}
