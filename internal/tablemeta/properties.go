package tablemeta

import "github.com/landfast/landfast/internal/rawjson"

// This file holds the changes to a table's properties.

type setProperties struct{ members []rawjson.Member }

// decodeSetProperties also reads the name that old clients send.
func decodeSetProperties(f *fields) change {
	name := "updates"
	if _, ok := f.lookup(name); !ok {
		if _, old := f.lookup("updated"); old {
			name = "updated"
		}
	}
	return setProperties{f.stringMap(name)}
}

func (c setProperties) apply(b *builder) error {
	if len(c.members) == 0 {
		return nil
	}
	at := b.propertyIndex()
	for _, m := range c.members {
		if i, ok := at[m.Name]; ok {
			b.properties.replace(i, m.Name, m.Value)
		} else {
			at[m.Name] = b.properties.len()
			b.properties.add(m.Name, m.Value)
		}
	}
	b.changed = true
	return nil
}

// propertyIndex is the positions of the properties by name. Whoever adds one
// enters it.
func (b *builder) propertyIndex() map[string]int {
	if b.propertyAt == nil {
		b.propertyAt = make(map[string]int, b.properties.len())
		for i := range b.properties.entries {
			b.propertyAt[b.properties.entries[i].head] = i
		}
	}
	return b.propertyAt
}

type removeProperties struct{ names map[string]bool }

// decodeRemoveProperties also reads the name that old clients send.
func decodeRemoveProperties(f *fields) change {
	name := "removals"
	if _, ok := f.lookup(name); !ok {
		if _, old := f.lookup("removed"); old {
			name = "removed"
		}
	}
	names := map[string]bool{}
	for _, key := range f.strings(name) {
		names[key] = true
	}
	return removeProperties{names}
}

func (c removeProperties) apply(b *builder) error {
	if b.properties.remove(func(name *string) bool { return c.names[*name] }) > 0 {
		b.propertyAt, b.changed = nil, true
	}
	return nil
}
