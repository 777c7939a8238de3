package tablemeta

import (
	"math"

	"github.com/landfast/landfast/internal/schema"
)

// This file holds the changes to how rows are laid out: schemas, partition specs
// and sort orders. All three work alike. What is added gets an id, or that of an
// equal one that is there; it becomes current by a second update, which may say
// -1 for "the one added last".

// schemaTracking is what the changes of one commit remember of each other.
type schemaTracking struct {
	addedSchemas, addedSpecs, addedOrders map[int]bool
	// relaid is true when another schema, spec or order was made the current one.
	// In the end it may have the id of the base's, which can be removed and given
	// again.
	relaid bool
	// The ids that -1 stands for; nil while it stands for nothing.
	lastSchema, lastSpec, lastOrder *int

	// What was parsed or added already, by id. A commit of many updates would
	// otherwise read all of it for each of them.
	parsedSchemas map[int]*schema.Schema
	parsedSpecs   map[int]*schema.Spec
	parsedOrders  map[int]*schema.SortOrder
}

// schema is the parsed schema at position i, as spec and order are for theirs.
func (b *builder) schema(i int) (*schema.Schema, error) {
	return parsed(&b.parsedSchemas, &b.schemas, i, schema.Parse)
}

func (b *builder) spec(i int) (*schema.Spec, error) {
	return parsed(&b.parsedSpecs, &b.specs, i, schema.ParseSpec)
}

func (b *builder) order(i int) (*schema.SortOrder, error) {
	return parsed(&b.parsedOrders, &b.orders, i, schema.ParseSortOrder)
}

func parsed[T any](cache *map[int]T, ids *list[int], i int, parse func([]byte) (T, error)) (T, error) {
	id := ids.entries[i].head
	if value, ok := (*cache)[id]; ok {
		return value, nil
	}
	value, err := parse(ids.value(i))
	if err != nil {
		return value, invalidBecause(err)
	}
	put(cache, id, value)
	return value, nil
}

// put makes the map with its first entry: most commits need none of them.
func put[T any](entries *map[int]T, id int, value T) {
	if *entries == nil {
		*entries = map[int]T{}
	}
	(*entries)[id] = value
}

func position(ids *list[int], id int) int {
	return ids.index(func(other *int) bool { return *other == id })
}

func (b *builder) currentSchema() (*schema.Schema, error) {
	i := position(&b.schemas, b.currentSchemaID)
	if i < 0 {
		return nil, invalid("Cannot find current schema %d: no schema has been added", b.currentSchemaID)
	}
	return b.schema(i)
}

// nextID is one more than the highest id, at least first.
func nextID(ids *list[int], first int) (int, error) {
	next := first
	for i := range ids.entries {
		if id := ids.entries[i].head; id >= next {
			next = id + 1
		}
	}
	if next > math.MaxInt32 {
		return 0, invalid("No id above %d is left", math.MaxInt32)
	}
	return next, nil
}

type addSchema struct{ schema *schema.Schema }

func decodeAddSchema(f *fields) change {
	value := f.nested("schema")
	if f.err != nil {
		return nil
	}
	s, err := schema.Parse(value)
	if err != nil {
		f.err = invalidBecause(err)
	}
	return addSchema{s}
}

func (c addSchema) apply(b *builder) error {
	if err := c.schema.CheckFormat(b.formatVersion); err != nil {
		return invalidBecause(err)
	}
	for i := range b.schemas.entries {
		existing, err := b.schema(i)
		if err != nil {
			return err
		}
		if existing.SameAs(c.schema) {
			id := b.schemas.entries[i].head
			if c.schema.HighestFieldID() > b.lastColumnID { // of a base that others wrote
				b.lastColumnID = c.schema.HighestFieldID()
				put(&b.addedSchemas, id, true)
				b.lastSchema, b.changed = &id, true
			} else if b.lastSchema != nil && b.addedSchemas[id] {
				b.lastSchema = &id
			} else {
				b.lastSchema = nil
			}
			return nil
		}
	}
	id, err := nextID(&b.schemas, b.currentSchemaID)
	if err != nil {
		return err
	}
	added := c.schema.WithID(id)
	b.schemas.add(id, added.JSON())
	put(&b.parsedSchemas, id, added)
	b.lastColumnID = max(b.lastColumnID, added.HighestFieldID())
	put(&b.addedSchemas, id, true)
	b.lastSchema, b.changed = &id, true
	return nil
}

type setCurrentSchema struct{ id int }

func (c setCurrentSchema) apply(b *builder) error {
	id := c.id
	if id == lastAdded {
		if b.lastSchema == nil {
			return invalid("Cannot set last added schema: no schema has been added")
		}
		id = *b.lastSchema
	}
	if id == b.currentSchemaID {
		return nil
	}
	if position(&b.schemas, id) < 0 {
		return invalid("Cannot set current schema to unknown schema: %d", id)
	}
	b.currentSchemaID, b.changed, b.relaid = id, true, true
	return nil
}

type removeSchemas struct{ ids map[int]bool }

func (c removeSchemas) apply(b *builder) error {
	if c.ids[b.currentSchemaID] {
		return invalid("Cannot remove the current schema")
	}
	if b.schemas.remove(func(id *int) bool { return c.ids[*id] }) > 0 {
		b.changed = true
	}
	return nil
}

type addSpec struct{ spec *schema.Spec }

func decodeAddSpec(f *fields) change {
	value := f.nested("spec")
	if f.err != nil {
		return nil
	}
	spec, err := schema.ParseSpec(value)
	if err != nil {
		f.err = invalidBecause(err)
	}
	return addSpec{spec}
}

func (c addSpec) apply(b *builder) error {
	current, err := b.currentSchema()
	if err != nil {
		return err
	}
	existing := make([]*schema.Spec, b.specs.len())
	for i := range existing {
		if existing[i], err = b.spec(i); err != nil {
			return err
		}
	}
	bound, err := c.spec.Bind(current, b.lastPartitionID, b.formatVersion, existing)
	if err != nil {
		return invalidBecause(err)
	}
	for i, spec := range existing {
		if bound.SameAs(spec) {
			id := b.specs.entries[i].head
			if b.lastSpec == nil || !b.addedSpecs[*b.lastSpec] {
				b.lastSpec = nil
			} else {
				b.lastSpec = &id
			}
			return nil
		}
	}
	id, err := nextID(&b.specs, 0)
	if err != nil {
		return err
	}
	bound = bound.WithID(id)
	b.specs.add(id, bound.JSON())
	put(&b.parsedSpecs, id, bound)
	b.lastPartitionID = max(b.lastPartitionID, bound.LastAssignedID())
	put(&b.addedSpecs, id, true)
	b.lastSpec, b.changed = &id, true
	return nil
}

type setDefaultSpec struct{ id int }

func (c setDefaultSpec) apply(b *builder) error {
	id := c.id
	if id == lastAdded {
		if b.lastSpec == nil {
			return invalid("Cannot set last added spec: no spec has been added")
		}
		id = *b.lastSpec
	}
	if id == b.defaultSpecID {
		return nil
	}
	if position(&b.specs, id) < 0 {
		return invalid("Cannot set default partition spec to unknown spec: %d", id)
	}
	b.defaultSpecID, b.changed, b.relaid = id, true, true
	return nil
}

type removeSpecs struct{ ids map[int]bool }

func (c removeSpecs) apply(b *builder) error {
	if c.ids[b.defaultSpecID] {
		return invalid("Cannot remove the default partition spec")
	}
	if b.specs.remove(func(id *int) bool { return c.ids[*id] }) > 0 {
		b.changed = true
	}
	return nil
}

type addSortOrder struct{ order *schema.SortOrder }

func decodeAddSortOrder(f *fields) change {
	value := f.nested("sort-order")
	if f.err != nil {
		return nil
	}
	order, err := schema.ParseSortOrder(value)
	if err != nil {
		f.err = invalidBecause(err)
	}
	return addSortOrder{order}
}

func (c addSortOrder) apply(b *builder) error {
	current, err := b.currentSchema()
	if err != nil {
		return err
	}
	if err := c.order.CheckCompatible(current); err != nil {
		return invalidBecause(err)
	}
	if err := c.order.CheckSources(); err != nil {
		return invalidBecause(err)
	}
	// Id 0 is the order of unsorted tables, whether or not it is listed.
	id, found := 0, false
	for i := range b.orders.entries {
		existing, err := b.order(i)
		if err != nil {
			return err
		}
		if existing.SameAs(c.order) {
			id, found = b.orders.entries[i].head, true
			break
		}
	}
	if found {
		if b.lastOrder == nil || !b.addedOrders[*b.lastOrder] {
			b.lastOrder = nil
		} else {
			b.lastOrder = &id
		}
		return nil
	}
	added := schema.Unsorted()
	if !c.order.IsUnsorted() {
		if id, err = nextID(&b.orders, 1); err != nil {
			return err
		}
		added = c.order.WithID(id)
	}
	b.orders.add(id, added.JSON())
	put(&b.parsedOrders, id, added)
	put(&b.addedOrders, id, true)
	b.lastOrder, b.changed = &id, true
	return nil
}

type setDefaultSortOrder struct{ id int }

func (c setDefaultSortOrder) apply(b *builder) error {
	id := c.id
	if id == lastAdded {
		if b.lastOrder == nil {
			return invalid("Cannot set last added sort order: no sort order has been added")
		}
		id = *b.lastOrder
	}
	if id == b.defaultOrderID {
		return nil
	}
	if position(&b.orders, id) < 0 {
		return invalid("Cannot set default sort order to unknown sort order: %d", id)
	}
	b.defaultOrderID, b.changed, b.relaid = id, true, true
	return nil
}

// checkLayout makes sure that data can be written with the schema, spec and
// order that are current in the end: a column that one of them is made from may
// have gone, and a partition field of any spec may have the name of a new one.
func (b *builder) checkLayout() error {
	if b.base != nil && !b.relaid {
		return nil
	}
	current, err := b.currentSchema()
	if err != nil {
		return err
	}
	for i := range b.specs.entries {
		spec, err := b.spec(i)
		if err != nil {
			return err
		}
		if err := spec.CheckNames(current); err != nil {
			return invalidBecause(err)
		}
	}
	if i := position(&b.specs, b.defaultSpecID); i >= 0 {
		spec, err := b.spec(i)
		if err != nil {
			return err
		}
		if err := spec.CheckCompatible(current); err != nil {
			return invalidBecause(err)
		}
	}
	if i := position(&b.orders, b.defaultOrderID); i >= 0 {
		order, err := b.order(i)
		if err != nil {
			return err
		}
		if err := order.CheckCompatible(current); err != nil {
			return invalidBecause(err)
		}
	}
	return nil
}
