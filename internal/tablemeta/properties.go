package tablemeta

import "github.com/landfast/landfast/internal/rawjson"

// This file holds the changes to the properties of a table or a view.

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
	if c.set(&b.properties, &b.propertyAt) {
		b.changed = true
	}
	return nil
}

// searchedMax is up to how many comparisons properties are searched one by one: fewer cost less than a map.
const searchedMax = 256

// set reports whether it set any. at is the positions of the properties by name;
// nil until it is needed.
func (c setProperties) set(properties *list[string], at *map[string]int) bool {
	if *at == nil && len(c.members)*(properties.len()+len(c.members)) <= searchedMax {
		for _, m := range c.members {
			if i := properties.index(func(name *string) bool { return *name == m.Name }); i >= 0 {
				properties.replace(i, m.Name, m.Value)
			} else {
				properties.add(m.Name, m.Value)
			}
		}
		return len(c.members) > 0
	}
	if *at == nil && len(c.members) > 0 {
		*at = make(map[string]int, properties.len())
		for i := range properties.entries {
			(*at)[properties.entries[i].head] = i
		}
	}
	for _, m := range c.members {
		if i, ok := (*at)[m.Name]; ok {
			properties.replace(i, m.Name, m.Value)
		} else {
			(*at)[m.Name] = properties.len()
			properties.add(m.Name, m.Value)
		}
	}
	return len(c.members) > 0
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
	if c.remove(&b.properties, &b.propertyAt) {
		b.changed = true
	}
	return nil
}

// remove reports whether it removed any, which makes at useless.
func (c removeProperties) remove(properties *list[string], at *map[string]int) bool {
	if properties.remove(func(name *string) bool { return c.names[*name] }) == 0 {
		return false
	}
	*at = nil
	return true
}
