package crash

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// dataFiles is how many a snapshot holds that has any: enough for a kill to come in
// the middle of their purge.
const dataFiles = 30

// addData appends a snapshot of real files to one of the writer's own tables.
func (w *writer) addData() {
	t := w.pick()
	if t == nil {
		return
	}
	base := w.load(t)
	if base == nil || base.Format == 1 { // whose snapshots have no sequence numbers
		return
	}
	o := w.appendTo(t, base)
	o.kind = "append data" // refused if an earlier append, of which nothing was heard, comes in between
	s := o.edit.snapshot
	dir := base.Location + "/data/" + o.token
	files := map[string][]byte{}
	var data []string
	for i := range dataFiles {
		f := fmt.Sprintf("%s-%02d.parquet", dir, i)
		data = append(data, f)
		files[f] = []byte("not read by anybody")
	}
	manifest := fmt.Sprintf("%s/metadata/%s-m0.avro", base.Location, o.token)
	files[manifest] = container(manifestSchema, data, func(file string) any {
		return map[string]any{"status": int32(1), "data_file": map[string]any{"file_path": file}}
	})
	files[s.ManifestList] = container(manifestListSchema, []string{manifest}, func(file string) any {
		return map[string]any{"manifest_path": file}
	})
	for location, content := range files {
		if writeFile(location, content) != nil {
			return // the disk is not as it should be: a client that cannot write its files does not commit
		}
		o.edit.files = append(o.edit.files, location)
	}
	w.commit(o, o.requirements(base))
}

// heavySnapshots is how many of them the table has whose purge the kill cuts short.
const heavySnapshots = 6

// heavyTable makes a table whose purge takes a while.
func (w *writer) heavyTable() (*table, error) {
	heavy, a := w.create("create", eastSpace+".heavy-"+w.token(), nil)
	if a.outcome() != done {
		return nil, fmt.Errorf("create a table to purge: %d %s", a.status, a.message())
	}
	w.tables = append(w.tables, heavy)
	for range heavySnapshots {
		w.addData()
	}
	return heavy, nil
}

const (
	manifestSchema = `{"type":"record","name":"manifest_entry","fields":[{"name":"status","type":"int"},
		{"name":"data_file","type":{"type":"record","name":"r2","fields":[{"name":"file_path","type":"string"}]}}]}`
	manifestListSchema = `{"type":"record","name":"manifest_file","fields":[{"name":"manifest_path","type":"string"}]}`
)

// container is an Avro file with a record for each location.
func container(schema string, locations []string, record func(location string) any) []byte {
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avro.MustParse(schema))
	if err != nil {
		panic(err) // the schemas are those above, and the rest is memory
	}
	for _, l := range locations {
		if err := w.Encode(record(l)); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func writeFile(location string, content []byte) error {
	path, err := filePath(location)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// unregister takes a table's name away and leaves its files.
func (w *writer) unregister(t *table) answer {
	o := w.operation("unregister")
	o.edit = nil
	o.table, o.addressed = t, w.h.nameOf(t)
	o.naming = &naming{from: o.addressed, unbinds: true}
	return w.sent(tableRequest("POST", tablePath(o.addressed)+"/unregister", nil), o)
}

// register gives a table that was unregistered a name.
func (w *writer) register(t *table, name, location string) answer {
	o := w.operation("register")
	o.edit = nil
	o.table, o.naming, o.registered = t, &naming{to: name}, location
	levels, last := split(name)
	return w.sent(tableRequest("POST", namespacePath(levels...)+"/register", object{"name": last, "metadata-location": location}), o)
}

// reregister unregisters one of the writer's own tables and mostly, but not always,
// registers it again at once. What was left goes first.
func (w *writer) reregister() {
	if sure := w.h.sure(w.detached); len(sure) > 0 {
		t := sure[len(sure)-1]
		if w.register(t, w.ownName(), t.newest()).outcome() == done {
			w.detached = slices.DeleteFunc(w.detached, func(other *table) bool { return other == t })
			w.tables = append(w.tables, t)
		}
		return
	}
	t := w.pick()
	if t == nil || w.unregister(t).outcome() != done {
		return
	}
	w.forget(t)
	w.detached = append(w.detached, t)
	if w.rng.IntN(4) > 0 {
		w.reregister()
	}
}

// newest is the newest metadata file of the table that anybody was told of. Of one
// that was unregistered it is the last.
func (t *table) newest() string {
	newest, number := "", -1
	for _, o := range t.ops {
		if n, err := fileNumber(o.location); err == nil && n > number {
			newest, number = o.location, n
		}
	}
	return newest
}
