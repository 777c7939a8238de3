package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
)

// sources are the ids of the fields that a transform is applied to; never empty.
// More than one, written as source-ids, exists since format version 3.
type sources []int

// String is the list as messages show it: 3, or 3, 4.
func (ids sources) String() string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(id)
	}
	return strings.Join(texts, ", ")
}

// parseSources takes the values of source-id and source-ids, either may be nil.
// It returns what is wrong with them, or "".
func parseSources(one, many []byte) (ids sources, why string) {
	if many != nil && !rawjson.IsNull(many) {
		if many[0] != '[' {
			return nil, "source-ids must be an array"
		}
		for element := range rawjson.Elements(many) {
			id, why := parseInt(element)
			if why != "" {
				return nil, "an element of source-ids " + why
			}
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			return nil, "source-ids is empty"
		}
		if one == nil || rawjson.IsNull(one) {
			return ids, ""
		}
	}
	id, why := parseInt(one)
	if why != "" {
		return nil, "source-id " + why
	}
	if ids != nil && (len(ids) != 1 || ids[0] != id) {
		return nil, "source-id and source-ids contradict each other"
	}
	return sources{id}, ""
}

// append writes source-id for one source and source-ids for several.
func (ids sources) append(dst []byte) []byte {
	if len(ids) == 1 {
		return rawjson.AppendInt(rawjson.AppendName(dst, "source-id"), int64(ids[0]))
	}
	return appendInts(rawjson.AppendName(dst, "source-ids"), ids)
}

// checkSingle refuses several sources. The specification has them since v3, but
// the reference implementation cannot load a table that has them.
func (ids sources) checkSingle(field fmt.Stringer) *Error {
	if len(ids) > 1 {
		return invalid("Invalid transform of several sources: %s: most readers cannot load a table that has one", excerpt(field.String()))
	}
	return nil
}

// follow finds the sources by name in another schema: a field that is renumbered
// keeps its full name.
func (ids sources) follow(from, to *Schema) (sources, bool) {
	moved := make(sources, len(ids))
	for i, id := range ids {
		name, ok := from.Name(id)
		if !ok {
			return nil, false
		}
		id, ok := to.index.byName[name]
		if !ok {
			return nil, false
		}
		moved[i] = id
	}
	return moved, true
}

// splitFields cuts the value of the member fields into its elements and each of
// those into its members.
func splitFields(what string, value []byte) ([][]rawjson.Member, *Error) {
	if value == nil || value[0] != '[' {
		return nil, invalid("%s: fields must be an array", what)
	}
	var fields [][]rawjson.Member
	for element := range rawjson.Elements(value) {
		if element[0] != '{' {
			return nil, invalid("%s: field %d must be an object, not %s", what, len(fields), excerpt(element))
		}
		var members []rawjson.Member
		for name, v := range rawjson.Members(element) {
			members = append(members, rawjson.Member{Name: name, Value: v})
		}
		fields = append(fields, members)
	}
	return fields, nil
}
