package tablemeta

import (
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
)

// This file reads the versions of a view. A version is never decoded into
// something else: what is not SQL in it, and members that are not known, stay as
// they are.

// viewVersion reads a version, and checks what it alone can show.
func (f *fields) viewVersion() viewVersion {
	v := viewVersion{
		id:        f.int("version-id"),
		schemaID:  f.int("schema-id"),
		timestamp: f.int64("timestamp-ms"),
	}
	f.stringMap("summary")
	f.optionalString("default-catalog")
	f.strings("default-namespace")
	f.representations()
	return v
}

// representations checks the ways in which the version is expressed. Only SQL is
// known. It returns how many there are.
func (f *fields) representations() (n int) {
	value, ok := f.required("representations")
	if !ok {
		return 0
	}
	if value[0] != '[' {
		f.fail("field %q must be an array, got %s", "representations", excerpt(value))
		return 0
	}
	for element := range rawjson.Elements(value) {
		if element[0] != '{' {
			f.fail("representations: must be objects, got %s", excerpt(element))
			return n
		}
		r := fields{what: f.what + ": representation", object: element}
		if strings.ToLower(r.string("type")) == representationSQL {
			r.string("sql")
			r.string("dialect")
		}
		if r.err != nil {
			f.err = r.err
			return n
		}
		n++
	}
	return n
}

const representationSQL = "sql"

// dialects is those of the queries in a version, in lower case and in order. A
// dialect that has two is there twice.
func dialects(version []byte) []string {
	var found []string
	representations, _ := rawjson.Lookup(version, "representations")
	for element := range rawjson.Elements(representations) {
		f := fields{object: element}
		kind, dialect := f.string("type"), f.string("dialect")
		if f.err == nil && strings.ToLower(kind) == representationSQL {
			found = append(found, strings.ToLower(dialect))
		}
	}
	return found
}

// checkDialects refuses a version that says the same thing twice in one language:
// an engine could not tell which to run.
func checkDialects(version []byte) error {
	seen := map[string]bool{}
	for _, dialect := range dialects(version) {
		if seen[dialect] {
			return invalid("Invalid view version: Cannot add multiple queries for dialect %s", excerpt(dialect))
		}
		seen[dialect] = true
	}
	return nil
}

// versionKey is equal for versions that behave the same: in all but id and time.
// What is unknown counts, because it may matter to somebody.
func versionKey(version []byte) string {
	var members []rawjson.Member
	for name, value := range rawjson.Members(version) {
		if name != "version-id" && name != "timestamp-ms" && !rawjson.IsNull(value) {
			members = append(members, rawjson.Member{Name: name, Value: value})
		}
	}
	return string(appendSorted(nil, members))
}

// appendCanonical writes a validated value so that the same value, written in
// another way, is the same text: members sorted, strings in their shortest form.
func appendCanonical(dst, value []byte) []byte {
	switch value[0] {
	case '{':
		var members []rawjson.Member
		for name, member := range rawjson.Members(value) {
			members = append(members, rawjson.Member{Name: name, Value: member})
		}
		return appendSorted(dst, members)
	case '[':
		dst = append(dst, '[')
		first := true
		for element := range rawjson.Elements(value) {
			if !first {
				dst = append(dst, ',')
			}
			dst, first = appendCanonical(dst, element), false
		}
		return append(dst, ']')
	case '"':
		text, _ := rawjson.String(value)
		return rawjson.AppendString(dst, text)
	default:
		return append(dst, value...)
	}
}

func appendSorted(dst []byte, members []rawjson.Member) []byte {
	slices.SortFunc(members, func(a, b rawjson.Member) int { return strings.Compare(a.Name, b.Name) })
	dst = append(dst, '{')
	for _, m := range members {
		dst = appendCanonical(rawjson.AppendName(dst, m.Name), m.Value)
	}
	return append(dst, '}')
}

// renumbered is the version with other ids and another time.
func renumbered(version []byte, as viewVersion) []byte {
	out := make([]byte, 0, len(version)+16)
	out = append(out, '{')
	for name, value := range rawjson.Members(version) {
		out = rawjson.AppendName(out, name)
		switch name {
		case "version-id":
			out = rawjson.AppendInt(out, int64(as.id))
		case "schema-id":
			out = rawjson.AppendInt(out, int64(as.schemaID))
		case "timestamp-ms":
			out = rawjson.AppendInt(out, as.timestamp)
		default:
			out = append(out, value...)
		}
	}
	return append(out, '}')
}
