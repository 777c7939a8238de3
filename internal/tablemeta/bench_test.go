package tablemeta_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

const benchStart = int64(1_700_000_000_000)

// history is the metadata of a table with n snapshots, each as a writer of
// fifty-odd files leaves it.
func history(n int) []byte {
	var snapshots, log, files strings.Builder
	for i := range n {
		comma := ","
		if i == 0 {
			comma = ""
		}
		parent := ""
		if i > 0 {
			parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, snapshotID(i-1))
		}
		at := benchStart + int64(i)*1000
		fmt.Fprintf(&snapshots, `%s{"sequence-number":%d,"snapshot-id":%d,%s"timestamp-ms":%d,"summary":{"operation":"append","spark.app.id":"local-1700000000000","added-data-files":"4","added-records":"1000","added-files-size":"123456","changed-partition-count":"2","total-records":"100000","total-files-size":"12345678","total-data-files":"1000","total-delete-files":"0","total-position-deletes":"0","total-equality-deletes":"0","engine-version":"3.5.1","engine-name":"spark"},"manifest-list":"s3://bucket/warehouse/ns/table/metadata/snap-%d-1-5ba1a2b0-8a5e-4b9c-9d4e-2b6d6b6f5d5e.avro","schema-id":0}`,
			comma, i+1, snapshotID(i), parent, at, snapshotID(i))
		fmt.Fprintf(&log, `%s{"timestamp-ms":%d,"snapshot-id":%d}`, comma, at, snapshotID(i))
		if i < 100 {
			fmt.Fprintf(&files, `%s{"timestamp-ms":%d,"metadata-file":"s3://bucket/warehouse/ns/table/metadata/%05d-5ba1a2b0-8a5e-4b9c-9d4e-2b6d6b6f5d5e.metadata.json"}`, comma, at, i)
		}
	}
	return fmt.Appendf(nil, `{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://bucket/warehouse/ns/table","last-sequence-number":%d,"last-updated-ms":%d,"last-column-id":3,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"ts","required":false,"type":"timestamp"},{"id":3,"name":"data","required":false,"type":"string"}]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[{"name":"ts_day","transform":"day","source-id":2,"field-id":1000}]}],"last-partition-id":1000,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"owner":"root","write.parquet.compression-codec":"zstd"},"current-snapshot-id":%d,"refs":{"main":{"snapshot-id":%d,"type":"branch"}},"snapshots":[%s],"statistics":[],"partition-statistics":[],"snapshot-log":[%s],"metadata-log":[%s]}`,
		n, benchStart+int64(n)*1000, snapshotID(n-1), snapshotID(n-1), snapshots.String(), log.String(), files.String())
}

func snapshotID(i int) int64 { return 3_051_729_675_574_597_004 + int64(i)*7919 }

// appendCommit is what a client sends that appends one snapshot to history(n).
func appendCommit(tb testing.TB, n int) (reqs []tablemeta.Requirement, updates []tablemeta.Update) {
	tb.Helper()
	for target, text := range map[any]string{
		&reqs: fmt.Sprintf(`[{"type":"assert-table-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"},{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}]`, snapshotID(n-1)),
		&updates: fmt.Sprintf(`[{"action":"add-snapshot","snapshot":{"sequence-number":%d,"snapshot-id":%d,"parent-snapshot-id":%d,"timestamp-ms":%d,"summary":{"operation":"append"},"manifest-list":"s3://bucket/warehouse/ns/table/metadata/snap-new.avro","schema-id":0}},{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`,
			n+1, snapshotID(n), snapshotID(n-1), benchStart+int64(n+1)*1000, snapshotID(n)),
	} {
		if err := rawjson.Unmarshal([]byte(text), target); err != nil {
			tb.Fatal(err)
		}
	}
	return reqs, updates
}

// commitOnce is one commit from the bytes of one file to the bytes of the next.
func commitOnce(tb testing.TB, doc []byte, reqs []tablemeta.Requirement, updates []tablemeta.Update, now time.Time) []byte {
	base, err := tablemeta.Parse(doc)
	if err != nil {
		tb.Fatal(err)
	}
	if err := tablemeta.Check(base, reqs); err != nil {
		tb.Fatal(err)
	}
	m, _, err := tablemeta.Commit(tablemeta.Change{Base: base, BaseFile: "s3://bucket/warehouse/ns/table/metadata/00099-x.metadata.json", Updates: updates, Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	return m.JSON()
}

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("snapshots=%d", n), func(b *testing.B) {
			doc := history(n)
			reqs, updates := appendCommit(b, n)
			now := time.UnixMilli(benchStart + int64(n+2)*1000)
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				commitOnce(b, doc, reqs, updates, now)
			}
		})
	}
}

// TestCommitAllocations pins the promise that a commit does not decode what it
// does not touch: 1,000 snapshots cost no more than 300 allocations.
func TestCommitAllocations(t *testing.T) {
	const n, most = 1000, 300
	doc := history(n)
	reqs, updates := appendCommit(t, n)
	now := time.UnixMilli(benchStart + int64(n+2)*1000)
	got := testing.AllocsPerRun(5, func() { commitOnce(t, doc, reqs, updates, now) })
	t.Logf("%v allocations for %d snapshots in %d bytes", got, n, len(doc))
	if got > most {
		t.Errorf("%v allocations, want at most %d", got, most)
	}
}
