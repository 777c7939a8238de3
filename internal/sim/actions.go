package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/sim/history"
)

// action is one kind of step.
type action struct {
	name string
	do   func(c *client, s *stream)
}

var actions = []action{
	{"blind commit", (*client).commitBlindly},
	{"append", (*client).appendSnapshot},
	{"create", (*client).createTable},
	{"staged create", (*client).createStaged},
	{"rename", (*client).renameTable},
	{"drop", func(c *client, s *stream) { c.dropTable(s, false) }},
	{"purge", func(c *client, s *stream) { c.dropTable(s, true) }},
	{"register", (*client).registerTable},
	{"unregister", (*client).unregisterTable},
	{"transaction", (*client).transact},
	{"load", func(c *client, s *stream) { c.loadTable(c.table(s)) }},
	{"exists", (*client).tableExists},
	{"list tables", (*client).listTables},
	{"list namespaces", (*client).listNamespaces},
	{"create namespace", (*client).createNamespace},
	{"set namespace", (*client).setNamespace},
	{"load namespace", (*client).loadNamespace},
	{"drop namespace", (*client).dropNamespace},
	{"create warehouse", (*client).createWarehouse},
	{"drop warehouse", (*client).dropWarehouse},
	{"create view", (*client).createView},
	{"replace view", (*client).replaceView},
	{"load view", (*client).loadView},
	{"rename view", (*client).renameView},
	{"drop view", (*client).dropView},
	{"move", (*client).moveTable},
	{"trim log", (*client).trimLog},
	{"dig up", (*client).digUp},
}

// mix is what the clients of a seed do most.
type mixture struct {
	name   string
	factor map[string]int // of an action's weight; 1 for others
}

// usual is how often a thing is done where nothing else is said.
var usual = map[string]int{
	"blind commit": 8, "append": 8, "create": 7, "staged create": 5, "rename": 6, "drop": 4, "purge": 4, "register": 5,
	"unregister": 3, "transaction": 8, "load": 8, "exists": 2, "list tables": 3, "list namespaces": 2, "create namespace": 4,
	"set namespace": 2, "load namespace": 2, "drop namespace": 4, "create warehouse": 2, "drop warehouse": 2,
	"create view": 3, "replace view": 3, "load view": 3, "rename view": 2, "drop view": 2, "move": 2, "trim log": 1, "dig up": 1,
}

// mixes end with that of the crowd, which is drawn more often than the others.
var mixes = []mixture{
	{"everything", nil},
	{"commits", map[string]int{"blind commit": 4, "append": 5, "load": 3, "transaction": 2}},
	{"transactions", map[string]int{"transaction": 7, "load": 4, "append": 2}},
	{"names", map[string]int{"create": 3, "rename": 6, "drop": 3, "load": 2, "transaction": 2}},
	{"namespaces", map[string]int{"create namespace": 6, "drop namespace": 6, "create": 3, "drop": 4, "create warehouse": 4, "drop warehouse": 4, "rename": 2}},
	{"files", map[string]int{"purge": 5, "register": 6, "unregister": 4, "staged create": 3, "create": 2, "move": 3, "trim log": 4, "dig up": 6}},
	{"views", map[string]int{"create view": 5, "replace view": 5, "load view": 4, "rename view": 4, "drop view": 3}},
	{crowded, map[string]int{
		"blind commit": 15, "append": 10, "load": 2, "transaction": 2, "create": 2, "drop": 0, "unregister": 0, "create warehouse": 0, "drop warehouse": 0, "drop namespace": 0,
	}},
}

func (m mixture) weights() []int {
	weights := make([]int, len(actions))
	for i, a := range actions {
		weights[i] = usual[a.name]
		if f, ok := m.factor[a.name]; ok {
			weights[i] *= f
		}
	}
	return weights
}

// The names there are: few, so that clients meet.
const (
	mainWarehouse = "main" // it is there from the beginning, and for ever
	openWarehouse = "open" // locations may overlap in it
	sideWarehouse = "side"
)

func root(warehouse string) blob.Root {
	return blob.Root{URI: "file:///" + warehouse, Dir: "/" + warehouse}
}

func (c *client) warehouse(s *stream) string {
	if s.chance(c.w.profile.main) {
		return mainWarehouse
	}
	return pick(s, openWarehouse, sideWarehouse)
}

// namespaceNames are all namespaces that there can be in a warehouse.
var namespaceNames = []string{"a", "a.c", "b", "d", "d.e"}

func (c *client) namespace(s *stream) history.Name {
	s = c.focus(s)
	return history.Name{Warehouse: c.warehouse(s), Namespace: pick(s, "a", "a", "b", "b", "a.c", "d", "d", "d", "d.e")}
}

// crowded is the mixture in which many clients of one node change one table.
const crowded = "a crowd"

// table is a name that a table may have, or not.
func (c *client) table(s *stream) history.Name {
	if c.crowded(s) {
		return history.Name{Warehouse: mainWarehouse, Namespace: "a", Name: "x"}
	}
	s = c.focus(s)
	name := c.namespace(s)
	name.Name = pick(s, "x", "x", "y", "y", "z", "v")
	return name
}

// focusTime is how long everybody looks at one thing.
const focusTime = 3 * time.Second

// focus is, in some seeds and mostly, a stream that all clients have in common for a while:
// they choose the same names, and meet.
func (c *client) focus(s *stream) *stream {
	if !s.chance(c.w.profile.focus) {
		return s
	}
	common := streamOf(c.w.cfg.Seed, textHash("focus"), uint64(c.w.now()/focusTime))
	return &common
}

func (c *client) crowded(s *stream) bool {
	return c.w.profile.crowd > 0 && s.chance(c.w.profile.crowd)
}

// view is a name that a view may have, or not.
func (c *client) view(s *stream) history.Name {
	return history.Name{Warehouse: c.warehouse(s), Namespace: pick(s, "a", "a", "b", "d"), Name: pick(s, "v", "v", "v", "z")}
}

// known is mostly a table that the client has seen.
func (c *client) known(s *stream) history.Name {
	if len(c.seen) == 0 || s.chance(1000) || s.chance(c.w.profile.focus) || c.w.profile.crowd > 0 {
		return c.table(s)
	}
	names := slices.SortedFunc(maps.Keys(c.seen), func(a, b history.Name) int { return strings.Compare(a.String(), b.String()) })
	return names[s.n(len(names))]
}

// beside is a name in the same warehouse.
func (c *client) beside(s *stream, name history.Name) history.Name {
	to := c.table(s)
	to.Warehouse = name.Warehouse
	return to
}

// place is a location in the warehouse that several may want.
func (c *client) place(s *stream, warehouse string) string {
	return root(warehouse).URI + pick(s, "/l1", "/l1/in", "/l2", "/a/z", "/a/c", "/l3", "/l4")
}

func levels(n history.Name) []string { return strings.Split(n.Namespace, ".") }

func ident(n history.Name) catalog.Ident { return catalog.Ident{Namespace: levels(n), Name: n.Name} }

const (
	schema   = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`
	noAssert = `[]`
)

// mutation is the call of an operation that changes something.
func mutation(kind history.Kind, name history.Name, token string, op kernel.Operation) request {
	return request{Operation: history.Operation{Kind: kind, Name: name, Token: token}, op: op}
}

// query is the call of one that does not.
func query(kind history.Kind, name history.Name, op kernel.Operation) request {
	return request{Operation: history.Operation{Kind: kind, Name: name}, op: op, read: true}
}

func setToken(token string) string {
	return `{"action":"set-properties","updates":{"token":"` + token + `"}}`
}

// addSnapshot makes a snapshot `main`.
func addSnapshot(id int64, base seen) string {
	parent := ""
	if base.snapshot != 0 {
		parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, base.snapshot)
	}
	return fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,`+
		`"manifest-list":"file:///main/lists/%d.avro","summary":{"operation":"append"},"schema-id":0}},`+
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`,
		id, parent, base.sequence+1, base.updated+1, id, id)
}

// assertMain is the requirement that `main` is this snapshot; 0: none.
func assertMain(id int64) string {
	text := "null"
	if id != 0 {
		text = strconv.FormatInt(id, 10)
	}
	return `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":` + text + `}`
}

// assertUUID is the requirement that it is this table.
func assertUUID(uuid string) string { return `{"type":"assert-table-uuid","uuid":"` + uuid + `"}` }

// commit is the call of a commit with one part.
func (c *client) commit(p history.Part, token, requirements, updates string) request {
	r := mutation(history.Commit, p.Name, token, &catalog.CommitTable{Request: catalog.CommitTableRequest{
		Warehouse: p.Name.Warehouse, Table: ident(p.Name), Requirements: []byte(requirements), Updates: []byte(updates), Creates: p.Creates,
	}})
	r.Parts = []history.Part{p}
	r.after = func(op kernel.Operation) { c.learn(p.Name, op.(*catalog.CommitTable).Result.Metadata) }
	return r
}

// learn remembers a table that an answer showed.
func (c *client) learn(name history.Name, metadata []byte) {
	c.seen[name] = seen{
		snapshot: max(number(metadata, "current-snapshot-id"), 0), sequence: number(metadata, "last-sequence-number"),
		updated: number(metadata, "last-updated-ms"), uuid: member(metadata, "table-uuid"),
	}
}

func (c *client) commitBlindly(s *stream) {
	name, token := c.known(s), c.token()
	c.call(c.commit(history.Part{Name: name}, token, noAssert, "["+setToken(token)+"]"))
}

// appendSnapshot is what a writer of data does: it reads, commits, and begins again where
// another was faster.
func (c *client) appendSnapshot(s *stream) {
	name := c.known(s)
	for try := range 3 {
		base, ok := c.seen[name]
		if try > 0 || !ok || s.chance(5000) {
			if c.loadTable(name) != history.Done {
				return
			}
			base = c.seen[name]
		}
		token, snapshot := c.token(), c.snapshot(0)
		p := history.Part{Name: name, Snapshot: snapshot, Expect: &base.snapshot, UUID: base.uuid}
		outcome := c.call(c.commit(p, token, "["+assertUUID(base.uuid)+","+assertMain(base.snapshot)+"]", "["+setToken(token)+","+addSnapshot(snapshot, base)+"]"))
		if outcome != history.Refused {
			return
		}
	}
}

func (c *client) createTable(s *stream) {
	name, token := c.table(s), c.token()
	op := &catalog.CreateTable{Request: catalog.CreateTableRequest{
		Warehouse: name.Warehouse, Table: ident(name), Schema: []byte(schema), Properties: map[string]string{"token": token},
	}}
	if s.chance(3000) {
		op.Request.Location = c.place(s, name.Warehouse)
	}
	r := mutation(history.CreateTable, name, token, op)
	r.Parts = []history.Part{{Name: name, Creates: true}}
	r.after = func(op kernel.Operation) { c.learn(name, op.(*catalog.CreateTable).Result.Metadata) }
	c.call(r)
}

// createStaged asks what a table would be, and creates it by a commit, with data in it.
func (c *client) createStaged(s *stream) {
	name := c.table(s)
	stage := &catalog.CreateTable{Request: catalog.CreateTableRequest{
		Warehouse: name.Warehouse, Table: ident(name), Schema: []byte(schema), Stage: true,
	}}
	if s.chance(3000) {
		stage.Request.Location = c.place(s, name.Warehouse)
	}
	if !c.ask(stage, s) {
		return
	}
	token := c.token()
	p := history.Part{Name: name, Creates: true}
	if s.chance(5000) {
		p.Snapshot = c.snapshot(0)
	}
	c.call(c.commit(p, token, `[{"type":"assert-create"}]`,
		creation(member(stage.Result.Metadata, "table-uuid"), member(stage.Result.Metadata, "location"), token, p.Snapshot,
			number(stage.Result.Metadata, "last-updated-ms"))))
}

// creation are the updates that make a table that was staged.
func creation(uuid, location, token string, snapshot, millis int64) string {
	updates := fmt.Sprintf(`[{"action":"assign-uuid","uuid":%q},{"action":"upgrade-format-version","format-version":2},`+
		`{"action":"add-schema","schema":%s},{"action":"set-current-schema","schema-id":-1},`+
		`{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},`+
		`{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},`+
		`{"action":"set-location","location":%q},%s`, uuid, schema, location, setToken(token))
	if snapshot != 0 {
		updates += "," + addSnapshot(snapshot, seen{updated: millis})
	}
	return updates + "]"
}

func (c *client) renameTable(s *stream) {
	from := c.known(s)
	to := c.beside(s, from)
	r := mutation(history.RenameTable, from, "", &catalog.RenameTable{Request: catalog.RenameTableRequest{
		Warehouse: from.Warehouse, Source: ident(from), Destination: ident(to),
	}})
	r.To = to
	r.after = func(kernel.Operation) {
		moved, ok := c.seen[from]
		delete(c.seen, from)
		if ok {
			c.seen[to] = moved
		}
	}
	c.call(r)
}

func (c *client) dropTable(s *stream, purge bool) {
	name := c.known(s)
	if !purge && s.chance(7000) && c.loadTable(name) != history.Done { // so as to register it again
		return
	}
	c.drop(name, purge)
}

func (c *client) drop(name history.Name, purge bool) {
	r := mutation(history.DropTable, name, "", &catalog.DropTable{Request: catalog.DropTableRequest{
		Warehouse: name.Warehouse, Table: ident(name), Purge: purge,
	}})
	r.Purge = purge
	r.after = func(kernel.Operation) { delete(c.seen, name) }
	c.call(r)
}

// fileOf remembers a metadata file, which may be registered some day.
func (c *client) fileOf(s catalog.TableState) { c.files = append(c.files, s.MetadataLocation) }

func (c *client) registerTable(s *stream) {
	if len(c.files) == 0 {
		c.unregisterTable(s)
		return
	}
	from := c.files[len(c.files)-1-s.n(min(len(c.files), 6))]
	warehouse, _, _ := strings.Cut(strings.TrimPrefix(from, "file:///"), "/")
	name := c.table(s)
	name.Warehouse = warehouse
	c.register(name, from, s.chance(5000))
}

func (c *client) register(name history.Name, from string, overwrite bool) {
	r := mutation(history.RegisterTable, name, "", &catalog.RegisterTable{Request: catalog.RegisterTableRequest{
		Warehouse: name.Warehouse, Table: ident(name), MetadataLocation: from, Overwrite: overwrite,
	}})
	r.From, r.Overwrite = from, overwrite
	r.after = func(op kernel.Operation) { c.learn(name, op.(*catalog.RegisterTable).Result.Metadata) }
	c.call(r)
}

func (c *client) unregisterTable(s *stream) {
	name := c.known(s)
	r := mutation(history.Unregister, name, "", &catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{
		Warehouse: name.Warehouse, Table: ident(name),
	}})
	r.after = func(op kernel.Operation) {
		delete(c.seen, name)
		c.fileOf(op.(*catalog.UnregisterTable).Result)
	}
	c.call(r)
}

// transact commits to two or three tables at once.
func (c *client) transact(s *stream) {
	first := c.known(s)
	token := c.token()
	r := mutation(history.Transaction, history.Name{}, token, nil)
	op := &catalog.CommitTransaction{Request: catalog.CommitTransactionRequest{Warehouse: first.Warehouse}}
	names := map[history.Name]bool{}
	for i := range 2 + s.n(2) {
		name := first
		if i > 0 {
			name = c.known(s)
		}
		if names[name] || name.Warehouse != first.Warehouse {
			continue
		}
		names[name] = true
		if i > 0 && s.chance(1000) {
			name = c.beside(s, first) // to be made
			if names[name] {
				continue
			}
			names[name] = true
		}
		p := history.Part{Name: name}
		requirements, updates := noAssert, "["+setToken(token)+"]"
		base, ok := c.seen[name]
		switch {
		case s.chance(2000) || !ok && s.chance(7000):
			p.Creates = true
			if s.chance(5000) {
				p.Snapshot = c.snapshot(i)
			}
			id := c.stream("uuid" + strconv.Itoa(i))
			uuid := formatID(id.next(), id.next(), 4)
			location := root(name.Warehouse).URI + "/tx/" + uuid
			if s.chance(3000) {
				location = c.place(s, name.Warehouse)
			}
			requirements, updates = `[{"type":"assert-create"}]`, creation(uuid, location, token, p.Snapshot, base.updated)
			op.Request.Creates = true
		case ok && s.chance(6000):
			p.Snapshot, p.Expect, p.UUID = c.snapshot(i), &base.snapshot, base.uuid
			requirements, updates = "["+assertUUID(base.uuid)+","+assertMain(base.snapshot)+"]", "["+setToken(token)+","+addSnapshot(p.Snapshot, base)+"]"
		}
		r.Parts = append(r.Parts, p)
		op.Request.Changes = append(op.Request.Changes, catalog.TableCommit{
			Table: ident(name), Requirements: []byte(requirements), Updates: []byte(updates),
		})
	}
	r.op = op
	parts := r.Parts
	if c.call(r) != history.Refused {
		for _, p := range parts { // as a writer does before it goes on
			c.loadTable(p.Name)
		}
	}
}

func (c *client) loadTable(name history.Name) history.Outcome {
	r := query(history.LoadTable, name, &catalog.LoadTable{Request: catalog.LoadTableRequest{Warehouse: name.Warehouse, Table: ident(name)}})
	r.after = func(op kernel.Operation) {
		result := op.(*catalog.LoadTable).Result
		c.learn(name, result.Metadata)
		c.fileOf(result.TableState)
	}
	outcome := c.call(r)
	if outcome != history.Done {
		delete(c.seen, name)
	}
	return outcome
}

func (c *client) tableExists(s *stream) {
	name := c.table(s)
	c.call(query(history.TableExists, name, &catalog.TableExists{Request: catalog.TableExistsRequest{Warehouse: name.Warehouse, Table: ident(name)}}))
}

func (c *client) listTables(s *stream) {
	name := c.namespace(s)
	c.call(query(history.ListTables, name, &catalog.ListTables{Request: catalog.ListTablesRequest{Warehouse: name.Warehouse, Namespace: levels(name)}}))
}

func (c *client) listNamespaces(s *stream) {
	name := history.Name{Warehouse: c.warehouse(s)}
	op := &catalog.ListNamespaces{Request: catalog.ListNamespacesRequest{Warehouse: name.Warehouse}}
	if s.chance(3000) {
		name.Namespace = "a"
		op.Request.Parent = levels(name)
	}
	c.call(query(history.ListNamespaces, name, op))
}

func (c *client) createNamespace(s *stream) {
	name, location := c.namespace(s), ""
	if s.chance(1500) {
		location = c.place(s, name.Warehouse)
	}
	c.makeNamespace(name, location)
}

// makeNamespace makes a namespace whose tables lie below the location; empty: the server chooses.
func (c *client) makeNamespace(name history.Name, location string) {
	token := c.token()
	properties := map[string]string{"token": token}
	if location != "" {
		properties[catalog.PropertyLocation] = location
	}
	c.call(mutation(history.CreateNamespace, name, token, &catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{
		Warehouse: name.Warehouse, Levels: levels(name), Properties: properties,
	}}))
}

func (c *client) setNamespace(s *stream) {
	name, token := c.namespace(s), c.token()
	c.call(mutation(history.SetNamespace, name, token, &catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
		Warehouse: name.Warehouse, Levels: levels(name), Updates: map[string]string{"token": token},
	}}))
}

func (c *client) loadNamespace(s *stream) {
	name := c.namespace(s)
	c.call(query(history.LoadNamespace, name, &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: name.Warehouse, Levels: levels(name)}}))
}

// dropNamespace drops a namespace, which may be emptied first.
func (c *client) dropNamespace(s *stream) {
	name := c.namespace(s)
	if s.chance(5000) {
		list := query(history.ListTables, name, &catalog.ListTables{Request: catalog.ListTablesRequest{Warehouse: name.Warehouse, Namespace: levels(name)}})
		var tables []string
		list.after = func(op kernel.Operation) { tables = op.(*catalog.ListTables).Result.Names }
		c.call(list)
		for _, t := range tables {
			c.drop(history.Name{Warehouse: name.Warehouse, Namespace: name.Namespace, Name: t}, s.chance(5000))
		}
	}
	c.call(mutation(history.DropNamespace, name, "", &catalog.DropNamespace{Request: catalog.DropNamespaceRequest{
		Warehouse: name.Warehouse, Levels: levels(name),
	}}))
}

func (c *client) createWarehouse(s *stream) {
	c.makeWarehouse(pick(s, openWarehouse, sideWarehouse))
}

func (c *client) makeWarehouse(name string) {
	id := c.stream("warehouse")
	op := &catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{ID: formatID(id.next(), id.next(), 4), Name: name, Root: root(name)}}
	if name == openWarehouse {
		op.Request.Properties = map[string]string{catalog.PropertyAllowOverlap: "true"}
	}
	c.call(mutation(history.CreateWarehouse, history.Name{Warehouse: name}, "", op))
}

func (c *client) dropWarehouse(s *stream) {
	name := pick(s, openWarehouse, sideWarehouse)
	c.call(mutation(history.DropWarehouse, history.Name{Warehouse: name}, "", &catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: name}}))
}

// viewVersion is every version of every view.
const viewVersion = `{"version-id":1,"timestamp-ms":1700000000000,"schema-id":0,"summary":{"engine-name":"sim"},` +
	`"default-namespace":["a"],"representations":[{"type":"sql","sql":"select 1 id","dialect":"spark"}]}`

func viewOf(name history.Name) catalog.ViewRequest {
	return catalog.ViewRequest{Warehouse: name.Warehouse, View: ident(name)}
}

func (c *client) createView(s *stream) {
	name, token := c.view(s), c.token()
	op := &catalog.CreateView{Request: catalog.CreateViewRequest{
		Warehouse: name.Warehouse, View: ident(name), Schema: []byte(schema), Version: []byte(viewVersion), Properties: map[string]string{"token": token},
	}}
	if s.chance(2000) {
		op.Request.Location = c.place(s, name.Warehouse)
	}
	r := mutation(history.CreateView, name, token, op)
	r.Parts = []history.Part{{Name: name, Creates: true}}
	c.call(r)
}

func (c *client) replaceView(s *stream) {
	name, token := c.view(s), c.token()
	r := mutation(history.ReplaceView, name, token, &catalog.ReplaceView{Request: catalog.ReplaceViewRequest{
		Warehouse: name.Warehouse, View: ident(name), Updates: []byte("[" + setToken(token) + "]"),
	}})
	r.Parts = []history.Part{{Name: name}}
	c.call(r)
}

func (c *client) loadView(s *stream) {
	name := c.view(s)
	c.call(query(history.LoadView, name, &catalog.LoadView{Request: viewOf(name)}))
}

func (c *client) renameView(s *stream) {
	from := c.view(s)
	to := c.view(s)
	to.Warehouse = from.Warehouse
	r := mutation(history.RenameView, from, "", &catalog.RenameView{Request: catalog.RenameTableRequest{
		Warehouse: from.Warehouse, Source: ident(from), Destination: ident(to),
	}})
	r.To = to
	c.call(r)
}

func (c *client) dropView(s *stream) {
	name := c.view(s)
	c.call(mutation(history.DropView, name, "", &catalog.DropView{Request: viewOf(name)}))
}

// moveTable changes where a table lies.
func (c *client) moveTable(s *stream) {
	name, token := c.known(s), c.token()
	c.call(c.commit(history.Part{Name: name}, token, noAssert,
		"["+setToken(token)+`,{"action":"set-location","location":"`+c.place(s, name.Warehouse)+`"}]`))
}

// trimLog has a table keep one former metadata file, and give up the others.
func (c *client) trimLog(s *stream) { c.trim(c.known(s)) }

func (c *client) trim(name history.Name) history.Outcome {
	token := c.token()
	return c.call(c.commit(history.Part{Name: name}, token, noAssert,
		"["+setToken(token)+`,{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"2","write.metadata.delete-after-commit.enabled":"true"}}]`))
}

// digUp registers a file that the table has just given up.
func (c *client) digUp(s *stream) {
	name := c.known(s)
	if c.loadTable(name) != history.Done {
		return
	}
	file := c.files[len(c.files)-1]
	c.trim(name)
	for range 3 {
		token := c.token()
		c.call(c.commit(history.Part{Name: name}, token, noAssert, "["+setToken(token)+"]"))
	}
	c.drop(name, false)
	c.register(name, file, false)
}

// member is the text of the first member with this name in metadata that the catalog wrote.
func member(metadata []byte, name string) string {
	_, rest, ok := bytes.Cut(metadata, []byte(`"`+name+`":"`))
	if !ok {
		return ""
	}
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

// number is that of the first member with this name; 0: there is none.
func number(metadata []byte, name string) int64 {
	_, rest, ok := bytes.Cut(metadata, []byte(`"`+name+`":`))
	if !ok {
		return 0
	}
	end := bytes.IndexAny(rest, ",}")
	n, err := strconv.ParseInt(string(rest[:max(end, 0)]), 10, 64)
	if err != nil {
		panic("sim: " + name + ": " + err.Error())
	}
	return n
}
