package main

import (
	"fmt"
	"strings"
)

// benchSchema is the schema of every table here.
const benchSchema = `{"type":"struct","schema-id":0,"fields":[` +
	`{"id":1,"name":"id","required":true,"type":"long"},` +
	`{"id":2,"name":"at","required":false,"type":"timestamp"},` +
	`{"id":3,"name":"payload","required":false,"type":"string"}]}`

// snapshotID is a number beyond 2^53, as real ones are.
func snapshotID(i int) int64 { return 4_611_686_018_427_388_003 + int64(i)*6_151 }

// snapshotJSON is the i-th snapshot of a table, with a summary as Spark writes it.
func snapshotJSON(i int, millis int64) string {
	parent := ""
	if i > 0 {
		parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, snapshotID(i-1))
	}
	return fmt.Sprintf(`{"sequence-number":%d,"snapshot-id":%d,%s"timestamp-ms":%d,%s}`, i+1, snapshotID(i), parent, millis, snapshotRest(snapshotID(i)))
}

// snapshotRest is what snapshots have besides numbers.
func snapshotRest(id int64) string {
	return fmt.Sprintf(`"summary":{"operation":"append",`+
		`"spark.app.id":"application_1700000000000_0042","added-data-files":"12","added-records":"480000","added-files-size":"31457280",`+
		`"changed-partition-count":"3","total-records":"96000000","total-files-size":"6291456000","total-data-files":"2400",`+
		`"total-delete-files":"0","total-position-deletes":"0","total-equality-deletes":"0","engine-name":"spark","engine-version":"3.5.6"},`+
		`"manifest-list":"file:///lake/sales/orders/metadata/snap-%d-1-0f7d5c1e-6b1c-4d0a-9d58-3f2f7d2a1b10.avro","schema-id":0`, id)
}

const (
	benchTableUUID = "2f4b8a7e-53b0-4c4e-8f5e-0c7d0a6b9e11"
	benchStart     = int64(1_700_000_000_000) // ms
	metadataFiles  = 100                      // in the metadata log, as many as clients keep by default
)

// document is the metadata of a table with n snapshots, committed a second apart.
func document(n int) []byte {
	list := func(n int, item func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(item(i))
		}
		return b.String()
	}
	at := func(i int) int64 { return benchStart + int64(i)*1000 }
	return fmt.Appendf(nil, `{"format-version":2,"table-uuid":%q,"location":"file:///lake/sales/orders","last-sequence-number":%d,`+
		`"last-updated-ms":%d,"last-column-id":3,"current-schema-id":0,"schemas":[%s],`+
		`"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[{"name":"at_day","transform":"day","source-id":2,"field-id":1000}]}],`+
		`"last-partition-id":1000,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],`+
		`"properties":{"owner":"bench","write.parquet.compression-codec":"zstd"},`+
		`"current-snapshot-id":%d,"refs":{"main":{"snapshot-id":%d,"type":"branch"}},`+
		`"snapshots":[%s],"statistics":[],"partition-statistics":[],"snapshot-log":[%s],"metadata-log":[%s]}`,
		benchTableUUID, n, at(n), benchSchema, snapshotID(n-1), snapshotID(n-1),
		list(n, func(i int) string { return snapshotJSON(i, at(i)) }),
		list(n, func(i int) string {
			return fmt.Sprintf(`{"timestamp-ms":%d,"snapshot-id":%d}`, at(i), snapshotID(i))
		}),
		list(min(n, metadataFiles), func(i int) string {
			return fmt.Sprintf(`{"timestamp-ms":%d,"metadata-file":"file:///lake/sales/orders/metadata/%05d-7d3a5f0e-9a43-4f3c-b7b5-51c0a8f9d2aa.metadata.json"}`, at(i), i)
		}))
}
