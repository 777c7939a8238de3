package tablemeta_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// reusable is a table whose current schema and default spec have the highest ids, so
// that these are given again once they are removed.
const reusable = `{"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t","last-sequence-number":0,"last-updated-ms":1,"last-column-id":2,` +
	`"schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"a","required":false,"type":"int"},{"id":2,"name":"b","required":false,"type":"int"}],"x":1},` +
	`"current-schema-id":1,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"int"}]},` +
	`{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"a","required":false,"type":"int"},{"id":2,"name":"b","required":false,"type":"int"}]}],` +
	`"partition-spec":[{"name":"p","transform":"bucket[2]","source-id":1,"field-id":1000,"x":2}],` +
	`"default-spec-id":1,"partition-specs":[{"spec-id":0,"fields":[]},{"spec-id":1,"fields":[{"name":"p","transform":"bucket[2]","source-id":1,"field-id":1000}]}],` +
	`"last-partition-id":1000,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{},"snapshots":[],"format-version":`

func parseText(t testing.TB, text string) *tablemeta.Metadata {
	t.Helper()
	m, err := tablemeta.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func commit(t testing.TB, base *tablemeta.Metadata, updates string) (*tablemeta.Metadata, error) {
	t.Helper()
	m, _, err := tablemeta.Commit(tablemeta.Change{
		Base: base, BaseFile: transcriptFile, Updates: decodeUpdates(t, updates), Now: time.UnixMilli(transcriptNow),
	})
	return m, err
}

// TestQuotesFollowReusedIDs: the members that version 1 keeps for old readers show
// the current schema and the default spec, also where those have got the ids of the
// ones that they replaced; and keep what they have themselves where nothing changed.
func TestQuotesFollowReusedIDs(t *testing.T) {
	const (
		newSchema = `{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"a","required":false,"type":"int"},{"id":3,"name":"new","required":false,"type":"int"}]}`
		newFields = `[{"name":"q","transform":"bucket[4]","source-id":1,"field-id":1000}]`
	)
	base := parseText(t, reusable+`1}`)
	tests := []struct{ name, updates, schema, fields string }{
		{"neither", `[{"action":"set-properties","updates":{"a":"b"}},
			{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"long"}]}}]`, "", ""},
		{"schema", `[{"action":"set-current-schema","schema-id":0},{"action":"remove-schemas","schema-ids":[1]},
			{"action":"add-schema","schema":` + newSchema + `},{"action":"set-current-schema","schema-id":-1}]`, newSchema, ""},
		{"spec", `[{"action":"set-default-spec","spec-id":0},{"action":"remove-partition-specs","spec-ids":[1]},
			{"action":"add-spec","spec":{"fields":` + newFields + `}},{"action":"set-default-spec","spec-id":-1}]`, "", newFields},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := commit(t, base, tt.updates)
			if err != nil {
				t.Fatal(err)
			}
			checkRereads(t, m)
			for member, want := range map[string]string{"schema": tt.schema, "partition-spec": tt.fields} {
				got, _ := rawjson.Lookup(m.JSON(), member)
				if want == "" {
					value, _ := rawjson.Lookup(base.JSON(), member)
					want = string(value)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", member, diff)
				}
			}
		})
	}
}

// TestLayoutOfReusedIDs: that the ids are the base's does not mean that the layout is.
func TestLayoutOfReusedIDs(t *testing.T) {
	_, err := commit(t, parseText(t, reusable+`2}`), `[
		{"action":"add-spec","spec":{"fields":[{"name":"x","transform":"bucket[4]","source-id":1}]}},
		{"action":"set-default-spec","spec-id":0},{"action":"remove-partition-specs","spec-ids":[1,2]},
		{"action":"add-spec","spec":{"fields":[{"name":"y","transform":"bucket[2]","source-id":2}]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"set-current-schema","schema-id":0},{"action":"remove-schemas","schema-ids":[1]},
		{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}]`)
	if err == nil || !strings.Contains(err.Error(), "Cannot find source column for partition field: 1002: y: bucket[2](2)") {
		t.Errorf("got %v, want the spec's source to be missed", err)
	}
}

// TestDefaultsFitSchema: a spec or an order of the table's past, whose column is gone,
// does not become the default again.
func TestDefaultsFitSchema(t *testing.T) {
	text := strings.NewReplacer(
		`"partition-specs":[`, `"partition-specs":[{"spec-id":7,"fields":[{"name":"gone","transform":"identity","source-id":9,"field-id":1000}]},`,
		`"sort-orders":[`, `"sort-orders":[{"order-id":7,"fields":[{"transform":"identity","source-id":9,"direction":"asc","null-order":"nulls-first"}]},`,
	).Replace(reusable + `2}`)
	base := parseText(t, text)
	for updates, want := range map[string]string{
		`[{"action":"set-default-spec","spec-id":7}]`:             "Cannot find source column for partition field",
		`[{"action":"set-default-sort-order","sort-order-id":7}]`: "Cannot find source column for sort field",
	} {
		if _, err := commit(t, base, updates); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", updates, err, want)
		}
	}
}
