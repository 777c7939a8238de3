package schema

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/rawjson"
)

// drawSchema writes the JSON of a valid schema with distinct random ids, unknown
// members in random places and white space that must not matter.
func drawSchema(t *rapid.T) []byte {
	g := &schemaWriter{t: t, used: map[int]bool{}}
	dst := append([]byte{'{'}, ` "type" : "struct"`...)
	if rapid.Bool().Draw(t, "has id") {
		dst = rawjson.AppendInt(rawjson.AppendName(dst, "schema-id"), int64(rapid.Int32().Draw(t, "schema id")))
	}
	dst = g.fields(dst, 3, true)
	if len(g.candidates) > 0 && rapid.Bool().Draw(t, "has identifiers") {
		dst = appendInts(rawjson.AppendName(dst, "identifier-field-ids"), g.candidates)
	}
	return append(g.unknown(dst), '}')
}

type schemaWriter struct {
	t    *rapid.T
	used map[int]bool
	// candidates are fields that may identify rows.
	candidates []int
}

func (g *schemaWriter) id() int {
	id := int(rapid.Int32().Filter(func(id int32) bool { return !g.used[int(id)] }).Draw(g.t, "id"))
	g.used[id] = true
	return id
}

func (g *schemaWriter) unknown(dst []byte) []byte {
	value := rapid.SampledFrom([]string{"", "", "", "null", `{ "a":[1.50,9007199254740993] }`, `"\u0041"`, "1e999"}).Draw(g.t, "unknown")
	if value == "" {
		return dst
	}
	return append(rawjson.AppendName(dst, "x-unknown"), value...)
}

// fields writes the member fields of a struct; identifying says that all structs
// around it are required, and that no list or map is.
func (g *schemaWriter) fields(dst []byte, depth int, identifying bool) []byte {
	dst = append(rawjson.AppendName(dst, "fields"), '[')
	names := rapid.SliceOfNDistinct(rapid.StringOfN(rapid.RuneFrom([]rune("abcé\"\\\n\u2028<")), 1, 3, -1), 0, 4, rapid.ID).Draw(g.t, "names")
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = g.field(dst, name, depth, identifying)
	}
	return append(dst, ']')
}

func (g *schemaWriter) field(dst []byte, name string, depth int, identifying bool) []byte {
	id := g.id()
	required := rapid.Bool().Draw(g.t, "required")
	dst = rawjson.AppendInt(rawjson.AppendName(append(dst, '{'), "id"), int64(id))
	dst = rawjson.AppendString(rawjson.AppendName(dst, "name"), name)
	if rapid.Bool().Draw(g.t, "has doc") {
		dst = rawjson.AppendString(rawjson.AppendName(dst, "doc"), rapid.String().Draw(g.t, "doc"))
	}
	dst = rawjson.AppendName(dst, "type")
	if depth > 0 && rapid.Bool().Draw(g.t, "nested") {
		dst = g.nested(dst, depth-1, identifying && required)
	} else {
		kind := rapid.SampledFrom(leaves).Draw(g.t, "leaf")
		dst = rawjson.AppendString(dst, kind.name)
		if kind.name == "unknown" {
			required = false
		}
		if identifying && required && kind.identifies {
			g.candidates = append(g.candidates, id)
		}
		if kind.value != "" && rapid.Bool().Draw(g.t, "has default") {
			dst = append(rawjson.AppendName(dst, "initial-default"), kind.value...)
			dst = append(rawjson.AppendName(dst, "write-default"), kind.value...)
		}
	}
	dst = appendBool(rawjson.AppendName(dst, "required"), required)
	return append(g.unknown(dst), '}')
}

var leaves = []struct {
	name, value string
	identifies  bool
}{
	{"boolean", "true", true}, {"int", "-7", true}, {"long", "9007199254740993", true}, {"float", "1", false},
	{"double", "1.25e3", false}, {"decimal(9,2)", `"14.20"`, true}, {"date", `"2017-11-16"`, true}, {"time", `"22:31"`, true},
	{"timestamp", `"2017-11-16T22:31:08"`, true}, {"timestamptz", `"2017-11-16T22:31:08Z"`, true},
	{"timestamp_ns", `"2017-11-16T22:31:08.000000001"`, true}, {"string", `"\u0061"`, true},
	{"uuid", `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, true}, {"fixed[2]", `"00Ff"`, true}, {"binary", `""`, true},
	{"unknown", "", false}, {"variant", "", false}, {"geometry", "", false}, {"geography( srid:4326 , KARNEY )", "", false},
}

func (g *schemaWriter) nested(dst []byte, depth int, identifying bool) []byte {
	inner := func(dst []byte, name string) []byte {
		dst = rawjson.AppendInt(rawjson.AppendName(dst, name+"-id"), int64(g.id()))
		dst = rawjson.AppendName(dst, name)
		if depth > 0 && rapid.Bool().Draw(g.t, "deeper") {
			return g.nested(dst, depth-1, false)
		}
		return append(dst, `"long"`...)
	}
	dst = append(dst, '{')
	switch rapid.IntRange(0, 2).Draw(g.t, "container") {
	case 0:
		dst = g.fields(appendMember(dst, "type", "struct"), depth, identifying)
	case 1:
		dst = inner(appendMember(dst, "type", "list"), "element")
		dst = append(rawjson.AppendName(dst, "element-required"), "true"...)
	default:
		dst = inner(appendMember(dst, "type", "map"), "key")
		dst = inner(dst, "value")
		dst = append(rawjson.AppendName(dst, "value-required"), "false"...)
	}
	return append(g.unknown(dst), '}')
}

// Parsing what was written gives the same schema, unknown members included, and
// writing that again gives the same bytes.
func TestSchemaSurvivesWriting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := drawSchema(t)
		s, err := Parse(data)
		if err != nil {
			t.Fatalf("Parse(%s): %v", data, err)
		}
		checkWriting(t, s)
		if want, got := bytes.Count(data, []byte("x-unknown")), bytes.Count(s.JSON(), []byte("x-unknown")); got != want {
			t.Fatalf("%d unknown members became %d:\n%s\n%s", want, got, data, s.JSON())
		}
	})
}

func checkWriting(t testingT, s *Schema) {
	t.Helper()
	written := s.JSON()
	again, err := Parse(written)
	if err != nil {
		t.Fatalf("Parse of the output %s: %v", written, err)
	}
	if !again.SameAs(s) || !s.SameAs(again) || again.ID() != s.ID() {
		t.Fatalf("the output is another schema: %s", written)
	}
	if !bytes.Equal(again.JSON(), written) {
		t.Fatalf("the output changes when it is written again:\n%s\n%s", written, again.JSON())
	}
}

// testingT is what *testing.T and *rapid.T have in common.
type testingT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Fresh ids are 1 to n without gaps, each field keeps its name and all but its id,
// and a second time changes nothing. A spec of identities follows.
func TestFreshIDsFollowNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := Parse(drawSchema(t))
		if err != nil {
			t.Fatal(err)
		}
		fresh := s.AssignFreshIDs()
		checkFresh(t, s, fresh)
		if !fresh.AssignFreshIDs().SameAs(fresh) {
			t.Fatalf("fresh ids change when they are assigned again:\n%s", fresh.JSON())
		}
		sp := &Spec{}
		for i, id := range slices.Sorted(maps.Keys(s.index.byID)) {
			sp.fields = append(sp.fields, partitionField{
				name: fmt.Sprintf("p%d", i), transform: transform{name: "identity", text: "identity"}, sources: sources{id},
			})
		}
		wantErr := sp.CheckCompatible(s)
		moved, err := sp.Fresh(s, fresh)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("the spec is compatible: %v, afterwards: %v", wantErr, err)
		}
		for i := range sp.fields {
			if err != nil {
				break
			}
			from, _ := s.Name(sp.fields[i].sources[0])
			to, _ := fresh.Name(moved.fields[i].sources[0])
			if from != to {
				t.Fatalf("partition field %d went from %q to %q", i, from, to)
			}
		}
	})
}

func checkFresh(t testingT, s, fresh *Schema) {
	t.Helper()
	if n := len(s.index.byID); fresh.ID() != 0 || fresh.HighestFieldID() != n || len(fresh.index.byID) != n {
		t.Fatalf("%d fields got ids up to %d", n, fresh.HighestFieldID())
	}
	for id, e := range s.index.byID {
		f, ok := fresh.FieldByName(e.name)
		if !ok || f.ID < 1 || f.Required != e.field.Required || f.Name != e.field.Name || !f.InitialDefault.same(e.field.InitialDefault) {
			t.Fatalf("field %q became %v, %v", e.name, f, ok)
		}
		if slices.Contains(s.identifiers, id) != slices.Contains(fresh.identifiers, f.ID) {
			t.Fatalf("field %q identifies rows before or after, not both", e.name)
		}
	}
}
