package tablemeta_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// The model is view metadata that is decoded as a whole and changed in the plainest
// way. It knows nothing of spans.
type viewM struct {
	UUID     string            `json:"view-uuid"`
	Format   int               `json:"format-version"`
	Location string            `json:"location"`
	Props    map[string]string `json:"properties"`
	Schemas  []schemaM         `json:"schemas"`
	Current  int               `json:"current-version-id"`
	Versions []versionM        `json:"versions"` // in the order of their ids
	Log      []versionLogM     `json:"version-log"`
}

type schemaM struct {
	Type   string   `json:"type"`
	ID     int      `json:"schema-id"`
	Fields []fieldM `json:"fields"`
}

type fieldM struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Type     string `json:"type"`
}

type versionM struct {
	ID        int               `json:"version-id"`
	Time      int64             `json:"timestamp-ms"`
	Schema    int               `json:"schema-id"`
	Summary   map[string]string `json:"summary"`
	Catalog   *string           `json:"default-catalog,omitempty"`
	Namespace []string          `json:"default-namespace"`
	Reps      []repM            `json:"representations"`
}

type repM struct {
	Type    string `json:"type"`
	SQL     string `json:"sql,omitempty"`
	Dialect string `json:"dialect,omitempty"`
	Plan    []int  `json:"plan,omitempty"`
}

type versionLogM struct {
	Time int64 `json:"timestamp-ms"`
	ID   int   `json:"version-id"`
}

// viewUpdateM is one update: the union of the fields of all of them.
type viewUpdateM struct {
	Action   string            `json:"action"`
	UUID     string            `json:"uuid,omitempty"`
	Format   *int              `json:"format-version,omitempty"`
	Location string            `json:"location,omitempty"`
	Updates  map[string]string `json:"updates,omitempty"`
	Removals []string          `json:"removals,omitempty"`
	Schema   *schemaM          `json:"schema,omitempty"`
	Version  *versionM         `json:"view-version,omitempty"`
	ID       *int              `json:"view-version-id,omitempty"`
}

func (m *viewM) version(id int) *versionM {
	if i := slices.IndexFunc(m.Versions, func(v versionM) bool { return v.ID == id }); i >= 0 {
		return &m.Versions[i]
	}
	return nil
}

func (v *versionM) dialects() (all []string) {
	for _, r := range v.Reps {
		if r.Type == "sql" {
			all = append(all, strings.ToLower(r.Dialect))
		}
	}
	return all
}

// commit applies updates; ok is false if they are refused.
func (m *viewM) commit(updates []viewUpdateM, now int64) (changed, ok bool) {
	before := *m.version(m.Current)
	added := map[int]bool{}
	lastSchema, lastVersion := -1, -1
	var entry *versionLogM
	for _, u := range updates {
		did := true
		switch u.Action {
		case "assign-uuid":
			did = false
			if u.UUID != m.UUID {
				return false, false
			}
		case "upgrade-format-version":
			did = false
			if *u.Format != 1 {
				return false, false
			}
		case "set-location":
			did = u.Location != m.Location
			m.Location = u.Location
		case "set-properties":
			did = len(u.Updates) > 0
			maps.Copy(m.Props, u.Updates)
		case "remove-properties":
			did = false
			for _, key := range u.Removals {
				_, there := m.Props[key]
				did = did || there
				delete(m.Props, key)
			}
		case "add-schema":
			next := 0
			did = true
			for _, s := range m.Schemas {
				if cmp.Equal(s.Fields, u.Schema.Fields) {
					did = false
				}
				next = max(next, s.ID+1)
			}
			if did {
				m.Schemas = append(m.Schemas, schemaM{"struct", next, u.Schema.Fields})
				lastSchema = next
			}
		case "add-view-version":
			v := *u.Version
			twin := func(o versionM) bool {
				o.ID, o.Time = v.ID, v.Time
				return cmp.Equal(o, v)
			}
			if i := slices.IndexFunc(m.Versions, twin); i >= 0 {
				did = false
				lastVersion = -1
				if added[m.Versions[i].ID] {
					lastVersion = m.Versions[i].ID
				}
				break
			}
			for _, o := range m.Versions {
				v.ID = max(v.ID, o.ID+1)
			}
			if v.Schema == -1 {
				v.Schema = lastSchema
			}
			if !slices.ContainsFunc(m.Schemas, func(s schemaM) bool { return s.ID == v.Schema }) {
				return false, false
			}
			if d := v.dialects(); len(slices.Compact(slices.Sorted(slices.Values(d)))) < len(d) {
				return false, false
			}
			m.Versions = append(m.Versions, v)
			added[v.ID], lastVersion = true, v.ID
		case "set-current-view-version":
			id := *u.ID
			if id == -1 {
				id = lastVersion
			}
			v := m.version(id)
			if v == nil {
				return false, false
			}
			did = id != m.Current
			if did {
				at := now
				if added[id] && v.Time <= now+60_000 {
					at = v.Time
				}
				m.Current, entry = id, &versionLogM{at, id}
			}
		default:
			panic(u.Action)
		}
		changed = changed || did
	}
	if !changed {
		return false, true
	}
	if entry != nil {
		if n := len(m.Log); n > 0 {
			entry.Time = max(entry.Time, m.Log[n-1].Time)
		}
		m.Log = append(m.Log, *entry)
	}
	if m.Props["replace.drop-dialect.allowed"] != "true" {
		for _, d := range before.dialects() {
			if !slices.Contains(m.version(m.Current).dialects(), d) {
				return false, false
			}
		}
	}
	size := 10
	if text, there := m.Props["version.history.num-entries"]; there {
		var err error
		if size, err = strconv.Atoi(text); err != nil || size < 1 {
			return false, false
		}
	}
	added[m.Current] = true
	for keep := max(size, len(added)); len(m.Versions) > keep; {
		oldest := slices.IndexFunc(m.Versions, func(v versionM) bool { return v.ID != m.Current })
		m.Log = m.Log[1+lastIndex(m.Log, m.Versions[oldest].ID):]
		m.Versions = slices.Delete(m.Versions, oldest, oldest+1)
	}
	return true, true
}

func lastIndex(log []versionLogM, id int) int {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].ID == id {
			return i
		}
	}
	return -1
}

func decodeViewModel(t interface{ Fatal(...any) }, doc []byte) *viewM {
	m := &viewM{}
	if err := json.Unmarshal(doc, m); err != nil {
		t.Fatal(err)
	}
	if m.Props == nil {
		m.Props = map[string]string{}
	}
	slices.SortFunc(m.Versions, func(a, b versionM) int { return a.ID - b.ID })
	return m
}

func drawViewUpdate(t *rapid.T, m *viewM, now int64) viewUpdateM {
	switch action := rapid.SampledFrom([]string{
		"add-schema", "add-schema", "add-view-version", "add-view-version", "add-view-version", "add-view-version",
		"set-current-view-version", "set-current-view-version", "set-current-view-version", "set-properties", "remove-properties",
		"set-location", "assign-uuid", "upgrade-format-version",
	}).Draw(t, "action"); action {
	case "add-schema":
		return viewUpdateM{Action: action, Schema: &schemaM{"struct", rapid.IntRange(0, 3).Draw(t, "schema id"), []fieldM{{
			rapid.IntRange(1, 2).Draw(t, "field"), "a", rapid.Bool().Draw(t, "required"), rapid.SampledFrom([]string{"int", "variant"}).Draw(t, "type"),
		}}}}
	case "add-view-version":
		if rapid.IntRange(0, 3).Draw(t, "again?") == 0 {
			v := rapid.SampledFrom(m.Versions).Draw(t, "version")
			v.ID, v.Time = rapid.IntRange(0, 20).Draw(t, "other id"), now
			return viewUpdateM{Action: action, Version: &v}
		}
		v := &versionM{
			ID: rapid.IntRange(0, 12).Draw(t, "id"), Schema: rapid.SampledFrom([]int{-1, 0, 0, 0, 0, 0, 0, 1}).Draw(t, "schema"),
			Time:    now + rapid.SampledFrom([]int64{-1_000_000, -1, 0, 1, 60_000, 60_001, 1 << 50}).Draw(t, "age"),
			Summary: rapid.SampledFrom([]map[string]string{{}, {"a": "b"}}).Draw(t, "summary"), Namespace: rapid.SliceOfN(rapid.SampledFrom([]string{"n", "m"}), 0, 2).Draw(t, "namespace"),
			Catalog: rapid.SampledFrom([]*string{nil, ptr("c")}).Draw(t, "catalog"), Reps: []repM{},
		}
		for range rapid.IntRange(0, 3).Draw(t, "representations") {
			if rapid.IntRange(0, 3).Draw(t, "sql?") == 0 {
				v.Reps = append(v.Reps, repM{Type: "ir", Plan: []int{rapid.IntRange(1, 2).Draw(t, "plan")}})
				continue
			}
			v.Reps = append(v.Reps, repM{
				Type: "sql", SQL: rapid.SampledFrom([]string{"select 1", "select 2"}).Draw(t, "sql"),
				Dialect: rapid.SampledFrom([]string{"spark", "Spark", "trino", "flink", "hive"}).Draw(t, "dialect"),
			})
		}
		return viewUpdateM{Action: action, Version: v}
	case "set-current-view-version":
		id := rapid.SampledFrom([]int{-1, -1, -1, -1, 99}).Draw(t, "current")
		if rapid.Bool().Draw(t, "known?") {
			id = rapid.SampledFrom(m.Versions).Draw(t, "version").ID
		}
		return viewUpdateM{Action: action, ID: &id}
	case "set-properties":
		property := rapid.SampledFrom([][2]string{
			{"replace.drop-dialect.allowed", "true"}, {"replace.drop-dialect.allowed", "true"}, {"replace.drop-dialect.allowed", "false"},
			{"version.history.num-entries", "1"}, {"version.history.num-entries", "2"}, {"version.history.num-entries", "3"}, {"version.history.num-entries", "0"},
			{"a", "b"}, {"a", "c"}, {"a", "d"}, {"a", "e"},
		}).Draw(t, "property")
		return viewUpdateM{Action: action, Updates: map[string]string{property[0]: property[1]}}
	case "remove-properties":
		return viewUpdateM{Action: action, Removals: rapid.SliceOfN(rapid.SampledFrom([]string{"replace.drop-dialect.allowed", "version.history.num-entries", "a", "a", "a", "b"}), 1, 2).Draw(t, "keys")}
	case "set-location":
		return viewUpdateM{Action: action, Location: rapid.SampledFrom([]string{"s3://a", "s3://b/"}).Draw(t, "location")}
	case "assign-uuid":
		return viewUpdateM{Action: action, UUID: rapid.SampledFrom([]string{m.UUID, m.UUID, m.UUID, m.UUID, m.UUID, transcriptUUID}).Draw(t, "uuid")}
	default:
		return viewUpdateM{Action: action, Format: ptr(rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 2, 0}).Draw(t, "version"))}
	}
}

func ptr[T any](v T) *T { return &v }

// randomViewCommits compares chains of random commits with the model: the same are
// refused, the others have the same result. It tells the outcome of each.
func randomViewCommits(start []byte, outcome func(string)) func(*rapid.T) {
	return func(t *rapid.T) {
		v, err := tablemeta.ParseView(slices.Clone(start))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 12).Draw(t, "commits") {
			now := transcriptNow + int64(rapid.IntRange(-200_000, 200_000).Draw(t, "now"))
			want := decodeViewModel(t, v.JSON())
			drawn := []viewUpdateM{}
			for range rapid.IntRange(1, 5).Draw(t, "updates") {
				drawn = append(drawn, drawViewUpdate(t, want, now))
			}
			text, err := json.Marshal(drawn)
			if err != nil {
				t.Fatal(err)
			}
			var updates []tablemeta.ViewUpdate
			if err := rawjson.Unmarshal(text, &updates); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			next, changed, err := tablemeta.CommitView(tablemeta.ViewChange{Base: v, Updates: updates, Now: time.UnixMilli(now)})
			wantChanged, ok := want.commit(drawn, now)
			if got := kindOf(err); ok != (got == "") || !ok && got != refused || changed != wantChanged {
				t.Fatalf("commit: %q (%v), changed %v; model: taken %v, changed %v\nbase    %s\nupdates %s", got, err, changed, ok, wantChanged, v.JSON(), text)
			}
			switch {
			case !ok:
				outcome(refused)
				continue
			case !changed:
				outcome("unchanged")
				continue
			}
			outcome("changed")
			if diff := cmp.Diff(want, decodeViewModel(t, next.JSON())); diff != "" {
				t.Fatalf("(-model +commit):\n%s\nbase    %s\nupdates %s", diff, v.JSON(), text)
			}
			if value, _ := rawjson.Lookup(next.JSON(), "x-unknown"); string(value) != `{"keep":1.50}` {
				t.Fatalf("x-unknown is %s", value)
			}
			checkView(t, next)
			if decodeViewModel(t, v.JSON()).Versions[0].ID < want.Versions[0].ID {
				outcome("expired")
			}
			v = next
		}
	}
}

func modelView(t testing.TB) []byte {
	return []byte(strings.Replace(string(viewSamples(t)["java"]), `"location"`, `"x-unknown":{"keep":1.50},"properties":{"replace.drop-dialect.allowed":"true","version.history.num-entries":"3"},"location"`, 1))
}

func TestRandomViewCommits(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, randomViewCommits(modelView(t), func(outcome string) { outcomes[outcome]++ }))
	t.Logf("outcomes: %v", outcomes)
	for _, outcome := range []string{"changed", "unchanged", refused, "expired"} {
		if outcomes[outcome] == 0 {
			t.Errorf("no commit was %s", outcome)
		}
	}
}

// FuzzViewCommits is [TestRandomViewCommits] with the fuzzer in place of chance.
func FuzzViewCommits(f *testing.F) {
	addChances(f)
	f.Fuzz(rapid.MakeFuzz(randomViewCommits(modelView(f), func(string) {})))
}
