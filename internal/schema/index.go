package schema

import "fmt"

// index finds the fields of a schema at any depth.
type index struct {
	byID map[int]entry
	// byName has the full name of every field.
	byName map[string]int
	// byShortName has the names that differ from the full ones because they leave out
	// the step into structs that are the elements of a list or the values of a map.
	// It matters only for names that byName does not have.
	byShortName map[string]int
	highest     int
	nameBytes   int // of all full names together
}

type entry struct {
	field *Field // points into the schema's types
	name  string
	// parent is the field that this one is nested in; nil for columns.
	parent *Field
}

// nameBytesMax bounds the full names of a schema together. A full name repeats
// those of all its ancestors, so that a small schema could otherwise ask for
// any amount of memory.
const nameBytesMax = 16 << 20

func newIndex(root *structType) (*index, *Error) {
	x := &index{
		byID:        make(map[int]entry, len(root.fields)),
		byName:      make(map[string]int, len(root.fields)),
		byShortName: map[string]int{},
	}
	for _, f := range children(root) {
		if err := x.add(f, place{}); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// place is where a field stands in the schema.
type place struct {
	parent *Field // nil for columns
	// prefix and shortPrefix are the names of the parent, with a dot behind them;
	// empty for columns.
	prefix, shortPrefix string
	// step says that the field is the element of a list or the value of a map.
	step bool
}

// add enters f and what is nested in it.
func (x *index) add(f *Field, at place) *Error {
	name, short := at.prefix+f.Name, at.shortPrefix+f.Name
	if e, ok := x.byID[f.ID]; ok {
		return invalid("schema: field %q: id %d is already used by field %q", excerpt(name), f.ID, excerpt(e.name))
	}
	if id, ok := x.byName[name]; ok {
		return invalid("schema: field %q: two fields have this name, ids %d and %d", excerpt(name), id, f.ID)
	}
	x.nameBytes += len(name)
	if x.nameBytes > nameBytesMax {
		return invalid("schema: field %q: the full names of all fields together exceed %d bytes", excerpt(name), nameBytesMax)
	}
	x.byID[f.ID] = entry{field: f, name: name, parent: at.parent}
	x.byName[name] = f.ID
	if _, ok := x.byShortName[short]; !ok && short != name {
		x.byShortName[short] = f.ID
	}
	x.highest = max(x.highest, f.ID)

	inside := children(f.Type)
	if len(inside) == 0 {
		return nil
	}
	below := place{parent: f, prefix: name + ".", shortPrefix: short + "."}
	if _, ok := f.Type.(*structType); ok && at.step {
		below.shortPrefix = at.shortPrefix
	}
	for _, child := range inside {
		below.step = isStep(f.Type, child)
		if err := x.add(child, below); err != nil {
			return err
		}
	}
	return nil
}

func isStep(container Type, child *Field) bool {
	switch container := container.(type) {
	case *listType:
		return true
	case *mapType:
		return child == &container.value
	default:
		return false
	}
}

// children are the fields directly inside a type.
func children(t Type) []*Field {
	switch t := t.(type) {
	case *structType:
		fields := make([]*Field, len(t.fields))
		for i := range t.fields {
			fields[i] = &t.fields[i]
		}
		return fields
	case *listType:
		return []*Field{&t.element}
	case *mapType:
		return []*Field{&t.key, &t.value}
	default:
		return nil
	}
}

// checkIdentifier reports why a field cannot identify rows: it may be null, has no
// exact equality, or is not there exactly once per row.
func (x *index) checkIdentifier(id int) *Error {
	e, ok := x.byID[id]
	if !ok {
		return invalid("Cannot add fieldId %d as an identifier field: field does not exist", id)
	}
	refuse := func(why string) *Error {
		return invalid("Cannot add field %s as an identifier field: %s", excerpt(e.name), why)
	}
	l, ok := primitive(e.field.Type)
	switch {
	case !ok:
		return refuse("not a primitive type field")
	case !e.field.Required:
		return refuse("not a required field")
	case l.kind == kindFloat || l.kind == kindDouble:
		return refuse("must not be float or double field")
	}
	for p := e.parent; p != nil; p = x.byID[p.ID].parent {
		if _, ok := p.Type.(*structType); !ok {
			return refuse(fmt.Sprintf("must not be nested in %s", excerpt(p.String())))
		}
		if !p.Required {
			return refuse(fmt.Sprintf("must not be nested in an optional field %s", excerpt(p.String())))
		}
	}
	return nil
}
