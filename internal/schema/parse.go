package schema

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
)

// nestingMax bounds how deep types may be nested in each other. Engines give up
// earlier; it keeps recursion, and the time that a hostile schema takes, small.
const nestingMax = 64

// sizeMax bounds the text, because each level of nesting is read once more. It
// is some hundred thousand columns.
const sizeMax = 16 << 20

// Parse reads a schema. A schema-id that is absent is 0. Errors are [*Error] and
// name the field.
func Parse(data []byte) (*Schema, error) {
	if len(data) > sizeMax {
		return nil, invalid("schema: larger than %d bytes", sizeMax)
	}
	if err := rawjson.Validate(data); err != nil {
		return nil, invalid("schema: %v", err)
	}
	s, err := parseSchema(data)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// parseSchema takes validated JSON, as all functions below do.
func parseSchema(data []byte) (*Schema, *Error) {
	data = bytes.TrimSpace(data)
	p := &typeParser{}
	if typeName(data) != "struct" {
		return nil, p.errorf(`must be an object with "type": "struct"`)
	}
	t, extra, err := p.structType(data)
	if err != nil {
		return nil, err
	}
	var (
		id          int
		identifiers []int
	)
	for _, m := range extra {
		switch m.Name {
		case "schema-id":
			if rawjson.IsNull(m.Value) {
				continue
			}
			if id, err = p.int("schema-id", m.Value); err != nil {
				return nil, err
			}
		case "identifier-field-ids":
			if identifiers, err = p.identifiers(m.Value); err != nil {
				return nil, err
			}
		default:
			t.extra = append(t.extra, rawjson.Member{Name: m.Name, Value: bytes.Clone(m.Value)})
		}
	}
	return newSchema(id, t, identifiers)
}

// typeParser reads types from validated JSON and knows where it is.
type typeParser struct {
	// path holds the names of the fields from the root to the one being read.
	path []string
}

func (p *typeParser) errorf(format string, args ...any) *Error {
	err := invalid(format, args...)
	if len(p.path) == 0 {
		return invalid("schema: %s", err.Message)
	}
	return invalid("schema: field %q: %s", excerpt(strings.Join(p.path, ".")), err.Message)
}

func (p *typeParser) identifiers(value []byte) ([]int, *Error) {
	if rawjson.IsNull(value) {
		return nil, nil
	}
	if value[0] != '[' {
		return nil, p.errorf("identifier-field-ids must be an array")
	}
	var ids []int
	seen := map[int]bool{}
	for element := range rawjson.Elements(value) {
		id, err := p.int("identifier-field-ids", element)
		if err != nil {
			return nil, err
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// typeName is the "type" of an object, or empty.
func typeName(value []byte) string {
	value, _ = rawjson.Lookup(value, "type")
	name, _ := rawjson.String(value)
	return name
}

// read reads the type of the field that path names.
func (p *typeParser) read(value []byte) (Type, *Error) {
	if len(p.path) > nestingMax {
		return nil, p.errorf("types are nested more than %d levels deep", nestingMax)
	}
	switch value[0] {
	case '"':
		name, _ := rawjson.String(value)
		l, err := parseLeaf(name)
		if err != nil {
			return nil, p.errorf("%s", err.Message)
		}
		return l, nil
	case '{':
		return p.nested(value)
	default:
		return nil, p.errorf("the type must be a string or an object, not %s", excerpt(value))
	}
}

func (p *typeParser) nested(value []byte) (Type, *Error) {
	switch typeName(value) {
	case "struct":
		t, extra, err := p.structType(value)
		if err != nil {
			return nil, err
		}
		t.extra = cloneMembers(extra)
		return t, nil
	case "list":
		return p.list(value)
	case "map":
		return p.mapType(value)
	default:
		return nil, p.errorf(`a type that is an object must have "type": "struct", "list" or "map"`)
	}
}

// structType leaves it to the caller to keep the members beside type and fields:
// those of the schema itself are not all unknown.
func (p *typeParser) structType(value []byte) (*structType, []rawjson.Member, *Error) {
	var fields []byte
	var extra []rawjson.Member
	for name, v := range rawjson.Members(value) {
		switch name {
		case "type":
		case "fields":
			fields = v
		default:
			extra = append(extra, rawjson.Member{Name: name, Value: v})
		}
	}
	if fields == nil || fields[0] != '[' {
		return nil, nil, p.errorf("a struct must have an array of fields")
	}
	t := &structType{}
	for element := range rawjson.Elements(fields) {
		f, err := p.field(element)
		if err != nil {
			return nil, nil, err
		}
		t.fields = append(t.fields, f)
	}
	return t, extra, nil
}

func (p *typeParser) field(value []byte) (Field, *Error) {
	if value[0] != '{' {
		return Field{}, p.errorf("a struct field must be an object, not %s", excerpt(value))
	}
	var f Field
	var id, name, required, typ, doc, initial, write []byte
	for member, v := range rawjson.Members(value) {
		switch member {
		case "id":
			id = v
		case "name":
			name = v
		case "required":
			required = v
		case "type":
			typ = v
		case "doc":
			doc = v
		case "initial-default":
			initial = v
		case "write-default":
			write = v
		default:
			f.extra = append(f.extra, rawjson.Member{Name: member, Value: bytes.Clone(v)})
		}
	}
	var ok bool
	if f.Name, ok = rawjson.String(name); !ok {
		return Field{}, p.errorf("a field must have a name that is a string")
	}
	p.path = append(p.path, f.Name)
	defer func() { p.path = p.path[:len(p.path)-1] }()

	var err *Error
	if f.ID, err = p.int("id", id); err != nil {
		return Field{}, err
	}
	if f.Required, err = p.bool("required", required); err != nil {
		return Field{}, err
	}
	if f.Type, err = p.member("type", typ); err != nil {
		return Field{}, err
	}
	if doc != nil && !rawjson.IsNull(doc) {
		text, ok := rawjson.String(doc)
		if !ok {
			return Field{}, p.errorf("doc must be a string, not %s", excerpt(doc))
		}
		f.Doc = &text
	}
	if f.InitialDefault, err = parseDefault(f.Type, initial); err != nil {
		return Field{}, p.errorf("initial-default: %s", err.Message)
	}
	if f.WriteDefault, err = parseDefault(f.Type, write); err != nil {
		return Field{}, p.errorf("write-default: %s", err.Message)
	}
	return f, p.checkUnknown(f)
}

// checkUnknown refuses a required field that can hold nothing but null.
func (p *typeParser) checkUnknown(f Field) *Error {
	if l, ok := f.Type.(leaf); ok && l.kind == kindUnknown && f.Required {
		return p.errorf("a field of type unknown cannot be required")
	}
	return nil
}

// member reads the type that is a member of the field, list or map that path
// names.
func (p *typeParser) member(name string, value []byte) (Type, *Error) {
	if value == nil || rawjson.IsNull(value) {
		return nil, p.errorf("%s is missing", name)
	}
	return p.read(value)
}

func (p *typeParser) list(value []byte) (Type, *Error) {
	t := &listType{}
	var id, required, element []byte
	for name, v := range rawjson.Members(value) {
		switch name {
		case "type":
		case "element-id":
			id = v
		case "element-required":
			required = v
		case "element":
			element = v
		default:
			t.extra = append(t.extra, rawjson.Member{Name: name, Value: bytes.Clone(v)})
		}
	}
	needed, err := p.bool("element-required", required)
	if err != nil {
		return nil, err
	}
	t.element, err = p.inner("element", id, element, needed)
	return t, err
}

func (p *typeParser) mapType(value []byte) (Type, *Error) {
	t := &mapType{}
	var keyID, key, valueID, val, required []byte
	for name, v := range rawjson.Members(value) {
		switch name {
		case "type":
		case "key-id":
			keyID = v
		case "key":
			key = v
		case "value-id":
			valueID = v
		case "value":
			val = v
		case "value-required":
			required = v
		default:
			t.extra = append(t.extra, rawjson.Member{Name: name, Value: bytes.Clone(v)})
		}
	}
	needed, err := p.bool("value-required", required)
	if err != nil {
		return nil, err
	}
	if t.key, err = p.inner("key", keyID, key, true); err != nil {
		return nil, err
	}
	if t.value, err = p.inner("value", valueID, val, needed); err != nil {
		return nil, err
	}
	return t, nil
}

// inner reads the field of a list or a map with the given name.
func (p *typeParser) inner(name string, id, typ []byte, required bool) (Field, *Error) {
	f := Field{Name: name, Required: required}
	var err *Error
	if f.ID, err = p.int(name+"-id", id); err != nil {
		return Field{}, err
	}
	p.path = append(p.path, name)
	defer func() { p.path = p.path[:len(p.path)-1] }()
	if f.Type, err = p.member(name, typ); err != nil {
		return Field{}, err
	}
	return f, p.checkUnknown(f)
}

func (p *typeParser) int(name string, value []byte) (int, *Error) {
	n, why := parseInt(value)
	if why != "" {
		return 0, p.errorf("%s %s", name, why)
	}
	return n, nil
}

func (p *typeParser) bool(name string, value []byte) (bool, *Error) {
	switch string(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		return false, p.errorf("%s is missing", name)
	default:
		return false, p.errorf("%s must be true or false, not %s", name, excerpt(value))
	}
}

// parseInt reads an integer of 32 bits, the range of all ids; nil is absent. It
// returns why it is none, to be put behind the name of the member, or "".
func parseInt(value []byte) (n int, why string) {
	if value == nil || rawjson.IsNull(value) {
		return 0, "is missing"
	}
	n64, ok := rawjson.Int64(value)
	if !ok || n64 < math.MinInt32 || n64 > math.MaxInt32 {
		return 0, "must be an integer of 32 bits, not " + excerpt(value)
	}
	return int(n64), ""
}

// cloneMembers copies what is kept, so that it does not pin the whole input.
func cloneMembers(members []rawjson.Member) []rawjson.Member {
	members = slices.Clone(members)
	for i := range members {
		members[i].Value = bytes.Clone(members[i].Value)
	}
	return members
}
