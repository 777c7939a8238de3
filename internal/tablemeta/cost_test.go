package tablemeta_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// The tests in this file are about requests and files that are small for what they
// ask for.

// repeat is a JSON array of n elements.
func repeat(n int, element func(i int) string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = element(i)
	}
	return "[" + strings.Join(elements, ",") + "]"
}

// allocated is how many bytes f allocates, and what runs beside it.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestExpire: Java sends three updates for each snapshot that it expires, of a table
// with statistics. However many they are, they are one step and one pass.
func TestExpire(t *testing.T) {
	const expired, kept = 5001, 3
	base := parseText(t, string(history(expired+kept)))
	if !strings.Contains(string(base.JSON()), `"statistics":[]`) {
		t.Fatal("the history has statistics")
	}
	statistics := func(element string) string {
		return repeat(expired+kept, func(i int) string { return fmt.Sprintf(element, snapshotID(i)) })
	}
	text := strings.Replace(string(base.JSON()), `"statistics":[],"partition-statistics":[]`,
		`"statistics":`+statistics(`{"snapshot-id":%d,"statistics-path":"s3://b/x","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]}`)+
			`,"partition-statistics":`+statistics(`{"snapshot-id":%d,"statistics-path":"s3://b/x","file-size-in-bytes":1}`), 1)
	m, err := commit(t, parseText(t, text), repeat(expired, func(i int) string {
		return fmt.Sprintf(`{"action":"remove-snapshots","snapshot-ids":[%[1]d]},{"action":"remove-statistics","snapshot-id":%[1]d},`+
			`{"action":"remove-partition-statistics","snapshot-id":%[1]d}`, snapshotID(i))
	}))
	if err != nil {
		t.Fatal(err)
	}
	checkRereads(t, m)
	for _, list := range []string{"snapshots", "statistics", "partition-statistics", "snapshot-log"} {
		value, _ := rawjson.Lookup(m.JSON(), list)
		got := 0
		for range rawjson.Elements(value) {
			got++
		}
		if got != kept {
			t.Errorf("%d %s are left, want %d", got, list, kept)
		}
	}
}

// TestUpdatesAreLinear: what a commit allocates grows with the number of its updates
// and with what the table has, not with their product, as it would if each update
// read again what is there.
func TestUpdatesAreLinear(t *testing.T) {
	spec := func(i int) string {
		return fmt.Sprintf(`{"action":"add-spec","spec":{"fields":[{"name":"p%d","transform":"bucket[%d]","source-id":1}]}}`, i, i+1)
	}
	order := func(i int) string {
		return fmt.Sprintf(`{"action":"add-sort-order","sort-order":{"fields":[{"transform":"bucket[%d]","source-id":1,"direction":"asc","null-order":"nulls-first"}]}}`, i+1)
	}
	named := func(i int) string {
		return fmt.Sprintf(`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"a%d","required":false,"type":"int"}]}}`, i)
	}
	const other = `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"ts","required":false,"type":"timestamp"}]}}`
	current := func(i int) string {
		return spec(i) + `,` + other + fmt.Sprintf(`,{"action":"set-current-schema","schema-id":%d}`, (i+1)%2)
	}
	for name, update := range map[string]func(i int) string{
		"specs": spec, "sort orders": order, "schemas": named, "current schemas of many specs": current,
	} {
		t.Run(name, func(t *testing.T) {
			allocations := func(n int) float64 {
				base, err := commit(t, parseText(t, string(history(1))), repeat(n, update))
				if err != nil {
					t.Fatal(err)
				}
				updates := decodeUpdates(t, repeat(n, func(i int) string { return update(n + i) }))
				return testing.AllocsPerRun(1, func() {
					if _, _, err := tablemeta.Commit(tablemeta.Change{Base: base, Updates: updates, Now: time.UnixMilli(transcriptNow)}); err != nil {
						t.Fatal(err)
					}
				})
			}
			// Four times as much: the product would be 16 times as much.
			if few, many := allocations(100), allocations(400); many > 6*few {
				t.Errorf("%v allocations for 100 updates, %v for 400", few, many)
			}
		})
	}
}

// TestIndexesAreKept: an index of a long list is made once in a commit.
func TestIndexesAreKept(t *testing.T) {
	const pairs = 500
	text := string(history(2000))
	text = strings.Replace(text, `"properties":{`, `"properties":{`+strings.Trim(repeat(2000, func(i int) string { return fmt.Sprintf(`"k%d":"v"`, i) }), "[]")+`,`, 1)
	base := parseText(t, text)
	for name, updates := range map[string]string{
		"properties": repeat(pairs, func(i int) string {
			return fmt.Sprintf(`{"action":"set-properties","updates":{"k%d":"w"}},{"action":"set-properties","updates":{"new%d":"w"}}`, i, i)
		}),
		"snapshots": repeat(pairs, func(i int) string {
			return fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"sequence-number":%d,"snapshot-id":%d,"timestamp-ms":1,"manifest-list":"x"}},`+
				`{"action":"remove-snapshots","snapshot-ids":[%d]}`, 2001+i, 1+i, snapshotID(i))
		}),
	} {
		decoded := decodeUpdates(t, updates)
		got := allocated(func() {
			if _, _, err := tablemeta.Commit(tablemeta.Change{Base: base, Updates: decoded, Now: time.UnixMilli(transcriptNow + 10_000_000)}); err != nil {
				t.Fatal(err)
			}
		})
		// An index for each pair would be 20 MB and more.
		if got > 10<<20 {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
	}
}

// TestParseUnknownArray: an array that nobody reads costs no memory. Compressed, a
// file of 100 KB holds one of many millions of elements.
func TestParseUnknownArray(t *testing.T) {
	text := []byte(`{"x":[` + strings.Repeat("0,", 4<<20) + `0],` + string(history(1)[1:]))
	got := allocated(func() {
		if _, err := tablemeta.Parse(text); err != nil {
			t.Fatal(err)
		}
	})
	if got > uint64(len(text)) {
		t.Errorf("%d bytes allocated for a document of %d", got, len(text))
	}
}

// TestStoresWhatReadersTake: what a JSON reader of usual limits refuses, Java's among
// them, does not become part of a table's metadata.
func TestStoresWhatReadersTake(t *testing.T) {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for want, text := range map[string]string{
		"update: the depth of nesting":     `{"action":"set-location","location":"s3://b/t","x":` + deep + `}`,
		"update: the length of a number":   `{"action":"set-location","location":"s3://b/t","x":` + strings.Repeat("9", 1001) + `}`,
		"update: the length of a name":     `{"action":"set-properties","updates":{"` + strings.Repeat("k", 50_001) + `":"v"}}`,
		"update: the length of a string":   `{"action":"set-location","location":"` + strings.Repeat("s", 20_000_001) + `"}`,
		"requirement: the length of a num": `{"type":"assert-create","x":-` + strings.Repeat("9", 1000) + `}`,
	} {
		var err error
		if strings.HasPrefix(want, "update") {
			err = new(tablemeta.Update).UnmarshalJSON([]byte(text))
		} else {
			err = new(tablemeta.Requirement).UnmarshalJSON([]byte(text))
		}
		var invalid *tablemeta.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s...: got %v, want *InvalidError with %q", text, err, want)
		}
	}
}

// TestMessagesAreBrief: messages repeat little of what they refuse.
func TestMessagesAreBrief(t *testing.T) {
	var reqs []tablemeta.Requirement
	if err := rawjson.Unmarshal([]byte(repeat(5000, func(i int) string {
		if i == 0 {
			return `{"type":"assert-create"}`
		}
		return `{"type":"assert-default-spec-id","default-spec-id":0}`
	})), &reqs); err != nil {
		t.Fatal(err)
	}
	base := parseText(t, string(history(1)))
	_, longName := commit(t, base, `[{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"`+strings.Repeat("x", 1<<20)+`","required":false,"type":"variant"}]}}]`)
	_, manyNames := commit(t, base, `[{"action":"add-schema","schema":{"type":"struct","fields":`+repeat(5000, func(i int) string {
		return fmt.Sprintf(`{"id":%d,"name":"c%d","required":false,"type":"variant"}`, i+1, i)
	})+`}}]`)
	for name, err := range map[string]error{"requirements": tablemeta.Check(nil, reqs), "long name": longName, "many names": manyNames} {
		if err == nil || len(err.Error()) > 4000 {
			t.Errorf("%s: message %.200v...", name, err)
		}
	}
}
