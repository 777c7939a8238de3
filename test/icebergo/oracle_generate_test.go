package icebergo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// object is a JSON object. Encoded, its members are in order, so that a seed always gives the same text.
type object = map[string]any

// generator makes metadata and commits. It keeps a rough idea of what the table has, so that most of what
// it asks for makes sense, and some does not.
type generator struct {
	*rand.Rand
	now int64 // ms

	version                   int
	uuid                      string
	schemas, specs, orders    []object
	schema                    object // the current one
	spec, order               int
	lastColumn, lastPartition int
	snapshots                 []object
	refs                      []string
	sequence, nextRow         int64
	lastUpdated               int64
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// or is the value, or now and then one that is likely to be wrong.
func (g *generator) or(value any, others ...any) any {
	if g.chance(8) {
		return pick(g, others...)
	}
	return value
}

func (g *generator) randomUUID() string {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(g.Uint32())
	}
	return id.String()
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // Nothing here is made of anything else than JSON.
	}
	return data
}

// decode keeps the digits of numbers.
func decode(data []byte) any {
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

func clone(o object) object { return copied(o).(object) }

// copied is a value as it is when it was decoded.
func copied(v any) any {
	switch v := v.(type) {
	case object:
		o := make(object, len(v))
		for name, member := range v {
			o[name] = copied(member)
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = copied(element)
		}
		return list
	case nil, string, bool, json.Number:
		return v
	}
	return decode(encode(v))
}

// integer is a number of a decoded or of a generated object, and 0 if it is none.
func integer(v any) int64 {
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Int64()
		return n
	case int:
		return int64(v)
	case int64:
		return v
	}
	return 0
}

// members is a member that is an array of objects.
func members(o object, name string) []object {
	switch list := o[name].(type) {
	case []object:
		return list
	case []any:
		objects := make([]object, 0, len(list))
		for _, v := range list {
			if o, ok := v.(object); ok {
				objects = append(objects, o)
			}
		}
		return objects
	}
	return nil
}

func highest(list []object, name string) int {
	id := 0
	for _, o := range list {
		id = max(id, int(integer(o[name])))
	}
	return id
}

// learn takes over what metadata says of a table.
func (g *generator) learn(base object) {
	g.version = int(integer(base["format-version"]))
	g.uuid, _ = base["table-uuid"].(string)
	g.schemas = members(base, "schemas")
	if g.schemas == nil {
		g.schemas = []object{base["schema"].(object)}
	}
	g.schema = g.schemas[0]
	for _, s := range g.schemas {
		if integer(s["schema-id"]) == integer(base["current-schema-id"]) {
			g.schema = s
		}
	}
	g.specs, g.spec = members(base, "partition-specs"), int(integer(base["default-spec-id"]))
	if g.specs == nil {
		g.specs = []object{{"spec-id": 0, "fields": members(base, "partition-spec")}}
	}
	g.orders, g.order = members(base, "sort-orders"), int(integer(base["default-sort-order-id"]))
	if g.orders == nil {
		g.orders = []object{{"order-id": 0, "fields": []object{}}}
	}
	g.lastColumn, g.lastPartition = int(integer(base["last-column-id"])), int(integer(base["last-partition-id"]))
	g.snapshots = members(base, "snapshots")
	g.refs = nil
	if refs, ok := base["refs"].(object); ok {
		for name := range refs {
			g.refs = append(g.refs, name)
		}
		slices.Sort(g.refs)
	}
	g.sequence, g.nextRow = integer(base["last-sequence-number"]), integer(base["next-row-id"])
	g.lastUpdated = integer(base["last-updated-ms"])
}

// ---- Tables.

// table makes the metadata of a table, as some writer may have left it.
func (g *generator) table() object {
	g.version = pick(g, 1, 2, 2, 3, 3)
	g.uuid = g.randomUUID()
	first := g.firstSchema()
	g.schemas, g.schema = []object{first}, first
	for g.chance(40) {
		next := g.evolved()
		next["schema-id"] = highest(g.schemas, "schema-id") + pick(g, 1, 1, 1, 4)
		g.schemas = append(g.schemas, next)
		g.schema = next
	}
	g.lastPartition = 999
	g.specs = []object{{"spec-id": 0, "fields": []object{}}}
	for g.chance(50) {
		fields := g.partitionFields(false)
		for i, field := range fields {
			g.lastPartition++
			field["field-id"] = g.lastPartition
			if g.version == 1 {
				field["field-id"] = 1000 + i
			}
		}
		g.spec = highest(g.specs, "spec-id") + pick(g, 1, 1, 1, 3)
		g.specs = append(g.specs, object{"spec-id": g.spec, "fields": fields})
	}
	g.orders = []object{{"order-id": 0, "fields": []object{}}}
	if fields := g.sortFields(false); len(fields) > 0 && g.chance(50) {
		g.order = pick(g, 1, 1, 3)
		g.orders = append(g.orders, object{"order-id": g.order, "fields": fields})
	}
	if g.chance(15) { // by a column that has gone
		g.orders = append(g.orders, object{"order-id": 9, "fields": []object{{"source-id": 999, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}}})
	}

	t := object{
		"format-version": g.version, "table-uuid": g.uuid, "location": "s3://bucket/table",
		"schemas": g.schemas, "current-schema-id": g.schema["schema-id"], "last-column-id": g.lastColumn + pick(g, 0, 0, 5),
		"partition-specs": g.specs, "default-spec-id": g.spec, "last-partition-id": g.lastPartition,
		"sort-orders": g.orders, "default-sort-order-id": g.order,
		"properties": object{"owner": "me", "write.metadata.previous-versions-max": pick(g, "1", "3", "100")},
	}
	g.history(t)
	if g.version == 1 {
		t["schema"], t["partition-spec"] = g.schema, g.specs[len(g.specs)-1]["fields"]
		g.age(t)
	}
	return t
}

// age takes from metadata in version 1 what its first writers did not know.
func (g *generator) age(t object) {
	if g.chance(30) {
		delete(t, "table-uuid")
	}
	if g.chance(30) {
		delete(t, "schemas")
		delete(t, "current-schema-id")
		delete(t, "partition-specs")
		delete(t, "default-spec-id")
		delete(t, "last-partition-id")
	}
	if g.order == 0 && g.chance(30) {
		delete(t, "sort-orders")
		delete(t, "default-sort-order-id")
	}
	if g.chance(30) {
		delete(t, "refs")
	}
}

// history gives a table snapshots, and what belongs to them.
func (g *generator) history(t object) {
	g.lastUpdated, g.snapshots = g.now-3_600_000, []object{}
	log, metadataLog, refs := []object{}, []object{}, object{}
	current := int64(-1)
	statistics, partitionStatistics := []object{}, []object{}
	for range g.IntN(5) {
		g.lastUpdated += int64(g.IntN(600_000))
		s := g.snapshot(false)
		s["timestamp-ms"] = g.lastUpdated
		id := integer(s["snapshot-id"])
		if g.chance(80) {
			current = id
			log = append(log, object{"timestamp-ms": g.lastUpdated, "snapshot-id": id})
			metadataLog = append(metadataLog, object{"timestamp-ms": g.lastUpdated, "metadata-file": fmt.Sprintf("s3://bucket/table/metadata/%d.metadata.json", len(log))})
		}
		if g.chance(30) {
			refs[pick(g, "b1", "b2", "b3")] = object{"snapshot-id": id, "type": "branch"}
		}
		if g.chance(30) {
			refs[pick(g, "t1", "t2")] = object{"snapshot-id": id, "type": "tag", "max-ref-age-ms": 86_400_000}
		}
		if g.chance(30) {
			statistics = append(statistics, g.statistics(id))
		}
		if g.chance(20) {
			partitionStatistics = append(partitionStatistics, g.partitionStatistics(id))
		}
	}
	switch {
	case current >= 0:
		refs["main"] = object{"snapshot-id": current, "type": "branch"}
		t["current-snapshot-id"] = current
	case g.chance(50):
		t["current-snapshot-id"] = -1
	}
	if g.version > 1 {
		t["last-sequence-number"] = g.sequence
	}
	if g.version > 2 {
		t["next-row-id"] = g.nextRow
		if g.chance(20) {
			t["encryption-keys"] = []object{{"key-id": "k1", "encrypted-key-metadata": "b25l"}}
		}
	}
	t["snapshots"], t["snapshot-log"], t["metadata-log"], t["refs"] = g.snapshots, log, metadataLog, refs
	t["statistics"], t["partition-statistics"] = statistics, partitionStatistics
	t["last-updated-ms"] = g.lastUpdated
}

func (g *generator) snapshotID() int64 {
	if len(g.snapshots) > 0 && !g.chance(8) {
		return integer(pick(g, g.snapshots...)["snapshot-id"])
	}
	return g.Int64N(1000)
}

// snapshot is the next snapshot of the table; now and then one that does not fit, if it may be wrong.
func (g *generator) snapshot(mayBeWrong bool) object {
	g.sequence++
	if g.version == 1 {
		g.sequence = 0
	}
	rows := int64(g.IntN(100))
	s := object{
		"snapshot-id": 1<<40 + g.Int64N(1<<52), "timestamp-ms": max(g.now-int64(g.IntN(1000)), g.lastUpdated),
		"manifest-list": "s3://bucket/table/metadata/snap.avro", "summary": object{"operation": "append", "added-records": fmt.Sprint(rows)},
		"schema-id": integer(g.schema["schema-id"]),
	}
	if g.version > 1 {
		s["sequence-number"] = g.sequence
	}
	if n := len(g.snapshots); n > 0 && !g.chance(10) {
		s["parent-snapshot-id"] = g.snapshots[n-1]["snapshot-id"]
	}
	if g.version > 2 {
		s["first-row-id"], s["added-rows"] = g.nextRow, rows
		g.nextRow += rows
	}
	if g.version == 1 && g.chance(15) {
		delete(s, "manifest-list")
		s["manifests"] = []string{"s3://bucket/table/metadata/m.avro"}
	}
	if mayBeWrong {
		g.spoilSnapshot(s)
	}
	g.snapshots = append(g.snapshots, s)
	return s
}

func (g *generator) spoilSnapshot(s object) {
	if g.chance(75) {
		return
	}
	switch g.IntN(14) {
	case 0:
		s["snapshot-id"] = g.snapshotID()
	case 1:
		s["snapshot-id"] = pick[any](g, -1, -7, "1", nil, 9.5)
	case 2, 13:
		s["sequence-number"] = pick[any](g, 0, 1, g.sequence-1, g.sequence+7, -1, json.Number("9223372036854775807"))
		if g.chance(50) {
			delete(s, "parent-snapshot-id")
		}
	case 3:
		s["timestamp-ms"] = g.now + pick[int64](g, -30_000, -300_000, -7_200_000, 30_000, 300_000)
	case 4:
		s["first-row-id"] = pick[any](g, g.nextRow-1, g.nextRow+10, 0, -1, nil)
	case 5:
		s["added-rows"] = pick[any](g, 0, -1, nil, json.Number("9223372036854775807"))
	case 6:
		delete(s, pick(g, "timestamp-ms", "manifest-list", "summary", "schema-id", "parent-snapshot-id", "sequence-number", "first-row-id", "added-rows"))
	case 7:
		s["summary"] = pick[any](g, object{}, object{"added-records": "1"}, object{"operation": "unheard-of"}, object{"operation": 1}, nil, object{"operation": ""})
	case 8:
		s["schema-id"] = pick[any](g, 99, nil, "0")
	case 9:
		s["parent-snapshot-id"] = pick[any](g, 99, nil, -1)
	case 10:
		s["key-id"] = "k1"
	case 11:
		s["manifests"] = []string{"s3://bucket/table/metadata/m.avro"}
	case 12:
		s["unheard-of"] = object{"a": 1}
	}
}

func (g *generator) statistics(snapshot int64) object {
	s := object{
		"snapshot-id": snapshot, "statistics-path": fmt.Sprintf("s3://bucket/table/%d.puffin", g.IntN(100)), "file-size-in-bytes": 413, "file-footer-size-in-bytes": 42,
		"blob-metadata": []object{{
			"type": "apache-datasketches-theta-v1", "snapshot-id": snapshot, "sequence-number": 1, "fields": []int{1}, "properties": object{"ndv": "3"},
		}},
	}
	if g.chance(15) {
		delete(s, "blob-metadata")
		s["blob-metadata"] = []object{}
	}
	return s
}

func (g *generator) partitionStatistics(snapshot int64) object {
	return object{"snapshot-id": snapshot, "statistics-path": fmt.Sprintf("s3://bucket/table/%d.parquet", g.IntN(100)), "file-size-in-bytes": 43}
}

// ---- Layout.

var primitives = []string{"boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid", "fixed[4]", "binary", "decimal(9, 2)"}

func (g *generator) columnID() int { g.lastColumn++; return g.lastColumn }

func (g *generator) columnType(depth int) any {
	switch {
	case depth > 0 && g.chance(8):
		return object{"type": "struct", "fields": []object{g.column(depth - 1), g.column(depth - 1)}}
	case depth > 0 && g.chance(8):
		return object{"type": "list", "element-id": g.columnID(), "element": g.columnType(depth - 1), "element-required": g.chance(50)}
	case depth > 0 && g.chance(8):
		return object{
			"type": "map", "key-id": g.columnID(), "key": "string", "value-id": g.columnID(), "value": g.columnType(depth - 1), "value-required": g.chance(50),
		}
	case depth == 2 && g.version > 2 && g.chance(10):
		return pick(g, "timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography")
	}
	return pick(g, primitives...)
}

func (g *generator) column(depth int) object {
	id := g.columnID()
	c := object{"id": id, "name": fmt.Sprintf("c%d", id), "type": g.columnType(depth), "required": g.chance(20)}
	switch c["type"] {
	case "unknown":
		c["required"] = false
	case "int":
		if g.version > 2 && g.chance(30) {
			c["initial-default"], c["write-default"] = 7, 8
		}
	}
	if g.chance(15) {
		c["doc"] = "a column"
	}
	return c
}

func (g *generator) firstSchema() object {
	g.lastColumn = 0
	fields := []object{{"id": g.columnID(), "name": "id", "type": "long", "required": true}, {"id": g.columnID(), "name": "ts", "type": "timestamp", "required": false}}
	for range g.IntN(4) {
		fields = append(fields, g.column(2))
	}
	s := object{"type": "struct", "schema-id": 0, "fields": fields}
	if g.chance(30) {
		s["identifier-field-ids"] = []int{1}
	}
	return s
}

// evolved is the current schema with columns added, dropped, renamed or changed.
func (g *generator) evolved() object {
	s := clone(g.schema)
	fields := members(s, "fields")
	for range 1 + g.IntN(2) {
		i := g.IntN(len(fields))
		switch g.IntN(7) {
		case 0, 1, 2:
			fields = append(fields, g.column(2))
		case 3:
			if len(fields) > 1 {
				fields = slices.Delete(fields, i, i+1)
			}
		case 4:
			fields[i]["name"] = pick(g, fmt.Sprintf("n%d", g.IntN(20)), fmt.Sprintf("n%d", g.IntN(20)), "id", "ts_day", "id_bucket")
		case 5:
			if fields[i]["type"] == "int" {
				fields[i]["type"] = "long"
			}
			fields[i]["doc"] = pick(g, "one", "two")
		case 6:
			j := g.IntN(len(fields))
			fields[i], fields[j] = fields[j], fields[i]
		}
	}
	names := map[any]bool{}
	fields = slices.DeleteFunc(fields, func(c object) bool {
		again := names[c["name"]]
		names[c["name"]] = true
		return again
	})
	s["fields"] = fields
	if !slices.ContainsFunc(fields, func(c object) bool { return integer(c["id"]) == 1 }) {
		delete(s, "identifier-field-ids")
	}
	return s
}

func (g *generator) spoilSchema(s object) {
	if g.chance(75) {
		return
	}
	s["schema-id"] = 0
	fields := members(s, "fields")
	c := pick(g, fields...)
	switch g.IntN(15) {
	case 0:
		c["id"] = integer(fields[0]["id"])
	case 1:
		c["name"] = fields[0]["name"]
	case 2:
		c["name"] = pick[any](g, "", "a.b", nil, 7, "ID")
	case 3:
		c["type"] = pick[any](g, "integer", "fixed[0]", "decimal(50,2)", "decimal(9, 2)", object{"type": "struct"}, "INT", nil)
	case 4:
		c["type"] = pick(g, "timestamp_ns", "variant", "unknown", "geometry(srid:4326)", "geography")
	case 5:
		s["identifier-field-ids"] = pick[any](g, []int{99}, []int{2}, []int{}, nil, []int{1, 1})
	case 6, 14:
		c["write-default"] = pick[any](g, 7, "x", true, nil, json.Number("9007199254740993"))
	case 7:
		c["initial-default"] = pick[any](g, 7, "x", json.Number("9007199254740993"))
	case 8:
		c["id"] = pick[any](g, json.Number("2147483648"), g.lastColumn+50, "1")
	case 9:
		s["schema-id"] = pick[any](g, 17, nil, -1, "0")
	case 10:
		delete(c, pick(g, "id", "name", "type", "required"))
	case 11:
		s["unheard-of"] = 1
	case 12:
		c["id"] = 2147483447
	case 13:
		c["id"] = pick(g, 0, -1)
	}
}

// sources are the columns at the top of the current schema.
func (g *generator) source() (id int64, name, kind string) {
	c := pick(g, members(g.schema, "fields")...)
	kind, _ = c["type"].(string)
	name, _ = c["name"].(string)
	return integer(c["id"]), name, kind
}

// transform is one that takes the type, unless it may be wrong.
func (g *generator) transform(kind string, mayBeWrong bool) string {
	if mayBeWrong && g.chance(10) {
		return pick(g, "identity", "bucket[4]", "truncate[3]", "year", "month", "day", "hour", "void", "bucket[0]", "bucket", "truncate[-1]", "unheard-of", "Identity", "zorder[2]")
	}
	switch kind {
	case "int", "long", "string", "decimal(9, 2)":
		return pick(g, "identity", "bucket[16]", "truncate[10]", "void")
	case "date":
		return pick(g, "identity", "year", "month", "day", "bucket[4]")
	case "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns":
		return pick(g, "identity", "year", "month", "day", "hour", "bucket[4]")
	case "uuid", "fixed[4]", "binary", "time":
		return pick(g, "identity", "bucket[4]")
	case "boolean", "float", "double":
		return "identity"
	}
	return "void"
}

func (g *generator) partitionFields(mayBeWrong bool) []object {
	fields := []object{}
	for range 1 + g.IntN(2) {
		id, name, kind := g.source()
		if !mayBeWrong && !slices.Contains(primitives, kind) {
			continue
		}
		transform := g.transform(kind, mayBeWrong)
		named := name + "_" + strings.Trim(transform, "[]0123456789")
		if transform == "identity" {
			named = name
		}
		again := slices.ContainsFunc(fields, func(f object) bool { return f["name"] == named || f["source-id"] == id })
		taken := slices.ContainsFunc(members(g.schema, "fields"), func(c object) bool { return c["name"] == named && integer(c["id"]) != id })
		switch {
		case again && mayBeWrong && g.chance(20):
			named += pick(g, "", "_2")
		case again, taken && !mayBeWrong:
			continue
		}
		fields = append(fields, object{"source-id": id, "name": named, "transform": transform})
	}
	return fields
}

// sortFields is those of a sort order; none if there is no column to sort by.
func (g *generator) sortFields(mayBeWrong bool) []object {
	id, _, kind := g.source()
	transform := g.transform(kind, mayBeWrong)
	if transform == "void" && !mayBeWrong {
		return []object{}
	}
	return []object{{"source-id": id, "transform": transform, "direction": pick(g, "asc", "desc"), "null-order": pick(g, "nulls-first", "nulls-last")}}
}

// ---- Commits.

// updates is the updates of one commit.
func (g *generator) updates() []json.RawMessage {
	var all []json.RawMessage
	for range 1 + g.IntN(6) {
		for _, u := range g.some() {
			all = append(all, encode(u))
		}
	}
	return all
}

// creation is the updates that create a table.
func (g *generator) creation() []json.RawMessage {
	g.version = pick(g, 1, 2, 2, 3)
	first := g.firstSchema()
	g.schemas, g.schema = []object{first}, first
	g.specs = []object{{"spec-id": 0, "fields": []object{}}}
	g.lastPartition = 999
	all := []object{{"action": "assign-uuid", "uuid": g.randomUUID()}, {"action": "upgrade-format-version", "format-version": g.version}}
	all = append(all, object{"action": "add-schema", "schema": first, "last-column-id": g.lastColumn}, object{"action": "set-current-schema", "schema-id": -1})
	all = append(all, object{"action": "add-spec", "spec": object{"spec-id": 0, "fields": g.numbered(g.partitionFields(false))}}, object{"action": "set-default-spec", "spec-id": -1})
	order := object{"order-id": 0, "fields": []object{}}
	if fields := g.sortFields(false); len(fields) > 0 && g.chance(50) {
		order = object{"order-id": 1, "fields": fields}
	}
	g.orders = []object{order}
	all = append(all, object{"action": "add-sort-order", "sort-order": order}, object{"action": "set-default-sort-order", "sort-order-id": -1})
	all = append(all, object{"action": "set-location", "location": "s3://bucket/new"})
	if g.chance(50) {
		all = append(all, g.some()...)
	}
	if g.chance(15) {
		i := g.IntN(len(all))
		all = slices.Delete(all, i, i+1)
	}
	var raw []json.RawMessage
	for _, u := range all {
		raw = append(raw, encode(u))
	}
	return raw
}

func (g *generator) numbered(fields []object) []object {
	for _, field := range fields {
		g.lastPartition++
		field["field-id"] = g.lastPartition
	}
	return fields
}

// some is one update, or a few that belong together.
func (g *generator) some() []object {
	switch g.IntN(24) {
	case 0, 1:
		return g.addSchema()
	case 2:
		return []object{{"action": "set-current-schema", "schema-id": g.anID(g.schemas, "schema-id")}}
	case 3, 4:
		return g.addSpec()
	case 5:
		return []object{{"action": "set-default-spec", "spec-id": g.anID(g.specs, "spec-id")}}
	case 6, 7:
		return g.addSortOrder()
	case 8:
		return []object{{"action": "set-default-sort-order", "sort-order-id": g.anID(g.orders, "order-id")}}
	case 9, 10, 11:
		s := g.snapshot(true)
		updates := []object{{"action": "add-snapshot", "snapshot": s}}
		if g.chance(70) {
			updates = append(updates, object{"action": "set-snapshot-ref", "ref-name": pick(g, "main", "main", "main", "b1"), "type": "branch", "snapshot-id": s["snapshot-id"]})
		}
		return updates
	case 12, 13:
		return []object{g.setRef()}
	case 14:
		name := "main"
		if len(g.refs) > 0 && !g.chance(10) {
			name = pick(g, g.refs...)
		}
		return []object{{"action": "remove-snapshot-ref", "ref-name": g.or(name, "b9", nil, "")}}
	case 15, 16:
		if g.chance(5) { // statistics of no snapshot
			return []object{{"action": "set-partition-statistics", "partition-statistics": g.partitionStatistics(7)}, {"action": "remove-snapshots", "snapshot-ids": []int{7}}}
		}
		ids := []any{}
		for range 1 + g.IntN(2) {
			ids = append(ids, g.or(g.snapshotID(), 7, "7", -1))
		}
		return []object{{"action": "remove-snapshots", "snapshot-ids": ids}}
	case 17, 18:
		return []object{g.properties()}
	case 19:
		return []object{{"action": "set-location", "location": g.or(pick(g, "s3://bucket/table", "s3://bucket/moved"), "s3://bucket/moved/", "", nil, 7)}}
	case 20:
		g.version = min(3, g.version+g.IntN(2))
		return []object{{"action": "upgrade-format-version", "format-version": g.or(g.version-max(0, g.IntN(9)-7), 1, 0, 4, 5, "2", nil)}}
	case 21:
		return []object{pick(g,
			object{"action": "remove-schemas", "schema-ids": []any{g.anID(g.schemas, "schema-id"), g.or(3, 4)}},
			object{"action": "remove-partition-specs", "spec-ids": []any{g.anID(g.specs, "spec-id")}},
			object{"action": "remove-schemas", "schema-ids": g.or([]any{}, nil, "1", []any{nil})})}
	case 22:
		return []object{g.files()}
	default:
		return []object{g.rare()}
	}
}

// anID is that of an element of the list, of the one added last, or none.
func (g *generator) anID(list []object, name string) any {
	if g.chance(30) {
		return -1
	}
	return g.or(integer(pick(g, list...)[name]), 99, -2, nil, "1", json.Number("2147483648"), highest(list, name)+1)
}

func (g *generator) addSchema() []object {
	s := g.evolved()
	if g.chance(20) {
		s = clone(pick(g, g.schemas...)) // one that is there
	}
	s["schema-id"] = highest(g.schemas, "schema-id") + pick(g, 0, 1, 1)
	if g.chance(30) {
		s["schema-id"] = 0
	}
	good := clone(s)
	good["schema-id"] = highest(g.schemas, "schema-id") + 1
	g.spoilSchema(s)
	g.schemas = append(g.schemas, good)
	updates := []object{{"action": "add-schema", "schema": s, "last-column-id": g.lastColumn}}
	if g.chance(60) {
		g.schema = good
		updates = append(updates, object{"action": "set-current-schema", "schema-id": -1})
	}
	return updates
}

func (g *generator) addSpec() []object {
	spec := object{"spec-id": highest(g.specs, "spec-id") + 1, "fields": g.partitionFields(true)}
	switch fields := members(spec, "fields"); {
	case g.chance(20):
		spec = clone(pick(g, g.specs...)) // one that is there
		if g.chance(50) {
			spec["spec-id"] = pick(g, 0, 1, 7)
		}
	case g.chance(25): // without ids
	case g.version == 1:
		for i, field := range fields {
			field["field-id"] = g.or(1000+i, 1005, 1000)
		}
	case g.chance(10):
		for _, field := range fields {
			field["field-id"] = pick[any](g, 1000, 1, -1, 1007, "1000", nil, 0)
		}
	default:
		g.numbered(fields)
	}
	g.spoilFields(members(spec, "fields"))
	if g.chance(5) {
		spec["spec-id"] = pick[any](g, nil, -1, 0, "1")
	}
	if g.chance(2) {
		delete(spec, pick(g, "spec-id", "fields"))
	}
	g.specs = append(g.specs, object{"spec-id": highest(g.specs, "spec-id") + 1, "fields": members(spec, "fields")})
	updates := []object{{"action": "add-spec", "spec": spec}}
	if g.chance(60) {
		updates = append(updates, object{"action": "set-default-spec", "spec-id": -1})
	}
	return updates
}

// spoilFields damages a field of a spec or of a sort order.
func (g *generator) spoilFields(fields []object) {
	if len(fields) == 0 || g.chance(88) {
		return
	}
	field := pick(g, fields...)
	switch g.IntN(6) {
	case 0:
		field["source-id"] = pick[any](g, 99, 0, -1, nil, "1")
	case 1:
		if field["name"] == nil {
			return // of a sort order
		}
		field["name"] = pick[any](g, "id", "ts", "", nil, 7)
	case 2:
		delete(field, pick(g, "source-id", "source-id", "name", "transform", "direction", "null-order"))
	case 3:
		field["transform"] = pick[any](g, nil, 7, "", "bucket[16]", "void")
	case 4:
		field["source-ids"] = []any{field["source-id"]}
		if g.chance(70) {
			delete(field, "source-id")
		}
	case 5:
		field[pick(g, "direction", "null-order")] = pick[any](g, "ASC", "up", nil, 7)
	}
}

func (g *generator) addSortOrder() []object {
	order := object{"order-id": highest(g.orders, "order-id") + pick(g, 0, 1, 1), "fields": g.sortFields(true)}
	switch {
	case g.chance(20):
		order = clone(pick(g, g.orders...)) // one that is there
		if g.chance(50) && len(members(order, "fields")) > 0 {
			order["order-id"] = pick(g, 1, 7)
		}
	case g.chance(10):
		order = object{"order-id": 0, "fields": []object{}}
	}
	g.spoilFields(members(order, "fields"))
	if g.chance(5) {
		order["order-id"] = pick[any](g, 0, 5, -1, nil, "1")
	}
	if g.chance(2) {
		delete(order, pick(g, "order-id", "fields"))
	}
	g.orders = append(g.orders, object{"order-id": highest(g.orders, "order-id") + 1, "fields": members(order, "fields")})
	updates := []object{{"action": "add-sort-order", "sort-order": order}}
	if g.chance(60) {
		updates = append(updates, object{"action": "set-default-sort-order", "sort-order-id": -1})
	}
	return updates
}

func (g *generator) setRef() object {
	u := object{"action": "set-snapshot-ref", "ref-name": pick(g, "main", "b1", "b2", "t1", "t3"), "snapshot-id": g.or(g.snapshotID(), 99, nil, -1, "7")}
	name := u["ref-name"].(string)
	u["type"] = "branch"
	if name[0] == 't' {
		u["type"] = "tag"
	}
	u["type"] = g.or(u["type"], "tag", "tag", "branch", "BRANCH", "twig", nil)
	if g.chance(25) {
		u["max-ref-age-ms"] = g.or(86_400_000, 0, -1, nil, "1")
	}
	if g.chance(15) {
		u["max-snapshot-age-ms"] = g.or(86_400_000, 0, -1, nil)
	}
	if g.chance(15) {
		u["min-snapshots-to-keep"] = g.or(3, 0, -1, nil, json.Number("2147483648"))
	}
	g.refs = append(g.refs, name)
	return u
}

func (g *generator) properties() object {
	key := func() string { return pick(g, "owner", "a", "b", "comment") }
	reserved := func() string { return pick(g, "format-version", "uuid", "current-schema") }
	if g.chance(40) {
		names := []any{key(), g.or(key(), reserved(), "unheard-of", nil, 7)}
		return object{"action": "remove-properties", "removals": g.or(names, nil, []any{}, "a")}
	}
	updates := object{key(): g.or(fmt.Sprint(g.IntN(9)), 7, nil, "")}
	switch {
	case g.chance(5):
		updates[reserved()] = "1"
	case g.chance(10):
		updates["write.metadata.previous-versions-max"] = g.or(pick(g, "1", "2", "7", "0"), "many", "-3", "3000000000")
	case g.chance(5):
		updates["write.metadata.compression-codec"] = pick(g, "gzip", "none", "lzma", "GZIP")
	}
	return object{"action": "set-properties", "updates": g.or(updates, nil, object{}, []any{})}
}

func (g *generator) files() object {
	id := g.snapshotID()
	switch g.IntN(4) {
	case 0:
		s := g.statistics(id)
		if g.chance(10) {
			delete(s, pick(g, "snapshot-id", "statistics-path", "file-size-in-bytes", "file-footer-size-in-bytes", "blob-metadata"))
		}
		if blobs := members(s, "blob-metadata"); len(blobs) > 0 && g.chance(10) {
			delete(blobs[0], pick(g, "type", "snapshot-id", "sequence-number", "fields", "properties"))
		}
		u := object{"action": "set-statistics", "statistics": g.or(s, nil, "x")}
		if g.chance(50) {
			u["snapshot-id"] = g.or(id, 99)
		}
		return u
	case 1:
		return object{"action": "remove-statistics", "snapshot-id": g.or(id, nil, "1")}
	case 2:
		s := g.partitionStatistics(id)
		if g.chance(10) {
			delete(s, pick(g, "snapshot-id", "statistics-path", "file-size-in-bytes"))
		}
		return object{"action": "set-partition-statistics", "partition-statistics": s}
	default:
		return object{"action": "remove-partition-statistics", "snapshot-id": id}
	}
}

// rare is an update that few commits have.
func (g *generator) rare() object {
	switch g.IntN(6) {
	case 0, 1:
		same := g.uuid
		if same == "" {
			same = g.randomUUID()
		}
		return object{"action": "assign-uuid", "uuid": pick[any](g, same, same, same, strings.ToUpper(same), g.randomUUID(), "x", nil, noUUID, noUUID, strings.ReplaceAll(same, "-", ""))}
	case 2, 3:
		key := object{"key-id": pick(g, "k1", "k2"), "encrypted-key-metadata": g.or("dHdv", "?", "dHd", "")}
		if g.chance(30) {
			key["encrypted-by-id"] = "k0"
		}
		return object{"action": "add-encryption-key", "encryption-key": key}
	case 4:
		return object{"action": "remove-encryption-key", "key-id": pick[any](g, "k1", "k2", nil)}
	default:
		return pick(g, object{"action": "unheard-of"}, object{}, object{"action": nil}, object{"action": "SET-LOCATION", "location": "s3://bucket/moved"},
			object{"action": "set-properties", "updated": object{"a": "1"}}, object{"action": "remove-properties", "removed": []string{"a"}},
			object{"action": "add-view-version", "view-version": object{}})
	}
}

// requirement is one that a commit may make.
func (g *generator) requirement(base object) json.RawMessage {
	number := func(name string) any {
		return g.or(integer(base[name]), integer(base[name])+1, nil, "1", -1, json.Number("2147483648"))
	}
	r := pick(g,
		object{"type": "assert-create"},
		object{"type": "assert-table-uuid", "uuid": g.or(g.uuid, g.randomUUID(), strings.ToUpper(g.uuid), nil, "x", 7)},
		object{"type": "assert-ref-snapshot-id", "ref": g.or(pick(g, "main", "b1", "t1"), "b9", nil), "snapshot-id": g.or(g.snapshotID(), nil, "1", -1)},
		object{"type": "assert-ref-snapshot-id", "ref": pick(g, "main", "b1", "t1")},
		object{"type": "assert-last-assigned-field-id", "last-assigned-field-id": number("last-column-id")},
		object{"type": "assert-current-schema-id", "current-schema-id": number("current-schema-id")},
		object{"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": number("last-partition-id")},
		object{"type": "assert-default-spec-id", "default-spec-id": number("default-spec-id")},
		object{"type": "assert-default-sort-order-id", "default-sort-order-id": number("default-sort-order-id")},
		object{"type": "assert-view-uuid", "uuid": g.uuid},
		object{"type": g.or("ASSERT-CREATE", "unheard-of", nil)})
	return encode(r)
}
