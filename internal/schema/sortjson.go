package schema

import (
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
)

const sortOrder = "sort order"

// ParseSortOrder reads a sort order. An order-id that is absent is 0 when there are
// no fields and 1 otherwise. Errors are [*Error].
func ParseSortOrder(data []byte) (*SortOrder, error) {
	members, err := rawjson.Object(data)
	if err != nil {
		return nil, invalid("%s: %v", sortOrder, err)
	}
	o := &SortOrder{}
	var id, fields []byte
	for _, m := range members {
		switch m.Name {
		case "order-id":
			id = m.Value
		case "fields":
			fields = m.Value
		default:
			o.extra = append(o.extra, m)
		}
	}
	o.extra = cloneMembers(o.extra)
	if err := o.parseFields(fields); err != nil {
		return nil, err
	}
	if err := o.parseID(id); err != nil {
		return nil, err
	}
	return o, nil
}

// parseID comes after the fields, which decide whether the id may be 0.
func (o *SortOrder) parseID(value []byte) *Error {
	if value == nil || rawjson.IsNull(value) {
		if !o.IsUnsorted() {
			o.id = firstSortOrder
		}
		return nil
	}
	id, why := parseInt(value)
	switch {
	case why != "":
		return invalid("%s: order-id %s", sortOrder, why)
	case o.IsUnsorted() && id != unsortedID:
		return invalid("Unsorted order ID must be 0")
	case !o.IsUnsorted() && id == unsortedID:
		return invalid("Sort order ID 0 is reserved for unsorted order")
	}
	o.id = id
	return nil
}

func (o *SortOrder) parseFields(value []byte) *Error {
	split, err := splitFields(sortOrder, value)
	if err != nil {
		return err
	}
	for i, members := range split {
		f, why := parseSortField(members)
		if why != "" {
			return invalid("%s: field %d: %s", sortOrder, i, why)
		}
		o.fields = append(o.fields, f)
	}
	return nil
}

// parseSortField returns what is wrong with the field, or "".
func parseSortField(members []rawjson.Member) (f sortField, why string) {
	var text, one, many, direction, nullOrder []byte
	for _, m := range members {
		switch m.Name {
		case "transform":
			text = m.Value
		case "source-id":
			one = m.Value
		case "source-ids":
			many = m.Value
		case "direction":
			direction = m.Value
		case "null-order":
			nullOrder = m.Value
		default:
			f.extra = append(f.extra, m)
		}
	}
	f.extra = cloneMembers(f.extra)
	if f.transform, why = transformMember(text); why != "" {
		return f, why
	}
	if f.sources, why = parseSources(one, many); why != "" {
		return f, why
	}
	if f.direction, why = oneOf("direction", direction, "asc", "desc"); why != "" {
		return f, why
	}
	f.nullOrder, why = oneOf("null-order", nullOrder, "nulls-first", "nulls-last")
	return f, why
}

// oneOf reads a member that is one of two words in any case.
func oneOf(name string, value []byte, first, second string) (word, why string) {
	text, _ := rawjson.String(value)
	if word = strings.ToLower(text); word == first || word == second {
		return word, ""
	}
	if value == nil {
		return "", name + " is missing"
	}
	return "", name + " must be " + first + " or " + second + ", not " + excerpt(value)
}

// JSON writes the order. The caller owns the result.
func (o *SortOrder) JSON() []byte {
	dst := rawjson.AppendInt(rawjson.AppendName([]byte{'{'}, "order-id"), int64(o.id))
	dst = append(rawjson.AppendName(dst, "fields"), '[')
	for i, f := range o.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMember(append(dst, '{'), "transform", f.transform.text)
		dst = f.sources.append(dst)
		dst = appendMember(dst, "direction", f.direction)
		dst = appendMember(dst, "null-order", f.nullOrder)
		dst = append(appendExtra(dst, f.extra), '}')
	}
	dst = append(dst, ']')
	return append(appendExtra(dst, o.extra), '}')
}
