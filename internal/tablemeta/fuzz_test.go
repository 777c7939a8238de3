package tablemeta_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// addChances gives a fuzz target that is made of a property the bytes that its draws
// are made from: with none, it would draw nothing for long.
func addChances(f *testing.F) {
	for seed := range byte(8) {
		chances := make([]byte, 16<<10)
		if _, err := rand.NewChaCha8([32]byte{seed}).Read(chances); err != nil {
			f.Fatal(err)
		}
		f.Add(chances)
	}
}

// transcriptLines is what comes behind a mark in the transcripts of a directory: good
// seeds.
func transcriptLines(f testing.TB, directory, mark string) (lines []string) {
	f.Helper()
	files, err := filepath.Glob(directory + "/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			if rest, ok := strings.CutPrefix(line, mark+" "); ok {
				lines = append(lines, rest)
			}
		}
	}
	if len(lines) < 5 {
		f.Fatalf("only %d lines are marked %q", len(lines), mark)
	}
	return lines
}

// FuzzParse: whatever bytes a metadata file holds, nothing panics, refusals are
// *InvalidError, and what is taken is given back as it is, can be committed to and
// is whole without its history.
func FuzzParse(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
		f.Add([]byte(compact(data)))
	}
	f.Add(history(2))
	f.Fuzz(func(t *testing.T, data []byte) { parseWell(t, data) })
}

// parseWell checks what holds of all bytes that are parsed.
func parseWell(t failer, data []byte) (taken bool) {
	want := bytes.Clone(data)
	m, err := tablemeta.Parse(data)
	if err != nil {
		expectInvalid(t, err)
		return false
	}
	if !bytes.Equal(m.JSON(), want) {
		t.Fatalf("not identical: %q", m.JSON())
	}
	if refs, err := tablemeta.Parse(bytes.Clone(m.RefsOnlyJSON())); err != nil {
		t.Fatalf("not whole without history: %v\n%s", err, data)
	} else if refs.SnapshotCount() > m.SnapshotCount() {
		t.Fatalf("more snapshots with refs than snapshots")
	}
	m.MetadataLog()
	tablemeta.FileName(m, m.Location(), "u")
	if err := m.Verify(); err != nil {
		expectInvalid(t, err)
	}
	var update tablemeta.Update
	if err := update.UnmarshalJSON([]byte(`{"action":"set-properties","updates":{"a":"b"}}`)); err != nil {
		t.Fatalf("%v", err)
	}
	commitWell(t, m, []tablemeta.Update{update})
	if !bytes.Equal(m.JSON(), want) {
		t.Fatalf("the commit changed its base")
	}
	return true
}

// failer is the test, whatever runs it.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// TestParseDamaged parses samples with one value replaced or taken out: what
// random bytes rarely come to.
func TestParseDamaged(t *testing.T) {
	var names []string
	all := samples(t)
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	taken, refusals := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		dec := json.NewDecoder(bytes.NewReader(all[rapid.SampledFrom(names).Draw(t, "sample")]))
		dec.UseNumber()
		var doc any
		if err := dec.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		damaged, err := json.Marshal(damage(t, doc))
		if err != nil {
			t.Fatal(err)
		}
		if parseWell(t, damaged) {
			taken++
		} else {
			refusals++
		}
	})
	t.Logf("%d taken, %d refused", taken, refusals)
	if taken == 0 || refusals == 0 {
		t.Error("all were taken, or all refused")
	}
}

// TestDamagedCommits applies updates from the transcripts, damaged or not, to
// samples, damaged or not.
func TestDamagedCommits(t *testing.T) {
	all := samples(t)
	names := slices.Sorted(maps.Keys(all))
	lines := transcriptLines(t, "testdata/commit", ">")
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
	rapid.Check(t, func(t *rapid.T) {
		base, err := tablemeta.Parse(draw(t, all[rapid.SampledFrom(names).Draw(t, "sample")]))
		if err != nil {
			return
		}
		var updates []tablemeta.Update
		for range rapid.IntRange(1, 4).Draw(t, "updates") {
			var u tablemeta.Update
			if u.UnmarshalJSON(draw(t, []byte(rapid.SampledFrom(lines).Draw(t, "update")))) == nil {
				updates = append(updates, u)
			}
		}
		commitWell(t, base, updates)
	})
}

// damage replaces one value somewhere inside of v, or takes it out.
func damage(t *rapid.T, v any) any {
	if rapid.IntRange(0, 5).Draw(t, "here") == 0 {
		return rapid.SampledFrom([]any{
			nil, true, "", "x", 0, -1, 1.5, int64(1) << 40, json.Number("9223372036854775807"), json.Number("-9223372036854775808"),
			json.Number("9223372036854775808"), []any{}, map[string]any{}, []any{0}, []any{map[string]any{}}, map[string]any{"x": nil},
		}).Draw(t, "junk")
	}
	out := rapid.IntRange(0, 5).Draw(t, "out") == 0
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "key")
			if out {
				delete(v, key)
			} else {
				v[key] = damage(t, v[key])
			}
		}
	case []any:
		if len(v) > 0 {
			i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
			if out {
				return slices.Delete(v, i, i+1)
			}
			v[i] = damage(t, v[i])
		}
	}
	return v
}

func expectInvalid(t failer, err error) {
	t.Helper()
	var invalid *tablemeta.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("%v is %T, want *InvalidError", err, err)
	}
}

// commitWell checks what holds of every commit.
func commitWell(t failer, base *tablemeta.Metadata, updates []tablemeta.Update) {
	t.Helper()
	change := tablemeta.Change{Base: base, BaseFile: transcriptFile, Updates: updates, UUID: transcriptUUID, Now: time.UnixMilli(transcriptNow)}
	m, changed, err := tablemeta.Commit(change)
	again, _, err2 := tablemeta.Commit(change)
	if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
		t.Fatalf("decided twice: %v, %v", err, err2)
	}
	if err != nil {
		if kind := kindOf(err); kind != refused && kind != overtaken {
			t.Fatalf("%v is %T", err, err)
		}
		return
	}
	if !bytes.Equal(m.JSON(), again.JSON()) {
		t.Fatalf("decided twice:\n%s\n%s", m.JSON(), again.JSON())
	}
	if !changed {
		return
	}
	if base != nil && m.LastUpdatedMillis() < base.LastUpdatedMillis() {
		t.Fatalf("last-updated-ms ran back from %d to %d", base.LastUpdatedMillis(), m.LastUpdatedMillis())
	}
	if err := tablemeta.Rereads(m); err != nil {
		t.Fatalf("%v\n%s", err, m.JSON())
	}
	if base == nil || base.Verify() == nil {
		if err := m.Verify(); err != nil {
			t.Fatalf("what a commit made could not be registered: %v\n%s", err, m.JSON())
		}
	}
}

// FuzzUpdates: whatever updates a client sends, to a table of any version or to
// create one, nothing panics, what is taken gives metadata that can be read, and
// the updates come through an encoder as they were.
func FuzzUpdates(f *testing.F) {
	for _, line := range transcriptLines(f, "testdata/commit", ">") {
		f.Add([]byte("[" + line + "]"))
	}
	f.Add([]byte(`[{"action":"remove-snapshots","snapshot-ids":[101]},{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":103}]`))
	f.Add([]byte(`[{"action":"add-schema","schema":{"type":"struct","fields":[]}},{"action":"add-spec","spec":{"fields":[]}},{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-location","location":"s3://b"}]`))
	bases := []*tablemeta.Metadata{nil}
	for _, data := range samples(f) {
		m, err := tablemeta.Parse(data)
		if err != nil {
			f.Fatal(err)
		}
		bases = append(bases, m)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var updates []tablemeta.Update
		if err := rawjson.Unmarshal(data, &updates); err != nil {
			return
		}
		for _, u := range updates {
			if u.Equal(tablemeta.Update{}) {
				return // null in place of an update
			}
		}
		text, err := rawjson.Marshal(updates)
		if err != nil {
			t.Fatal(err)
		}
		var again []tablemeta.Update
		if err := rawjson.Unmarshal(text, &again); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		for i := range updates {
			if !updates[i].Equal(again[i]) {
				t.Fatalf("update %d came back as %v", i, again[i])
			}
		}
		for _, base := range bases {
			commitWell(t, base, updates)
		}
	})
}

// FuzzRequirement: the same for requirements.
func FuzzRequirement(f *testing.F) {
	for _, line := range transcriptLines(f, "testdata/commit", "?") {
		f.Add([]byte(line))
	}
	for _, line := range transcriptLines(f, "testdata/viewcommit", "?") {
		f.Add([]byte(line))
	}
	bases := []*tablemeta.Metadata{nil, sample(f, "v1-legacy"), sample(f, "v2"), sample(f, "v3")}
	view := viewSample(f, "java")
	f.Fuzz(func(t *testing.T, data []byte) {
		var r tablemeta.Requirement
		if err := r.UnmarshalJSON(data); err != nil {
			return
		}
		text, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again tablemeta.Requirement
		if err := again.UnmarshalJSON(text); err != nil || !again.Equal(r) {
			t.Fatalf("came back as %v, %v", again, err)
		}
		outcomes := []error{tablemeta.CheckView(view, []tablemeta.Requirement{r})}
		for _, base := range bases {
			outcomes = append(outcomes, tablemeta.Check(base, []tablemeta.Requirement{r}))
		}
		for _, err := range outcomes {
			var failed *tablemeta.RequirementError
			if err != nil && !errors.As(err, &failed) {
				expectInvalid(t, err)
			}
			if failed != nil && !strings.HasPrefix(failed.Message, "Requirement failed: ") {
				t.Fatalf("message %q", failed.Message)
			}
		}
	})
}

// FuzzDecode: whatever a file holds, no more than the limit comes out of it.
func FuzzDecode(f *testing.F) {
	plain := samples(f)["v2"]
	m, err := tablemeta.Parse([]byte(strings.Replace(string(plain), `"owner": "ana"`, `"write.metadata.compression-codec": "gzip"`, 1)))
	if err != nil {
		f.Fatal(err)
	}
	file, err := tablemeta.Encode(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add(file[:100])
	f.Add([]byte{0x1f, 0x8b})
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 10_000
		out, err := tablemeta.Decode(data, limit)
		switch {
		case err == nil && len(out) > limit:
			t.Fatalf("%d bytes", len(out))
		case err != nil && !errors.Is(err, tablemeta.ErrTooLarge):
			expectInvalid(t, err)
		}
	})
}
