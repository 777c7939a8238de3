package tablemeta_test

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/tablemeta"
)

func TestReach(t *testing.T) {
	type reach struct{ Lists, Inline, Statistics []string }
	below := func(location string, files iter.Seq[string]) (out []string) {
		for f := range files {
			out = append(out, strings.TrimPrefix(f, location))
		}
		return out
	}
	for name, want := range map[string]reach{
		"v1":        {},
		"v1-legacy": {Lists: []string{"/snap-11.avro"}, Inline: []string{"/m0.avro"}},
		"v2": {
			Lists: []string{
				"/metadata/snap-101.avro", "/metadata/snap-102.avro", "/metadata/snap-103.avro",
				"/metadata/snap-104.avro", "/metadata/snap-105.avro",
			},
			Statistics: []string{"/metadata/102.stats", "/metadata/104.stats", "/metadata/103.parquet"},
		},
	} {
		m := sample(t, name)
		got := reach{below(m.Location(), m.ManifestLists()), below(m.Location(), m.InlineManifests()), below(m.Location(), m.StatisticsFiles())}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReachOfOneSnapshot: what has a manifest list needs no inline manifests, and what is
// no string names no file.
func TestReachOfOneSnapshot(t *testing.T) {
	doc := string(samples(t)["v1-legacy"])
	doc = strings.Replace(doc, `"manifests": ["s3://bucket/v1/legacy/m0.avro"]`, `"manifests": ["a", null, 7, "b"], "manifest-list": null`, 1)
	doc = strings.Replace(doc, `"manifest-list": "s3:`, `"manifests": ["c"], "manifest-list": "s3:`, 1)
	m, err := tablemeta.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, slices.Collect(m.InlineManifests())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range m.InlineManifests() {
		break // the rest is not read
	}
}

func TestProperty(t *testing.T) {
	m := sample(t, "v1-legacy")
	if m.UUID() != "" {
		t.Errorf("uuid %q of a table without one", m.UUID())
	}
	if value, ok := m.Property("gc.enabled"); ok {
		t.Errorf("gc.enabled is %q, want it absent", value)
	}
	changed, _, err := tablemeta.Commit(tablemeta.Change{Base: sample(t, "v2"), Updates: decodeUpdates(t, `[{"action":"set-properties","updates":{"gc.enabled":"false"}}]`)})
	if err != nil {
		t.Fatal(err)
	}
	if value, ok := changed.Property("gc.enabled"); value != "false" || !ok {
		t.Errorf("gc.enabled is %q, %v", value, ok)
	}
	if changed.UUID() != "22222222-2222-4222-8222-222222222222" {
		t.Errorf("uuid %q", changed.UUID())
	}
}
