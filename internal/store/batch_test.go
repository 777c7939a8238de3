package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

var (
	parent = key.ForNamespace("w", []string{"a"})
	table  = key.ForTableName("w", []string{"a"}, "t")
	tables = key.TableNamesIn("w", []string{"a"})
)

// valid has each kind of condition, in each shape that is allowed.
func valid() store.Batch {
	return store.Batch{
		ID: "b",
		Conds: []store.Cond{
			store.Is(parent, "v"),
			store.Live(parent, "p"),
			store.Empty(parent, tables),
			store.Is(table, store.Absent),
			store.Is(key.ForPointer("w", "read only"), "v"),
			store.Live(key.ForWarehouse("w"), "w"),
		},
		Writes: []store.Write{
			{Key: parent, Delete: true},
			{Key: table, ID: "t"},
		},
	}
}

// Validate takes the shapes that every store can apply atomically, and refuses
// each departure from them with a reason.
func TestValidate(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatalf("a valid batch: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*store.Batch)
		reason string
	}{
		"no id":     {func(b *store.Batch) { b.ID = "" }, "no id"},
		"no writes": {func(b *store.Batch) { b.Writes = nil }, "no writes"},
		"a key written twice": {
			func(b *store.Batch) { b.Writes = append(b.Writes, store.Write{Key: table, ID: "u"}) },
			"table-name w/a//t is written twice",
		},
		"written and deleted": {
			func(b *store.Batch) { b.Writes = append(b.Writes, store.Write{Key: table, Delete: true}) },
			"is written twice",
		},
		"a delete with a value": {
			func(b *store.Batch) { b.Writes[0].Value = []byte{} },
			"deleting namespace w//a carries a value",
		},
		"a delete with an incarnation": {
			func(b *store.Batch) { b.Writes[0].ID = "p" },
			"carries a value",
		},
		"a write without an incarnation": {
			func(b *store.Batch) { b.Writes[1].ID = "" },
			"table-name w/a//t is written without an incarnation",
		},
		"a blind write": {
			func(b *store.Batch) { b.Conds = b.Conds[:3] },
			"table-name w/a//t is written without a condition on its version",
		},
		"a write under Live alone": {
			func(b *store.Batch) { b.Conds[3] = store.Live(table, "t") },
			"without a condition on its version",
		},
		"two versions of one key": {
			func(b *store.Batch) { b.Conds = append(b.Conds, store.Is(table, "v")) },
			"table-name w/a//t has two versions",
		},
		"one version twice": {
			func(b *store.Batch) { b.Conds = append(b.Conds, b.Conds[0]) },
			"has two versions",
		},
		"absent, but not written": {
			func(b *store.Batch) { b.Conds[4].Version = store.Absent },
			"must be absent but is not written",
		},
		"live without an incarnation": {
			func(b *store.Batch) { b.Conds[5].ID = "" },
			"live(warehouse //w) names no incarnation",
		},
		"empty without writing its guard": {
			func(b *store.Batch) { b.Conds[2].Key = key.ForWarehouse("w") },
			"without writing its guard warehouse //w",
		},
		"empty of a whole level": {
			func(b *store.Batch) { b.Conds[2].Prefix.Path = "" },
			"empty of a whole level",
		},
		"an unknown condition": {
			func(b *store.Batch) { b.Conds[1].Kind = "was" },
			`unknown condition "was"`,
		},
		"no kind of condition": {
			func(b *store.Batch) { b.Conds[1].Kind = "" },
			`unknown condition ""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := valid()
			c.change(&b)
			err := b.Validate()
			if !errors.Is(err, store.ErrInvalidBatch) {
				t.Fatalf("got %v, want ErrInvalidBatch", err)
			}
			if !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%q does not say %q", err, c.reason)
			}
		})
	}
}

// A batch is plain data: what is sent or logged reads back as the same batch.
func TestBatchEncodes(t *testing.T) {
	b := valid()
	b.Writes[1].Value = []byte("\x00\xff{}")
	b.Ops = []store.OpRecord{{ID: "o", Name: "drop"}}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var back store.Batch
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, back); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
}

// What people and transcripts read.
func TestText(t *testing.T) {
	for want, got := range map[string]string{
		"is(namespace w//a, v)":                              store.Is(parent, "v").String(),
		"is(table-name w/a//t, absent)":                      store.Is(table, store.Absent).String(),
		"live(namespace w//a, p)":                            store.Live(parent, "p").String(),
		"empty(table-name w/a//*) guarded by namespace w//a": store.Empty(parent, tables).String(),
		"was(namespace w//a)":                                store.Cond{Kind: "was", Key: parent}.String(),
		"delete namespace w//a":                              store.Write{Key: parent, Delete: true}.String(),
		"put table-name w/a//t id=t":                         store.Write{Key: table, ID: "t"}.String(),
		"applied":                                            store.Applied.String(),
		"not applied":                                        store.NotApplied.String(),
		"unknown":                                            store.Outcome(0).String(),
		"store: conflict: is(namespace w//a, v), live(namespace w//a, p)": (&store.ConflictError{Conds: valid().Conds[:2]}).Error(),
		"store: conflict: the batch was declared not applied":             (&store.ConflictError{}).Error(),
		"store: blocked by b": (&store.BlockedError{By: "b"}).Error(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
