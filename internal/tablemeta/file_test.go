package tablemeta_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/tablemeta"
)

func withProperties(t *testing.T, properties string) *tablemeta.Metadata {
	t.Helper()
	m, _, err := tablemeta.Commit(tablemeta.Change{
		Base: sample(t, "v2"), Updates: decodeUpdates(t, `[{"action":"set-properties","updates":`+properties+`}]`), Now: time.UnixMilli(transcriptNow),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFileName(t *testing.T) {
	tests := []struct{ properties, base, want string }{
		{`{"a":"b"}`, "", "s3://bucket/v2/table/metadata/00000-u.metadata.json"},
		{`{"a":"b"}`, "s3://x/metadata/00000-a.metadata.json", "s3://bucket/v2/table/metadata/00001-u.metadata.json"},
		{`{"a":"b"}`, "00041-a.gz.metadata.json", "s3://bucket/v2/table/metadata/00042-u.metadata.json"},
		{`{"a":"b"}`, "s3://x/99999-a.metadata.json", "s3://bucket/v2/table/metadata/100000-u.metadata.json"},
		{`{"a":"b"}`, "s3://x/v7.metadata.json", "s3://bucket/v2/table/metadata/00000-u.metadata.json"},
		{`{"a":"b"}`, "s3://x/-1-a.metadata.json", "s3://bucket/v2/table/metadata/00000-u.metadata.json"},
		{`{"a":"b"}`, "s3://x/+1-a.metadata.json", "s3://bucket/v2/table/metadata/00000-u.metadata.json"},
		{`{"a":"b"}`, "s3://x/99999999999-a.metadata.json", "s3://bucket/v2/table/metadata/00000-u.metadata.json"},
		{`{"write.metadata.compression-codec":"gzip"}`, "s3://x/00001-a.metadata.json", "s3://bucket/v2/table/metadata/00002-u.gz.metadata.json"},
		{`{"write.metadata.compression-codec":"Gzip","write.metadata.path":"s3://meta/here//"}`, "", "s3://meta/here/00000-u.gz.metadata.json"},
		{`{"write.metadata.compression-codec":"NONE","write.metadata.path":"s3://meta/here"}`, "", "s3://meta/here/00000-u.metadata.json"},
	}
	for _, tt := range tests {
		if got := tablemeta.FileName(withProperties(t, tt.properties), tt.base, "u"); got != tt.want {
			t.Errorf("%s on %q: got %s, want %s", tt.properties, tt.base, got, tt.want)
		}
	}
}

func TestEncodeAndDecode(t *testing.T) {
	for _, codec := range []string{"none", "NONE", "gzip", "GZIP"} {
		m := withProperties(t, `{"write.metadata.compression-codec":"`+codec+`"}`)
		file, err := tablemeta.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		compressed := strings.EqualFold(codec, "gzip")
		if got := bytes.HasPrefix(file, []byte{0x1f, 0x8b}); got != compressed {
			t.Errorf("%s: compressed is %v", codec, got)
		}
		size := int64(len(m.JSON()))
		got, err := tablemeta.Decode(file, size)
		if err != nil || !bytes.Equal(got, m.JSON()) {
			t.Errorf("%s: not decoded to the same: %v", codec, err)
		}
		if _, err := tablemeta.Decode(file, size-1); !errors.Is(err, tablemeta.ErrTooLarge) {
			t.Errorf("%s: one byte too many gives %v, want ErrTooLarge", codec, err)
		}
		again, err := tablemeta.Encode(m)
		if err != nil || !bytes.Equal(again, file) {
			t.Errorf("%s: encoding twice differs: %v", codec, err)
		}
	}
}

func TestEncodeRefusesUnknownCodec(t *testing.T) {
	// Only metadata from elsewhere can have one.
	doc := strings.Replace(string(samples(t)["v2"]), `"owner": "ana"`, `"write.metadata.compression-codec": "zstd"`, 1)
	m, err := tablemeta.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	_, err = tablemeta.Encode(m)
	var invalid *tablemeta.InvalidError
	if !errors.As(err, &invalid) || err.Error() != "Invalid codec name: zstd" {
		t.Errorf("got %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	if _, err := w.Write(bytes.Repeat([]byte(" "), 10<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	bomb := file.Bytes()
	if _, err := tablemeta.Decode(bomb, 1<<20); !errors.Is(err, tablemeta.ErrTooLarge) {
		t.Errorf("%d bytes that become 10 MiB give %v, want ErrTooLarge", len(bomb), err)
	}
	flipped := bytes.Clone(bomb)
	flipped[len(flipped)-6] ^= 1 // the checksum
	for name, data := range map[string][]byte{
		"truncated": bomb[:len(bomb)/2], "header only": bomb[:4], "magic only": bomb[:2], "checksum": flipped,
	} {
		var invalid *tablemeta.InvalidError
		if _, err := tablemeta.Decode(data, 1<<30); !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want *InvalidError", name, err)
		}
	}
}

// TestMetadataLogIsBounded: the log keeps as many entries as the properties after
// the commit say, the newest ones.
func TestMetadataLogIsBounded(t *testing.T) {
	m := sample(t, "v2-empty")
	commit := func(updates string, i int) {
		t.Helper()
		next, _, err := tablemeta.Commit(tablemeta.Change{
			Base: m, BaseFile: fmt.Sprintf("s3://m/%05d-u.metadata.json", i), Updates: decodeUpdates(t, updates), Now: time.UnixMilli(transcriptNow + int64(i)),
		})
		if err != nil {
			t.Fatal(err)
		}
		m = next
		checkRereads(t, m)
	}
	check := func(length, newest int) {
		t.Helper()
		log := m.MetadataLog()
		if len(log) != length || log[length-1].File != fmt.Sprintf("s3://m/%05d-u.metadata.json", newest) ||
			log[0].File != fmt.Sprintf("s3://m/%05d-u.metadata.json", newest-length+1) {
			t.Errorf("log has %d entries, %v, want %d up to %d", len(log), log, length, newest)
		}
	}
	i := 0
	for ; i < 103; i++ {
		commit(fmt.Sprintf(`[{"action":"set-properties","updates":{"n":"%d"}}]`, i), i)
	}
	check(100, 102)
	commit(`[{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"3"}}]`, i)
	check(3, 103)
	commit(`[{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"0"}}]`, i+1)
	check(1, 104)
	commit(`[{"action":"remove-properties","removals":["write.metadata.previous-versions-max"]}]`, i+2)
	check(2, 105)
	for _, e := range m.MetadataLog() {
		if e.TimestampMillis < transcriptNow {
			t.Errorf("entry %v is not of the time of the file's own commit", e)
		}
	}
}

// TestMetadataLogDoesNotRunBack: another writer's clock was ahead when it wrote
// the last entry.
func TestMetadataLogDoesNotRunBack(t *testing.T) {
	const ahead = 1_700_000_050_000 // 50 s after the document was updated
	doc := strings.Replace(string(samples(t)["v2"]), `"timestamp-ms": 1699999400000, "metadata-file"`, fmt.Sprintf(`"timestamp-ms": %d, "metadata-file"`, ahead), 1)
	base, err := tablemeta.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := tablemeta.Commit(tablemeta.Change{
		Base: base, BaseFile: transcriptFile, Updates: decodeUpdates(t, `[{"action":"set-location","location":"s3://b"}]`), Now: time.UnixMilli(ahead - 49_000),
	})
	if err != nil {
		t.Fatal(err)
	}
	checkRereads(t, m)
	log := m.MetadataLog()
	if last := log[len(log)-1]; last.TimestampMillis != ahead || m.LastUpdatedMillis() != ahead {
		t.Errorf("last entry %v, updated %d, want both at %d", last, m.LastUpdatedMillis(), int64(ahead))
	}
}
