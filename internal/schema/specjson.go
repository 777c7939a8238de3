package schema

import "github.com/landfast/landfast/internal/rawjson"

const partitionSpec = "partition spec"

// ParseSpec reads a partition spec. A spec-id that is absent is 0, a field-id may
// be absent in all fields: [Spec.Bind] assigns them. Errors are [*Error].
func ParseSpec(data []byte) (*Spec, error) {
	members, err := rawjson.Object(data)
	if err != nil {
		return nil, invalid("%s: %v", partitionSpec, err)
	}
	sp := &Spec{}
	var fields []byte
	for _, m := range members {
		switch m.Name {
		case "spec-id":
			if rawjson.IsNull(m.Value) {
				continue
			}
			id, why := parseInt(m.Value)
			if why != "" {
				return nil, invalid("%s: spec-id %s", partitionSpec, why)
			}
			sp.id = id
		case "fields":
			fields = m.Value
		default:
			sp.extra = append(sp.extra, m)
		}
	}
	sp.extra = cloneMembers(sp.extra)
	if err := sp.parseFields(fields); err != nil {
		return nil, err
	}
	return sp, nil
}

func (sp *Spec) parseFields(value []byte) *Error {
	split, err := splitFields(partitionSpec, value)
	if err != nil {
		return err
	}
	assigned := 0
	for i, members := range split {
		f, why := parsePartitionField(members)
		if why != "" {
			return invalid("%s: field %d: %s", partitionSpec, i, why)
		}
		if f.assigned {
			assigned++
		}
		sp.fields = append(sp.fields, f)
	}
	if assigned != 0 && assigned != len(sp.fields) {
		return invalid("%s: field-id is missing in %d of %d fields: give it in all or in none",
			partitionSpec, len(sp.fields)-assigned, len(sp.fields))
	}
	return nil
}

// parsePartitionField returns what is wrong with the field, or "".
func parsePartitionField(members []rawjson.Member) (f partitionField, why string) {
	var one, many, id, name, text []byte
	for _, m := range members {
		switch m.Name {
		case "source-id":
			one = m.Value
		case "source-ids":
			many = m.Value
		case "field-id":
			id = m.Value
		case "name":
			name = m.Value
		case "transform":
			text = m.Value
		default:
			f.extra = append(f.extra, m)
		}
	}
	f.extra = cloneMembers(f.extra)
	var ok bool
	if f.name, ok = rawjson.String(name); !ok {
		return f, "name must be a string"
	}
	if f.transform, why = transformMember(text); why != "" {
		return f, why
	}
	if f.sources, why = parseSources(one, many); why != "" {
		return f, why
	}
	if id != nil && !rawjson.IsNull(id) {
		if f.id, why = parseInt(id); why != "" {
			return f, "field-id " + why
		}
		f.assigned = true
	}
	return f, ""
}

// transformMember reads the member transform; it returns what is wrong, or "".
func transformMember(value []byte) (t transform, why string) {
	text, ok := rawjson.String(value)
	if !ok {
		return t, "transform must be a string"
	}
	t, err := parseTransform(text)
	if err != nil {
		return t, err.Message
	}
	return t, ""
}

// JSON writes the spec. The caller owns the result.
func (sp *Spec) JSON() []byte {
	dst := rawjson.AppendInt(rawjson.AppendName([]byte{'{'}, "spec-id"), int64(sp.id))
	dst = sp.appendFields(rawjson.AppendName(dst, "fields"))
	return append(appendExtra(dst, sp.extra), '}')
}

func (sp *Spec) appendFields(dst []byte) []byte {
	dst = append(dst, '[')
	for i, f := range sp.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMember(append(dst, '{'), "name", f.name)
		dst = appendMember(dst, "transform", f.transform.text)
		dst = f.sources.append(dst)
		if f.assigned {
			dst = rawjson.AppendInt(rawjson.AppendName(dst, "field-id"), int64(f.id))
		}
		dst = append(appendExtra(dst, f.extra), '}')
	}
	return append(dst, ']')
}
