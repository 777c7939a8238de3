package tablemeta_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/tablemeta"
)

// edited is a sample with one text in it replaced.
func edited(t *testing.T, name, old, with string) []byte {
	t.Helper()
	doc := string(samples(t)[name])
	if !strings.Contains(doc, old) {
		t.Fatalf("the sample %s has no %s", name, old)
	}
	return []byte(strings.Replace(doc, old, with, 1))
}

// TestVerifyRefuses takes documents that load, but that other readers cannot load or
// commits would stumble over.
func TestVerifyRefuses(t *testing.T) {
	const (
		list101    = `"manifest-list": "s3://bucket/v2/table/metadata/snap-101.avro"`
		list301    = `"manifest-list": "s3://bucket/v3/table/metadata/snap-301.avro"`
		snapshot   = "Invalid table metadata: snapshot 101: "
		snapshot3  = "Invalid table metadata: snapshot 301: "
		statistics = "Invalid table metadata: statistics of snapshot 102: "
		partition  = "Invalid table metadata: partition statistics of snapshot 103: "
		key        = `Invalid table metadata: encryption key "k1": `
	)
	tests := []struct{ name, sample, old, with, want string }{
		{"type", "v2", `"type": "double"`, `"type": "dubble"`, `unknown type "dubble"`},
		{"field id", "v2", `"id": 4, "name": "point"`, `"id": 3, "name": "point"`, "3"},
		{"transform", "v2", `"transform": "day", "source-id": 2`, `"transform": "day", "source-id": 1`, "Invalid source type long for transform: day"},
		{"spec source", "v2", `"transform": "day", "source-id": 2`, `"transform": "day", "source-id": 99`, "Cannot find source column for partition field"},
		{"order direction", "v2", `"direction": "asc"`, `"direction": "up"`, "up"},
		{"order source", "v2", `"transform": "identity", "source-id": 3`, `"transform": "identity", "source-id": 33`, "Cannot find source column for sort field"},

		{"null schemas", "v1-legacy", `"format-version"`, `"schemas": null, "format-version"`, `field "schemas" must not be null`},
		{"null partition-specs", "v1-legacy", `"format-version"`, `"partition-specs": null, "format-version"`, `field "partition-specs" must not be null`},
		{"null sort-orders", "v1-legacy", `"format-version"`, `"sort-orders": null, "format-version"`, `field "sort-orders" must not be null`},
		{"null properties", "v3", `"properties": {"encryption.key-id": "kms"}`, `"properties": null`, `field "properties" must not be null`},
		{"null refs", "v3", `"refs": {"main": {"snapshot-id": 302, "type": "branch"}}`, `"refs": null`, `field "refs" must not be null`},
		{"null snapshots", "v2-empty", `"snapshots":[]`, `"snapshots":null`, `field "snapshots" must not be null`},
		{"null statistics", "v3", `"statistics": []`, `"statistics": null`, `field "statistics" must not be null`},
		{"null partition-statistics", "v3", `"partition-statistics": []`, `"partition-statistics": null`, `field "partition-statistics" must not be null`},
		{"null encryption-keys", "v3", `"format-version"`, `"encryption-keys": null, "format-version"`, `field "encryption-keys" must not be null`},

		{"null sequence number", "v2", `"sequence-number": 1`, `"sequence-number": null`, snapshot + `field "sequence-number" must not be null`},
		{"null parent", "v2", `"snapshot-id": 101, "timestamp-ms"`, `"snapshot-id": 101, "parent-snapshot-id": null, "timestamp-ms"`, snapshot + `field "parent-snapshot-id" must not be null`},
		{"parent", "v2", `"snapshot-id": 101, "timestamp-ms"`, `"snapshot-id": 101, "parent-snapshot-id": "0", "timestamp-ms"`, snapshot + `field "parent-snapshot-id" must be an integer of 64 bits, got "0"`},
		{"null summary", "v2", `"summary": {"operation": "append", "x-summary": "1"}`, `"summary": null`, snapshot + `field "summary" must not be null`},
		{"summary", "v2", `"summary": {"operation": "append", "x-summary": "1"}`, `"summary": ["append"]`, snapshot + `field "summary" must be an object, got ["append"]`},
		{"summary of a number", "v2", `"x-summary": "1"`, `"x-summary": 1`, snapshot + `field "summary": the value of "x-summary" must be a string, got 1`},
		{"summary of null", "v2", `"x-summary": "1"`, `"x-summary": null`, snapshot + `field "summary": the value of "x-summary" must be a string, got null`},
		{"null operation", "v2", `"operation": "append"`, `"operation": null`, snapshot + `field "summary": the value of "operation" must be a string, got null`},
		{"operation", "v2", `"operation": "append"`, `"operation": {}`, snapshot + `field "summary": the value of "operation" must be a string, got {}`},
		{"null manifest list", "v2", list101, `"manifest-list": null`, snapshot + `field "manifest-list" must not be null`},
		{"null manifest list beside manifests", "v2", list101, `"manifest-list": null, "manifests": ["s3://m"]`, snapshot + `field "manifest-list" must not be null`},
		{"manifest list", "v2", list101, `"manifest-list": ["s3://m"]`, snapshot + `field "manifest-list" must be a string, got ["s3://m"]`},
		{"no manifest list", "v2", list101, `"x": 1`, snapshot + `neither manifest-list nor manifests`},
		{"null manifests", "v1-legacy", `"manifests": ["s3://bucket/v1/legacy/m0.avro"]`, `"manifests": null`, `snapshot 10: neither manifest-list nor manifests`},
		{"manifests", "v1-legacy", `"manifests": ["s3://bucket/v1/legacy/m0.avro"]`, `"manifests": "s3://m"`, `snapshot 10: field "manifests" must be an array, got "s3://m"`},
		{"manifests of null", "v1-legacy", `"manifests": ["s3://bucket/v1/legacy/m0.avro"]`, `"manifests": [null]`, `snapshot 10: field "manifests[]" must be a string, got null`},
		{"schema id", "v2", `avro", "schema-id": 0`, `avro", "schema-id": "0"`, snapshot + `field "schema-id" must be an integer of 32 bits, got "0"`},
		{"schema id of 64 bits", "v2", `avro", "schema-id": 0`, `avro", "schema-id": 2147483648`, snapshot + `field "schema-id" must be an integer of 32 bits, got 2147483648`},
		{"key id", "v2", `"key-id": "k1"}`, `"key-id": 1}`, `snapshot 103: field "key-id" must be a string, got 1`},
		{"first row id below 0", "v3", `"first-row-id": 0`, `"first-row-id": -1`, snapshot3 + `Invalid first-row-id (cannot be negative): -1`},
		{"first row id", "v3", `"first-row-id": 0`, `"first-row-id": 0.5`, snapshot3 + `field "first-row-id" must be an integer of 64 bits, got 0.5`},
		{"added rows below 0", "v3", `"added-rows": 100`, `"added-rows": -100`, snapshot3 + `Invalid added-rows (cannot be negative): -100`},
		{"added rows", "v3", `"added-rows": 100`, `"added-rows": "100"`, snapshot3 + `field "added-rows" must be an integer of 64 bits, got "100"`},
		{"no added rows", "v3", `"first-row-id": 0, "added-rows": 100`, `"first-row-id": 0`, snapshot3 + `Invalid added-rows (required when first-row-id is set): null`},
		{"null added rows", "v3", `"added-rows": 100`, `"added-rows": null`, snapshot3 + `Invalid added-rows (required when first-row-id is set): null`},
		{"row id beside manifests", "v3", list301 + `, "schema-id": 0, "first-row-id": 0`, `"manifests": [], "first-row-id": "0"`, snapshot3 + `field "first-row-id" must be an integer of 64 bits, got "0"`},
		{"snapshot id below 0", "v2", `"snapshot-id": 101, "timestamp-ms"`, `"snapshot-id": -101, "timestamp-ms"`, "snapshot -101: Invalid snapshot id -101: must be between 0 and 9223372036854775807"},

		{"no statistics path", "v2", `"statistics-path": "s3://bucket/v2/table/metadata/102.stats"`, `"x": 1`, statistics + `missing field "statistics-path"`},
		{"no statistics size", "v2", `"file-size-in-bytes": 413`, `"x": 1`, statistics + `missing field "file-size-in-bytes"`},
		{"statistics size", "v2", `"file-size-in-bytes": 413`, `"file-size-in-bytes": 4.13`, statistics + `field "file-size-in-bytes" must be an integer of 64 bits, got 4.13`},
		{"no footer size", "v2", `"file-footer-size-in-bytes": 42`, `"x": 1`, statistics + `missing field "file-footer-size-in-bytes"`},
		{"null footer size", "v2", `"file-footer-size-in-bytes": 42`, `"file-footer-size-in-bytes": null`, statistics + `missing field "file-footer-size-in-bytes"`},
		{"no blobs", "v2", `"blob-metadata": [{"type"`, `"x": [{"type"`, statistics + `missing field "blob-metadata"`},
		{"blobs", "v2", `"blob-metadata": [{"type": "ndv", "snapshot-id": 102, "sequence-number": 2, "fields": [1], "x-blob": 1}]`, `"blob-metadata": {}`, statistics + `field "blob-metadata" must be an array, got {}`},
		{"blob", "v2", `"blob-metadata": [{"type"`, `"blob-metadata": [7, {"type"`, statistics + `blob-metadata: missing field "type"`},
		{"blob type", "v2", `"type": "ndv"`, `"type": null`, statistics + `blob-metadata: missing field "type"`},
		{"blob snapshot", "v2", `"type": "ndv", "snapshot-id": 102`, `"type": "ndv"`, statistics + `blob-metadata: missing field "snapshot-id"`},
		{"blob sequence number", "v2", `"sequence-number": 2, "fields"`, `"fields"`, statistics + `blob-metadata: missing field "sequence-number"`},
		{"no blob fields", "v2", `"fields": [1], "x-blob": 1`, `"x-blob": 1`, statistics + `blob-metadata: missing field "fields"`},
		{"blob fields", "v2", `"fields": [1], "x-blob"`, `"fields": [2147483648], "x-blob"`, statistics + `blob-metadata: field "fields[]" must be an integer of 32 bits, got 2147483648`},
		{"null blob properties", "v2", `"x-blob": 1`, `"properties": null`, statistics + `blob-metadata: field "properties" must not be null`},
		{"blob properties", "v2", `"x-blob": 1`, `"properties": {"a": 1}`, statistics + `blob-metadata: field "properties": the value of "a" must be a string, got 1`},
		{"no partition statistics path", "v2", `"statistics-path": "s3://bucket/v2/table/metadata/103.parquet"`, `"x": 1`, partition + `missing field "statistics-path"`},
		{"no partition statistics size", "v2", `"file-size-in-bytes": 43,`, ``, partition + `missing field "file-size-in-bytes"`},
		{"partition statistics size", "v2", `"file-size-in-bytes": 43,`, `"file-size-in-bytes": "43",`, partition + `field "file-size-in-bytes" must be an integer of 64 bits, got "43"`},

		{"no key", "v2", `"encrypted-key-metadata": "c2VjcmV0"`, `"x": 1`, key + `missing field "encrypted-key-metadata"`},
		{"key", "v2", `"c2VjcmV0"`, `"c2V*"`, key + `field "encrypted-key-metadata" must be base64`},
		{"key of the key", "v2", `"encrypted-by-id": "kms"`, `"encrypted-by-id": 1`, key + `field "encrypted-by-id" must be a string, got 1`},
		{"null key properties", "v2", `"properties": {"p": "1"}`, `"properties": null`, key + `field "properties" must not be null`},
		{"key properties", "v2", `"properties": {"p": "1"}`, `"properties": {"p": null}`, key + `field "properties": the value of "p" must be a string, got null`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := tablemeta.Parse(edited(t, tt.sample, tt.old, tt.with))
			if err != nil {
				t.Fatalf("refused before: %v", err)
			}
			var invalid *tablemeta.InvalidError
			if err := m.Verify(); !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant *InvalidError with %q", err, tt.want)
			}
		})
	}
}

// TestVerifyTolerates takes what the reference implementation reads, strange as it is.
func TestVerifyTolerates(t *testing.T) {
	const list101 = `"manifest-list": "s3://bucket/v2/table/metadata/snap-101.avro"`
	tests := []struct{ name, sample, old, with string }{
		{"null logs", "v2-empty", `"format-version"`, `"snapshot-log": null, "metadata-log": null, "format-version"`},
		{"no lists", "v2-empty", `"properties":{},"current-snapshot-id":null,"snapshots":[]`, `"x":0`},
		{"no refs", "v3", `"refs": {"main": {"snapshot-id": 302, "type": "branch"}},`, ``},
		{"null uuid in v1", "v1-legacy", `"format-version"`, `"table-uuid": null, "format-version"`},
		{"null last-partition-id in v1", "v1-legacy", `"format-version"`, `"last-partition-id": null, "format-version"`},
		{"null encryption of a key", "v2", `"encrypted-by-id": "kms"`, `"encrypted-by-id": null`},
		{"null schema and key of a snapshot", "v2", `avro", "schema-id": 0`, `avro", "schema-id": null, "key-id": null`},
		{"null row ids of a snapshot", "v2", list101, list101 + `, "first-row-id": null, "added-rows": null`},
		{"added rows alone", "v2", list101, list101 + `, "added-rows": 7`},
		{"manifests after version 1", "v2", list101, `"manifests": []`},
		{"anything for manifests beside their list", "v2", list101, list101 + `, "manifests": 7`},
		{"row ids beside manifests", "v2", list101, `"manifests": ["s3://m"], "first-row-id": -1`},
		{"empty summary", "v2", `"summary": {"operation": "append", "x-summary": "1"}`, `"summary": {}`},
		{"summary without operation", "v2", `"operation": "append", "x-summary"`, `"x-summary"`},
		{"snapshot before 1970", "v2", `"timestamp-ms": 1699999100000, "summary"`, `"timestamp-ms": -1, "summary"`},
		{"null retention", "v2", `"max-ref-age-ms": 9007199254740993`, `"max-ref-age-ms": null`},
		{"statistics of a snapshot that is gone", "v2", `{"snapshot-id": 102, "statistics-path"`, `{"snapshot-id": 7, "statistics-path"`},
		{"null where nobody looks", "v2", `"x-middle": "keep"`, `"x-middle": null`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := tablemeta.Parse(edited(t, tt.sample, tt.old, tt.with))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVerifyWritten takes the files that the reference implementation and PyIceberg
// wrote, in each format version.
func TestVerifyWritten(t *testing.T) {
	files, err := filepath.Glob("../manifest/testdata/*/*.metadata.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := tablemeta.Parse(data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if err := m.Verify(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestNegativeSnapshotID: it is refused in the words of add-snapshot, not as a main
// branch that should not be.
func TestNegativeSnapshotID(t *testing.T) {
	doc := strings.ReplaceAll(string(samples(t)["v3"]), `302,`, `-302,`)
	doc = strings.ReplaceAll(doc, `"parent-snapshot-id": 301`, `"parent-snapshot-id": -302`)
	_, err := tablemeta.Parse([]byte(doc))
	const want = "Invalid table metadata: Invalid snapshot id -302: must be between 0 and 9223372036854775807"
	var invalid *tablemeta.InvalidError
	if !errors.As(err, &invalid) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestIsFileName(t *testing.T) {
	for location, want := range map[string]bool{
		"s3://b/t/metadata/00001-9cd55556.metadata.json":    true,
		"s3://b/t/metadata/00001-9cd55556.gz.metadata.json": true,
		"s3://b/t/metadata/v3.metadata.json":                true,
		"s3://b/t/metadata/v3.metadata.json.gz":             true,
		"s3://b/t/metadata/.metadata.json":                  true,
		"s3://b/t/metadata/v3.metadata.json.bak":            true,
		"s3://b/t.metadata.json/v3":                         true,
		"s3://b/t/metadata/v3.json":                         false,
		"s3://b/t/metadata/v3.Metadata.json":                false,
		"s3://b/t/metadata.json":                            false,
		"s3://b/t/metadata/version-hint.text":               false,
	} {
		if got := tablemeta.IsFileName(location); got != want {
			t.Errorf("IsFileName(%q) = %v", location, got)
		}
	}
}
