package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nested has every container, and a struct in each place where one can stand.
const nested = `{"type":"struct","schema-id":3,"identifier-field-ids":[2,1],"fields":[` +
	`{"id":1,"name":"id","required":true,"type":"long"},` +
	`{"id":10,"name":"who","required":true,"type":{"type":"struct","fields":[` +
	`{"id":2,"name":"name","required":true,"type":"string","doc":""}]}},` +
	`{"id":20,"name":"items","required":false,"type":{"type":"list","element-id":21,"element":{"type":"struct","fields":[` +
	`{"id":22,"name":"sku","required":true,"type":"string"}]},"element-required":true}},` +
	`{"id":30,"name":"by","required":false,"type":{"type":"map","key-id":31,"key":{"type":"struct","fields":[` +
	`{"id":33,"name":"k","required":false,"type":"int"}]},"value-id":32,"value":{"type":"struct","fields":[` +
	`{"id":34,"name":"v","required":false,"type":"int"}]},"value-required":false}},` +
	`{"id":40,"name":"tags","required":false,"type":{"type":"list","element-id":41,"element":"string","element-required":false}}]}`

// columns wraps the JSON of fields into a schema.
func columns(fields ...string) string {
	return `{"type":"struct","fields":[` + strings.Join(fields, ",") + `]}`
}

func column(id int, name, typ string) string {
	return fmt.Sprintf(`{"id":%d,"name":%q,"required":false,"type":%s}`, id, name, typ)
}

func mustParse(t testing.TB, data string) *Schema {
	t.Helper()
	s, err := Parse([]byte(data))
	if err != nil {
		t.Fatalf("Parse(%s): %v", data, err)
	}
	return s
}

// wantRefusal checks that err is an *Error that says what it should.
func wantRefusal(t *testing.T, err error, fragment string) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) {
		t.Fatalf("got error %v, want an *Error with %q", err, fragment)
	}
	if !strings.Contains(refusal.Message, fragment) {
		t.Errorf("message %q does not contain %q", refusal.Message, fragment)
	}
}

func TestCanonicalJSON(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"no change", nested, nested},
		{"empty", `{"type":"struct","fields":[]}`, `{"type":"struct","schema-id":0,"fields":[]}`},
		{
			"white space, order of members, nulls and no identifiers",
			"\n { \"identifier-field-ids\": [], \"fields\": [ {\"type\": \"INT\", \"doc\": null, \"initial-default\": null," +
				" \"write-default\": null, \"required\": false, \"name\": \"a\", \"id\": 1} ], \"schema-id\": null, \"type\": \"struct\" } ",
			`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"int"}]}`,
		},
		{
			"null identifiers",
			`{"type":"struct","identifier-field-ids":null,"fields":[]}`,
			`{"type":"struct","schema-id":0,"fields":[]}`,
		},
		{
			"repeated identifiers",
			`{"type":"struct","identifier-field-ids":[1,1],"fields":[{"id":1,"name":"a","required":true,"type":"int"}]}`,
			`{"type":"struct","schema-id":0,"identifier-field-ids":[1],"fields":[{"id":1,"name":"a","required":true,"type":"int"}]}`,
		},
		{
			"escapes in names",
			`{"type":"struct","fields":[{"id":1,"name":"\u0061\n\"<é","required":true,"type":"int","doc":"x\/y"}]}`,
			`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a\n\"<é","required":true,"type":"int","doc":"x/y"}]}`,
		},
		{
			"unknown members at every level, byte for byte",
			`{"future":{ "a" : 1.50 },"type":"struct","fields":[` +
				`{"x-f":[ 1e400, 9007199254740993 ],"id":1,"name":"s","required":false,"type":{"type":"struct","x-s":"\u0041","fields":[]}},` +
				`{"id":2,"name":"l","required":false,"type":{"type":"list","x-l":{},"element-id":3,"element":"int","element-required":true}},` +
				`{"id":4,"name":"m","required":false,"type":{"type":"map","x-m":null,"key-id":5,"key":"int","value-id":6,"value":"int","value-required":true}}]}`,
			`{"type":"struct","schema-id":0,"fields":[` +
				`{"id":1,"name":"s","required":false,"type":{"type":"struct","fields":[],"x-s":"\u0041"},"x-f":[ 1e400, 9007199254740993 ]},` +
				`{"id":2,"name":"l","required":false,"type":{"type":"list","element-id":3,"element":"int","element-required":true,"x-l":{}}},` +
				`{"id":4,"name":"m","required":false,"type":{"type":"map","key-id":5,"key":"int","value-id":6,"value":"int","value-required":true,"x-m":null}}],` +
				`"future":{ "a" : 1.50 }}`,
		},
		{
			"negative and largest ids",
			columns(column(-1, "a", `"int"`), column(2147483647, "b", `"int"`)),
			`{"type":"struct","schema-id":0,"fields":[{"id":-1,"name":"a","required":false,"type":"int"},` +
				`{"id":2147483647,"name":"b","required":false,"type":"int"}]}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := mustParse(t, test.in)
			if diff := cmp.Diff(test.want, string(s.JSON())); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			if again := mustParse(t, string(s.JSON())); !again.SameAs(s) {
				t.Error("parsing the output gives another schema")
			}
		})
	}
}

func TestParseDoesNotAliasItsInput(t *testing.T) {
	data := []byte(`{"x":{"y":1},"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"long","doc":"d","initial-default":77,"z":[2]}]}`)
	s := mustParse(t, string(data))
	other, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = '#'
	}
	if diff := cmp.Diff(string(s.JSON()), string(other.JSON())); diff != "" {
		t.Errorf("changing the input changed the schema:\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	field := func(text string) string { return columns(text) }
	deep := func(levels int) string {
		typ := `"int"`
		for i := range levels {
			typ = fmt.Sprintf(`{"type":"list","element-id":%d,"element":%s,"element-required":true}`, i+2, typ)
		}
		return columns(column(1, "deep", typ))
	}
	longName := strings.Repeat("n", nameBytesMax/4)
	tests := []struct{ name, in, fragment string }{
		{"too large", strings.Repeat(" ", sizeMax-1) + `{}`, "schema: larger than 16777216 bytes"},
		{"empty text", ``, "the text ends"},
		{"malformed", `{"type":"struct","fields":[`, "the text ends"},
		{"trailing data", columns() + `{}`, "more text follows"},
		{"duplicate member, escaped", `{"type":"struct","fields":[{"id":1,"\u0069d":2}]}`, `member "id" appears twice`},
		{"invalid UTF-8", "{\"type\":\"struct\",\"fields\":[],\"x\":\"\xff\"}", "UTF-8"},
		{"an array", `[]`, `must be an object with "type": "struct"`},
		{"a string", `"int"`, `must be an object with "type": "struct"`},
		{"no type", `{"fields":[]}`, `must be an object with "type": "struct"`},
		{"a list", `{"type":"list","element-id":1,"element":"int","element-required":true}`, `must be an object with "type": "struct"`},
		{"no fields", `{"type":"struct"}`, "must have an array of fields"},
		{"null fields", `{"type":"struct","fields":null}`, "must have an array of fields"},
		{"fields as object", `{"type":"struct","fields":{}}`, "must have an array of fields"},
		{"schema-id as fraction", `{"type":"struct","schema-id":1.0,"fields":[]}`, "schema-id must be an integer of 32 bits, not 1.0"},
		{"schema-id as string", `{"type":"struct","schema-id":"1","fields":[]}`, "schema-id must be an integer"},
		{"schema-id above 32 bits", `{"type":"struct","schema-id":2147483648,"fields":[]}`, "schema-id must be an integer"},
		{"field not an object", field(`7`), "a struct field must be an object, not 7"},
		{"field without name", field(`{"id":1,"required":true,"type":"int"}`), "must have a name"},
		{"name not a string", field(`{"id":1,"name":1,"required":true,"type":"int"}`), "must have a name"},
		{"field without id", field(`{"name":"a","required":true,"type":"int"}`), `field "a": id is missing`},
		{"null id", field(`{"id":null,"name":"a","required":true,"type":"int"}`), `field "a": id is missing`},
		{"id above 32 bits", field(`{"id":9007199254740993,"name":"a","required":true,"type":"int"}`), `field "a": id must be an integer of 32 bits, not 9007199254740993`},
		{"id below 32 bits", field(`{"id":-2147483649,"name":"a","required":true,"type":"int"}`), "id must be an integer"},
		{"id with exponent", field(`{"id":1e0,"name":"a","required":true,"type":"int"}`), "id must be an integer"},
		{"no required", field(`{"id":1,"name":"a","type":"int"}`), `field "a": required is missing`},
		{"required as string", field(`{"id":1,"name":"a","required":"true","type":"int"}`), `required must be true or false, not "true"`},
		{"no type in field", field(`{"id":1,"name":"a","required":true}`), `field "a": type is missing`},
		{"null type", field(`{"id":1,"name":"a","required":true,"type":null}`), "type is missing"},
		{"type as number", field(column(1, "a", `5`)), "must be a string or an object, not 5"},
		{"unknown type", field(column(1, "a", `"int128"`)), `field "a": unknown type "int128"`},
		{"unknown object type", field(column(1, "a", `{"type":"set"}`)), `must have "type": "struct", "list" or "map"`},
		{"doc as number", field(`{"id":1,"name":"a","required":true,"type":"int","doc":1}`), "doc must be a string"},
		{"bad initial default", field(`{"id":1,"name":"a","required":true,"type":"int","initial-default":"x"}`), `field "a": initial-default: "x" is not a default value of type int`},
		{"bad write default", field(`{"id":1,"name":"a","required":true,"type":"int","write-default":2147483648}`), `field "a": write-default: 2147483648 is not`},
		{"required unknown", field(`{"id":1,"name":"a","required":true,"type":"unknown"}`), "unknown cannot be required"},
		{"required unknown element", field(column(1, "a", `{"type":"list","element-id":2,"element":"unknown","element-required":true}`)), `field "a.element": a field of type unknown`},
		{"unknown key", field(column(1, "a", `{"type":"map","key-id":2,"key":"unknown","value-id":3,"value":"int","value-required":true}`)), `field "a.key": a field of type unknown`},
		{"list without element", field(column(1, "a", `{"type":"list","element-id":2,"element-required":true}`)), `field "a.element": element is missing`},
		{"list without element-id", field(column(1, "a", `{"type":"list","element":"int","element-required":true}`)), `field "a": element-id is missing`},
		{"list without element-required", field(column(1, "a", `{"type":"list","element-id":2,"element":"int"}`)), `field "a": element-required is missing`},
		{"map without key", field(column(1, "a", `{"type":"map","key-id":2,"value-id":3,"value":"int","value-required":true}`)), `field "a.key": key is missing`},
		{"map without key-id", field(column(1, "a", `{"type":"map","key":"int","value-id":3,"value":"int","value-required":true}`)), "key-id is missing"},
		{"map without value", field(column(1, "a", `{"type":"map","key-id":2,"key":"int","value-id":3,"value-required":true}`)), `field "a.value": value is missing`},
		{"map without value-id", field(column(1, "a", `{"type":"map","key-id":2,"key":"int","value":"int","value-required":true}`)), "value-id is missing"},
		{"map without value-required", field(column(1, "a", `{"type":"map","key-id":2,"key":"int","value-id":3,"value":"int"}`)), "value-required is missing"},
		{"path of a nested field", field(column(1, "a", `{"type":"struct","fields":[`+column(2, "b", `"?"`)+`]}`)), `schema: field "a.b": unknown type "?"`},
		{"id twice", columns(column(1, "a", `"int"`), column(1, "b", `"int"`)), `field "b": id 1 is already used by field "a"`},
		{"id twice, nested", columns(column(1, "a", `{"type":"list","element-id":1,"element":"int","element-required":true}`)), `field "a.element": id 1 is already used by field "a"`},
		{"name twice", columns(column(1, "a", `"int"`), column(2, "a", `"int"`)), `field "a": two fields have this name, ids 1 and 2`},
		{"full name twice", columns(column(1, "a", `{"type":"struct","fields":[`+column(2, "b", `"int"`)+`]}`), column(3, "a.b", `"int"`)), `field "a.b": two fields have this name`},
		{"too deep", deep(nestingMax), "nested more than 64 levels deep"},
		{"names too long", columns(column(1, longName, `{"type":"struct","fields":[`+column(2, "b", `"int"`)+`,`+column(3, "c", `"int"`)+`,`+column(4, "d", `"int"`)+`]}`)), "together exceed"},
		{"identifiers not an array", `{"type":"struct","identifier-field-ids":1,"fields":[]}`, "identifier-field-ids must be an array"},
		{"identifier not an integer", `{"type":"struct","identifier-field-ids":["1"],"fields":[]}`, "identifier-field-ids must be an integer"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.in))
			wantRefusal(t, err, test.fragment)
		})
	}
	mustParse(t, deep(nestingMax-1))
}

func TestIdentifierRules(t *testing.T) {
	schema := func(identifier, parentRequired, fieldRequired, typ string) string {
		return `{"type":"struct","identifier-field-ids":[` + identifier + `],"fields":[` +
			`{"id":1,"name":"p","required":` + parentRequired + `,"type":{"type":"struct","fields":[` +
			`{"id":2,"name":"f","required":` + fieldRequired + `,"type":` + typ + `}]}}]}`
	}
	list := `{"type":"list","element-id":3,"element":{"type":"struct","fields":[{"id":4,"name":"x","required":true,"type":"int"}]},"element-required":true}`
	keys := `{"type":"map","key-id":3,"key":"int","value-id":4,"value":"int","value-required":true}`

	mustParse(t, schema("2", "true", "true", `"int"`))
	tests := []struct{ name, in, fragment string }{
		{"missing", schema("9", "true", "true", `"int"`), "Cannot add fieldId 9 as an identifier field: field does not exist"},
		{"optional", schema("2", "true", "false", `"int"`), "field p.f as an identifier field: not a required field"},
		{"in an optional struct", schema("2", "false", "true", `"int"`), "must not be nested in an optional field 1: p: optional struct<2: f: required int>"},
		{"float", schema("2", "true", "true", `"float"`), "must not be float or double field"},
		{"double", schema("2", "true", "true", `"double"`), "must not be float or double field"},
		{"struct", schema("1", "true", "true", `"int"`), "field p as an identifier field: not a primitive type field"},
		{"variant", schema("2", "true", "true", `"variant"`), "not a primitive type field"},
		{"in a list", schema("4", "true", "true", list), "must not be nested in 2: f: required list<"},
		{"key of a map", schema("3", "true", "true", keys), "must not be nested in 2: f: required map<int, int>"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.in))
			wantRefusal(t, err, test.fragment)
		})
	}
}

func TestLookup(t *testing.T) {
	s := mustParse(t, nested)
	if got := s.ID(); got != 3 {
		t.Errorf("ID = %d, want 3", got)
	}
	if got := s.HighestFieldID(); got != 41 {
		t.Errorf("HighestFieldID = %d, want 41", got)
	}
	if diff := cmp.Diff([]int{2, 1}, s.identifiers); diff != "" {
		t.Errorf("identifiers (-want +got):\n%s", diff)
	}
	names := map[string]int{
		"id": 1, "who": 10, "who.name": 2, "items": 20, "items.element": 21, "items.element.sku": 22,
		"by": 30, "by.key": 31, "by.key.k": 33, "by.value": 32, "by.value.v": 34, "tags": 40, "tags.element": 41,
	}
	for name, id := range names {
		if got, _ := s.Name(id); got != name {
			t.Errorf("Name(%d) = %q, want %q", id, got, name)
		}
		f, ok := s.FieldByName(name)
		if !ok || f.ID != id {
			t.Errorf("FieldByName(%q) = %d, %v, want %d", name, f.ID, ok, id)
		}
		if f, ok := s.Field(id); !ok || f.ID != id {
			t.Errorf("Field(%d) = %d, %v", id, f.ID, ok)
		}
	}
	for short, id := range map[string]int{"items.sku": 22, "by.v": 34} {
		if f, ok := s.FieldByName(short); !ok || f.ID != id {
			t.Errorf("FieldByName(%q) = %d, %v, want %d", short, f.ID, ok, id)
		}
	}
	for _, name := range []string{"", "nope", "who.", "ID", "by.k", "sku"} {
		if f, ok := s.FieldByName(name); ok {
			t.Errorf("FieldByName(%q) found %v", name, f)
		}
	}
	if _, ok := s.Field(99); ok {
		t.Error("Field(99) found a field")
	}
	if _, ok := s.Name(99); ok {
		t.Error("Name(99) found a field")
	}
	if got := mustParse(t, columns()).HighestFieldID(); got != 0 {
		t.Errorf("HighestFieldID of no fields = %d, want 0", got)
	}
	want := "20: items: optional list<struct<22: sku: required string>>"
	if got := s.root.fields[2].String(); got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}

// Only steps into structs may be left out, those into other containers may not.
func TestShortNameInNestedLists(t *testing.T) {
	s := mustParse(t, columns(column(1, "l", `{"type":"list","element-id":2,"element":{"type":"list","element-id":3,"element":`+
		`{"type":"struct","fields":[`+column(4, "x", `"int"`)+`]},"element-required":true},"element-required":true}`)))
	for name, want := range map[string]int{"l.element.element.x": 4, "l.element.x": 4, "l.x": 0, "l.element": 2, "l.element.element": 3} {
		if f, _ := s.FieldByName(name); f.ID != want {
			t.Errorf("FieldByName(%q) = %d, want %d", name, f.ID, want)
		}
	}
}

// A short name never hides a field that is really called that.
func TestShortNameYieldsToFullName(t *testing.T) {
	s := mustParse(t, columns(
		column(1, "l", `{"type":"list","element-id":2,"element":{"type":"struct","fields":[`+column(3, "x", `"int"`)+`]},"element-required":true}`),
		column(4, "l.x", `"int"`)))
	if f, _ := s.FieldByName("l.x"); f.ID != 4 {
		t.Errorf("FieldByName(l.x) = %d, want 4", f.ID)
	}
}

func TestSameAs(t *testing.T) {
	base := mustParse(t, nested)
	same := func(s *Schema) bool { return base.SameAs(s) && s.SameAs(base) }
	if !same(base.WithID(9)) || base.WithID(9).ID() != 9 || base.ID() != 3 {
		t.Error("WithID changed more than the id of the copy")
	}
	equal := [][2]string{
		{`[2,1]`, `[1,2]`},
		{`"schema-id":3,`, `"schema-id":4,"unknown":1,`},
		{`"name":"id",`, `"name":"id","unknown":1,`},
	}
	for _, change := range equal {
		if !same(mustParse(t, strings.Replace(nested, change[0], change[1], 1))) {
			t.Errorf("%s to %s makes another schema", change[0], change[1])
		}
	}
	different := [][2]string{
		{`[2,1]`, `[1]`}, {`[2,1]`, `[]`},
		{`{"id":22,"name":"sku","required":true,"type":"string"}`, `{"id":22,"name":"sku","required":false,"type":"string"}`},
		{`"id":40`, `"id":50`}, {`"element-id":41`, `"element-id":42`},
		{`"key-id":31`, `"key-id":39`}, {`"value-id":32`, `"value-id":39`},
		{`"name":"tags"`, `"name":"Tags"`},
		{`"type":"long"`, `"type":"int"`}, {`"type":"long"`, `"type":"decimal(9, 2)"`},
		{`"doc":""`, `"x":""`}, {`"doc":""`, `"doc":" "`},
		{`"element-required":false`, `"element-required":true`}, {`"value-required":false`, `"value-required":true`},
		{`"type":"long"`, `"type":"long","initial-default":0`}, {`"type":"long"`, `"type":"long","write-default":0`},
		{`{"id":22,"name":"sku","required":true,"type":"string"}`, ``},
		{`"element":"string"`, `"element":{"type":"struct","fields":[]}`},
		{`{"type":"list","element-id":41,"element":"string","element-required":false}`, `"string"`},
	}
	for _, change := range different {
		changed := strings.Replace(nested, change[0], change[1], 1)
		if changed == nested {
			t.Fatalf("%s is not in the schema", change[0])
		}
		if other := mustParse(t, changed); base.SameAs(other) || other.SameAs(base) {
			t.Errorf("%s to %s makes no difference", change[0], change[1])
		}
	}
	two := `{"type":"struct","identifier-field-ids":[1],"fields":[{"id":1,"name":"a","required":true,"type":"int"},{"id":2,"name":"b","required":true,"type":"int"}]}`
	if mustParse(t, two).SameAs(mustParse(t, strings.Replace(two, "[1]", "[2]", 1))) {
		t.Error("which field identifies rows makes no difference")
	}
	a := mustParse(t, columns(column(1, "a", `"int"`), column(2, "b", `"int"`)))
	b := mustParse(t, columns(column(2, "b", `"int"`), column(1, "a", `"int"`)))
	if a.SameAs(b) {
		t.Error("the order of columns makes no difference")
	}
}

func TestCheckFormat(t *testing.T) {
	young := mustParse(t, columns(
		column(7, "z", `"timestamp_ns"`), column(2, "v", `"variant"`), column(3, "u", `"unknown"`),
		column(4, "g", `"geometry"`), column(5, "h", `"geography(x)"`), column(6, "t", `"timestamptz_ns"`),
		column(8, "l", `{"type":"list","element-id":9,"element":"variant","element-required":true}`),
		`{"id":1,"name":"d","required":false,"type":"string","initial-default":"abc","write-default":"abc"}`,
		`{"id":11,"name":"n","required":false,"type":"long","initial-default":9007199254740993}`,
		`{"id":10,"name":"w","required":false,"type":"string","write-default":"abc"}`))
	want := `Invalid schema for v2:
- Invalid initial default for d: non-null default (abc) is not supported until v3
- Invalid type for v: variant is not supported until v3
- Invalid type for u: unknown is not supported until v3
- Invalid type for g: geometry is not supported until v3
- Invalid type for h: geography(x) is not supported until v3
- Invalid type for t: timestamptz_ns is not supported until v3
- Invalid type for z: timestamp_ns is not supported until v3
- Invalid type for l.element: variant is not supported until v3
- Invalid initial default for n: non-null default (9007199254740993) is not supported until v3`
	err := young.CheckFormat(2)
	wantRefusal(t, err, "Invalid schema for v2")
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("CheckFormat(2) (-want +got):\n%s", diff)
	}
	if err := young.CheckFormat(3); err != nil {
		t.Errorf("CheckFormat(3) = %v", err)
	}
	if err := mustParse(t, nested).CheckFormat(1); err != nil {
		t.Errorf("CheckFormat(1) = %v", err)
	}
	last := mustParse(t, columns(column(2147483447, "a", `"int"`)))
	if err := last.CheckFormat(3); err != nil {
		t.Errorf("the highest id that is not reserved: %v", err)
	}
	reserved := mustParse(t, columns(column(2147483448, "a", `"int"`)))
	wantRefusal(t, reserved.CheckFormat(3), "Invalid id for a: 2147483448 is reserved")
}

// TestCheckFormatIsBrief: a schema of many wrong columns with long names gets a
// message that fits a log line.
func TestCheckFormatIsBrief(t *testing.T) {
	var wrong []string
	for i := range 1000 {
		wrong = append(wrong, column(i+1, fmt.Sprintf("%d%s", i, strings.Repeat("x", 2000)), `"geometry(`+strings.Repeat("y", 2000)+`)"`))
	}
	err := mustParse(t, columns(wrong...)).CheckFormat(2)
	wantRefusal(t, err, "is not supported until v3\n- ... and more")
	if got := len(err.Error()); got > 20_000 {
		t.Errorf("message of %d bytes", got)
	}
}

func TestAssignFreshIDs(t *testing.T) {
	want := `{"type":"struct","schema-id":0,"identifier-field-ids":[6,1],"fields":[` +
		`{"id":1,"name":"id","required":true,"type":"long"},` +
		`{"id":2,"name":"who","required":true,"type":{"type":"struct","fields":[` +
		`{"id":6,"name":"name","required":true,"type":"string","doc":""}]}},` +
		`{"id":3,"name":"items","required":false,"type":{"type":"list","element-id":7,"element":{"type":"struct","fields":[` +
		`{"id":8,"name":"sku","required":true,"type":"string"}]},"element-required":true}},` +
		`{"id":4,"name":"by","required":false,"type":{"type":"map","key-id":9,"key":{"type":"struct","fields":[` +
		`{"id":11,"name":"k","required":false,"type":"int"}]},"value-id":10,"value":{"type":"struct","fields":[` +
		`{"id":12,"name":"v","required":false,"type":"int"}]},"value-required":false}},` +
		`{"id":5,"name":"tags","required":false,"type":{"type":"list","element-id":13,"element":"string","element-required":false}}]}`
	s := mustParse(t, nested)
	if diff := cmp.Diff(want, string(s.AssignFreshIDs().JSON())); diff != "" {
		t.Errorf("AssignFreshIDs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(nested, string(s.JSON())); diff != "" {
		t.Errorf("AssignFreshIDs changed its receiver:\n%s", diff)
	}
}

// Parsing a wide schema, as every commit that touches the current one does.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("columns=%d", n), func(b *testing.B) {
			var all []string
			for i := range n {
				all = append(all, column(i+1, fmt.Sprintf("column_%d", i), `"decimal(9, 2)"`))
			}
			data := []byte(columns(all...))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
