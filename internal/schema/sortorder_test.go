package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParseSortOrder(t testing.TB, data string) *SortOrder {
	t.Helper()
	o, err := ParseSortOrder([]byte(data))
	if err != nil {
		t.Fatalf("ParseSortOrder(%s): %v", data, err)
	}
	return o
}

// order wraps the JSON of fields into a sort order with the id 1.
func order(fields ...string) string {
	return `{"order-id":1,"fields":[` + strings.Join(fields, ",") + `]}`
}

func sortBy(source int, transform string) string {
	return fmt.Sprintf(`{"transform":%q,"source-id":%d,"direction":"asc","null-order":"nulls-first"}`, transform, source)
}

func TestSortOrderCanonicalJSON(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"unsorted", `{"order-id":0,"fields":[]}`, `{"order-id":0,"fields":[]}`},
		{"unsorted without id", `{"fields":[]}`, `{"order-id":0,"fields":[]}`},
		{"sorted without id", `{"order-id":null,"fields":[` + sortBy(1, "identity") + `]}`, order(sortBy(1, "identity"))},
		{
			"any case, order of members, unknown members",
			`{"x":{},"fields":[{"null-order":"NULLS-Last","y":1e2,"direction":"DESC","source-id":3,"transform":"Bucket[4]"}],"order-id":2147483647}`,
			`{"order-id":2147483647,"fields":[{"transform":"bucket[4]","source-id":3,"direction":"desc","null-order":"nulls-last","y":1e2}],"x":{}}`,
		},
		{
			"several sources",
			order(`{"transform":"zorder","source-ids":[1,2],"direction":"asc","null-order":"nulls-first"}`),
			order(`{"transform":"zorder","source-ids":[1,2],"direction":"asc","null-order":"nulls-first"}`),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := mustParseSortOrder(t, test.in)
			if diff := cmp.Diff(test.want, string(o.JSON())); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			again := mustParseSortOrder(t, string(o.JSON()))
			if diff := cmp.Diff(string(o.JSON()), string(again.JSON())); diff != "" || !again.SameAs(o) {
				t.Errorf("parsing the output gives another order:\n%s", diff)
			}
		})
	}
}

func TestParseSortOrderRefuses(t *testing.T) {
	field := func(text string) string { return order(text) }
	tests := []struct{ name, in, fragment string }{
		{"empty text", ``, "the text ends"},
		{"array", `[]`, "expected an object"},
		{"no fields", `{"order-id":0}`, "fields must be an array"},
		{"field not an object", `{"order-id":1,"fields":["a"]}`, `field 0 must be an object, not "a"`},
		{"unsorted with an id", `{"order-id":1,"fields":[]}`, "Unsorted order ID must be 0"},
		{"sorted with the id 0", `{"order-id":0,"fields":[` + sortBy(1, "identity") + `]}`, "Sort order ID 0 is reserved for unsorted order"},
		{"order-id above 32 bits", `{"order-id":2147483648,"fields":[` + sortBy(1, "identity") + `]}`, "order-id must be an integer of 32 bits"},
		{"no transform", field(`{"source-id":1,"direction":"asc","null-order":"nulls-first"}`), "field 0: transform must be a string"},
		{"bad transform", field(sortBy(1, "truncate[0]")), "the parameter must be above 0"},
		{"no source", field(`{"transform":"day","direction":"asc","null-order":"nulls-first"}`), "source-id is missing"},
		{"no direction", field(`{"transform":"day","source-id":1,"null-order":"nulls-first"}`), "direction is missing"},
		{"bad direction", field(`{"transform":"day","source-id":1,"direction":"up","null-order":"nulls-first"}`), `direction must be asc or desc, not "up"`},
		{"no null order", field(`{"transform":"day","source-id":1,"direction":"asc"}`), "null-order is missing"},
		{"bad null order", field(`{"transform":"day","source-id":1,"direction":"asc","null-order":1}`), "null-order must be nulls-first or nulls-last, not 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseSortOrder([]byte(test.in))
			wantRefusal(t, err, test.fragment)
		})
	}
}

func TestSortOrderSameAs(t *testing.T) {
	base := order(sortBy(1, "identity"), sortBy(2, "day"))
	o := mustParseSortOrder(t, base)
	if other := o.WithID(7); other.ID() != 7 || o.ID() != 1 || !other.SameAs(o) || other.IsUnsorted() {
		t.Error("WithID changed more than the id of the copy")
	}
	if !o.SameAs(mustParseSortOrder(t, strings.Replace(base, `"fields"`, `"x":1,"fields"`, 1))) {
		t.Error("an unknown member makes a difference")
	}
	for _, change := range [][2]string{
		{"identity", "bucket[4]"}, {`"source-id":1`, `"source-id":3`}, {"asc", "desc"}, {"nulls-first", "nulls-last"},
		{`,` + sortBy(2, "day"), ``},
	} {
		if other := mustParseSortOrder(t, strings.Replace(base, change[0], change[1], 1)); o.SameAs(other) || other.SameAs(o) {
			t.Errorf("%s to %s makes no difference", change[0], change[1])
		}
	}
	if o.SameAs(mustParseSortOrder(t, order(sortBy(2, "day"), sortBy(1, "identity")))) {
		t.Error("the order of fields makes no difference")
	}
	if !Unsorted().SameAs(mustParseSortOrder(t, `{"order-id":0,"fields":[]}`)) || Unsorted().WithID(0).ID() != 0 {
		t.Error("two unsorted orders differ")
	}
}

func TestSortOrderIDInvariant(t *testing.T) {
	for _, change := range []func(){
		func() { Unsorted().WithID(1) },
		func() { mustParseSortOrder(t, order(sortBy(1, "day"))).WithID(0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("an order got an id that it cannot have")
				}
			}()
			change()
		}()
	}
}

func TestSortOrderCheckCompatible(t *testing.T) {
	s := sourceSchema(t)
	// Unlike a partition's, the source of a sort field may lie in a list.
	for _, good := range []string{order(sortBy(1, "bucket[4]")), order(sortBy(5, "identity")), order(sortBy(8, "identity")), order(sortBy(1, "void"))} {
		if err := mustParseSortOrder(t, good).CheckCompatible(s); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for in, fragment := range map[string]string{
		order(sortBy(99, "bucket[4]")): "Cannot find source column for sort field: bucket[4](99) ASC NULLS FIRST",
		order(sortBy(99, "void")):      "Cannot find source column for sort field: void(99)",
		order(sortBy(4, "identity")):   "Cannot sort by non-primitive source field: 4: s: optional struct<",
		order(sortBy(12, "void")):      "Cannot sort by non-primitive source field: 12: v: optional variant",
		order(sortBy(1, "day")):        "Invalid source type long for transform: day",
		order(`{"transform":"z","source-ids":[1,99],"direction":"desc","null-order":"nulls-last"}`): "sort field: z(1, 99) DESC NULLS LAST",
	} {
		wantRefusal(t, mustParseSortOrder(t, in).CheckCompatible(s), fragment)
	}
}

func TestSortOrderCheckSources(t *testing.T) {
	several := mustParseSortOrder(t, order(`{"transform":"z","source-ids":[1,2],"direction":"desc","null-order":"nulls-last"}`))
	wantRefusal(t, several.CheckSources(), "Invalid transform of several sources: z(1, 2) DESC NULLS LAST: most readers cannot load")
	if err := mustParseSortOrder(t, order(sortBy(1, "day"))).CheckSources(); err != nil {
		t.Error(err)
	}
}

func TestSortOrderFresh(t *testing.T) {
	old := mustParse(t, columns(column(30, "a", `"int"`), column(10, "s", `{"type":"struct","fields":[`+column(20, "ts", `"timestamp"`)+`]}`)))
	fresh := old.AssignFreshIDs()
	in := `{"order-id":5,"fields":[{"transform":"day","source-id":20,"direction":"desc","null-order":"nulls-last","x":1},` + sortBy(30, "identity") + `],"y":2}`
	o := mustParseSortOrder(t, in)
	got, err := o.Fresh(old, fresh)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"order-id":1,"fields":[{"transform":"day","source-id":3,"direction":"desc","null-order":"nulls-last","x":1},` + sortBy(1, "identity") + `],"y":2}`
	if diff := cmp.Diff(want, string(got.JSON())); diff != "" {
		t.Errorf("Fresh (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(in, string(o.JSON())); diff != "" {
		t.Errorf("Fresh changed its receiver:\n%s", diff)
	}
	unsorted, err := Unsorted().Fresh(old, fresh)
	if err != nil || unsorted.ID() != 0 || !unsorted.IsUnsorted() {
		t.Errorf("Fresh of unsorted = %v, %v", unsorted, err)
	}
	for in, fragment := range map[string]string{
		order(sortBy(1, "identity")): "Cannot find source column for sort field: identity(1) ASC NULLS FIRST",
		order(sortBy(30, "day")):     "Invalid source type int for transform: day",
	} {
		_, err := mustParseSortOrder(t, in).Fresh(old, fresh)
		wantRefusal(t, err, fragment)
	}
}
