package tablemeta

import (
	"fmt"
	"math"
	"slices"

	"github.com/landfast/landfast/internal/rawjson"
)

// fields reads members of one validated JSON object and keeps the first error,
// so that a reader of ten members checks once. After an error its methods
// return zero values.
type fields struct {
	// what names the object in messages: `update "add-snapshot"`.
	what   string
	object []byte
	err    *InvalidError
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = invalid("%s: %s", f.what, fmt.Sprintf(format, args...))
	}
}

// lookup finds a member that is present and not null.
func (f *fields) lookup(name string) ([]byte, bool) {
	value, ok := rawjson.Lookup(f.object, name)
	return value, ok && !rawjson.IsNull(value)
}

func (f *fields) required(name string) ([]byte, bool) {
	value, ok := f.lookup(name)
	if !ok {
		f.fail("missing field %q", name)
	}
	return value, ok
}

func (f *fields) string(name string) string {
	value, ok := f.required(name)
	if !ok {
		return ""
	}
	return f.asString(name, value)
}

func (f *fields) optionalString(name string) (text string, ok bool) {
	value, ok := f.lookup(name)
	if !ok {
		return "", false
	}
	return f.asString(name, value), true
}

func (f *fields) asString(name string, value []byte) string {
	text, ok := rawjson.String(value)
	if !ok {
		f.fail("field %q must be a string, got %s", name, excerpt(value))
	}
	return text
}

func (f *fields) int64(name string) int64 {
	value, ok := f.required(name)
	if !ok {
		return 0
	}
	return f.asInt(name, value, math.MinInt64, math.MaxInt64)
}

func (f *fields) int(name string) int {
	value, ok := f.required(name)
	if !ok {
		return 0
	}
	return int(f.asInt(name, value, math.MinInt32, math.MaxInt32))
}

// optionalInt64 is nil if the member is absent or null.
func (f *fields) optionalInt64(name string) *int64 {
	return f.optionalWithin(name, math.MinInt64, math.MaxInt64)
}

func (f *fields) optionalInt(name string) *int64 {
	return f.optionalWithin(name, math.MinInt32, math.MaxInt32)
}

func (f *fields) optionalWithin(name string, low, high int64) *int64 {
	value, ok := f.lookup(name)
	if !ok {
		return nil
	}
	n := f.asInt(name, value, low, high)
	return &n
}

func (f *fields) asInt(name string, value []byte, low, high int64) int64 {
	n, ok := rawjson.Int64(value)
	if !ok || n < low || n > high {
		bits := 64
		if high == math.MaxInt32 {
			bits = 32
		}
		f.fail("field %q must be an integer of %d bits, got %s", name, bits, excerpt(value))
		return 0
	}
	return n
}

// notNull refuses members that may be absent, but are null. To most readers that is
// the same; the reference implementation cannot read it where this is asked.
func (f *fields) notNull(names ...string) {
	for name, value := range rawjson.Members(f.object) {
		if rawjson.IsNull(value) && slices.Contains(names, name) {
			f.fail("field %q must not be null", name)
			return
		}
	}
}

// nested is a member that must be an object.
func (f *fields) nested(name string) []byte {
	value, ok := f.required(name)
	if ok && value[0] != '{' {
		f.fail("field %q must be an object, got %s", name, excerpt(value))
		return nil
	}
	return value
}

// kept is a member that must be an object and becomes part of the document. Its
// members that are null are left out: here they say the same as absent ones, but
// the reference implementation cannot load metadata that has them.
func (f *fields) kept(name string) []byte {
	value := f.nested(name)
	if f.err != nil {
		return nil
	}
	return withoutNulls(value)
}

// withoutNulls is an object without its members that are null.
func withoutNulls(object []byte) []byte {
	out := make([]byte, 0, len(object))
	out = append(out, '{')
	for name, v := range rawjson.Members(object) {
		if !rawjson.IsNull(v) {
			out = append(rawjson.AppendName(out, name), v...)
		}
	}
	return append(out, '}')
}

// int64s is a member that must be an array of integers within the bounds.
func (f *fields) int64s(name string, low, high int64) []int64 {
	value, ok := f.required(name)
	if !ok {
		return nil
	}
	if value[0] != '[' {
		f.fail("field %q must be an array, got %s", name, excerpt(value))
		return nil
	}
	var ints []int64
	for element := range rawjson.Elements(value) {
		ints = append(ints, f.asInt(name+"[]", element, low, high))
	}
	return ints
}

// ids is a member that must be an array of ids of schemas or specs.
func (f *fields) ids(name string) map[int]bool {
	ids := map[int]bool{}
	for _, id := range f.int64s(name, math.MinInt32, math.MaxInt32) {
		ids[int(id)] = true
	}
	return ids
}

// strings is a member that must be an array of strings.
func (f *fields) strings(name string) []string {
	value, ok := f.required(name)
	if !ok {
		return nil
	}
	if value[0] != '[' {
		f.fail("field %q must be an array, got %s", name, excerpt(value))
		return nil
	}
	var texts []string
	for element := range rawjson.Elements(value) {
		texts = append(texts, f.asString(name+"[]", element))
	}
	return texts
}

// stringMap checks that a member is an object whose values are strings, and
// returns its members in order.
func (f *fields) stringMap(name string) []rawjson.Member {
	value := f.nested(name)
	if f.err != nil {
		return nil
	}
	var members []rawjson.Member
	for key, text := range rawjson.Members(value) {
		if text[0] != '"' {
			f.fail("field %q: the value of %q must be a string, got %s", name, excerpt(key), excerpt(text))
			return nil
		}
		members = append(members, rawjson.Member{Name: key, Value: text})
	}
	return members
}

func (f *fields) optionalStringMap(name string) {
	if _, ok := f.lookup(name); ok {
		f.stringMap(name)
	}
}
