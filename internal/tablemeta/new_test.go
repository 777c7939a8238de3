package tablemeta_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/tablemeta"
)

const (
	newSchema = `{"type":"struct","schema-id":7,"fields":[
		{"id":3,"name":"id","required":true,"type":"long"},
		{"id":4,"name":"where","required":false,"type":{"type":"struct","fields":[{"id":9,"name":"x","required":false,"type":"double"}]}},
		{"id":5,"name":"ts","required":false,"type":"timestamp"}]}`
	newSpec  = `{"spec-id":4,"fields":[{"name":"ts_day","transform":"day","source-id":5,"field-id":1007}]}`
	newOrder = `{"order-id":6,"fields":[{"transform":"identity","source-id":9,"direction":"desc","null-order":"nulls-last"}]}`
)

func newTable() tablemeta.NewTable {
	return tablemeta.NewTable{
		UUID: transcriptUUID, Location: "file:/tmp/ns/table/", Now: time.UnixMilli(transcriptNow),
		Schema: []byte(newSchema), PartitionSpec: []byte(newSpec), WriteOrder: []byte(newOrder),
		Properties: map[string]string{"owner": "ana \"a\"", "format-version": "2", "uuid": "x", "current-schema": "y"},
	}
}

// TestNew: fields are numbered anew, a level before those below it; spec and order
// follow by name; reserved properties are not kept, and a default is added.
func TestNew(t *testing.T) {
	m, err := tablemeta.New(newTable())
	if err != nil {
		t.Fatal(err)
	}
	checkRereads(t, m)
	const want = `{"format-version":2,"table-uuid":"99999999-9999-4999-8999-999999999999","location":"file:/tmp/ns/table","last-sequence-number":0,"last-updated-ms":1700000100000,"last-column-id":4,` +
		`"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"where","required":false,"type":{"type":"struct","fields":[{"id":4,"name":"x","required":false,"type":"double"}]}},{"id":3,"name":"ts","required":false,"type":"timestamp"}]}],` +
		`"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[{"name":"ts_day","transform":"day","source-id":3,"field-id":1000}]}],"last-partition-id":1000,` +
		`"default-sort-order-id":1,"sort-orders":[{"order-id":1,"fields":[{"transform":"identity","source-id":4,"direction":"desc","null-order":"nulls-last"}]}],` +
		`"properties":{"owner":"ana \"a\"","write.parquet.compression-codec":"zstd"},"current-snapshot-id":-1,"refs":{},"snapshots":[],"statistics":[],"partition-statistics":[],"snapshot-log":[],"metadata-log":[]}`
	if diff := cmp.Diff(want, string(m.JSON())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNewVersions(t *testing.T) {
	for version, want := range map[string][]string{
		"1": {`"format-version":1`, `"schema":{"type":"struct","schema-id":0`, `"partition-spec":[]`, `"current-snapshot-id":-1`},
		"3": {`"format-version":3`, `"next-row-id":0`, `"current-snapshot-id":null`},
	} {
		table := newTable()
		table.PartitionSpec, table.WriteOrder = nil, nil
		table.Properties = map[string]string{"format-version": version, "write.parquet.compression-codec": "snappy"}
		m, err := tablemeta.New(table)
		if err != nil {
			t.Errorf("version %s: %v", version, err)
			continue
		}
		checkRereads(t, m)
		want = append(want, `"last-partition-id":999`, `"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}]`, `"properties":{"write.parquet.compression-codec":"snappy"}`)
		for _, part := range want {
			if !strings.Contains(string(m.JSON()), part) {
				t.Errorf("version %s: no %s in %s", version, part, m.JSON())
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*tablemeta.NewTable)
		want   string
	}{
		{"no schema", func(n *tablemeta.NewTable) { n.Schema = nil }, "Invalid schema: null"},
		{"schema", func(n *tablemeta.NewTable) { n.Schema = []byte(`{"type":"struct"}`) }, "schema: "},
		{"variant", func(n *tablemeta.NewTable) {
			n.Schema = []byte(strings.Replace(newSchema, `"double"`, `"variant"`, 1))
			n.WriteOrder = nil
		}, "variant is not supported until v3"},
		{"spec", func(n *tablemeta.NewTable) { n.PartitionSpec = []byte(`[]`) }, "partition spec: "},
		{"spec source", func(n *tablemeta.NewTable) {
			n.PartitionSpec = []byte(strings.Replace(newSpec, `"source-id":5`, `"source-id":55`, 1))
		}, "Cannot find source column for partition field"},
		{"order", func(n *tablemeta.NewTable) { n.WriteOrder = []byte(`{`) }, "sort order: "},
		{"order source", func(n *tablemeta.NewTable) {
			n.WriteOrder = []byte(strings.Replace(newOrder, `"source-id":9`, `"source-id":99`, 1))
		}, "Cannot find source column for sort field"},
		{"version 4", func(n *tablemeta.NewTable) { n.Properties["format-version"] = "4" }, "Unsupported format version: v4 (supported: v3)"},
		{"version 0", func(n *tablemeta.NewTable) { n.Properties["format-version"] = "0" }, "Unsupported format version: v0 (supported: v3)"},
		{"version text", func(n *tablemeta.NewTable) { n.Properties["format-version"] = "two" }, "Table property format-version must have integer value: two"},
		{"retries text", func(n *tablemeta.NewTable) { n.Properties["commit.retry.num-retries"] = "x" }, "Table property commit.retry.num-retries must have integer value"},
		{"retries negative", func(n *tablemeta.NewTable) { n.Properties["commit.retry.total-timeout-ms"] = "-1" }, "Table property commit.retry.total-timeout-ms must have non negative integer value"},
		{"encryption", func(n *tablemeta.NewTable) { n.Properties["encryption.key-id"] = "k" }, "Invalid properties for v2: [encryption.key-id]"},
		{"metrics", func(n *tablemeta.NewTable) { n.Properties["write.metadata.metrics.column.nope"] = "full" }, "could not find column nope"},
		{"previous versions", func(n *tablemeta.NewTable) { n.Properties["write.metadata.previous-versions-max"] = "1e2" }, "Table property write.metadata.previous-versions-max must have integer value: 1e2"},
		{"several sources", func(n *tablemeta.NewTable) {
			n.PartitionSpec = []byte(strings.Replace(newSpec, `"day","source-id":5`, `"zorder","source-ids":[3,5]`, 1))
			n.Properties["format-version"] = "3"
		}, "Invalid transform of several sources"},
		{"several sources to sort by", func(n *tablemeta.NewTable) {
			n.WriteOrder = []byte(`{"fields":[{"transform":"zorder","source-ids":[3,5],"direction":"asc","null-order":"nulls-first"}]}`)
			n.Properties["format-version"] = "3"
		}, "Invalid transform of several sources"},
		{"nesting", func(n *tablemeta.NewTable) {
			n.Schema = []byte(strings.Replace(newSchema, `"schema-id"`, `"x":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`,"schema-id"`, 1))
		}, "Invalid table: the depth of nesting"},
		{"long property", func(n *tablemeta.NewTable) { n.Properties[strings.Repeat("k", 50_001)] = "v" }, "Invalid table: the length of a name"},
		{"codec", func(n *tablemeta.NewTable) { n.Properties["write.metadata.compression-codec"] = "lzo" }, "Invalid codec name: lzo"},
		{"no location", func(n *tablemeta.NewTable) { n.Location = "" }, "Table location is required in format v2"},
		{"no uuid", func(n *tablemeta.NewTable) { n.UUID = "" }, "UUID is required in format v2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table := newTable()
			tt.change(&table)
			_, err := tablemeta.New(table)
			var invalid *tablemeta.InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want *InvalidError with %q", err, tt.want)
			}
		})
	}
}
