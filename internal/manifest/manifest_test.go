package manifest_test

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/landfast/landfast/internal/manifest"
)

// collect is all that a file names, without what precedes the table's location.
func collect(files iter.Seq2[string, error]) (all []string, err error) {
	for f, err := range files {
		if err != nil {
			return all, err
		}
		// Java spells the locations of manifests file:/w.
		_, below, _ := strings.Cut(f, "/w/main/")
		all = append(all, cmp.Or(below, f))
	}
	return all, nil
}

// TestRealTables walks the tables of real clients: their manifest lists and manifests
// name exactly the files that the clients left.
func TestRealTables(t *testing.T) {
	for _, table := range []string{"java1", "java2", "java3", "python1", "python2"} {
		t.Run(table, func(t *testing.T) {
			found := map[string]bool{}
			lists, err := filepath.Glob("testdata/" + table + "/snap-*.avro")
			if err != nil || len(lists) == 0 {
				t.Fatalf("no manifest lists: %v", err)
			}
			for _, list := range lists {
				found[table+"/metadata/"+filepath.Base(list)] = true
				manifests, err := collect(manifest.Manifests(read(t, list)))
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range manifests {
					found[m] = true
					files, err := collect(manifest.Files(read(t, "testdata/"+table+"/"+filepath.Base(m))))
					if err != nil {
						t.Fatal(err)
					}
					for _, f := range files {
						found[f] = true
					}
				}
			}
			var want []string
			for line := range strings.Lines(string(read(t, "testdata/"+table+"/files.txt"))) {
				// What the metadata files name, and they themselves, are not found by way of manifests.
				if !strings.Contains(line, ".metadata.json") && !strings.Contains(line, "/stats.puffin") && !strings.Contains(line, "/partition-stats") {
					want = append(want, table+"/"+strings.TrimSpace(line))
				}
			}
			slices.Sort(want)
			if diff := gocmp.Diff(want, slices.Sorted(maps.Keys(found))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// entrySchema is the least that a manifest has, with a field that is named as a writer that does not
// sanitise names would.
const entrySchema = `{"type":"record","name":"manifest_entry","fields":[
	{"name":"status","type":"int"},
	{"name":"data_file","type":{"type":"record","name":"r2","fields":[
		{"name":"partition","type":{"type":"record","name":"r102","fields":[{"name":"a city","type":["null","string"],"default":null}]}},
		{"name":"file_path","type":"string"}]}}]}`

type entry struct {
	Status int32 `avro:"status"`
	File   struct {
		Partition struct {
			City *string `avro:"a city"`
		} `avro:"partition"`
		Path string `avro:"file_path"`
	} `avro:"data_file"`
}

// write makes a manifest that names these files.
func write(t testing.TB, files ...string) []byte {
	t.Helper()
	schema, err := avro.Parse(entrySchema, avro.WithLaxNames(nil))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, schema, ocf.WithCodec(ocf.DeflateCodec(flate.BestSpeed)), ocf.WithSyncMarker([16]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		e := entry{Status: int32(i % 3)}
		e.File.Path = f
		if err := w.Encode(&e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestManyBlocks reads more than one block, and stops where the reader does.
func TestManyBlocks(t *testing.T) {
	var want []string
	for i := range 5000 {
		want = append(want, fmt.Sprintf("t/data/%040d.parquet", i))
	}
	data := write(t, want...)
	got, err := collect(manifest.Files(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for f, err := range manifest.Files(data[:len(data)-1]) {
		if f != want[0] || err != nil {
			t.Errorf("the first file of one that is damaged at its end is %q, %v", f, err)
		}
		break
	}
}

// TestDamaged: whatever is wrong with a file is an error, and not a shorter list.
func TestDamaged(t *testing.T) {
	whole := write(t, "t/data/a.parquet", "t/data/b.parquet")
	for name, data := range map[string][]byte{
		"empty":               {},
		"text":                []byte("not Avro"),
		"encrypted":           append([]byte("AGS1"), whole...),
		"another schema":      read(t, firstList(t)),
		"an entry without":    write(t, "t/data/a.parquet", ""),
		"a broken block":      bytes.Replace(whole, whole[len(whole)-30:len(whole)-20], make([]byte, 10), 1),
		"an unknown codec":    bytes.Replace(whole, []byte("deflate"), []byte("deflatf"), 1),
		"more than one block": append(bytes.Clone(whole), whole[len(whole)-40:]...),
	} {
		if files, err := collect(manifest.Files(data)); err == nil {
			t.Errorf("%s: no error, and %q", name, files)
		}
	}
	if _, err := collect(manifest.Manifests(whole)); err == nil {
		t.Error("a manifest was read as a manifest list")
	}
	// The head of a file without a block is a whole file; cut anywhere else it is none.
	head := len(write(t))
	for n := range whole {
		if _, err := collect(manifest.Files(whole[:n])); err == nil && n != head {
			t.Errorf("a file of %d bytes reads well when only %d are there", len(whole), n)
		}
	}
}

func firstList(t testing.TB) string {
	lists, err := filepath.Glob("testdata/java2/snap-*.avro")
	if err != nil || len(lists) == 0 {
		t.Fatalf("no manifest lists: %v", err)
	}
	return lists[0]
}

// TestBombs: small files that claim to be large do not take the memory they claim.
func TestBombs(t *testing.T) {
	head := write(t)
	sync := head[len(head)-16:]
	block := func(count, size int64, payload []byte) []byte {
		out := binary.AppendVarint(bytes.Clone(head), count)
		out = binary.AppendVarint(out, size)
		return append(append(out, payload...), sync...)
	}
	var zeros bytes.Buffer
	w, err := flate.NewWriter(&zeros, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zero{}, 65<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// Snappy says at the start how much is to come.
	snappy := bytes.Replace(block(1, 9, append(binary.AppendUvarint(nil, 2<<30), "abcd"...)), []byte("\x0edeflate"), []byte("\x0csnappy"), 1)
	for name, data := range map[string][]byte{
		"a block of two gigabytes": snappy,
		"a block of 65 MiB":        block(1, int64(zeros.Len()), zeros.Bytes()),
		"a block that is absent":   block(1, 1<<60, nil),
		"entries that are absent":  block(1<<60, 0, nil),
		"a schema that is absent":  append([]byte("Obj\x01\x02\x16avro.schema"), 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		files, err := collect(manifest.Files(data))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error, and %d files", name, len(files))
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 400<<20 {
			t.Errorf("%s: %d MiB were allocated", name, took>>20)
		}
	}
}

// zero yields zeros for ever.
type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func FuzzFiles(f *testing.F) { fuzz(f, manifest.Files) }

func FuzzManifests(f *testing.F) { fuzz(f, manifest.Manifests) }

// fuzz looks for inputs that panic, hang, or yield what is no file.
func fuzz(f *testing.F, names func([]byte) iter.Seq2[string, error]) {
	files, err := filepath.Glob("testdata/*/*.avro")
	if err != nil || len(files) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		f.Add(read(f, file))
	}
	f.Add(write(f, "t/data/a.parquet", "t/data/b.parquet"))
	f.Fuzz(func(t *testing.T, data []byte) {
		failed := false
		for file, err := range names(data) {
			if failed || (err == nil) == (file == "") {
				t.Fatalf("%q, %v, after an error: %v", file, err, failed)
			}
			failed = err != nil
		}
	})
}
