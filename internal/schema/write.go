package schema

import (
	"strconv"

	"github.com/landfast/landfast/internal/rawjson"
)

// JSON writes the schema. The caller owns the result.
func (s *Schema) JSON() []byte {
	dst := appendMember([]byte{'{'}, "type", "struct")
	dst = rawjson.AppendInt(rawjson.AppendName(dst, "schema-id"), int64(s.id))
	if len(s.identifiers) > 0 {
		dst = appendInts(rawjson.AppendName(dst, "identifier-field-ids"), s.identifiers)
	}
	return appendStructRest(dst, s.root)
}

func appendType(dst []byte, t Type) []byte {
	switch t := t.(type) {
	case *structType:
		return appendStructRest(appendMember(append(dst, '{'), "type", "struct"), t)
	case *listType:
		dst = appendMember(append(dst, '{'), "type", "list")
		dst = appendInner(dst, &t.element)
		dst = appendBool(rawjson.AppendName(dst, "element-required"), t.element.Required)
		return append(appendExtra(dst, t.extra), '}')
	case *mapType:
		dst = appendMember(append(dst, '{'), "type", "map")
		dst = appendInner(dst, &t.key)
		dst = appendInner(dst, &t.value)
		dst = appendBool(rawjson.AppendName(dst, "value-required"), t.value.Required)
		return append(appendExtra(dst, t.extra), '}')
	default:
		return rawjson.AppendString(dst, t.String())
	}
}

// appendStructRest appends the fields and the unknown members of an object that
// dst has open, and closes it.
func appendStructRest(dst []byte, t *structType) []byte {
	dst = append(rawjson.AppendName(dst, "fields"), '[')
	for i := range t.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendField(dst, &t.fields[i])
	}
	dst = append(dst, ']')
	return append(appendExtra(dst, t.extra), '}')
}

func appendField(dst []byte, f *Field) []byte {
	dst = rawjson.AppendInt(rawjson.AppendName(append(dst, '{'), "id"), int64(f.ID))
	dst = appendMember(dst, "name", f.Name)
	dst = appendBool(rawjson.AppendName(dst, "required"), f.Required)
	dst = appendType(rawjson.AppendName(dst, "type"), f.Type)
	if f.Doc != nil {
		dst = appendMember(dst, "doc", *f.Doc)
	}
	if !f.InitialDefault.IsNull() {
		dst = append(rawjson.AppendName(dst, "initial-default"), f.InitialDefault.json...)
	}
	if !f.WriteDefault.IsNull() {
		dst = append(rawjson.AppendName(dst, "write-default"), f.WriteDefault.json...)
	}
	return append(appendExtra(dst, f.extra), '}')
}

// appendInner appends id and type of the field of a list or a map.
func appendInner(dst []byte, f *Field) []byte {
	dst = rawjson.AppendInt(rawjson.AppendName(dst, f.Name+"-id"), int64(f.ID))
	return appendType(rawjson.AppendName(dst, f.Name), f.Type)
}

func appendMember(dst []byte, name, value string) []byte {
	return rawjson.AppendString(rawjson.AppendName(dst, name), value)
}

func appendBool(dst []byte, b bool) []byte { return strconv.AppendBool(dst, b) }

func appendInts(dst []byte, ints []int) []byte {
	dst = append(dst, '[')
	for i, n := range ints {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendInt(dst, int64(n))
	}
	return append(dst, ']')
}

// appendExtra appends members to an object that dst has open.
func appendExtra(dst []byte, members []rawjson.Member) []byte {
	for _, m := range members {
		dst = append(rawjson.AppendName(dst, m.Name), m.Value...)
	}
	return dst
}
