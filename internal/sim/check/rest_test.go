package check_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/sim/check"
	"github.com/landfast/landfast/internal/sim/history"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

const idSchema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`

func ident(dotted string) catalog.Ident {
	levels := strings.Split(dotted, ".")
	return catalog.Ident{Namespace: levels[:len(levels)-1], Name: levels[len(levels)-1]}
}

// remains is a real catalog, at rest.
type remains struct {
	check.Rest
	files []string
}

// newRemains has two namespaces, one in the other, two tables, one of which was moved, a view,
// a table that is being purged, and a metadata file that fell off a log.
func newRemains(t *testing.T) *remains {
	t.Helper()
	db, files := mem.New(), &kerneltest.Files{}
	run := kernel.New(kernel.Options{Store: db, Files: files, Queue: local.New(local.Options{})})
	root := blob.Root{URI: "file:///w/main", Dir: "/w/main"}
	table := func(dotted string) *catalog.CreateTable {
		return &catalog.CreateTable{Request: catalog.CreateTableRequest{Warehouse: "main", Table: ident(dotted), Schema: []byte(idSchema)}}
	}
	commit := func(dotted, updates string) *catalog.CommitTable {
		return &catalog.CommitTable{Request: catalog.CommitTableRequest{
			Warehouse: "main", Table: ident(dotted), Requirements: []byte(`[]`), Updates: []byte(updates),
		}}
	}
	const forgetful = `[{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"1","write.metadata.delete-after-commit.enabled":"true"}}]`
	for _, op := range []kernel.Operation{
		&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "m", Root: root}},
		&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "main", Levels: []string{"a"}}},
		&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "main", Levels: []string{"a", "c"}}},
		table("a.t"), table("a.c.s"), table("a.gone"),
		commit("a.t", forgetful), commit("a.t", forgetful), commit("a.t", forgetful),
		commit("a.c.s", `[{"action":"set-location","location":"file:///w/main/moved"}]`),
		&catalog.CreateView{Request: catalog.CreateViewRequest{
			Warehouse: "main", View: ident("a.v"), Schema: []byte(idSchema),
			Version: []byte(`{"version-id":1,"timestamp-ms":1700000000000,"schema-id":0,"summary":{},"default-namespace":["a"],` +
				`"representations":[{"type":"sql","sql":"select 1 id","dialect":"spark"}]}`),
		}},
		&catalog.DropTable{Request: catalog.DropTableRequest{Warehouse: "main", Table: ident("a.gone"), Purge: true}},
	} {
		if err := run.Do(t.Context(), op); err != nil {
			t.Fatalf("%s: %v", op.Plan().Op, err)
		}
	}
	r := &remains{files: files.Locations()}
	r.Records = db.Snapshot()
	r.Exists = func(location string) bool { return slices.Contains(r.files, location) }
	return r
}

// find is the first record of a level whose path ends so.
func (r *remains) find(level key.Level, ends string) *store.Record {
	i := slices.IndexFunc(r.Records, func(c store.Record) bool { return c.Key.Level == level && strings.HasSuffix(c.Key.Path, ends) })
	return &r.Records[i]
}

// pointer is that of a table or view.
func (r *remains) pointer(name string) *store.Record {
	return r.find(key.Pointer, r.find(key.TableName, "//"+name).ID)
}

func (r *remains) lose(c *store.Record) {
	k := c.Key
	r.Records = slices.DeleteFunc(r.Records, func(c store.Record) bool { return c.Key == k })
}

// change sets members of a record's value.
func change(t *testing.T, c *store.Record, members ...any) {
	t.Helper()
	v := map[string]any{}
	if err := json.Unmarshal(c.Value, &v); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(members); i += 2 {
		v[members[i].(string)] = members[i+1]
	}
	c.Value, _ = json.Marshal(v)
}

// text is a member of a record's value.
func text(c *store.Record, member string) string {
	v := map[string]any{}
	_ = json.Unmarshal(c.Value, &v)
	s, _ := v[member].(string)
	return s
}

// list is the list of dying files with a purged table, or the other.
func (r *remains) list(purged bool) *store.Record {
	i := slices.IndexFunc(r.Records, func(c store.Record) bool {
		return c.Key.Level == key.Dying && strings.HasPrefix(c.Key.Path, "main") && (text(&c, "metadata") != "") == purged
	})
	return &r.Records[i]
}

func TestAtRest(t *testing.T) {
	for _, test := range []struct {
		name    string
		corrupt func(*testing.T, *remains)
		want    string
	}{
		{"nothing", func(*testing.T, *remains) {}, ""},
		{"another warehouse in which locations may meet", func(t *testing.T, r *remains) {
			w := *r.find(key.Warehouse, "main")
			change(t, &w, "overlap-allowed", true)
			*r.find(key.Warehouse, "main") = w
			for _, name := range []string{"t", "s"} {
				change(t, r.pointer(name), "location", "file:///w/main/shared", "claim", "", "kept", nil)
			}
			r.Records = slices.DeleteFunc(r.Records, func(c store.Record) bool {
				return c.Key.Level == key.Location && (c.ID == r.pointer("t").ID || c.ID == r.pointer("s").ID)
			})
		}, ""},

		{"something left behind", func(_ *testing.T, r *remains) { r.Leftovers = []string{"intent of batch b"} }, "left behind: intent of batch b"},
		{"something dying is left", func(_ *testing.T, r *remains) { r.Reclaimed = true }, "is left"},
		{"a record twice", func(_ *testing.T, r *remains) { r.Records = append(r.Records, r.Records[3]) }, "is there twice"},
		{"a damaged record", func(_ *testing.T, r *remains) { r.pointer("t").Value = []byte("{") }, "is damaged"},
		{"a pointer without a namespace", func(t *testing.T, r *remains) { change(t, r.pointer("t"), "ident", nil) }, "it names no namespace"},
		{"a record without an incarnation", func(_ *testing.T, r *remains) { r.find(key.Namespace, "//a").ID = "" }, "no incarnation"},
		{"a name without a pointer", func(_ *testing.T, r *remains) { r.lose(r.pointer("t")) }, "has no pointer"},
		{"a pointer without a name", func(_ *testing.T, r *remains) { r.lose(r.find(key.TableName, "//t")) }, "does not have the name"},
		{"a name that leads to another's pointer", func(_ *testing.T, r *remains) { r.find(key.TableName, "//t").ID = r.pointer("s").ID }, "bears another name"},
		{"a name of the other kind", func(t *testing.T, r *remains) { change(t, r.find(key.TableName, "//t"), "kind", "view") }, "leads to a table"},
		{"a warehouse that is gone", func(_ *testing.T, r *remains) { r.lose(r.find(key.Warehouse, "main")) }, "in a warehouse that is gone"},
		{"another warehouse of that name", func(_ *testing.T, r *remains) { r.find(key.Warehouse, "main").ID = "other" }, "made in another warehouse"},
		{"a namespace that is gone", func(_ *testing.T, r *remains) { r.lose(r.find(key.Namespace, "//c")) }, "in a namespace that is gone"},
		{"a namespace without a parent", func(_ *testing.T, r *remains) { r.lose(r.find(key.Namespace, "//a")) }, "has no parent"},
		{"a namespace that was made anew", func(_ *testing.T, r *remains) { r.find(key.Namespace, "//a").ID = "other" }, "in a namespace that is gone"},
		{"a file that is gone", func(_ *testing.T, r *remains) {
			file := text(r.pointer("t"), "metadata-location")
			r.files = slices.DeleteFunc(r.files, func(f string) bool { return f == file })
		}, "names a file that is gone"},
		{"a file that is dying", func(t *testing.T, r *remains) {
			change(t, r.pointer("t"), "metadata-location", text(r.list(true), "metadata"))
		}, "names a file that is dying"},
		{"a marked file", func(t *testing.T, r *remains) {
			change(t, r.list(false), "files", []string{text(r.pointer("t"), "metadata-location")})
		}, "names a file that is dying"},
		{"a location that is not claimed", func(t *testing.T, r *remains) { change(t, r.pointer("t"), "claim", "") }, "claims no location"},
		{"another location than is claimed", func(t *testing.T, r *remains) { change(t, r.pointer("t"), "location", "file:///w/main/x") }, "but claims"},
		{"a location outside", func(t *testing.T, r *remains) { change(t, r.pointer("t"), "location", "file:///x") }, "it lies below none"},
		{"a claim that is gone", func(_ *testing.T, r *remains) { r.lose(r.find(key.Location, "moved/")) }, "which it does not claim"},
		{"a kept claim that is gone", func(_ *testing.T, r *remains) {
			id := r.pointer("s").ID
			r.Records = slices.DeleteFunc(r.Records, func(c store.Record) bool {
				return c.Key.Level == key.Location && c.ID == id && !strings.Contains(c.Key.Path, "moved")
			})
		}, "which it does not claim"},
		{"a claim of nobody", func(t *testing.T, r *remains) {
			change(t, r.pointer("s"), "claim", text(r.pointer("s"), "claim"), "kept", nil)
		}, "is claimed by nobody"},
		{"a claim of another", func(t *testing.T, r *remains) {
			change(t, r.find(key.Location, "moved/"), "pointer", r.pointer("t").ID)
		}, "is claimed by"},
		{"locations that meet", func(t *testing.T, r *remains) {
			change(t, r.pointer("t"), "location", "file:///w/main/moved/below", "claim", "file:///w/main/moved/below")
		}, "locations meet"},
		{"equal locations", func(t *testing.T, r *remains) {
			change(t, r.pointer("t"), "location", "file:///w/main/moved", "claim", "file:///w/main/moved")
		}, "locations meet"},
		{"a mark without its list", func(_ *testing.T, r *remains) { r.lose(r.list(false)) }, "for a list that is gone"},
		{"a list without its mark", func(_ *testing.T, r *remains) { r.lose(r.find(key.Dying, ".metadata.json")) }, "does not mark"},
		{"a list without its claim", func(_ *testing.T, r *remains) {
			id := r.list(true).ID
			r.Records = slices.DeleteFunc(r.Records, func(c store.Record) bool { return c.Key.Level == key.Location && c.ID == id })
		}, "does not claim"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRemains(t)
			test.corrupt(t, r)
			oneProblem(t, check.AtRest(r.Rest), test.want)
		})
	}
}

// Pointers are found in the records, and the files that are dying.
func TestPointers(t *testing.T) {
	r := newRemains(t)
	pointers, dying := check.Pointers(r.Records)
	slices.SortFunc(pointers, func(a, b check.Pointer) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	want := []check.Pointer{
		{Name: history.Name{Warehouse: "main", Namespace: "a.c", Name: "s"}, File: text(r.pointer("s"), "metadata-location")},
		{Name: history.Name{Warehouse: "main", Namespace: "a", Name: "t"}, File: text(r.pointer("t"), "metadata-location")},
		{Name: history.Name{Warehouse: "main", Namespace: "a", Name: "v"}, File: text(r.pointer("v"), "metadata-location"), View: true},
	}
	if diff := cmp.Diff(want, pointers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(dying) < 2 || !slices.Contains(dying, text(r.list(true), "metadata")) {
		t.Errorf("dying: %q", dying)
	}
}
