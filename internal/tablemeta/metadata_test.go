package tablemeta_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

func checkRereads(t testing.TB, m *tablemeta.Metadata) {
	t.Helper()
	if err := tablemeta.Rereads(m); err != nil {
		t.Errorf("%v\n%s", err, m.JSON())
	}
}

func samples(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/metadata/*.json")
	if err != nil || len(files) < 6 {
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

func decodeUpdates(t testing.TB, text string) (updates []tablemeta.Update) {
	t.Helper()
	if err := rawjson.Unmarshal([]byte(text), &updates); err != nil {
		t.Fatal(err)
	}
	return updates
}

// TestUnchangedIsIdentical checks that reading and writing changes no byte, and
// that samples are sound as a whole.
func TestUnchangedIsIdentical(t *testing.T) {
	for name, data := range samples(t) {
		want := bytes.Clone(data)
		m, err := tablemeta.Parse(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(m.JSON(), want) {
			t.Errorf("%s: not written as it was read:\n%s", name, cmp.Diff(string(want), string(m.JSON())))
		}
		if err := m.Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		file, err := tablemeta.Encode(m)
		if err != nil || !bytes.Equal(file, want) {
			t.Errorf("%s: not encoded as it was read: %v", name, err)
		}
	}
}

// TestUntouchedSurvives commits to each sample and checks that every member that
// the commit is not about keeps its bytes, at every level.
func TestUntouchedSurvives(t *testing.T) {
	updates := decodeUpdates(t, `[{"action":"set-properties","updates":{"touched":"yes"}}]`)
	for name, data := range samples(t) {
		base := sample(t, name)
		m, changed, err := tablemeta.Commit(tablemeta.Change{Base: base, Updates: updates, Now: time.UnixMilli(transcriptNow)})
		if err != nil || !changed {
			t.Errorf("%s: changed %v, %v", name, changed, err)
			continue
		}
		checkRereads(t, m)
		for key, value := range rawjson.Members(data) {
			got, _ := rawjson.Lookup(m.JSON(), key)
			switch key {
			case "properties", "last-updated-ms", "location":
			case "current-snapshot-id":
				if rawjson.IsNull(value) {
					value = []byte("-1") // as format versions 1 and 2 write it
				}
				fallthrough
			default:
				if !bytes.Equal(got, value) {
					t.Errorf("%s: %s is %s, was %s", name, key, got, value)
				}
			}
		}
	}
}

func TestAccessors(t *testing.T) {
	m := sample(t, "v2")
	got := []any{m.Location(), m.MetadataLog(), m.String()}
	want := []any{
		"s3://bucket/v2/table",
		[]tablemeta.LogEntry{
			{File: "s3://bucket/v2/table/metadata/00003-a.metadata.json", TimestampMillis: 1699999300000},
			{File: "s3://bucket/v2/table/metadata/00004-b.metadata.json", TimestampMillis: 1699999400000},
		},
		"table 22222222-2222-4222-8222-222222222222 (v2, 5 snapshots, updated 1700000000000)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMainFollowsCurrent: documents without refs have a branch main nevertheless, if
// they have a current snapshot.
func TestMainFollowsCurrent(t *testing.T) {
	if id, ok := sample(t, "v1").CurrentSnapshotID(); id != 0 || ok {
		t.Errorf("current snapshot %d, %v of a table without one", id, ok)
	}
	if id, ok := sample(t, "v1-legacy").RefSnapshotID("main"); id != 11 || !ok {
		t.Errorf("main is at %d, %v, want it at the current snapshot where there are no refs", id, ok)
	}
}

// TestRefsOnly checks that exactly the snapshots without a ref are left out, and
// that nothing else differs by a byte.
func TestRefsOnly(t *testing.T) {
	m := sample(t, "v2")
	want := string(m.JSON())
	for _, line := range strings.SplitAfter(want, "\n") {
		if strings.Contains(line, `"sequence-number": 1, "snapshot-id": 101`) || strings.Contains(line, `"sequence-number": 3, "snapshot-id": 103`) {
			want = strings.Replace(want, line, "", 1)
		}
	}
	got := m.RefsOnlyJSON()
	if diff := cmp.Diff(string(compact([]byte(want))), string(compact(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !bytes.HasPrefix(got, []byte(want[:strings.Index(want, `"snapshots"`)])) || !bytes.HasSuffix(got, []byte(want[strings.Index(want, `"statistics"`):])) {
		t.Error("bytes outside of the snapshots differ")
	}
	if !bytes.Equal(m.JSON(), sample(t, "v2").JSON()) {
		t.Error("the metadata changed")
	}
	if all := sample(t, "v4"); &all.RefsOnlyJSON()[0] != &all.JSON()[0] {
		t.Error("a document whose snapshots all have refs was copied")
	}
	if legacy := sample(t, "v1-legacy"); bytes.Contains(legacy.RefsOnlyJSON(), []byte(`"snapshot-id": 10,`)) {
		t.Error("without refs, the current snapshot is the only one with a ref")
	}
}

// TestRefsOnlyKeepsCurrent: other writers may leave main out of refs.
func TestRefsOnlyKeepsCurrent(t *testing.T) {
	doc := strings.Replace(string(samples(t)["v2"]), `"main": {`, `"trunk": {`, 1)
	doc = strings.Replace(doc, `{"snapshot-id": 104, "type"`, `{"snapshot-id": 102, "type"`, 1)
	m, err := tablemeta.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	refs, err := tablemeta.Parse(m.RefsOnlyJSON())
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := refs.CurrentSnapshotID(); id != 104 || !ok || refs.SnapshotCount() != 3 {
		t.Errorf("current is %d, %v, of %d snapshots", id, ok, refs.SnapshotCount())
	}
}

// TestWhatOtherWritersLeave: oddities that this package reads but never writes are
// gone when a commit touches them.
func TestWhatOtherWritersLeave(t *testing.T) {
	v2 := string(samples(t)["v2"])
	commit := func(doc, updates string) *tablemeta.Metadata {
		t.Helper()
		base, err := tablemeta.Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		m, changed, err := tablemeta.Commit(tablemeta.Change{Base: base, Updates: decodeUpdates(t, updates), Now: time.UnixMilli(transcriptNow)})
		if err != nil || !changed {
			t.Fatalf("changed %v, %v", changed, err)
		}
		checkRereads(t, m)
		return m
	}
	// A current snapshot, but no main.
	m := commit(strings.Replace(v2, `"main": {`, `"trunk": {`, 1), `[{"action":"remove-snapshot-ref","ref-name":"main"}]`)
	if id, ok := m.CurrentSnapshotID(); ok {
		t.Errorf("snapshot %d is still current", id)
	}
	// Two statistics files of one snapshot.
	m = commit(strings.Replace(v2, `{"snapshot-id": 104, "statistics-path"`, `{"snapshot-id": 102, "statistics-path"`, 1),
		`[{"action":"set-statistics","statistics":{"snapshot-id":102,"statistics-path":"s3://new","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]}}]`)
	const want = `[{"snapshot-id":102,"statistics-path":"s3://new","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]}]`
	if got, _ := rawjson.Lookup(m.JSON(), "statistics"); string(got) != want {
		t.Errorf("statistics are %s, want %s", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	v2, v3 := string(samples(t)["v2"]), string(samples(t)["v3"])
	legacy := string(samples(t)["v1-legacy"])
	replace := func(doc, old, with string) string {
		if strings.Count(doc, old) == 0 {
			t.Fatalf("%q is not in the sample", old)
		}
		return strings.Replace(doc, old, with, 1)
	}
	tests := []struct{ name, doc, want string }{
		{"nothing", ``, `the text ends before the value does`},
		{"garbage", `not json`, `invalid character 'o' in literal null`},
		{"no object", `[]`, `expected an object`},
		{"truncated", v2[:len(v2)/2], `the text ends before the value does`},
		{"text behind", v2 + "{}", `more text follows`},
		{"duplicate member", replace(v2, `"x-after"`, `"location"`), `member "location" appears twice`},
		{"duplicate member of a snapshot", replace(v2, `"sequence-number": 2, `, `"sequence-number": 2, "\u0073equence-number": 2, `), `at /snapshots/1/sequence-number`},
		{"no version", replace(v2, `"format-version"`, `"x"`), `missing field "format-version"`},
		{"version 0", replace(v2, `"format-version": 2`, `"format-version": 0`), `Cannot read unsupported version 0`},
		{"version 5", replace(v2, `"format-version": 2`, `"format-version": 5`), `Cannot read unsupported version 5`},
		{"version beyond 32 bits", replace(v2, `"format-version": 2`, `"format-version": 4294967298`), `field "format-version" must be an integer of 32 bits, got 4294967298`},
		{"version as text", replace(v2, `"format-version": 2`, `"format-version": "2"`), `field "format-version" must be an integer`},
		{"no uuid", replace(v2, `"table-uuid"`, `"x"`), `UUID is required in format v2`},
		{"no location", replace(v2, `"location"`, `"x"`), `Table location is required in format v2`},
		{"location null", replace(v2, `"location": "s3://bucket/v2/table"`, `"location": null`), `Table location is required`},
		{"no sequence number", replace(v2, `"last-sequence-number"`, `"x"`), `last-sequence-number must exist in format v2`},
		{"no time", replace(v2, `"last-updated-ms"`, `"x"`), `last-updated-ms must exist in format v2`},
		{"time with fraction", replace(v2, `"last-updated-ms": 1700000000000`, `"last-updated-ms": 1700000000000.5`), `must be an integer of 64 bits`},
		{"no last column", replace(v2, `"last-column-id"`, `"x"`), `last-column-id must exist in format v2`},
		{"no schemas", replace(v2, `"schemas"`, `"x"`), `schemas must exist in format v2`},
		{"no schema at all", replace(legacy, `"schema"`, `"x"`), `schema must exist in format v1 without schemas`},
		{"schemas not a list", replace(v2, `"schemas": [`, `"schemas": {}, "x-schemas": [`), `schemas must be an array, got {}`},
		{"schema not an object", replace(v2, `"schemas": [`, `"schemas": [7, `), `schemas: element 0 must be an object, got 7`},
		{"current schema unknown", replace(v2, `"current-schema-id": 1`, `"current-schema-id": 7`), `Cannot find schema with current-schema-id=7 from schemas`},
		{"schema id twice", replace(v2, `"schema-id": 0, "x-schema"`, `"schema-id": 1, "x-schema"`), `schemas: id 1 is used twice`},
		{"no specs", replace(v2, `"partition-specs"`, `"x"`), `partition-specs must exist in format v2`},
		{"no spec at all", replace(legacy, `"partition-spec"`, `"x"`), `partition-spec must exist in format v1 without partition-specs`},
		{"schema of v1 not an object", replace(legacy, `"schema": {`, `"schema": 0, "x": {`), `schema must be an object, got 0`},
		{"fields of v1 not a list", replace(legacy, `"partition-spec": [`, `"partition-spec": {}, "x": [`), `partition spec: `},
		{"spec of v1 without fields", replace(string(samples(t)["v1"]), `"partition-specs":[{"spec-id":0,"fields"`, `"partition-specs":[{"spec-id":0,"x"`), `partition spec: `},
		{"spec without id", replace(v2, `{"spec-id": 0, `, `{`), `partition-specs: no spec-id in`},
		{"default spec unknown", replace(v2, `"default-spec-id": 1`, `"default-spec-id": 7`), `Cannot find partition spec with default-spec-id=7`},
		{"no last partition", replace(v2, `"last-partition-id"`, `"x"`), `last-partition-id must exist in format v2`},
		{"no orders", replace(v2, `"sort-orders"`, `"x"`), `sort-orders must exist in format v2`},
		{"default order unknown", replace(v2, `"default-sort-order-id": 1`, `"default-sort-order-id": 7`), `Cannot find sort order with default-sort-order-id=7`},
		{"no next row", replace(v3, `"next-row-id"`, `"x"`), `next-row-id must exist in format v3`},
		{"property not text", replace(v2, `"owner": "ana"`, `"owner": 1`), `properties: the value of "owner" must be a string, got 1`},
		{"properties not an object", replace(v2, `"properties": {"owner": "ana", "comment": "caf\u00e9"}`, `"properties": []`), `properties must be an object, got []`},
		{"snapshots not a list", replace(v3, `"statistics": []`, `"statistics": {}`), `statistics must be an array, got {}`},
		{"snapshot without id", replace(v2, `"snapshot-id": 103, "parent`, `"x": 103, "parent`), `snapshots: no snapshot-id in`},
		{"snapshot without time", replace(v2, `"timestamp-ms": 1699999200000, "summary"`, `"x": 1, "summary"`), `snapshots: no timestamp-ms in`},
		{"snapshot id beyond 64 bits", replace(v2, `"snapshot-id": 103, "parent`, `"snapshot-id": 9223372036854775808, "parent`), `snapshot-id must be an integer of 64 bits`},
		{"snapshot twice", replace(v2, `"snapshot-id": 103, "parent`, `"snapshot-id": 102, "parent`), `Snapshot 102 appears twice`},
		{"sequence beyond the last", replace(v2, `"last-sequence-number": 5`, `"last-sequence-number": 4`), `Invalid snapshot with sequence number 5 greater than last sequence number 4`},
		{"current snapshot unknown", replace(replace(v2, `"current-snapshot-id": 104`, `"current-snapshot-id": 999`), `"main"`, `"other"`), `Cannot find current version`},
		{"main elsewhere", replace(v2, `"current-snapshot-id": 104`, `"current-snapshot-id": 103`), `Current snapshot ID does not match main branch (103 != 104)`},
		{"main without current", replace(v2, `"current-snapshot-id": 104`, `"current-snapshot-id": -1`), `Current snapshot is not set, but main branch exists: 104`},
		{"ref to nowhere", replace(v2, `{"snapshot-id": 102, "type": "tag"`, `{"snapshot-id": 1002, "type": "tag"`), `Snapshot for reference "v1.0" does not exist in the existing snapshots list: 1002`},
		{"ref of no kind", replace(v2, `"type": "tag"`, `"type": "leaf"`), `ref "v1.0": Invalid snapshot ref type: leaf`},
		{"refs not an object", replace(v3, `"refs": {"main": {"snapshot-id": 302, "type": "branch"}}`, `"refs": []`), `refs must be an object`},
		{"snapshot log runs back", replace(v2, `"timestamp-ms": 1699999400000, "snapshot-id": 104}`, `"timestamp-ms": 1699999200000, "snapshot-id": 104}`), `Expected sorted snapshot log entries: 1699999200000 comes after 1699999300000`},
		{"updated before the snapshot log", replace(v2, `"last-updated-ms": 1700000000000`, `"last-updated-ms": 1699999339999`), `before last snapshot log entry at 1699999400000`},
		{"metadata log runs back", replace(v2, `"timestamp-ms": 1699999400000, "metadata-file"`, `"timestamp-ms": 1699999239999, "metadata-file"`), `Expected sorted previous metadata log entries`},
		{"updated before the metadata log", replace(v2, `"timestamp-ms": 1699999400000, "metadata-file"`, `"timestamp-ms": 1700000060001, "metadata-file"`), `before the latest metadata log entry timestamp 1700000060001`},
		{"metadata log without file", replace(v2, `"metadata-file"`, `"x"`), `metadata-log: no metadata-file in`},
		{"key without id", replace(v2, `"key-id": "k1", "enc`, `"x": "k1", "enc`), `encryption-keys: no key-id in`},
		{"statistics without snapshot", replace(v2, `{"snapshot-id": 104, "statistics-path"`, `{"x": 104, "statistics-path"`), `statistics: no snapshot-id in`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tablemeta.Parse([]byte(tt.doc))
			var invalid *tablemeta.InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "Invalid table metadata") && !strings.HasPrefix(err.Error(), "Cannot read") {
				t.Errorf("got  %v (%T)\nwant *InvalidError with %q", err, err, tt.want)
			}
		})
	}
}

// TestParseTolerates reads what other writers leave.
func TestParseTolerates(t *testing.T) {
	v2, legacy := string(samples(t)["v2"]), string(samples(t)["v1-legacy"])
	tests := []struct{ name, doc, old, with string }{
		{"a minute back in the snapshot log", v2, `"timestamp-ms": 1699999400000, "snapshot-id": 104}`, `"timestamp-ms": 1699999240000, "snapshot-id": 104}`},
		{"a minute back in the time of update", v2, `"last-updated-ms": 1700000000000`, `"last-updated-ms": 1699999340000`},
		{"statistics null", v2, `"x-middle": "keep"`, `"x-middle": null`},
		{"a snapshot without sequence number", v2, `"sequence-number": 1, "snapshot-id": 101`, `"snapshot-id": 101`},
		{"retention null", v2, `"max-ref-age-ms": 9007199254740993`, `"max-ref-age-ms": null`},
		{"ref type in capitals", v2, `"type": "tag"`, `"type": "TAG"`},
		{"current snapshot below -1", legacy, `"current-snapshot-id": 11`, `"current-snapshot-id": -7`},
		{"stray last-sequence-number in v1", legacy, `"format-version": 1`, `"format-version": 1, "last-sequence-number": 7`},
		{"null for lists", legacy, `"format-version": 1`, `"format-version": 1, "statistics": null, "refs": null, "schemas": null, "sort-orders": null`},
	}
	updates := decodeUpdates(t, `[{"action":"upgrade-format-version","format-version":3},{"action":"set-properties","updates":{"a":"b"}}]`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(tt.doc, tt.old) {
				t.Fatalf("%q is not in the sample", tt.old)
			}
			m, err := tablemeta.Parse([]byte(strings.Replace(tt.doc, tt.old, tt.with, 1)))
			if err != nil {
				t.Fatal(err)
			}
			m, _, err = tablemeta.Commit(tablemeta.Change{Base: m, Updates: updates, UUID: transcriptUUID, Now: time.UnixMilli(transcriptNow)})
			if err != nil {
				t.Fatal(err)
			}
			checkRereads(t, m)
			if err := m.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestVersion4(t *testing.T) {
	doc := string(samples(t)["v4"])
	doc = strings.Replace(doc, `"location": "s3://bucket/v4/table",`, ``, 1)
	m, err := tablemeta.Parse([]byte(doc))
	if err != nil {
		t.Fatalf("a table without location is legal in version 4: %v", err)
	}
	if m.Location() != "" || string(m.JSON()) != doc {
		t.Errorf("location %q, %s", m.Location(), m.JSON())
	}
	_, _, err = tablemeta.Commit(tablemeta.Change{Base: m, Updates: decodeUpdates(t, `[{"action":"set-properties","updates":{"a":"b"}}]`), Now: time.UnixMilli(transcriptNow)})
	const want = "Cannot commit to a table in format v4 that has no location"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestConcurrentUse commits to one base from many goroutines, which the race
// detector watches, and checks that all get the same.
func TestConcurrentUse(t *testing.T) {
	base := sample(t, "v2")
	updates := decodeUpdates(t, `[
		{"action":"remove-snapshots","snapshot-ids":[101,105]},
		{"action":"add-snapshot","snapshot":{"sequence-number":6,"snapshot-id":106,"timestamp-ms":1700000099000,"manifest-list":"s3://m"}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":106},
		{"action":"set-properties","updates":{"owner":"bo"}},
		{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"}]}}]`)
	results := make([]string, 8)
	var done sync.WaitGroup
	for i := range results {
		done.Go(func() {
			m, _, err := tablemeta.Commit(tablemeta.Change{Base: base, BaseFile: transcriptFile, Updates: updates, Now: time.UnixMilli(transcriptNow)})
			if err != nil {
				t.Error(err)
				return
			}
			base.RefsOnlyJSON()
			base.MetadataLog()
			results[i] = string(m.JSON())
		})
	}
	done.Wait()
	for _, result := range results {
		if result != results[0] {
			t.Errorf("the same commit gave two results:\n%s", cmp.Diff(results[0], result))
		}
	}
}

// TestRoundTripOfMessages checks that requirements and updates come through any
// encoder as they were: they travel inside of encoded operations.
func TestRoundTripOfMessages(t *testing.T) {
	const reqText = `[{ "type": "assert-ref-snapshot-id", "ref":"a\u0062", "snapshot-id": 9223372036854775807, "x": 1.0 }]`
	const updateText = `[{ "action":"set-properties", "updates": { "b" : "1", "a":"\u00e9<" }, "x": [1.0, 9007199254740993] }]`
	var reqs, reqs2 []tablemeta.Requirement
	var updates, updates2 []tablemeta.Update
	for _, step := range []struct {
		text      string
		value, to any
	}{{reqText, &reqs, &reqs2}, {updateText, &updates, &updates2}} {
		if err := rawjson.Unmarshal([]byte(step.text), step.value); err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(step.value) // it escapes more than rawjson does
		if err != nil {
			t.Fatal(err)
		}
		if err := rawjson.Unmarshal(encoded, step.to); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(reqs, reqs2); diff != "" {
		t.Errorf("requirements (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(updates, updates2); diff != "" {
		t.Errorf("updates (-before +after):\n%s", diff)
	}
	const want = `{"action":"set-properties","updates":{"b":"1","a":"é<"},"x":[1.0,9007199254740993]}`
	if raw, err := updates[0].MarshalJSON(); err != nil || string(raw) != want {
		t.Errorf("encoded %s, %v", raw, err)
	}
	if reqs[0].Equal(tablemeta.Requirement{}) || updates[0].Equal(tablemeta.Update{}) {
		t.Error("equal to nothing")
	}
}

// TestZeroMessages checks that a value that was never decoded is refused, not
// taken for one that holds or does nothing.
func TestZeroMessages(t *testing.T) {
	base := sample(t, "v2")
	if err := tablemeta.Check(base, []tablemeta.Requirement{{}}); err == nil {
		t.Error("the zero requirement holds")
	}
	if _, _, err := tablemeta.Commit(tablemeta.Change{Base: base, Updates: []tablemeta.Update{{}}, Now: time.UnixMilli(transcriptNow)}); err == nil {
		t.Error("the zero update was applied")
	}
	if _, err := (tablemeta.Update{}).MarshalJSON(); err == nil {
		t.Error("the zero update was encoded")
	}
	if _, err := (tablemeta.Requirement{}).MarshalJSON(); err == nil {
		t.Error("the zero requirement was encoded")
	}
	if m, changed, err := tablemeta.Commit(tablemeta.Change{Base: base, Now: time.UnixMilli(transcriptNow)}); m != base || changed || err != nil {
		t.Errorf("no updates: %v, %v, %v, want the base", m, changed, err)
	}
}

// TestManyUpdates: Java removes snapshots one update each; that run is one step.
// Other updates are bounded.
func TestManyUpdates(t *testing.T) {
	const n = 12_000
	base, err := tablemeta.Parse(history(n))
	if err != nil {
		t.Fatal(err)
	}
	var one tablemeta.Update
	updates := make([]tablemeta.Update, n-1)
	for i := range updates {
		text := `{"action":"remove-snapshots","snapshot-ids":[` + string(rawjson.AppendInt(nil, snapshotID(i))) + `]}`
		if err := updates[i].UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	now := time.UnixMilli(benchStart + 2*n*1000)
	m, _, err := tablemeta.Commit(tablemeta.Change{Base: base, Updates: updates, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if m.SnapshotCount() != 1 {
		t.Errorf("%d snapshots are left, want 1", m.SnapshotCount())
	}
	checkRereads(t, m)

	if err := one.UnmarshalJSON([]byte(`{"action":"remove-properties","removals":["a"]}`)); err != nil {
		t.Fatal(err)
	}
	for i := range updates {
		updates[i] = one
	}
	if err := tablemeta.Check(base, make([]tablemeta.Requirement, n)); err == nil || err.Error() != "Too many requirements in one commit: more than 10000" {
		t.Errorf("%d requirements give %v", n, err)
	}
	_, _, err = tablemeta.Commit(tablemeta.Change{Base: base, Updates: updates, Now: now})
	const want = "Too many updates in one commit: more than 10000"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
