package tablemeta_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

func viewSamples(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/view/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %d samples: %v", len(files), err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = data
	}
	return all
}

func viewSample(t testing.TB, name string) *tablemeta.View {
	t.Helper()
	data, ok := viewSamples(t)[name]
	if !ok {
		t.Fatalf("no sample %s", name)
	}
	return parseView(t, string(data))
}

func parseView(t testing.TB, text string) *tablemeta.View {
	t.Helper()
	v, err := tablemeta.ParseView([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func decodeViewUpdates(t testing.TB, text string) (updates []tablemeta.ViewUpdate) {
	t.Helper()
	if err := rawjson.Unmarshal([]byte(text), &updates); err != nil {
		t.Fatal(err)
	}
	return updates
}

func commitView(t testing.TB, base *tablemeta.View, updates string) *tablemeta.View {
	t.Helper()
	v, _, err := tablemeta.CommitView(tablemeta.ViewChange{Base: base, Updates: decodeViewUpdates(t, updates), Now: time.UnixMilli(transcriptNow)})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checkView checks what holds of all views that are made from sound ones.
func checkView(t failer, v *tablemeta.View) {
	t.Helper()
	again, err := tablemeta.ParseView(bytes.Clone(v.JSON()))
	if err != nil {
		t.Fatalf("the document cannot be read: %v\n%s", err, v.JSON())
	}
	if err := again.Verify(); err != nil {
		t.Fatalf("%v\n%s", err, v.JSON())
	}
	if got, want := again.String(), v.String(); got != want {
		t.Fatalf("reads as %s, was %s", got, want)
	}
}

// TestViewTranscripts is [TestTranscripts] for views, in testdata/viewcommit. There is
// no base "none": views are not created by updates.
func TestViewTranscripts(t *testing.T) { runTranscripts(t, "testdata/viewcommit", runViewTranscript) }

func runViewTranscript(t *testing.T, out *strings.Builder, block string) {
	change := tablemeta.ViewChange{Now: time.UnixMilli(transcriptNow)}
	var reqs []tablemeta.Requirement
	var failure error
	for _, line := range strings.Split(block, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, " ") {
			continue // an outcome
		}
		fmt.Fprintln(out, line)
		switch word {
		case "#":
		case "base":
			change.Base = viewSample(t, rest)
		case "now":
			var ms int64
			if _, err := fmt.Sscan(rest, &ms); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			change.Now = time.UnixMilli(ms)
		case "?":
			var r tablemeta.Requirement
			if err := rawjson.Unmarshal([]byte(rest), &r); err != nil && failure == nil {
				failure = err
			}
			reqs = append(reqs, r)
		case ">":
			var u tablemeta.ViewUpdate
			if err := rawjson.Unmarshal([]byte(rest), &u); err != nil && failure == nil {
				failure = err
			}
			change.Updates = append(change.Updates, u)
		default:
			t.Fatalf("unknown line in transcript: %q", line)
		}
	}
	if failure != nil {
		fmt.Fprintf(out, "  decode: %v\n", failure)
		return
	}
	if err := tablemeta.CheckView(change.Base, reqs); err != nil {
		fmt.Fprintf(out, "  %s\n", told(err))
		return
	}
	if len(change.Updates) == 0 {
		fmt.Fprintln(out, "  holds")
		return
	}
	before := bytes.Clone(change.Base.JSON())
	v, changed, err := tablemeta.CommitView(change)
	if !bytes.Equal(before, change.Base.JSON()) {
		t.Errorf("the commit changed its base\n%s", block)
	}
	switch {
	case err != nil:
		fmt.Fprintf(out, "  %s\n", told(err))
	case !changed:
		if v != change.Base {
			t.Errorf("unchanged, but not the base\n%s", block)
		}
		fmt.Fprintln(out, "  unchanged")
	default:
		checkView(t, v)
		tellDifference(t, out, before, v.JSON())
	}
}

// TestUnchangedViewIsIdentical checks that reading and writing changes no byte, and
// that samples are sound as a whole.
func TestUnchangedViewIsIdentical(t *testing.T) {
	for name, data := range viewSamples(t) {
		want := bytes.Clone(data)
		v, err := tablemeta.ParseView(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := v.Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		file, err := tablemeta.EncodeView(v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := tablemeta.Decode(file, int64(len(want)))
		if err != nil || !bytes.Equal(got, want) || !bytes.Equal(v.JSON(), want) {
			t.Errorf("%s: not written as it was read: %v\n%s", name, err, cmp.Diff(string(want), string(got)))
		}
	}
}

// TestUntouchedViewSurvives commits to each sample and checks that every member that
// the commit is not about keeps its bytes, at every level.
func TestUntouchedViewSurvives(t *testing.T) {
	for name, data := range viewSamples(t) {
		updates := `[{"action":"set-properties","updates":{"touched":"yes","version.history.num-entries":"4"}}]`
		v := commitView(t, viewSample(t, name), updates)
		checkView(t, v)
		for key, value := range rawjson.Members(data) {
			if got, _ := rawjson.Lookup(v.JSON(), key); !bytes.Equal(got, value) && key != "properties" && key != "location" {
				t.Errorf("%s: %s is %s, was %s", name, key, got, value)
			}
		}
	}
}

func TestViewAccessors(t *testing.T) {
	v := viewSample(t, "rich")
	comment, hasComment := v.Property("comment")
	none, hasNone := v.Property("none")
	got := []any{v.UUID(), v.Location(), comment, hasComment, none, hasNone, v.String()}
	want := []any{
		"fa6506c3-7681-40c8-86dc-e36561f83385", "s3://bucket/views/event_agg/", "Daily event counts", true, "", false,
		"view fa6506c3-7681-40c8-86dc-e36561f83385 (version 3 of 3)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestViewFileName(t *testing.T) {
	tests := []struct{ sample, properties, base, want string }{
		{"rich", `{"a":"b"}`, "", "s3://bucket/views/event_agg/metadata/00000-u.gz.metadata.json"},
		{"java", `{"a":"b"}`, "file:/w/ns/view/metadata/00007-x.gz.metadata.json", "file:/w/ns/view/metadata/00008-u.gz.metadata.json"},
		{"java", `{"write.metadata.compression-codec":"GZIP","write.metadata.path":"s3://meta/here//"}`, "v3.metadata.json", "s3://meta/here/00000-u.gz.metadata.json"},
		{"java", `{"write.metadata.compression-codec":"None","write.metadata.path":"s3://meta/here"}`, "00000-x", "s3://meta/here/00001-u.metadata.json"},
	}
	for _, tt := range tests {
		v := commitView(t, viewSample(t, tt.sample), `[{"action":"set-properties","updates":`+tt.properties+`}]`)
		if got := tablemeta.ViewFileName(v, tt.base, "u"); got != tt.want {
			t.Errorf("%s on %q: got %s, want %s", tt.properties, tt.base, got, tt.want)
		}
		file, err := tablemeta.EncodeView(v)
		if compressed := bytes.HasPrefix(file, []byte{0x1f, 0x8b}); err != nil || compressed != strings.Contains(tt.want, ".gz.") {
			t.Errorf("%s: compressed is %v, %v", tt.properties, compressed, err)
		}
	}
	// Only metadata from elsewhere can have an unknown codec.
	v := parseView(t, strings.Replace(string(viewSamples(t)["rich"]), `"owner"`, `"write.metadata.compression-codec"`, 1))
	_, err := tablemeta.EncodeView(v)
	var invalid *tablemeta.InvalidError
	if !errors.As(err, &invalid) || err.Error() != "Invalid codec name: ana" {
		t.Errorf("got %v", err)
	}
}

// TestParseViewRefuses takes a sound view and replaces a part of it.
func TestParseViewRefuses(t *testing.T) {
	const p = "Invalid view metadata: "
	tests := []struct{ name, old, replacement, want string }{
		{"syntax", `{"view-uuid"`, `{"view-uuid`, p + "invalid JSON"},
		{"kind", `{"view-uuid"`, `[{"view-uuid"`, p + "invalid JSON"},
		{"duplicate member", `"format-version":1`, `"format-version":1,"view-uuid":"x"`, p + `invalid JSON at /view-uuid`},
		{"no uuid", `"view-uuid"`, `"table-uuid"`, p + `missing field "view-uuid"`},
		{"null uuid", `"11111111-1111-4111-8111-111111111111"`, `null`, p + `missing field "view-uuid"`},
		{"empty uuid", `"11111111-1111-4111-8111-111111111111"`, `""`, p + `view-uuid must not be empty`},
		{"no version", `"format-version":1,`, ``, p + `missing field "format-version"`},
		{"version 0", `"format-version":1`, `"format-version":0`, `Unsupported format version: 0`},
		{"version 2", `"format-version":1`, `"format-version":2`, `Unsupported format version: 2`},
		{"fraction", `"format-version":1`, `"format-version":1.0`, p + `field "format-version" must be an integer of 32 bits, got 1.0`},
		{"no location", `"location":"file:/w/ns/view",`, ``, p + `missing field "location"`},
		{"empty location", `"file:/w/ns/view"`, `""`, p + `location must not be empty`},
		{"properties", `"location"`, `"properties":{"a":1},"location"`, p + `properties: the value of "a" must be a string, got 1`},
		{"properties kind", `"location"`, `"properties":[],"location"`, p + `properties must be an object, got []`},
		{"no schemas", `"schemas"`, `"x"`, p + `missing field "schemas"`},
		{"schemas", `"schemas":[`, `"schemas":[7,`, p + `schemas: element 0 must be an object, got 7`},
		{"schema id", `"schema-id":0,"fields"`, `"schema-id":"0","fields"`, p + `schemas: schema-id must be an integer of 64 bits, got "0"`},
		{"schema ids", `"schemas":[`, `"schemas":[{"schema-id":0},`, p + `schemas: id 0 is used twice`},
		{"no current version", `"current-version-id":1,`, ``, p + `missing field "current-version-id"`},
		{"unknown current version", `"current-version-id":1`, `"current-version-id":2`, p + `Cannot find current version 2 in view versions`},
		{"unknown current schema", `"schema-id":0,"summary"`, `"schema-id":1,"summary"`, p + `Cannot find current schema with id 1 in schemas`},
		{"no versions", `"versions"`, `"x"`, p + `missing field "versions"`},
		{"versions", `"versions":[`, `"versions":{},"x":[`, p + `versions must be an array, got {}`},
		{"version ids", `"versions":[`, `"versions":[{"version-id":1,"schema-id":9,"timestamp-ms":1},`, p},
		{"version id", `"version-id":1,"timestamp-ms":1700000000000,"schema-id"`, `"timestamp-ms":1700000000000,"schema-id"`, p + `versions: no version-id in`},
		{"big version id", `"version-id":1,"timestamp-ms":1700000000000,"schema-id"`, `"version-id":2147483648,"timestamp-ms":1700000000000,"schema-id"`, p + `versions: version-id must be an integer of 32 bits, got 2147483648`},
		{"version time", `"timestamp-ms":1700000000000,"schema-id"`, `"schema-id"`, p + `versions: no timestamp-ms in`},
		{"version schema", `"schema-id":0,"summary"`, `"summary"`, p + `versions: no schema-id in`},
		{"no log", `"version-log"`, `"x"`, p + `missing field "version-log"`},
		{"log time", `{"timestamp-ms":1700000000000,"version-id":1}]`, `{"version-id":1}]`, p + `version-log: no timestamp-ms in`},
		{"log version", `{"timestamp-ms":1700000000000,"version-id":1}]`, `{"timestamp-ms":1700000000000}]`, p + `version-log: no version-id in`},
	}
	sound := string(viewSamples(t)["java"])
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(sound, tt.old) {
				t.Fatalf("the sample has no %s", tt.old)
			}
			_, err := tablemeta.ParseView([]byte(strings.Replace(sound, tt.old, tt.replacement, 1)))
			var invalid *tablemeta.InvalidError
			if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want *InvalidError with %q", err, tt.want)
			}
		})
	}
}

// TestVerifyView: what ParseView passes by, Verify finds.
func TestVerifyView(t *testing.T) {
	tests := []struct{ name, old, replacement, want string }{
		{"schema", `"type":"int"`, `"type":"integer"`, "schema: "},
		{"no summary", `"summary":{"app-id":"app","engine-name":"junit"},`, ``, `Invalid view version 1: missing field "summary"`},
		{"summary", `"app-id":"app"`, `"app-id":7`, `Invalid view version 1: field "summary"`},
		{"catalog", `"summary"`, `"default-catalog":[],"summary"`, `Invalid view version 1: field "default-catalog" must be a string, got []`},
		{"null properties", `"format-version"`, `"properties":null,"format-version"`, `Invalid view metadata: field "properties" must not be null`},
		{"namespace", `["ns"]`, `"ns"`, `Invalid view version 1: field "default-namespace" must be an array, got "ns"`},
		{"no namespace", `"default-namespace"`, `"x"`, `Invalid view version 1: missing field "default-namespace"`},
		{"no representations", `"representations"`, `"x"`, `Invalid view version 1: missing field "representations"`},
		{"no type", `"type":"sql",`, ``, `Invalid view version 1: representation: missing field "type"`},
		{"no query", `"sql":"select * from ns.tbl",`, ``, `Invalid view version 1: representation: missing field "sql"`},
		{"no dialect", `"dialect":"spark"`, `"dialect":null`, `Invalid view version 1: representation: missing field "dialect"`},
	}
	sound := string(viewSamples(t)["java"])
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(sound, tt.old) {
				t.Fatalf("the sample has no %s", tt.old)
			}
			err := parseView(t, strings.Replace(sound, tt.old, tt.replacement, 1)).Verify()
			var invalid *tablemeta.InvalidError
			if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want *InvalidError with %q", err, tt.want)
			}
		})
	}
}

// TestOldVersionWithoutSchema: a version that lost its schema elsewhere does no harm
// until it is made the current one.
func TestOldVersionWithoutSchema(t *testing.T) {
	base := parseView(t, strings.Replace(string(viewSamples(t)["history"]), `"version-id":2,"timestamp-ms":1699999900002,"schema-id":0`, `"version-id":2,"timestamp-ms":1,"schema-id":5`, 1))
	checkView(t, commitView(t, base, `[{"action":"set-current-view-version","view-version-id":3}]`))
	_, _, err := tablemeta.CommitView(tablemeta.ViewChange{
		Base: base, Updates: decodeViewUpdates(t, `[{"action":"set-current-view-version","view-version-id":2}]`), Now: time.UnixMilli(transcriptNow),
	})
	var invalid *tablemeta.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "Cannot find current schema with id 5 in schemas") {
		t.Errorf("got %v", err)
	}
}

// TestViewNullProperties: null is written by others for no properties.
func TestViewNullProperties(t *testing.T) {
	base := parseView(t, strings.Replace(string(viewSamples(t)["java"]), `"location"`, `"properties":null,"location"`, 1))
	v := commitView(t, base, `[{"action":"set-properties","updates":{"a":"b"}}]`)
	if value, _ := v.Property("a"); value != "b" || !strings.Contains(string(v.JSON()), `"format-version":1,"properties":{"a":"b"},"location"`) {
		t.Errorf("got %s", v.JSON())
	}
}

const (
	newViewSchema  = `{"type":"struct","schema-id":7,"x":1.0,"fields":[{"id":3,"name":"id","required":true,"type":"long"},{"id":4,"name":"v","required":false,"type":"variant"}]}`
	newViewVersion = `{"version-id":12,"timestamp-ms":5,"schema-id":9,"summary":{"engine-name":"trino"},"default-catalog":null,"default-namespace":["a","b"],"x":{"y":1e2},
		"representations":[{"type":"sql","sql":"SELECT \u0031","dialect":"trino"},{"type":"ir","plan":9007199254740993,"n":null}]}`
)

func newView() tablemeta.NewView {
	return tablemeta.NewView{
		UUID: transcriptUUID, Location: "file:/tmp/ns/view", Now: time.UnixMilli(transcriptNow),
		Schema: []byte(newViewSchema), Version: []byte(newViewVersion), Properties: map[string]string{"owner": "ana \"a\"", "comment": ""},
	}
}

// TestCreateView: ids and the time are the server's, columns keep their ids, what is
// unknown is kept, and properties may be missing.
func TestCreateView(t *testing.T) {
	for properties, written := range map[string]string{"two": `"properties":{"comment":"","owner":"ana \"a\""},`, "none": ``} {
		request := newView()
		if properties == "none" {
			request.Properties = nil
		}
		v, err := tablemeta.CreateView(request)
		if err != nil {
			t.Fatal(err)
		}
		checkView(t, v)
		want := `{"view-uuid":"99999999-9999-4999-8999-999999999999","format-version":1,"location":"file:/tmp/ns/view",` + written +
			`"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":3,"name":"id","required":true,"type":"long"},{"id":4,"name":"v","required":false,"type":"variant"}],"x":1.0}],` +
			`"current-version-id":1,"versions":[{"version-id":1,"timestamp-ms":1700000100000,"schema-id":0,"summary":{"engine-name":"trino"},"default-namespace":["a","b"],"x":{"y":1e2},` +
			`"representations":[{"type":"sql","sql":"SELECT 1","dialect":"trino"},{"type":"ir","plan":9007199254740993,"n":null}]}],` +
			`"version-log":[{"timestamp-ms":1700000100000,"version-id":1}]}`
		if diff := cmp.Diff(want, string(v.JSON())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestCreateViewRefuses(t *testing.T) {
	version := func(old, replacement string) func(*tablemeta.NewView) {
		return func(n *tablemeta.NewView) {
			n.Version = []byte(strings.Replace(newViewVersion, old, replacement, 1))
		}
	}
	property := func(key, value string) func(*tablemeta.NewView) {
		return func(n *tablemeta.NewView) { n.Properties[key] = value }
	}
	tests := []struct {
		name   string
		change func(*tablemeta.NewView)
		want   string
	}{
		{"no uuid", func(n *tablemeta.NewView) { n.UUID = "" }, "Invalid view uuid: null"},
		{"no location", func(n *tablemeta.NewView) { n.Location = "" }, "Invalid location: null"},
		{"no schema", func(n *tablemeta.NewView) { n.Schema = nil }, "Cannot create view without specifying schema"},
		{"schema", func(n *tablemeta.NewView) { n.Schema = []byte(`{"type":"struct"}`) }, "schema: "},
		{"null schema", func(n *tablemeta.NewView) { n.Schema = []byte(`null`) }, "schema: "},
		{"no version", func(n *tablemeta.NewView) { n.Version = nil }, "Cannot create view without specifying a query"},
		{"null version", func(n *tablemeta.NewView) { n.Version = []byte(`null`) }, "view version: must be an object, got null"},
		{"broken version", func(n *tablemeta.NewView) { n.Version = []byte(`{`) }, "view version: "},
		{"no namespace", version(`"default-namespace"`, `"z"`), `view version: missing field "default-namespace"`},
		{"no version id", version(`"version-id"`, `"z"`), `view version: missing field "version-id"`},
		{"no query", func(n *tablemeta.NewView) {
			n.Version = []byte(`{"version-id":1,"timestamp-ms":5,"schema-id":0,"summary":{},"default-namespace":[],"representations":[]}`)
		}, "Cannot create view without specifying a query"},
		{"two queries", version(`"type":"ir"`, `"type":"SQL","dialect":"TRINO","sql":"SELECT 2"`), "Invalid view version: Cannot add multiple queries for dialect trino"},
		{"representation", version(`"type":"ir",`, ``), `view version: representation: missing field "type"`},
		{"history", property("version.history.num-entries", "0"), "version.history.num-entries must be positive but was 0"},
		{"history text", property("version.history.num-entries", "1e2"), "View property version.history.num-entries must have integer value: 1e2"},
		{"codec", property("write.metadata.compression-codec", "lzo"), "Invalid codec name: lzo"},
		{"long property", property(strings.Repeat("k", 50_001), "v"), "Invalid view: the length of a name"},
		{"nesting", version(`1e2`, strings.Repeat("[", 600)+strings.Repeat("]", 600)), "Invalid view: the depth of nesting"},
		{"number", version(`1e2`, strings.Repeat("9", 1001)), "Invalid view: the length of a number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			request := newView()
			tt.change(&request)
			_, err := tablemeta.CreateView(request)
			var invalid *tablemeta.InvalidError
			if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want *InvalidError with %q", err, tt.want)
			}
		})
	}
}

// TestConcurrentReplacements: two writers replaced the same version, with ids and -1
// as Java sends them. The second comes on top of the first.
func TestConcurrentReplacements(t *testing.T) {
	replacement := func(sql string) string {
		return `[{"action":"add-view-version","view-version":{"version-id":2,"timestamp-ms":1700000000001,"schema-id":0,"summary":{},"default-namespace":["ns"],` +
			`"representations":[{"type":"sql","sql":"` + sql + `","dialect":"spark"}]}},{"action":"set-current-view-version","view-version-id":-1}]`
	}
	v := viewSample(t, "java")
	for _, sql := range []string{"select 2", "select 3"} {
		v = commitView(t, v, replacement(sql))
		checkView(t, v)
	}
	log, _ := rawjson.Lookup(v.JSON(), "version-log")
	const want = `[{"timestamp-ms":1700000000000,"version-id":1},{"timestamp-ms":1700000000001,"version-id":2},{"timestamp-ms":1700000000001,"version-id":3}]`
	if string(log) != want || v.String() != "view 11111111-1111-4111-8111-111111111111 (version 3 of 3)" {
		t.Errorf("%s, log %s", v, log)
	}
	// The first again: it is there already, and is not added.
	again := commitView(t, v, strings.Replace(replacement("select 2"), `"view-version-id":-1`, `"view-version-id":2`, 1))
	if again.String() != "view 11111111-1111-4111-8111-111111111111 (version 2 of 3)" {
		t.Errorf("%s", again)
	}
}

// TestViewUpdateZero: a value that was not decoded is refused, not applied.
func TestViewUpdateZero(t *testing.T) {
	var zero tablemeta.ViewUpdate
	_, _, err := tablemeta.CommitView(tablemeta.ViewChange{Base: viewSample(t, "java"), Updates: []tablemeta.ViewUpdate{zero}})
	_, marshal := zero.MarshalJSON()
	for _, err := range []error{err, marshal, tablemeta.CheckView(viewSample(t, "java"), make([]tablemeta.Requirement, 1))} {
		var invalid *tablemeta.InvalidError
		if !errors.As(err, &invalid) || !strings.HasSuffix(err.Error(), "not decoded from JSON") {
			t.Errorf("got %v", err)
		}
	}
}

// TestViewHistoryDefault: a view keeps ten versions if it does not say otherwise.
func TestViewHistoryDefault(t *testing.T) {
	v := viewSample(t, "java")
	for n := range 12 {
		v = commitView(t, v, fmt.Sprintf(`[{"action":"add-view-version","view-version":{"version-id":1,"timestamp-ms":%d,"schema-id":0,"summary":{},"default-namespace":["ns"],`+
			`"representations":[{"type":"sql","sql":"select %d","dialect":"spark"}]}},{"action":"set-current-view-version","view-version-id":-1}]`, transcriptNow, n))
		checkView(t, v)
		log, _ := rawjson.Lookup(v.JSON(), "version-log")
		entries := 0
		for range rawjson.Elements(log) {
			entries++
		}
		want := fmt.Sprintf("(version %d of %d)", n+2, min(n+2, 10))
		if !strings.HasSuffix(v.String(), want) || entries != min(n+2, 10) {
			t.Errorf("%s with %d log entries, want %s with as many", v, entries, want)
		}
	}
}

// TestViewUpdatesAreLinear is [TestUpdatesAreLinear] for views.
func TestViewUpdatesAreLinear(t *testing.T) {
	for name, update := range map[string]func(i int) string{
		"versions": func(i int) string {
			return fmt.Sprintf(`{"action":"add-view-version","view-version":{"version-id":1,"timestamp-ms":4,"schema-id":0,"default-namespace":[],"summary":{},`+
				`"representations":[{"type":"sql","sql":"select %d","dialect":"spark"}]}},{"action":"set-current-view-version","view-version-id":-1}`, i)
		},
		"schemas": func(i int) string {
			return fmt.Sprintf(`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"a%d","required":false,"type":"int"}]}}`, i)
		},
		"properties": func(i int) string {
			return fmt.Sprintf(`{"action":"set-properties","updates":{"k%d":"v","version.history.num-entries":"1000"}}`, i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			allocations := func(n int) float64 {
				base := commitView(t, viewSample(t, "java"), repeat(n, update))
				updates := decodeViewUpdates(t, repeat(n, func(i int) string { return update(n + i) }))
				return testing.AllocsPerRun(1, func() {
					if _, _, err := tablemeta.CommitView(tablemeta.ViewChange{Base: base, Updates: updates, Now: time.UnixMilli(transcriptNow)}); err != nil {
						t.Fatal(err)
					}
				})
			}
			// Four times as much: the product would be 16 times as much.
			if few, many := allocations(100), allocations(400); many > 6*few {
				t.Errorf("%v allocations for 100 updates, %v for 400", few, many)
			}
		})
	}
}

// TestViewLimits: what a JSON reader of usual limits refuses does not become part of a
// view's metadata, a commit has so many updates and requirements, and messages repeat
// little of what they refuse.
func TestViewLimits(t *testing.T) {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	err := new(tablemeta.ViewUpdate).UnmarshalJSON([]byte(`{"action":"set-location","location":"s3://b/t","x":` + deep + `}`))
	updates := make([]tablemeta.ViewUpdate, 10_001)
	_, _, tooMany := tablemeta.CommitView(tablemeta.ViewChange{Base: viewSample(t, "java"), Updates: updates})
	long := strings.Repeat("x", 1<<20)
	_, _, longName := tablemeta.CommitView(tablemeta.ViewChange{Base: viewSample(t, "java"), Updates: decodeViewUpdates(t,
		`[{"action":"add-view-version","view-version":{"version-id":1,"timestamp-ms":4,"schema-id":0,"default-namespace":[],"summary":{},"representations":[{"type":"sql","sql":"s","dialect":"`+long+`"}]}},`+
			`{"action":"set-current-view-version","view-version-id":-1}]`)})
	for _, tt := range []struct {
		want string
		err  error
	}{
		{"update: the depth of nesting", err},
		{"Too many updates in one commit: more than 10000", tooMany},
		{"Too many requirements in one commit: more than 10000", tablemeta.CheckView(viewSample(t, "java"), make([]tablemeta.Requirement, 10_001))},
		{"Cannot replace view due to loss of view dialects", longName},
		{"Unrecognized view update", new(tablemeta.ViewUpdate).UnmarshalJSON([]byte(`{"action":"` + long + `"}`))},
	} {
		var invalid *tablemeta.InvalidError
		if !errors.As(tt.err, &invalid) || !strings.HasPrefix(invalid.Message, tt.want) || len(invalid.Message) > 1000 {
			t.Errorf("got %.200v, want *InvalidError with %q", tt.err, tt.want)
		}
	}
}
