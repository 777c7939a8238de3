package schema

// AssignFreshIDs numbers all fields from 1 and gives the schema the id 0, as is
// done for a new table. The fields of a struct are numbered before those that are
// nested in them. Identifier fields stay the same fields.
func (s *Schema) AssignFreshIDs() *Schema {
	fresh := numbering{ids: make(map[int]int, len(s.index.byID))}
	root := fresh.structType(s.root)
	identifiers := make([]int, len(s.identifiers))
	for i, id := range s.identifiers {
		identifiers[i] = fresh.ids[id]
	}
	result, err := newSchema(0, root, identifiers)
	if err != nil {
		panic("schema: new ids made a valid schema invalid: " + err.Message)
	}
	return result
}

// numbering hands out ids in the order in which it is asked.
type numbering struct {
	last int
	ids  map[int]int // old id to new
}

func (n *numbering) next(old int) int {
	n.last++
	n.ids[old] = n.last
	return n.last
}

func (n *numbering) structType(t *structType) *structType {
	fresh := &structType{fields: make([]Field, len(t.fields)), extra: t.extra}
	for i, f := range t.fields {
		f.ID = n.next(f.ID)
		fresh.fields[i] = f
	}
	for i := range fresh.fields {
		fresh.fields[i].Type = n.renumber(fresh.fields[i].Type)
	}
	return fresh
}

func (n *numbering) renumber(t Type) Type {
	switch t := t.(type) {
	case *structType:
		return n.structType(t)
	case *listType:
		fresh := *t
		fresh.element.ID = n.next(t.element.ID)
		fresh.element.Type = n.renumber(t.element.Type)
		return &fresh
	case *mapType:
		fresh := *t
		fresh.key.ID = n.next(t.key.ID)
		fresh.value.ID = n.next(t.value.ID)
		fresh.key.Type = n.renumber(t.key.Type)
		fresh.value.Type = n.renumber(t.value.Type)
		return &fresh
	default:
		return t
	}
}
