package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParseSpec(t testing.TB, data string) *Spec {
	t.Helper()
	sp, err := ParseSpec([]byte(data))
	if err != nil {
		t.Fatalf("ParseSpec(%s): %v", data, err)
	}
	return sp
}

// spec wraps the JSON of fields into a spec.
func spec(fields ...string) string {
	return `{"spec-id":0,"fields":[` + strings.Join(fields, ",") + `]}`
}

// part is a partition field; without id if that is 0.
func part(id, source int, name, transform string) string {
	text := fmt.Sprintf(`{"name":%q,"transform":%q,"source-id":%d`, name, transform, source)
	if id != 0 {
		text += fmt.Sprintf(`,"field-id":%d`, id)
	}
	return text + "}"
}

// sourceSchema has a column for each way in which one can be a source, or cannot.
func sourceSchema(t testing.TB) *Schema {
	t.Helper()
	return mustParse(t, columns(
		column(1, "id", `"long"`), column(2, "ts", `"timestamp"`), column(3, "day", `"date"`),
		column(4, "s", `{"type":"struct","fields":[`+column(5, "inner", `"string"`)+`]}`),
		column(6, "l", `{"type":"list","element-id":7,"element":{"type":"struct","fields":[`+column(8, "x", `"int"`)+`]},"element-required":true}`),
		column(9, "m", `{"type":"map","key-id":10,"key":"string","value-id":11,"value":"int","value-required":true}`),
		column(12, "v", `"variant"`), column(13, "g", `"geometry"`), column(14, "flag", `"boolean"`)))
}

func TestSpecCanonicalJSON(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", `{"spec-id":0,"fields":[]}`, `{"spec-id":0,"fields":[]}`},
		{"no spec-id", `{"fields":[]}`, `{"spec-id":0,"fields":[]}`},
		{"null spec-id", `{"spec-id":null,"fields":[]}`, `{"spec-id":0,"fields":[]}`},
		{
			"order of members, unknown members",
			`{"x":1.0,"fields":[{"y":[ ],"field-id":1000,"source-id":4,"transform":"day","name":"d"}],"spec-id":7}`,
			`{"spec-id":7,"fields":[{"name":"d","transform":"day","source-id":4,"field-id":1000,"y":[ ]}],"x":1.0}`,
		},
		{
			"transforms in any case",
			spec(part(0, 1, "a", "IDENTITY"), part(0, 1, "b", "Bucket[016]"), part(0, 1, "c", "tRuncate[3]"), part(0, 1, "d", "Void"),
				part(0, 1, "e", "YEAR"), part(0, 1, "f", "Month"), part(0, 1, "g", "Day"), part(0, 1, "h", "Hour")),
			spec(part(0, 1, "a", "identity"), part(0, 1, "b", "bucket[16]"), part(0, 1, "c", "truncate[3]"), part(0, 1, "d", "void"),
				part(0, 1, "e", "year"), part(0, 1, "f", "month"), part(0, 1, "g", "day"), part(0, 1, "h", "hour")),
		},
		{
			"unknown transforms as written",
			spec(part(0, 1, "a", "Zorder[3]"), part(0, 1, "b", "bucket"), part(0, 1, "c", "year[99999999999999]"), part(0, 1, "d", "bucket[-1]")),
			spec(part(0, 1, "a", "Zorder[3]"), part(0, 1, "b", "bucket"), part(0, 1, "c", "year[99999999999999]"), part(0, 1, "d", "bucket[-1]")),
		},
		{
			"null field-id is absent",
			`{"fields":[{"name":"a","transform":"identity","source-id":1,"field-id":null}]}`,
			spec(part(0, 1, "a", "identity")),
		},
		{
			"several sources; one source in a list",
			`{"fields":[{"name":"a","transform":"bucketV2[4]","source-ids":[1,2]},{"name":"b","transform":"identity","source-ids":[3]},` +
				`{"name":"c","transform":"identity","source-ids":[3],"source-id":3},{"name":"d","transform":"identity","source-ids":null,"source-id":4}]}`,
			`{"spec-id":0,"fields":[{"name":"a","transform":"bucketV2[4]","source-ids":[1,2]},{"name":"b","transform":"identity","source-id":3},` +
				`{"name":"c","transform":"identity","source-id":3},{"name":"d","transform":"identity","source-id":4}]}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sp := mustParseSpec(t, test.in)
			if diff := cmp.Diff(test.want, string(sp.JSON())); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			again := mustParseSpec(t, string(sp.JSON()))
			if diff := cmp.Diff(string(sp.JSON()), string(again.JSON())); diff != "" || !again.SameAs(sp) {
				t.Errorf("parsing the output gives another spec:\n%s", diff)
			}
		})
	}
}

func TestParseSpecRefuses(t *testing.T) {
	tests := []struct{ name, in, fragment string }{
		{"empty text", ``, "the text ends"},
		{"array", `[]`, "expected an object"},
		{"duplicate member", `{"fields":[],"fields":[]}`, `member "fields" appears twice`},
		{"no fields", `{"spec-id":1}`, "fields must be an array"},
		{"fields as object", `{"fields":{}}`, "fields must be an array"},
		{"spec-id as string", `{"spec-id":"1","fields":[]}`, "spec-id must be an integer"},
		{"field not an object", `{"fields":[1]}`, "field 0 must be an object, not 1"},
		{"no name", spec(`{"transform":"day","source-id":1}`), "field 0: name must be a string"},
		{"no transform", spec(`{"name":"a","source-id":1}`), "field 0: transform must be a string"},
		{"transform as number", spec(`{"name":"a","transform":1,"source-id":1}`), "transform must be a string"},
		{"no source", spec(part(0, 1, "a", "day"), `{"name":"a","transform":"day"}`), "field 1: source-id is missing"},
		{"source-id above 32 bits", spec(`{"name":"a","transform":"day","source-id":2147483648}`), "source-id must be an integer of 32 bits, not 2147483648"},
		{"source-ids empty", spec(`{"name":"a","transform":"day","source-ids":[]}`), "source-ids is empty"},
		{"source-ids not an array", spec(`{"name":"a","transform":"day","source-ids":1}`), "source-ids must be an array"},
		{"source-ids of strings", spec(`{"name":"a","transform":"day","source-ids":["1"]}`), "an element of source-ids must be an integer"},
		{"contradiction", spec(`{"name":"a","transform":"day","source-ids":[1,2],"source-id":1}`), "contradict each other"},
		{"field-id as fraction", spec(`{"name":"a","transform":"day","source-id":1,"field-id":1000.5}`), "field-id must be an integer"},
		{"some field-ids", spec(part(1000, 1, "a", "day"), part(0, 1, "b", "day")), "field-id is missing in 1 of 2 fields"},
		{"no buckets", spec(part(0, 1, "a", "bucket[0]")), "the parameter must be above 0"},
		{"width above 32 bits", spec(part(0, 1, "a", "truncate[2147483648]")), "fit 32 bits"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseSpec([]byte(test.in))
			wantRefusal(t, err, test.fragment)
		})
	}
}

func TestSpecProperties(t *testing.T) {
	void := mustParseSpec(t, spec(part(1000, 1, "a", "void"), part(1007, 2, "b", "void")))
	if got := void.LastAssignedID(); got != 1007 {
		t.Errorf("LastAssignedID = %d, want 1007", got)
	}
	free := mustParseSpec(t, spec(part(0, 1, "a", "void"), part(0, 2, "b", "day")))
	if got := free.LastAssignedID(); got != 999 {
		t.Errorf("LastAssignedID of unassigned fields = %d, want 999", got)
	}
	if got := free.WithID(5); got.ID() != 5 || free.ID() != 0 || !got.SameAs(free) {
		t.Error("WithID changed more than the id of the copy")
	}
}

func TestSpecSameAs(t *testing.T) {
	base := spec(part(1000, 1, "a", "bucket[4]"), part(1001, 2, "b", "day"))
	sp := mustParseSpec(t, base)
	if !sp.SameAs(mustParseSpec(t, strings.NewReplacer("1000", "2000", "1001", "2001", `"spec-id":0`, `"spec-id":9,"x":1`).Replace(base))) {
		t.Error("ids or unknown members make a difference")
	}
	for _, change := range [][2]string{
		{`"a"`, `"A"`}, {`bucket[4]`, `bucket[5]`}, {`"source-id":1`, `"source-id":2`}, {`"source-id":1`, `"source-ids":[1,2]`},
		{`,` + part(1001, 2, "b", "day"), ``},
	} {
		if other := mustParseSpec(t, strings.Replace(base, change[0], change[1], 1)); sp.SameAs(other) || other.SameAs(sp) {
			t.Errorf("%s to %s makes no difference", change[0], change[1])
		}
	}
	if sp.SameAs(mustParseSpec(t, spec(part(1001, 2, "b", "day"), part(1000, 1, "a", "bucket[4]")))) {
		t.Error("the order of fields makes no difference")
	}
}

// Which transform takes which type, over all types and transforms.
func TestTransformsAccept(t *testing.T) {
	types := []string{
		"boolean", "int", "long", "float", "double", "decimal(9, 2)", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
		"timestamptz_ns", "string", "uuid", "fixed[4]", "binary", "unknown", "geometry", "geography", "variant",
	}
	all := strings.Join(types[:19], " ")
	accepted := map[string]string{
		"identity":    "boolean int long float double decimal(9, 2) date time timestamp timestamptz timestamp_ns timestamptz_ns string uuid fixed[4] binary unknown",
		"bucket[4]":   "int long decimal(9, 2) date time timestamp timestamptz timestamp_ns timestamptz_ns string uuid fixed[4] binary",
		"truncate[4]": "int long decimal(9, 2) string binary",
		"year":        "date timestamp timestamptz timestamp_ns timestamptz_ns",
		"month":       "date timestamp timestamptz timestamp_ns timestamptz_ns",
		"day":         "date timestamp timestamptz timestamp_ns timestamptz_ns",
		"hour":        "timestamp timestamptz timestamp_ns timestamptz_ns",
		"other":       all,
	}
	for name, want := range accepted {
		var got []string
		for _, typ := range types {
			s := mustParse(t, columns(column(1, "c", `"`+typ+`"`)))
			partitions := mustParseSpec(t, spec(part(0, 1, "p", name))).CheckCompatible(s) == nil
			order := `{"order-id":1,"fields":[{"transform":"` + name + `","source-id":1,"direction":"asc","null-order":"nulls-first"}]}`
			if sorts := mustParseSortOrder(t, order).CheckCompatible(s) == nil; sorts != partitions {
				t.Errorf("%s of %s partitions: %v, sorts: %v", name, typ, partitions, sorts)
			}
			if partitions {
				got = append(got, typ)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSpecCheckCompatible(t *testing.T) {
	s := sourceSchema(t)
	tests := []struct{ name, in, fragment string }{
		{"column", spec(part(0, 1, "a", "bucket[4]")), ""},
		{"in a struct", spec(part(0, 5, "a", "truncate[4]")), ""},
		{"void of a column that is gone", spec(part(1000, 99, "a", "void")), ""},
		{"void of a list", spec(part(1000, 6, "a", "void")), ""},
		{"unknown transform", spec(part(0, 1, "a", "other")), ""},
		{"several sources", spec(`{"name":"a","transform":"other","source-ids":[1,5]}`), ""},
		{"gone", spec(part(1003, 99, "a", "day")), "Cannot find source column for partition field: 1003: a: day(99)"},
		{"gone, unassigned", spec(part(0, 99, "a", "day")), "Cannot find source column for partition field: null: a: day(99)"},
		{"struct", spec(part(0, 4, "a", "identity")), "Cannot partition by non-primitive source field: 4: s: optional struct<"},
		{"variant", spec(part(0, 12, "a", "other")), "Cannot partition by non-primitive source field: 12: v: optional variant"},
		{"wrong type", spec(part(0, 14, "a", "bucket[4]")), "Invalid source type boolean for transform: bucket[4]"},
		{"geometry", spec(part(0, 13, "a", "identity")), "Invalid source type geometry for transform: identity"},
		{"in a list", spec(part(0, 8, "a", "identity")), "Invalid partition field parent: 6: l: optional list<struct<"},
		{"in a map", spec(part(0, 10, "a", "identity")), "Invalid partition field parent: 9: m: optional map<string, int>"},
		{"second source gone", spec(`{"name":"a","transform":"other","source-ids":[1,99]}`), "Cannot find source column for partition field: null: a: other(1, 99)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := mustParseSpec(t, test.in).CheckCompatible(s)
			if test.fragment == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantRefusal(t, err, test.fragment)
		})
	}
}

func TestSpecCheckNames(t *testing.T) {
	s := sourceSchema(t)
	tests := []struct{ name, in, fragment string }{
		{"own name", spec(part(0, 1, "id", "identity")), ""},
		{"own name of another transform", spec(part(0, 1, "id", "bucket[4]")), ""},
		{"own name in a struct", spec(part(0, 5, "s.inner", "identity")), ""},
		{"history", spec(part(1000, 99, "id", "void")), ""},
		{"second of several sources", spec(`{"name":"id","transform":"other","source-ids":[2,1]}`), ""},
		{"another field", spec(part(0, 2, "day", "day")), "Cannot create identity partition sourced from different field in schema: day"},
		{"another nested field", spec(part(0, 2, "s.inner", "day")), "sourced from different field in schema: s.inner"},
		{"another field's short name", spec(part(0, 2, "l.x", "day")), "sourced from different field in schema: l.x"},
		{"empty", spec(part(0, 2, "", "day")), "Cannot use empty partition name"},
		{"twice", spec(part(0, 2, "a", "day"), part(0, 1, "a", "identity")), "Cannot use partition name more than once: a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := mustParseSpec(t, test.in).CheckNames(s)
			if test.fragment == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantRefusal(t, err, test.fragment)
		})
	}
}

func TestSpecCheckFormat(t *testing.T) {
	tests := []struct {
		in       string
		version  int
		fragment string
	}{
		{spec(part(1000, 1, "a", "day"), part(1001, 1, "b", "hour")), 1, ""},
		{spec(part(1001, 1, "a", "day")), 2, ""},
		{spec(`{"name":"a","transform":"other","source-ids":[1]}`), 3, ""},
		{spec(part(1001, 1, "a", "day")), 1, "Spec does not use sequential IDs that are required in v1: 1001: a: day(1)"},
		{spec(`{"name":"a","transform":"other","source-ids":[1,2]}`), 3, "Invalid transform of several sources: null: a: other(1, 2): most readers cannot load"},
	}
	for _, test := range tests {
		err := mustParseSpec(t, test.in).CheckFormat(test.version)
		if test.fragment == "" {
			if err != nil {
				t.Errorf("v%d refuses %s: %v", test.version, test.in, err)
			}
			continue
		}
		wantRefusal(t, err, test.fragment)
	}
}

func TestSpecBind(t *testing.T) {
	s := sourceSchema(t)
	before := []*Spec{
		mustParseSpec(t, spec(part(1000, 1, "id", "bucket[4]"), part(1001, 2, "ts_day", "day"))),
		mustParseSpec(t, spec(part(1002, 2, "ts_hour", "hour"))),
	}
	tests := []struct {
		name     string
		in       string
		last     int
		version  int
		existing []*Spec
		want     string
		fragment string
	}{
		{
			name: "ids of the client", in: spec(part(1005, 1, "a", "identity"), part(1003, 2, "b", "day")), last: 1002, version: 2,
			want: spec(part(1005, 1, "a", "identity"), part(1003, 2, "b", "day")),
		},
		{
			name: "first ids", in: spec(part(0, 1, "a", "identity"), part(0, 2, "b", "day")), last: 999, version: 2,
			want: spec(part(1000, 1, "a", "identity"), part(1001, 2, "b", "day")),
		},
		{
			name: "equal fields keep their ids", in: spec(part(0, 2, "ts_hour", "hour"), part(0, 3, "d", "month"), part(0, 1, "id", "bucket[4]")),
			last: 1002, version: 2, existing: before,
			want: spec(part(1002, 2, "ts_hour", "hour"), part(1003, 3, "d", "month"), part(1000, 1, "id", "bucket[4]")),
		},
		{
			name: "another name, another id", in: spec(part(0, 2, "h", "hour")), last: 1002, version: 2, existing: before,
			want: spec(part(1003, 2, "h", "hour")),
		},
		{
			name: "a last id that lags behind the specs", in: spec(part(0, 2, "h", "hour")), last: 999, version: 2, existing: before,
			want: spec(part(1003, 2, "h", "hour")),
		},
		{
			name: "specs of a former v1 table share ids", in: spec(part(0, 1, "id", "bucket[4]"), part(0, 2, "ts_hour", "hour")),
			last: 1000, version: 2,
			existing: []*Spec{mustParseSpec(t, spec(part(1000, 1, "id", "bucket[4]"))), mustParseSpec(t, spec(part(1000, 2, "ts_hour", "hour")))},
			want:     spec(part(1000, 1, "id", "bucket[4]"), part(1001, 2, "ts_hour", "hour")),
		},
		{
			name: "v1 counts from 1000", in: spec(part(0, 2, "ts_hour", "hour"), part(0, 1, "id", "bucket[4]")), last: 1002, version: 1, existing: before,
			want: spec(part(1000, 2, "ts_hour", "hour"), part(1001, 1, "id", "bucket[4]")),
		},
		{name: "v1 with other ids", in: spec(part(1001, 1, "a", "identity")), version: 1, fragment: "sequential IDs"},
		{name: "id twice", in: spec(part(1000, 1, "a", "identity"), part(1000, 2, "b", "day")), version: 2, fragment: `field "b": id 1000 is used twice`},
		{name: "no id left", in: spec(part(0, 1, "a", "identity")), last: 2147483647, version: 2, fragment: "no partition field id above 2147483647 is left"},
		{name: "no such source", in: spec(part(0, 99, "a", "identity")), version: 2, fragment: "Cannot find source column"},
		{name: "name taken", in: spec(part(0, 2, "id", "day")), version: 2, fragment: "sourced from different field"},
		{name: "several sources", in: spec(`{"name":"a","transform":"other","source-ids":[1,2]}`), version: 3, fragment: "transform of several sources"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sp := mustParseSpec(t, test.in)
			bound, err := sp.Bind(s, test.last, test.version, test.existing)
			if test.fragment != "" {
				wantRefusal(t, err, test.fragment)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(bound.JSON())); diff != "" {
				t.Errorf("bound (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.in, string(sp.JSON())); diff != "" {
				t.Errorf("Bind changed its receiver:\n%s", diff)
			}
		})
	}
}

func TestSpecFresh(t *testing.T) {
	old := mustParse(t, columns(column(30, "a", `"int"`), column(10, "s", `{"type":"struct","fields":[`+column(20, "ts", `"timestamp"`)+`]}`)))
	fresh := old.AssignFreshIDs()
	in := `{"spec-id":4,"fields":[{"name":"d","transform":"day","source-id":20,"field-id":1010,"x":1},` +
		`{"name":"z","transform":"other","source-ids":[20,30],"field-id":1009}],"y":2}`
	sp := mustParseSpec(t, in)
	got, err := sp.Fresh(old, fresh)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"spec-id":0,"fields":[{"name":"d","transform":"day","source-id":3,"field-id":1000,"x":1},` +
		`{"name":"z","transform":"other","source-ids":[3,1],"field-id":1001}],"y":2}`
	if diff := cmp.Diff(want, string(got.JSON())); diff != "" {
		t.Errorf("Fresh (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(in, string(sp.JSON())); diff != "" {
		t.Errorf("Fresh changed its receiver:\n%s", diff)
	}
	for in, fragment := range map[string]string{
		spec(part(0, 1, "b", "identity")):    "Cannot find source column for partition field: null: b: identity(1)",
		spec(part(0, 30, "b", "day")):        "Invalid source type int for transform: day",
		spec(part(0, 20, "a", "day")):        "sourced from different field in schema: a",
		spec(part(0, 10, "b", "identity")):   "Cannot partition by non-primitive",
		spec(part(1000, 99, "gone", "void")): "Cannot find source column",
	} {
		_, err := mustParseSpec(t, in).Fresh(old, fresh)
		wantRefusal(t, err, fragment)
	}
	other := mustParse(t, columns(column(1, "b", `"int"`)))
	_, err = mustParseSpec(t, spec(part(0, 30, "x", "identity"))).Fresh(old, other)
	wantRefusal(t, err, "Cannot find source column")
}
