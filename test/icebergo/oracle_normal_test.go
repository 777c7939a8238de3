package icebergo

import (
	"encoding/json"
	"iter"
	"maps"
	"strings"
)

// union is the names of both objects.
func union(a, b object) iter.Seq[string] {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return maps.Keys(all)
}

const noUUID = "00000000-0000-0000-0000-000000000000"

// normal is metadata in the one form that what says the same has: without members that are null, empty
// or their defaults, and as version 2 on writes what version 1 may write differently.
func normal(metadata object) object {
	m := clone(metadata)
	if integer(m["format-version"]) == 1 {
		modernize(m)
	}
	if id, ok := m["table-uuid"].(string); ok {
		m["table-uuid"] = strings.ToLower(id)
	}
	if m["table-uuid"] == noUUID {
		delete(m, "table-uuid")
	}
	if integer(m["current-snapshot-id"]) < 0 {
		delete(m, "current-snapshot-id")
	}
	for _, s := range members(m, "snapshots") {
		if integer(s["sequence-number"]) == 0 {
			delete(s, "sequence-number")
		}
	}
	for _, s := range members(m, "schemas") {
		dropEmpty(s, "identifier-field-ids")
	}
	if s, ok := m["schema"].(object); ok {
		dropEmpty(s, "identifier-field-ids")
	}
	trim(m)
	for name := range m {
		dropEmpty(m, name)
	}
	return m
}

func dropEmpty(o object, name string) {
	switch v := o[name].(type) {
	case []any:
		if len(v) == 0 {
			delete(o, name)
		}
	case object:
		if len(v) == 0 {
			delete(o, name)
		}
	}
}

// trim takes out members that are null, and the .0 of whole numbers.
func trim(v any) {
	switch v := v.(type) {
	case object:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			}
			if n, ok := member.(json.Number); ok {
				v[name] = json.Number(strings.TrimSuffix(n.String(), ".0"))
			}
			trim(member)
		}
	case []any:
		for _, element := range v {
			trim(element)
		}
	}
}

// modernize gives metadata in version 1 what its first writers left out.
func modernize(m object) {
	if m["schemas"] == nil {
		only := clone(m["schema"].(object))
		m["schemas"], m["current-schema-id"] = []any{only}, only["schema-id"]
	}
	if m["partition-specs"] == nil {
		fields, _ := m["partition-spec"].([]any)
		m["partition-specs"], m["default-spec-id"] = []any{object{"spec-id": 0, "fields": fields}}, 0
	}
	if m["last-partition-id"] == nil {
		last := 999
		for _, spec := range members(m, "partition-specs") {
			last = max(last, highest(members(spec, "fields"), "field-id"))
		}
		m["last-partition-id"] = last
	}
	if m["sort-orders"] == nil {
		m["sort-orders"], m["default-sort-order-id"] = []any{object{"order-id": 0, "fields": []any{}}}, 0
	}
	refs, _ := m["refs"].(object)
	if current := m["current-snapshot-id"]; integer(current) > 0 && refs["main"] == nil {
		if refs == nil {
			refs = object{}
		}
		refs["main"] = object{"snapshot-id": current, "type": "branch"}
		m["refs"] = refs
	}
}

// agreeOnUUID takes out the uuid where each side makes one up: a table without gets one in version 2.
func agreeOnUUID(c commit, base, a, b object) {
	if base["table-uuid"] == nil && a["table-uuid"] == c.UUID && b["table-uuid"] != nil {
		delete(a, "table-uuid")
		delete(b, "table-uuid")
	}
}

const (
	minute = 60_000
	// clocks is how much later than the commit's time iceberg-go may look at its clock.
	clocks = 10 * minute
)

// agreeOnTimes takes out the times that each side's clock gives: that of the commit, and that of a
// rollback in the log.
func agreeOnTimes(c commit, base, a, b object) {
	delete(a, "last-updated-ms")
	delete(b, "last-updated-ms")
	mine, others := members(a, "snapshot-log"), members(b, "snapshot-log")
	added := addedSnapshots(c)
	for i := range min(len(mine), len(others)) {
		x, y := mine[i], others[i]
		if x["snapshot-id"] != y["snapshot-id"] || added[text(x["snapshot-id"])] || integer(x["timestamp-ms"]) != rollbackTime(c, base) {
			continue
		}
		if late := integer(y["timestamp-ms"]) - c.Now; late >= 0 && late < clocks {
			y["timestamp-ms"] = x["timestamp-ms"]
		}
	}
}

// addedSnapshots is the ids of the snapshots that the commit adds, as text.
func addedSnapshots(c commit) map[string]bool {
	ids := map[string]bool{}
	for _, u := range c.Updates {
		if update, ok := decode(u).(object); ok && update["action"] == "add-snapshot" {
			if s, ok := update["snapshot"].(object); ok {
				ids[text(s["snapshot-id"])] = true
			}
		}
	}
	return ids
}

// rollbackTime is when ours says that the commit happened: now, or the latest time that the table knows.
func rollbackTime(c commit, base object) int64 {
	return max(c.Now, integer(base["last-updated-ms"]), newest(base, "snapshot-log"), newest(base, "metadata-log"))
}

func newest(m object, log string) int64 {
	var t int64
	for _, entry := range members(m, log) {
		t = max(t, integer(entry["timestamp-ms"]))
	}
	return t
}

// checkTimes says which rule of times our metadata breaks, and nothing if none: the commit's time is that
// of the clock, but none runs back.
func checkTimes(c commit, mine outcome) string {
	if mine.metadata == nil {
		return ""
	}
	base := c.base()
	updated := integer(mine.metadata["last-updated-ms"])
	if !mine.changed {
		if updated != integer(base["last-updated-ms"]) {
			return "an unchanged table was updated"
		}
		return ""
	}
	if want := max(rollbackTime(c, base), newest(mine.metadata, "snapshot-log")); updated != want {
		return "last-updated-ms is neither the clock's nor the newest that is known"
	}
	for _, log := range []string{"snapshot-log", "metadata-log"} {
		var last int64
		for _, entry := range members(mine.metadata, log) {
			if integer(entry["timestamp-ms"]) < last {
				return log + " runs back"
			}
			last = integer(entry["timestamp-ms"])
		}
	}
	return ""
}
