package tablemeta_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// layoutM is the model's other half: how rows are laid out. Columns have the ids 1 to
// 3, the names c1 to c3 and two types, of which one has no buckets.
type layoutM struct {
	Updated       int64     `json:"last-updated-ms"`
	LastColumn    int       `json:"last-column-id"`
	Schema        int       `json:"current-schema-id"`
	Schemas       []schemaM `json:"schemas"`
	Spec          int       `json:"default-spec-id"`
	Specs         []specM   `json:"partition-specs"`
	LastPartition int       `json:"last-partition-id"`
	Order         int       `json:"default-sort-order-id"`
	Orders        []orderM  `json:"sort-orders"`
}

type specM struct {
	ID     int          `json:"spec-id"`
	Fields []partitionM `json:"fields"`
}

type partitionM struct {
	Name      string `json:"name"`
	Transform string `json:"transform"`
	Source    int    `json:"source-id"`
	ID        int    `json:"field-id,omitempty"`
}

type orderM struct {
	ID     int     `json:"order-id"`
	Fields []sortM `json:"fields"`
}

type sortM struct {
	Transform string `json:"transform"`
	Source    int    `json:"source-id"`
	Direction string `json:"direction"`
	Nulls     string `json:"null-order"`
}

// layoutUpdateM is one update: the union of the fields of all of them.
type layoutUpdateM struct {
	Action    string   `json:"action"`
	Schema    *schemaM `json:"schema,omitempty"`
	SchemaID  *int     `json:"schema-id,omitempty"`
	SchemaIDs []int    `json:"schema-ids,omitempty"`
	Spec      *specM   `json:"spec,omitempty"`
	SpecID    *int     `json:"spec-id,omitempty"`
	SpecIDs   []int    `json:"spec-ids,omitempty"`
	Order     *orderM  `json:"sort-order,omitempty"`
	OrderID   *int     `json:"sort-order-id,omitempty"`
}

// column is a column of the current schema, or nil.
func (m *layoutM) column(match func(fieldM) bool) *fieldM {
	for _, s := range m.Schemas {
		if i := slices.IndexFunc(s.Fields, match); s.ID == m.Schema && i >= 0 {
			return &s.Fields[i]
		}
	}
	return nil
}

// takes reports whether a transform can be made of a source.
func (m *layoutM) takes(transform string, source int) bool {
	c := m.column(func(f fieldM) bool { return f.ID == source })
	return c != nil && (transform == "identity" || c.Type == "int")
}

// named reports whether the names of a spec stand beside those of the columns.
func (m *layoutM) named(fields []partitionM) bool {
	for i, f := range fields {
		again := slices.ContainsFunc(fields[:i], func(o partitionM) bool { return o.Name == f.Name })
		shadowed := m.column(func(c fieldM) bool { return c.Name == f.Name })
		source := m.column(func(c fieldM) bool { return c.ID == f.Source })
		if again || source != nil && shadowed != nil && shadowed.ID != f.Source {
			return false
		}
	}
	return true
}

func (m *layoutM) partitions(fields []partitionM) bool {
	return !slices.ContainsFunc(fields, func(f partitionM) bool { return !m.takes(f.Transform, f.Source) })
}

func (m *layoutM) sorts(fields []sortM) bool {
	return !slices.ContainsFunc(fields, func(f sortM) bool { return !m.takes(f.Transform, f.Source) })
}

// numbered gives partition fields their ids: those that equal ones have, or new ones.
func (m *layoutM) numbered(fields []partitionM) []partitionM {
	fields = slices.Clone(fields)
	last := m.LastPartition
	for i := range fields {
		f := &fields[i]
		for _, s := range slices.Backward(m.Specs) {
			for _, o := range s.Fields {
				if o.Name == f.Name && o.Transform == f.Transform && o.Source == f.Source {
					f.ID = o.ID
				}
			}
		}
		if f.ID == 0 {
			last++
			f.ID = last
		}
	}
	return fields
}

// commit applies updates; ok is false if they are refused.
func (m *layoutM) commit(updates []layoutUpdateM, now int64) (changed, ok bool) {
	const none = -1
	lastSchema, lastSpec, lastOrder := none, none, none
	newSchemas, newSpecs, newOrders := map[int]bool{}, map[int]bool{}, map[int]bool{}
	relaid := false
	// set makes one of several current, as -1 or by its id.
	set := func(current *int, id, last int, exists func(int) bool) bool {
		if id == -1 {
			id = last
		}
		if id == none || id != *current && !exists(id) {
			return false
		}
		if id != *current {
			*current, changed, relaid = id, true, true
		}
		return true
	}
	hasSchema := func(id int) bool {
		return slices.ContainsFunc(m.Schemas, func(s schemaM) bool { return s.ID == id })
	}
	hasSpec := func(id int) bool { return slices.ContainsFunc(m.Specs, func(s specM) bool { return s.ID == id }) }
	hasOrder := func(id int) bool { return slices.ContainsFunc(m.Orders, func(o orderM) bool { return o.ID == id }) }
	for _, u := range updates {
		ok := true
		switch u.Action {
		case "add-schema":
			next := 0
			for _, s := range m.Schemas {
				next = max(next, s.ID+1)
			}
			if i := slices.IndexFunc(m.Schemas, func(s schemaM) bool { return cmp.Equal(s.Fields, u.Schema.Fields) }); i >= 0 {
				lastSchema = none
				if id := m.Schemas[i].ID; newSchemas[id] {
					lastSchema = id
				}
				break
			}
			for _, f := range u.Schema.Fields {
				m.LastColumn = max(m.LastColumn, f.ID)
			}
			m.Schemas = append(m.Schemas, schemaM{"struct", next, u.Schema.Fields})
			newSchemas[next], lastSchema, changed = true, next, true
		case "set-current-schema":
			ok = set(&m.Schema, *u.SchemaID, lastSchema, hasSchema)
		case "remove-schemas":
			n := len(m.Schemas)
			m.Schemas = slices.DeleteFunc(m.Schemas, func(s schemaM) bool { return slices.Contains(u.SchemaIDs, s.ID) })
			ok, changed = hasSchema(m.Schema), changed || len(m.Schemas) < n
		case "add-spec":
			if ok = m.named(u.Spec.Fields) && m.partitions(u.Spec.Fields); !ok {
				break
			}
			bound := specM{0, m.numbered(u.Spec.Fields)}
			for _, s := range m.Specs {
				bound.ID = max(bound.ID, s.ID+1)
			}
			same := func(s specM) bool { return cmp.Equal(s.Fields, bound.Fields) }
			if i := slices.IndexFunc(m.Specs, same); i >= 0 {
				if newSpecs[lastSpec] {
					lastSpec = m.Specs[i].ID
				} else {
					lastSpec = none
				}
				break
			}
			for _, f := range bound.Fields {
				m.LastPartition = max(m.LastPartition, f.ID)
			}
			m.Specs = append(m.Specs, bound)
			newSpecs[bound.ID], lastSpec, changed = true, bound.ID, true
		case "set-default-spec":
			ok = set(&m.Spec, *u.SpecID, lastSpec, hasSpec)
		case "remove-partition-specs":
			n := len(m.Specs)
			m.Specs = slices.DeleteFunc(m.Specs, func(s specM) bool { return slices.Contains(u.SpecIDs, s.ID) })
			ok, changed = hasSpec(m.Spec), changed || len(m.Specs) < n
		case "add-sort-order":
			if ok = m.sorts(u.Order.Fields); !ok {
				break
			}
			next := 1
			for _, o := range m.Orders {
				next = max(next, o.ID+1)
			}
			same := func(o orderM) bool { return slices.Equal(o.Fields, u.Order.Fields) }
			if i := slices.IndexFunc(m.Orders, same); i >= 0 {
				if newOrders[lastOrder] {
					lastOrder = m.Orders[i].ID
				} else {
					lastOrder = none
				}
				break
			}
			m.Orders = append(m.Orders, orderM{next, u.Order.Fields})
			newOrders[next], lastOrder, changed = true, next, true
		case "set-default-sort-order":
			ok = set(&m.Order, *u.OrderID, lastOrder, hasOrder)
		default:
			panic(u.Action)
		}
		if !ok {
			return false, false
		}
	}
	if !changed {
		return false, true
	}
	m.Updated = max(m.Updated, now)
	if relaid {
		for _, s := range m.Specs {
			if !m.named(s.Fields) || s.ID == m.Spec && !m.partitions(s.Fields) {
				return false, false
			}
		}
		for _, o := range m.Orders {
			if o.ID == m.Order && !m.sorts(o.Fields) {
				return false, false
			}
		}
	}
	return true, true
}

func drawLayoutUpdate(t *rapid.T, m *layoutM) layoutUpdateM {
	// An id that is likely to be there, or the last.
	id := func(known int) *int {
		return ptr(rapid.SampledFrom([]int{-1, 0, known, rapid.IntRange(0, known+1).Draw(t, "any")}).Draw(t, "id"))
	}
	ids := func() []int { return rapid.SliceOfN(rapid.IntRange(0, 4), 1, 2).Draw(t, "ids") }
	source := func() int { return rapid.SampledFrom([]int{1, 1, 2, 2, 3}).Draw(t, "source") }
	transform := func() string { return rapid.SampledFrom([]string{"identity", "bucket[2]"}).Draw(t, "transform") }
	switch action := rapid.SampledFrom([]string{
		"add-schema", "add-schema", "set-current-schema", "set-current-schema", "add-spec", "add-spec", "add-spec", "set-default-spec", "set-default-spec",
		"add-sort-order", "add-sort-order", "set-default-sort-order", "set-default-sort-order", "remove-schemas", "remove-partition-specs",
	}).Draw(t, "action"); action {
	case "add-schema":
		s := &schemaM{"struct", rapid.IntRange(0, 5).Draw(t, "its id"), []fieldM{}}
		for column := 1; column <= 3; column++ {
			if column == 1 || rapid.IntRange(0, 2).Draw(t, "column?") > 0 {
				kind := rapid.SampledFrom([]string{"int", "int", "int", "int", "boolean"}).Draw(t, "type")
				s.Fields = append(s.Fields, fieldM{column, fmt.Sprintf("c%d", column), false, kind})
			}
		}
		return layoutUpdateM{Action: action, Schema: s}
	case "set-current-schema":
		return layoutUpdateM{Action: action, SchemaID: id(len(m.Schemas) - 1)}
	case "remove-schemas":
		return layoutUpdateM{Action: action, SchemaIDs: ids()}
	case "add-spec":
		s := &specM{rapid.IntRange(0, 5).Draw(t, "its id"), []partitionM{}}
		for range rapid.IntRange(0, 2).Draw(t, "fields") {
			f := partitionM{Transform: transform(), Source: source()}
			f.Name = rapid.SampledFrom([]string{fmt.Sprintf("p%d%s", f.Source, f.Transform), fmt.Sprintf("p%d%s", f.Source, f.Transform), fmt.Sprintf("c%d", f.Source), "c2", "p"}).Draw(t, "name")
			s.Fields = append(s.Fields, f)
		}
		return layoutUpdateM{Action: action, Spec: s}
	case "set-default-spec":
		return layoutUpdateM{Action: action, SpecID: id(len(m.Specs) - 1)}
	case "remove-partition-specs":
		return layoutUpdateM{Action: action, SpecIDs: ids()}
	case "add-sort-order":
		o := &orderM{rapid.IntRange(0, 5).Draw(t, "its id"), []sortM{}}
		for range rapid.IntRange(0, 2).Draw(t, "fields") {
			o.Fields = append(o.Fields, sortM{transform(), source(), rapid.SampledFrom([]string{"asc", "desc"}).Draw(t, "direction"), "nulls-first"})
		}
		if len(o.Fields) == 0 {
			o.ID = 0
		} else {
			o.ID = max(o.ID, 1)
		}
		return layoutUpdateM{Action: action, Order: o}
	default:
		return layoutUpdateM{Action: action, OrderID: id(len(m.Orders) - 1)}
	}
}

func decodeLayoutModel(t interface{ Fatal(...any) }, doc []byte) *layoutM {
	m := &layoutM{}
	if err := json.Unmarshal(doc, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// randomLayouts is [randomCommits] for schemas, specs and sort orders.
func randomLayouts(start []byte, outcome func(string)) func(*rapid.T) {
	return func(t *rapid.T) {
		m, err := tablemeta.Parse(slices.Clone(start))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(5, 25).Draw(t, "commits") {
			now := transcriptNow + int64(rapid.IntRange(-200_000, 200_000).Draw(t, "now"))
			want := decodeLayoutModel(t, m.JSON())
			drawn := []layoutUpdateM{}
			for range rapid.IntRange(1, 4).Draw(t, "updates") {
				drawn = append(drawn, drawLayoutUpdate(t, want))
			}
			text, err := json.Marshal(drawn)
			if err != nil {
				t.Fatal(err)
			}
			var updates []tablemeta.Update
			if err := rawjson.Unmarshal(text, &updates); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			next, changed, err := tablemeta.Commit(tablemeta.Change{Base: m, Updates: updates, Now: time.UnixMilli(now)})
			wantChanged, ok := want.commit(drawn, now)
			if got := kindOf(err); ok != (got == "") || !ok && got != refused || changed != wantChanged {
				t.Fatalf("commit: %q (%v), changed %v; model: taken %v, changed %v\nbase    %s\nupdates %s", got, err, changed, ok, wantChanged, m.JSON(), text)
			}
			switch {
			case !ok:
				outcome(refused)
				continue
			case !changed:
				outcome("unchanged")
				continue
			}
			outcome("changed")
			if diff := cmp.Diff(want, decodeLayoutModel(t, next.JSON())); diff != "" {
				t.Fatalf("(-model +commit):\n%s\nbase    %s\nupdates %s", diff, m.JSON(), text)
			}
			if err := tablemeta.Rereads(next); err != nil {
				t.Fatalf("%v\nbase    %s\nupdates %s", err, m.JSON(), text)
			}
			m = next
		}
	}
}

// modelLayout is a table with a column of each name.
func modelLayout(t testing.TB) []byte {
	return []byte(strings.NewReplacer(`"name":"id"`, `"name":"c1"`, `"name":"data"`, `"name":"c2"`, `"type":"string"`, `"type":"int"`).Replace(string(samples(t)["v2-empty"])))
}

func TestRandomLayouts(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, randomLayouts(modelLayout(t), func(outcome string) { outcomes[outcome]++ }))
	t.Logf("outcomes: %v", outcomes)
	for _, outcome := range []string{"changed", "unchanged", refused} {
		if outcomes[outcome] == 0 {
			t.Errorf("no commit was %s", outcome)
		}
	}
}

// FuzzLayouts is [TestRandomLayouts] with the fuzzer in place of chance.
func FuzzLayouts(f *testing.F) {
	addChances(f)
	f.Fuzz(rapid.MakeFuzz(randomLayouts(modelLayout(f), func(string) {})))
}
