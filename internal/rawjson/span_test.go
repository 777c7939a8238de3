package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/rawjson"
)

func TestObject(t *testing.T) {
	const text = "\n{ \"a\" : 1 , \"\\u0062\\n\":[ 1, {\"a\":2} ],\t\"c\":{\"a\" : \"}\\\"\"},\"\":null,\"a.b\":\"x\" }\r\n"
	members, err := rawjson.Object([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range members {
		if at := text[m.Offset:]; !strings.HasPrefix(at, string(m.Value)) {
			t.Errorf("offset %d of %q points at %s", m.Offset, m.Name, at)
		}
		got = append(got, fmt.Sprintf("%q=%s", m.Name, m.Value))
	}
	want := []string{`"a"=1`, `"b\n"=[ 1, {"a":2} ]`, `"c"={"a" : "}\""}`, `""=null`, `"a.b"="x"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestSpans(t *testing.T) {
	const text = ` [ {"x":[1,2]} , "]", 3 ,[ ]]`
	var got []string
	for span := range rawjson.Spans([]byte(text)) {
		got = append(got, text[span.Start:span.End])
	}
	want := []string{`{"x":[1,2]}`, `"]"`, `3`, `[ ]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	for range rawjson.Spans([]byte(text)) {
		break
	}
	const object = ` { "a" : {"x":[1,2]} , "\u0062":"}", "c":3 }`
	got = nil
	for name, span := range rawjson.MemberSpans([]byte(object)) {
		got = append(got, name+"="+object[span.Start:span.End])
	}
	if diff := cmp.Diff([]string{`a={"x":[1,2]}`, `b="}"`, `c=3`}, got); diff != "" {
		t.Errorf("spans of members (-want +got):\n%s", diff)
	}
	for _, none := range []string{`[ ]`, `{"a":1}`, `1`, ``} {
		for span := range rawjson.Spans([]byte(none)) {
			t.Errorf("%s has a span %v", none, span)
		}
	}
}

func TestSpansAreCapped(t *testing.T) {
	data := []byte(`{"a":[1,2],"b":3}`)
	before := bytes.Clone(data)
	members, err := rawjson.Object(data)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(members[0].Value, "XX"...)
	for element := range rawjson.Elements(members[0].Value) {
		_ = append(element, "XX"...)
	}
	if !bytes.Equal(data, before) {
		t.Errorf("appending to a span changed the document: %s", data)
	}
}

func TestScansRefuse(t *testing.T) {
	object := func(b []byte) error { _, err := rawjson.Object(b); return err }
	tests := []struct {
		name string
		scan func([]byte) error
		text string
		want string
	}{
		{"array for object", object, ` [1]`, "expected an object"},
		{"syntax before kind", object, `[1`, "the text ends before"},
		{"empty", object, ` `, "the text ends before"},
		{"truncated", object, `{"a":1`, "the text ends before"},
		{"two values", object, `{"a":1}{"b":2}`, "more text follows"},
		{"garbage behind", object, `{"a":1}]`, "more text follows"},
		{"duplicate", object, `{"a":1,"a":2}`, `at /a (byte 7): member "a" appears twice`},
		{"duplicate, escaped", object, `{"a":1,"\u0061":2}`, `member "a" appears twice`},
		{"nested duplicate", object, `{"x":[{"b":1,"b":2}]}`, `at /x/0/b`},
		{"nested garbage", object, `{"x":[1,}`, "invalid character"},
		{"missing comma", object, `{"x":[1 2]}`, "invalid character"},
		{"trailing comma", object, `{"x":[1,]}`, "invalid character"},
		{"trailing comma in object", object, `{"x":1,}`, "invalid character"},
		{"invalid UTF-8", object, "{\"x\":[\"\xc0\xaf\"]}", "invalid UTF-8"},
		{"nested too deep", object, `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "depth"},
		{"validate", rawjson.Validate, `{"a":01}`, "invalid character"},
		{"validate, two values", rawjson.Validate, `1 2`, "more text follows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.scan([]byte(tt.text))
			if _, ok := err.(*rawjson.Error); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v (%T)\nwant *Error with %q", err, err, tt.want)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	const object = ` { "a" : {"id":1} , "\u0069d":2, "s":"\"}{" ,"last":[ "]" ] } `
	tests := []struct {
		name, want string
		ok         bool
	}{
		{"a", `{"id":1}`, true},
		{"id", `2`, true}, // not the one that is nested, and escaped
		{"s", `"\"}{"`, true},
		{"last", `[ "]" ]`, true},
		{"ID", "", false},
		{"", "", false},
	}
	for _, tt := range tests {
		got, ok := rawjson.Lookup([]byte(object), tt.name)
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("Lookup(%q) = %s, %v, want %s, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
	for _, other := range []string{`[1]`, `"a"`, `1`, ``, `{}`} {
		if got, ok := rawjson.Lookup([]byte(other), "a"); ok {
			t.Errorf("Lookup in %s found %s", other, got)
		}
	}
}

func TestPick(t *testing.T) {
	const object = `{"b":2,"\u0061":1,"x":{"c":4},"c":3}`
	tests := []struct {
		names, want []string
	}{
		{[]string{"a", "b"}, []string{"1", "2"}},
		{[]string{"c", "missing", "x"}, []string{"3", "", `{"c":4}`}},
		{nil, nil},
	}
	for _, tt := range tests {
		values := make([][]byte, len(tt.names))
		for i := range values {
			values[i] = []byte("left from before")
		}
		rawjson.Pick([]byte(object), tt.names, values)
		for i, want := range tt.want {
			if string(values[i]) != want {
				t.Errorf("Pick(%q)[%d] = %s, want %s", tt.names, i, values[i], want)
			}
		}
	}
	text, names, values := []byte(`{"b":2,"a":1,"c":3}`), []string{"c", "b"}, make([][]byte, 2)
	if got := testing.AllocsPerRun(10, func() { rawjson.Pick(text, names, values) }); got > 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestScalars(t *testing.T) {
	ints := []struct {
		text string
		want int64
		ok   bool
	}{
		{"9223372036854775807", 1<<63 - 1, true},
		{"-9223372036854775808", -1 << 63, true},
		{"9223372036854775808", 0, false},
		{"9007199254740993", 1<<53 + 1, true},
		{"-0", 0, true}, {"1.0", 0, false}, {"1e3", 0, false}, {"+1", 0, false},
		{`"1"`, 0, false}, {"null", 0, false}, {"", 0, false},
	}
	for _, tt := range ints {
		if got, ok := rawjson.Int64([]byte(tt.text)); ok != tt.ok || ok && got != tt.want {
			t.Errorf("Int64(%s) = %d, %v, want %d, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
	for _, tt := range []struct {
		text, want string
		ok         bool
	}{
		{`"a\u00e9\n\ud83d\ude00"`, "aé\n😀", true}, {`""`, "", true}, {`1`, "", false}, {`null`, "", false}, {`"`, "", false},
	} {
		if got, ok := rawjson.String([]byte(tt.text)); got != tt.want || ok != tt.ok {
			t.Errorf("String(%s) = %q, %v, want %q, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestAppend(t *testing.T) {
	var b []byte
	b = append(b, '{')
	b = rawjson.AppendName(b, "a\"")
	b = rawjson.AppendInt(b, -1<<63)
	b = rawjson.AppendName(b, "b")
	b = rawjson.AppendString(b, "<\\\x00\n\r\t\u2028\xff>")
	b = append(b, '}')
	const want = "{\"a\\\"\":-9223372036854775808,\"b\":\"<\\\\\\u0000\\n\\r\\t\u2028\uFFFD>\"}"
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	if err := rawjson.Validate(b); err != nil {
		t.Error(err)
	}
}

// TestSpansAgreeWithDecoding checks, on random documents, that the spans that
// the validating and the trusting scans find decode to what encoding/json finds.
func TestSpansAgreeWithDecoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := randomValue(3)
		object := rapid.MapOfN(rapid.String(), value, 0, 6).Draw(t, "object")
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetIndent(rapid.SampledFrom([]string{"", " "}).Draw(t, "prefix"), rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"))
		if err := enc.Encode(object); err != nil {
			t.Fatal(err)
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		members, err := rawjson.Object(text.Bytes())
		if err != nil {
			t.Fatalf("%v in %s", err, &text)
		}
		got := map[string]json.RawMessage{}
		for _, m := range members {
			got[m.Name] = m.Value
			found, ok := rawjson.Lookup(text.Bytes(), m.Name)
			if !ok || !bytes.Equal(found, m.Value) {
				t.Fatalf("Lookup(%q) = %s, %v, want %s", m.Name, found, ok, m.Value)
			}
			var elements []json.RawMessage
			if json.Unmarshal(m.Value, &elements) == nil && m.Value[0] == '[' {
				trusted := slices.Collect(rawjson.Elements(m.Value))
				if diff := cmp.Diff(asStrings(elements), asStrings(trusted)); diff != "" {
					t.Fatalf("elements of %q (-want +got):\n%s", m.Name, diff)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("members (-want +got):\n%s", diff)
		}
	})
}

func asStrings[T ~[]byte](spans []T) []string {
	out := []string{}
	for _, s := range spans {
		out = append(out, string(s))
	}
	return out
}

func randomValue(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int64().AsAny(),
		rapid.String().AsAny(),
		rapid.SampledFrom([]any{`"`, `\`, `]}`, `{"`, `,:`}),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	return rapid.OneOf(append(leaves,
		rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return randomValue(depth - 1) }), 0, 4).AsAny(),
		rapid.MapOfN(rapid.String(), rapid.Deferred(func() *rapid.Generator[any] { return randomValue(depth - 1) }), 0, 4).AsAny(),
	)...)
}

// FuzzScan checks on any bytes: nothing panics, the validating scans agree with
// Validate, their spans lie in the input in order, and the trusting scans end.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"c"}],"d":null}`, `[1,2]`, `{"a":"\u0061\\"}`, `{"a":1,"a":2}`, `{`, `"`, `{"a":`, "\xff", `[{]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		valid := rawjson.Validate(data) == nil
		members, err := rawjson.Object(data)
		if err == nil && !valid {
			t.Fatalf("Object took what Validate refuses: %q", data)
		}
		if err == nil {
			rest := data
			for _, m := range members {
				at := bytes.Index(rest, m.Value)
				if at < 0 || rawjson.Validate(m.Value) != nil {
					t.Fatalf("span %q of member %q is not a value in %q", m.Value, m.Name, data)
				}
				rest = rest[at:]
			}
		}
		_ = rawjson.CheckLimits(data)
		rawjson.Lookup(data, "a")
		rawjson.Pick(data, []string{"a", "b"}, make([][]byte, 2))
		for range rawjson.Members(data) {
		}
		for range rawjson.Elements(data) {
		}
		rawjson.String(data)
		rawjson.Int64(data)
		_ = rawjson.Unmarshal(data, new(request))
	})
}

func manySnapshots(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"snapshots":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sequence-number":%d,"snapshot-id":%d,"parent-snapshot-id":%d,"timestamp-ms":%d,"summary":{"operation":"append","added-data-files":"4","added-records":"1000","added-files-size":"123456","changed-partition-count":"2","total-records":"100000","total-files-size":"12345678","total-data-files":"1000","total-delete-files":"0","total-position-deletes":"0","total-equality-deletes":"0"},"manifest-list":"s3://bucket/warehouse/ns/table/metadata/snap-%d-1-5ba1a2b0-8a5e-4b9c-9d4e-2b6d6b6f5d5e.avro","schema-id":0}`,
			i+1, int64(i)*7919+1e15, int64(i-1)*7919+1e15, 1700000000000+int64(i), i)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// TestObjectAllocations pins the promise of the package: what is nested costs no
// memory. A small compressed file can hold an array of many millions of elements.
func TestObjectAllocations(t *testing.T) {
	few, many := manySnapshots(100), manySnapshots(10_000)
	allocations := func(data []byte) float64 {
		return testing.AllocsPerRun(2, func() {
			if _, err := rawjson.Object(data); err != nil {
				t.Fatal(err)
			}
		})
	}
	if a, b := allocations(few), allocations(many); b > a+5 {
		t.Errorf("%v allocations for 100 elements, %v for 10,000", a, b)
	}

	data := []byte(`{"x":[` + strings.Repeat("0,", 4<<20) + `0]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := rawjson.Object(data); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	// A span for each element would be 64 MiB.
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes allocated for a document of %d", got, len(data))
	}
}

func BenchmarkObject(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		data := manySnapshots(n)
		b.Run(fmt.Sprintf("snapshots=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rawjson.Object(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkElements(b *testing.B) {
	data := manySnapshots(10_000)
	list, _ := rawjson.Lookup(data, "snapshots")
	b.SetBytes(int64(len(list)))
	for b.Loop() {
		for range rawjson.Elements(list) {
		}
	}
}
