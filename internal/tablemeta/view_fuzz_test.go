package tablemeta_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// FuzzParseView: whatever bytes a metadata file holds, nothing panics, refusals are
// *InvalidError, and what is taken is given back as it is and can be committed to.
func FuzzParseView(f *testing.F) {
	for _, data := range viewSamples(f) {
		f.Add(data)
		f.Add([]byte(compact(data)))
	}
	f.Fuzz(func(t *testing.T, data []byte) { parseViewWell(t, data) })
}

// parseViewWell checks what holds of all bytes that are parsed.
func parseViewWell(t failer, data []byte) (taken bool) {
	want := bytes.Clone(data)
	v, err := tablemeta.ParseView(data)
	if err != nil {
		expectInvalid(t, err)
		return false
	}
	if v.UUID() == "" || v.Location() == "" {
		t.Fatalf("no uuid or no location: %s", v)
	}
	tablemeta.ViewFileName(v, v.Location(), "u")
	if file, err := tablemeta.EncodeView(v); err != nil {
		expectInvalid(t, err)
	} else if got, err := tablemeta.Decode(file, int64(len(want))); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("not identical: %q, %v", got, err)
	}
	if err := v.Verify(); err != nil {
		expectInvalid(t, err)
	}
	for _, text := range []string{
		`{"action":"set-properties","updates":{"a":"b"}}`,
		`{"action":"add-view-version","view-version":{"version-id":1,"timestamp-ms":1,"schema-id":0,"default-namespace":[],"summary":{},"representations":[]}}`,
	} {
		var update tablemeta.ViewUpdate
		if err := update.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatalf("%v", err)
		}
		commitViewWell(t, v, []tablemeta.ViewUpdate{update})
	}
	if !bytes.Equal(v.JSON(), want) {
		t.Fatalf("the commit changed its base")
	}
	return true
}

// commitViewWell checks what holds of every commit.
func commitViewWell(t failer, base *tablemeta.View, updates []tablemeta.ViewUpdate) {
	t.Helper()
	change := tablemeta.ViewChange{Base: base, Updates: updates, Now: time.UnixMilli(transcriptNow)}
	v, changed, err := tablemeta.CommitView(change)
	again, _, err2 := tablemeta.CommitView(change)
	if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
		t.Fatalf("decided twice: %v, %v", err, err2)
	}
	if err != nil {
		expectInvalid(t, err)
		return
	}
	if !bytes.Equal(v.JSON(), again.JSON()) {
		t.Fatalf("decided twice:\n%s\n%s", v.JSON(), again.JSON())
	}
	if !changed {
		return
	}
	if v.UUID() != base.UUID() {
		t.Fatalf("the uuid changed from %q to %q", base.UUID(), v.UUID())
	}
	if _, err := tablemeta.EncodeView(v); err != nil {
		t.Fatalf("cannot be written: %v", err)
	}
	if base.Verify() == nil {
		checkView(t, v)
	}
}

// TestParseDamagedView parses samples with one value replaced or taken out, and
// applies updates from the transcripts, damaged or not: what random bytes rarely come
// to.
func TestParseDamagedView(t *testing.T) {
	all := viewSamples(t)
	names := slices.Sorted(maps.Keys(all))
	lines := transcriptLines(t, "testdata/viewcommit", ">")
	draw := func(t *rapid.T, text []byte) []byte {
		if rapid.Bool().Draw(t, "whole") {
			return bytes.Clone(text)
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		damaged, err := json.Marshal(damage(t, v))
		if err != nil {
			t.Fatal(err)
		}
		return damaged
	}
	taken, refusals := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		doc := draw(t, all[rapid.SampledFrom(names).Draw(t, "sample")])
		if !parseViewWell(t, bytes.Clone(doc)) {
			refusals++
			return
		}
		taken++
		base, err := tablemeta.ParseView(doc)
		if err != nil {
			t.Fatal(err)
		}
		var updates []tablemeta.ViewUpdate
		for range rapid.IntRange(1, 4).Draw(t, "updates") {
			var u tablemeta.ViewUpdate
			if err := u.UnmarshalJSON(draw(t, []byte(rapid.SampledFrom(lines).Draw(t, "update")))); err == nil {
				updates = append(updates, u)
			}
		}
		commitViewWell(t, base, updates)
	})
	t.Logf("%d taken, %d refused", taken, refusals)
	if taken == 0 || refusals == 0 {
		t.Error("all were taken, or all refused")
	}
}

// FuzzViewUpdates: whatever updates a client sends, nothing panics, what is taken
// gives metadata that can be read, and the updates come through an encoder as they
// were.
func FuzzViewUpdates(f *testing.F) {
	for _, line := range transcriptLines(f, "testdata/viewcommit", ">") {
		f.Add([]byte("[" + line + "]"))
	}
	f.Add([]byte(`[{"action":"add-view-version","view-version":{"version-id":2,"timestamp-ms":4,"schema-id":0,"default-namespace":[],"summary":{},"representations":[{"type":"sql","sql":"select 4","dialect":"spark"}]}},{"action":"set-current-view-version","view-version-id":-1}]`))
	var bases []*tablemeta.View
	for _, data := range viewSamples(f) {
		bases = append(bases, parseView(f, string(data)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var updates []tablemeta.ViewUpdate
		if err := rawjson.Unmarshal(data, &updates); err != nil {
			return
		}
		for _, u := range updates {
			if u.Equal(tablemeta.ViewUpdate{}) {
				return // null in place of an update
			}
		}
		text, err := rawjson.Marshal(updates)
		if err != nil {
			t.Fatal(err)
		}
		var again []tablemeta.ViewUpdate
		if err := rawjson.Unmarshal(text, &again); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		for i := range updates {
			if !updates[i].Equal(again[i]) {
				t.Fatalf("update %d came back as %v", i, again[i])
			}
		}
		for _, base := range bases {
			commitViewWell(t, base, updates)
		}
	})
}

// FuzzCreateView: whatever schema and version a client sends, what is taken is a sound
// view.
func FuzzCreateView(f *testing.F) {
	f.Add([]byte(newViewSchema), []byte(newViewVersion))
	f.Fuzz(func(t *testing.T, schema, version []byte) {
		request := newView()
		request.Schema, request.Version = schema, version
		v, err := tablemeta.CreateView(request)
		if err != nil {
			expectInvalid(t, err)
			return
		}
		checkView(t, v)
	})
}
