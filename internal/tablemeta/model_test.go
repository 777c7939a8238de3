package tablemeta_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// The model is table metadata that is decoded as a whole and changed in the
// plainest way. It knows nothing of spans.
type model struct {
	Version   int               `json:"format-version"`
	Location  string            `json:"location"`
	LastSeq   int64             `json:"last-sequence-number"`
	Updated   int64             `json:"last-updated-ms"`
	Current   *int64            `json:"current-snapshot-id"`
	NextRow   int64             `json:"next-row-id"`
	Props     map[string]string `json:"properties"`
	Refs      map[string]refM   `json:"refs"`
	Snapshots []snapM           `json:"snapshots"`
	Log       []logM            `json:"snapshot-log"`
	Files     []fileM           `json:"metadata-log"`
	Stats     []statsM          `json:"statistics"`
	PartStats []statsM          `json:"partition-statistics"`
	Keys      []keyM            `json:"encryption-keys"`
}

type refM struct {
	ID     int64  `json:"snapshot-id"`
	Type   string `json:"type"`
	MaxAge *int64 `json:"max-ref-age-ms,omitempty"`
}

type snapM struct {
	ID       int64  `json:"snapshot-id"`
	Seq      int64  `json:"sequence-number"`
	Parent   *int64 `json:"parent-snapshot-id,omitempty"`
	Time     int64  `json:"timestamp-ms"`
	List     string `json:"manifest-list"`
	FirstRow *int64 `json:"first-row-id,omitempty"`
	Rows     *int64 `json:"added-rows,omitempty"`
}

type logM struct {
	Time int64 `json:"timestamp-ms"`
	ID   int64 `json:"snapshot-id"`
}

type fileM struct {
	Time int64  `json:"timestamp-ms"`
	File string `json:"metadata-file"`
}

type statsM struct {
	ID     int64  `json:"snapshot-id"`
	Path   string `json:"statistics-path"`
	Size   int64  `json:"file-size-in-bytes"`
	Footer int64  `json:"file-footer-size-in-bytes"`
	Blobs  []int  `json:"blob-metadata"`
}

type keyM struct {
	ID   string `json:"key-id"`
	Data string `json:"encrypted-key-metadata"`
}

// updateM is one update: the union of the fields of all of them.
type updateM struct {
	Action   string            `json:"action"`
	Version  int               `json:"format-version,omitempty"`
	Location string            `json:"location,omitempty"`
	Updates  map[string]string `json:"updates,omitempty"`
	Removals []string          `json:"removals,omitempty"`
	Snapshot *snapM            `json:"snapshot,omitempty"`
	IDs      []int64           `json:"snapshot-ids,omitempty"`
	Ref      string            `json:"ref-name,omitempty"`
	ID       int64             `json:"snapshot-id,omitempty"`
	Type     string            `json:"type,omitempty"`
	MaxAge   *int64            `json:"max-ref-age-ms,omitempty"`
	Stats    *statsM           `json:"statistics,omitempty"`
	Part     *statsM           `json:"partition-statistics,omitempty"`
	Key      *keyM             `json:"encryption-key,omitempty"`
	KeyID    string            `json:"key-id,omitempty"`
}

const (
	refused   = "invalid"
	overtaken = "stale"
)

func (m *model) has(id int64) bool {
	return slices.ContainsFunc(m.Snapshots, func(s snapM) bool { return s.ID == id })
}

func (m *model) current() int64 {
	if m.Current == nil {
		return -1
	}
	return *m.Current
}

// commit applies updates; why is empty if it succeeds.
func (m *model) commit(updates []updateM, file string, now int64) (changed bool, why string) {
	before, clock := m.Updated, now
	// now is when the changes happen: times do not run back.
	now = max(now, m.Updated)
	added := map[int64]int64{}
	var moved []int64
	removed := false
	for _, u := range updates {
		did := true
		switch u.Action {
		case "upgrade-format-version":
			if u.Version < m.Version || u.Version > 3 {
				return false, refused
			}
			did = u.Version != m.Version
			m.Version = u.Version
		case "set-location":
			did = u.Location != m.Location
			m.Location = u.Location
		case "set-properties":
			did = len(u.Updates) > 0
			maps.Copy(m.Props, u.Updates)
		case "remove-properties":
			did = false
			for _, key := range u.Removals {
				_, ok := m.Props[key]
				did = did || ok
				delete(m.Props, key)
			}
		case "add-snapshot":
			s := *u.Snapshot
			switch {
			case m.has(s.ID) || s.Time > clock+60_000:
				return false, refused
			case s.Seq < m.LastSeq || s.Seq == m.LastSeq && s.Parent != nil:
				return false, overtaken
			case m.Version == 3 && s.FirstRow == nil:
				return false, refused
			case m.Version == 3 && *s.FirstRow < m.NextRow:
				return false, overtaken
			case m.Version == 3:
				m.NextRow += *s.Rows
			}
			m.LastSeq = s.Seq
			m.Snapshots = append(m.Snapshots, s)
			added[s.ID] = s.Time
		case "remove-snapshots":
			n := len(m.Snapshots)
			gone := func(id int64) bool { return slices.Contains(u.IDs, id) && m.has(id) }
			for name, r := range m.Refs {
				if gone(r.ID) {
					delete(m.Refs, name)
				}
			}
			m.Stats = slices.DeleteFunc(m.Stats, func(s statsM) bool { return gone(s.ID) })
			m.PartStats = slices.DeleteFunc(m.PartStats, func(s statsM) bool { return gone(s.ID) })
			if gone(m.current()) {
				m.Current = nil
			}
			m.Snapshots = slices.DeleteFunc(m.Snapshots, func(s snapM) bool { return slices.Contains(u.IDs, s.ID) })
			did = len(m.Snapshots) < n
			removed = removed || did
		case "set-snapshot-ref":
			r := refM{u.ID, u.Type, u.MaxAge}
			if cmp.Equal(m.Refs[u.Ref], r) {
				did = false
				break
			}
			if !m.has(u.ID) || u.Ref == "main" && u.Type == "tag" {
				return false, refused
			}
			m.Refs[u.Ref] = r
			if u.Ref == "main" {
				at, isNew := added[u.ID]
				if isNew {
					moved = append(moved, u.ID)
				} else {
					at = now
				}
				if len(m.Log) > 0 {
					at = max(at, m.Log[len(m.Log)-1].Time)
				}
				now = max(now, at)
				m.Current = &u.ID
				m.Log = append(m.Log, logM{at, u.ID})
			}
		case "remove-snapshot-ref":
			_, did = m.Refs[u.Ref]
			delete(m.Refs, u.Ref)
			if u.Ref == "main" {
				m.Current = nil
			}
		case "set-statistics", "set-partition-statistics":
			list, s := &m.Stats, u.Stats
			if u.Part != nil {
				list, s = &m.PartStats, u.Part
			}
			if i := slices.IndexFunc(*list, func(o statsM) bool { return o.ID == s.ID }); i >= 0 {
				(*list)[i] = *s
			} else {
				*list = append(*list, *s)
			}
		case "remove-statistics", "remove-partition-statistics":
			list := &m.Stats
			if u.Action == "remove-partition-statistics" {
				list = &m.PartStats
			}
			n := len(*list)
			*list = slices.DeleteFunc(*list, func(o statsM) bool { return o.ID == u.ID })
			did = len(*list) < n
		case "add-encryption-key":
			did = !slices.ContainsFunc(m.Keys, func(k keyM) bool { return k.ID == u.Key.ID })
			if did {
				m.Keys = append(m.Keys, *u.Key)
			}
		case "remove-encryption-key":
			n := len(m.Keys)
			m.Keys = slices.DeleteFunc(m.Keys, func(k keyM) bool { return k.ID == u.KeyID })
			did = len(m.Keys) < n
		default:
			panic(u.Action)
		}
		changed = changed || did
	}
	if !changed {
		return false, ""
	}
	if len(moved) > 0 || removed {
		var log []logM
		for _, e := range m.Log {
			switch {
			case !m.has(e.ID) && removed:
				log = nil
			case !m.has(e.ID), slices.Contains(moved, e.ID) && e.ID != m.current():
			default:
				log = append(log, e)
			}
		}
		m.Log = log
	}
	m.Files = append(m.Files, fileM{before, file})
	const keep = 100
	m.Files = m.Files[max(0, len(m.Files)-keep):]
	m.Updated = max(before, clock)
	if len(m.Log) > 0 {
		m.Updated = max(m.Updated, m.Log[len(m.Log)-1].Time)
	}
	return true, ""
}

// normal makes equal what means the same.
func (m *model) normal() *model {
	if m.Current != nil && *m.Current == -1 {
		m.Current = nil
	}
	return m
}

func decodeModel(t interface{ Fatal(...any) }, doc []byte) *model {
	m := &model{}
	if err := json.Unmarshal(doc, m); err != nil {
		t.Fatal(err)
	}
	if m.Props == nil {
		m.Props = map[string]string{}
	}
	if m.Refs == nil {
		m.Refs = map[string]refM{}
	}
	return m.normal()
}

func drawUpdate(t *rapid.T, m *model, now int64) updateM {
	id := rapid.Int64Range(1, 7).Draw(t, "id")
	if n := len(m.Snapshots); n > 0 && rapid.IntRange(0, 7).Draw(t, "known?") > 0 {
		id = m.Snapshots[rapid.IntRange(0, n-1).Draw(t, "which")].ID
	}
	optional := func(name string) *int64 {
		return rapid.Ptr(rapid.Int64Range(1, 3), true).Draw(t, name)
	}
	name := rapid.SampledFrom([]string{"main", "main", "main", "a", "b"}).Draw(t, "ref")
	switch action := rapid.SampledFrom([]string{
		"add-snapshot", "add-snapshot", "add-snapshot", "set-snapshot-ref", "set-snapshot-ref", "set-snapshot-ref",
		"remove-snapshot-ref", "remove-snapshots", "set-properties", "remove-properties", "set-location",
		"set-statistics", "remove-statistics", "set-partition-statistics", "remove-partition-statistics",
		"add-encryption-key", "remove-encryption-key", "upgrade-format-version",
	}).Draw(t, "action"); action {
	case "add-snapshot":
		s := &snapM{
			ID: rapid.Int64Range(1, 30).Draw(t, "new id"), Seq: max(0, m.LastSeq+rapid.SampledFrom([]int64{-1, 0, 1, 1, 2, 3, 4, 5, 6}).Draw(t, "sequence")), Parent: optional("parent"),
			Time: now + rapid.SampledFrom([]int64{-1_000_000, -30_000, -5, -1, 0, 1, 59_000, 60_000, 60_000, 60_001}).Draw(t, "age"),
			List: fmt.Sprintf("s3://%d", rapid.IntRange(0, 9).Draw(t, "list")),
		}
		if rapid.IntRange(0, 9).Draw(t, "rows?") > 0 {
			first, rows := m.NextRow+rapid.SampledFrom([]int64{-1, 0, 3, 10, 20}).Draw(t, "first row"), rapid.Int64Range(0, 9).Draw(t, "rows")
			if first >= 0 {
				s.FirstRow, s.Rows = &first, &rows
			}
		}
		return updateM{Action: action, Snapshot: s}
	case "set-snapshot-ref":
		kind := rapid.SampledFrom([]string{"branch", "branch", "branch", "tag"}).Draw(t, "kind")
		return updateM{Action: action, Ref: name, ID: id, Type: kind, MaxAge: optional("age of ref")}
	case "remove-snapshot-ref":
		return updateM{Action: action, Ref: name}
	case "remove-snapshots":
		return updateM{Action: action, IDs: append(rapid.SliceOfN(rapid.Int64Range(1, 7), 0, 2).Draw(t, "ids"), id)}
	case "set-properties":
		return updateM{Action: action, Updates: rapid.MapOfN(rapid.StringN(0, 2, -1), rapid.StringN(0, 3, -1), 1, 3).Draw(t, "properties")}
	case "remove-properties":
		return updateM{Action: action, Removals: rapid.SliceOfN(rapid.StringN(0, 1, -1), 1, 3).Draw(t, "keys")}
	case "set-location":
		return updateM{Action: action, Location: rapid.SampledFrom([]string{"s3://a", "s3://b"}).Draw(t, "location")}
	case "set-statistics":
		return updateM{Action: action, Stats: &statsM{ID: id, Path: "p", Size: rapid.Int64().Draw(t, "size"), Blobs: []int{}}}
	case "set-partition-statistics":
		return updateM{Action: action, Part: &statsM{ID: id, Path: "p", Size: rapid.Int64().Draw(t, "size")}}
	case "remove-statistics", "remove-partition-statistics":
		return updateM{Action: action, ID: id}
	case "add-encryption-key":
		return updateM{Action: action, Key: &keyM{fmt.Sprint(id), rapid.SampledFrom([]string{"YQ==", "Yg=="}).Draw(t, "key")}}
	case "remove-encryption-key":
		return updateM{Action: action, KeyID: fmt.Sprint(id)}
	default:
		return updateM{Action: action, Version: rapid.SampledFrom([]int{m.Version, m.Version, m.Version, m.Version, 3, 3, 4, 1}).Draw(t, "version")}
	}
}

// randomCommits compares chains of random commits with the model: the same are
// refused for the same kind of reason, the others have the same result. It tells the
// outcome of each.
func randomCommits(start []byte, outcome func(string)) func(*rapid.T) {
	return func(t *rapid.T) {
		m, err := tablemeta.Parse(slices.Clone(start))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rapid.IntRange(1, 12).Draw(t, "commits") {
			now := transcriptNow + int64(rapid.IntRange(-200_000, 200_000).Draw(t, "now"))
			want := decodeModel(t, m.JSON())
			drawn := []updateM{}
			for range rapid.IntRange(1, 6).Draw(t, "updates") {
				drawn = append(drawn, drawUpdate(t, want, now))
			}
			text, err := json.Marshal(drawn)
			if err != nil {
				t.Fatal(err)
			}
			var updates []tablemeta.Update
			if err := rawjson.Unmarshal(text, &updates); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			file := fmt.Sprintf("s3://m/%05d-u.metadata.json", i)
			next, changed, err := tablemeta.Commit(tablemeta.Change{Base: m, BaseFile: file, Updates: updates, Now: time.UnixMilli(now)})
			wantChanged, why := want.commit(drawn, file, now)
			if got := kindOf(err); got != why || changed != wantChanged {
				t.Fatalf("commit: %q (%v), changed %v; model: %q, changed %v\nbase    %s\nupdates %s", got, err, changed, why, wantChanged, m.JSON(), text)
			}
			if why != "" {
				outcome(why)
				continue
			}
			if !changed {
				outcome("unchanged")
				continue
			}
			outcome("changed")
			if diff := cmp.Diff(want.normal(), decodeModel(t, next.JSON()), cmpEmpty); diff != "" {
				t.Fatalf("(-model +commit):\n%s\nbase    %s\nupdates %s", diff, m.JSON(), text)
			}
			if err := tablemeta.Rereads(next); err != nil {
				t.Fatalf("%v\nbase    %s\nupdates %s", err, m.JSON(), text)
			}
			m = next
		}
	}
}

func TestRandomCommits(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, randomCommits(samples(t)["v2-empty"], func(outcome string) { outcomes[outcome]++ }))
	t.Logf("outcomes: %v", outcomes)
	for _, outcome := range []string{"changed", "unchanged", refused, overtaken} {
		if outcomes[outcome] == 0 {
			t.Errorf("no commit was %s", outcome)
		}
	}
}

// FuzzCommits is [TestRandomCommits] with the fuzzer in place of chance.
func FuzzCommits(f *testing.F) {
	addChances(f)
	f.Fuzz(rapid.MakeFuzz(randomCommits(samples(f)["v2-empty"], func(string) {})))
}

// cmpEmpty takes no list and an empty one for the same.
var cmpEmpty = cmp.FilterValues(func(a, b any) bool {
	return isEmpty(a) && isEmpty(b)
}, cmp.Ignore())

func isEmpty(v any) bool {
	switch v := v.(type) {
	case []snapM:
		return len(v) == 0
	case []logM:
		return len(v) == 0
	case []fileM:
		return len(v) == 0
	case []statsM:
		return len(v) == 0
	case []keyM:
		return len(v) == 0
	case []int:
		return len(v) == 0
	default:
		return false
	}
}

func kindOf(err error) string {
	var (
		invalid *tablemeta.InvalidError
		stale   *tablemeta.StaleError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &invalid):
		return refused
	case errors.As(err, &stale):
		return overtaken
	default:
		return fmt.Sprintf("unexpected %T", err)
	}
}
