package exhaust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/locktest"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/txn"
)

// world is a few actors at a catalog, and what may go wrong.
type world struct {
	name   string
	store  func(*env) store.Atomic
	setup  []operation
	actors []actor
	rounds []round
	// overlap says that it is in a warehouse that lets locations overlap: a table has no claim there, and is
	// made by a swap of one page, and a birth.
	overlap bool
	// large worlds have less patient actors where something goes wrong: see roundsOf.
	large bool
	// attempts is how often an operation decides before it gives up.
	attempts int
	// mindful actors are not taken to forget anything, so that a test can compare.
	mindful bool
}

// round is one exploration of a world.
type round struct {
	faults   budget
	attempts int
}

// actor is a client with an instance of its own.
type actor struct {
	name string
	does []operation
}

// overBatches is a store that applies batches.
func overBatches(e *env) store.Atomic { return transactional{e} }

// overObjects is package txn over a store that swaps objects.
func overObjects(e *env) store.Atomic {
	return txn.New(txn.Options{Objects: objects{e: e}, Layout: txn.Packed{}})
}

// The warehouses: every world is in one of them.
const (
	strict = catalog.MainWarehouse
	lax    = "lax"
)

func (w world) warehouse() string {
	if w.overlap {
		return lax
	}
	return strict
}

func rootOf(warehouse string) blob.Root {
	return blob.Root{URI: "file:///w/" + warehouse, Dir: "/w/" + warehouse}
}

// script is an actor's code: its operations, one after the other, on a kernel of its own. Nothing queues:
// what is right only with a queue would be wrong across instances.
func (w world) script(does []operation) body {
	return func(ctx context.Context, e *env) {
		e.db = w.store(e)
		const never = 10_000 * time.Hour
		e.kernel = kernel.New(kernel.Options{
			Store: impatient{e.db, e}, Files: files{e}, Queue: locktest.Yes{},
			Now: now, NewID: e.newID, NewBatchID: e.newID, Limit: never, ApplyLimit: never, BlockedRetries: 1,
			MemoBytes: -1, // an actor's memory is not a part of the states that are told apart
		})
		for _, o := range does {
			e.blocked = 0
			if !w.mindful {
				e.begins(0)
			}
			r := w.carryOut(ctx, e, o)
			e.replies = append(e.replies, r)
		}
	}
}

// impatient is a store that counts what the kernel remembers from one decision to the next: how often locks were in the way.
type impatient struct {
	store.Atomic
	e *env
}

func (s impatient) Apply(ctx context.Context, b store.Batch) error {
	err := s.Atomic.Apply(ctx, b)
	if _, ok := errors.AsType[*store.BlockedError](err); ok {
		s.e.blocked++
	}
	return err
}

func (w world) carryOut(ctx context.Context, e *env, o operation) reply {
	switch o.kind {
	case recovery:
		if db, ok := e.db.(*txn.Store); ok {
			if err := db.Recover(ctx); err != nil {
				return replyTo(nil, err)
			}
		}
		return reply{how: done}
	case scrub:
		if db, ok := e.db.(*txn.Store); ok {
			if err := db.Scrub(ctx); err != nil {
				return reply{how: broken, why: err.Error()}
			}
			if left, err := db.Leftovers(ctx); err != nil || len(left) > 0 {
				return reply{how: broken, why: fmt.Sprintf("left over after recovery: %q, %v", left, err)}
			}
		}
		return reply{how: done}
	case inspect:
		if wrong := inspected(ctx, e, w.warehouse(), o.tables); wrong != nil {
			return reply{how: broken, why: strings.Join(wrong, "; ")}
		}
		return reply{how: done}
	}
	op := o.decided(w.warehouse())
	return replyTo(op, e.kernel.Do(ctx, &bounded{op, e, w.attempts, w.mindful}))
}

// errGaveUp ends an operation that has decided too often.
var errGaveUp = errors.New("gave up")

// bounded is an operation that gives up.
type bounded struct {
	kernel.Operation
	e       *env
	left    int
	mindful bool
}

func (b *bounded) Decide(ctx context.Context, tx *kernel.Tx) error {
	if b.left == 0 {
		return errGaveUp
	}
	if !b.mindful {
		b.e.begins(b.left)
	}
	b.left--
	return b.Operation.Decide(ctx, tx)
}

// refusals are what a model refuses with.
var refusals = []struct {
	kind error
	why  string
}{
	{catalog.ErrNoSuchNamespace, "no such namespace"},
	{catalog.ErrNoSuchTable, "no such table"},
	{catalog.ErrAlreadyExists, "already exists"},
	{catalog.ErrNotEmpty, "not empty"},
	{catalog.ErrRequirement, "requirement failed"},
}

func replyTo(op kernel.Operation, err error) reply {
	switch {
	case err == nil:
		return reply{how: done, seen: seen(op)}
	case errors.Is(err, store.ErrOutcomeUnknown):
		return reply{how: unsure}
	case errors.Is(err, errGaveUp), errors.Is(err, errFault), errors.Is(err, kernel.ErrContended):
		return reply{how: gaveUp}
	}
	for _, r := range refusals {
		if errors.Is(err, r.kind) {
			return reply{how: refused, why: r.why}
		}
	}
	return reply{how: broken, why: err.Error()}
}

func ident(dotted string) catalog.Ident {
	levels := strings.Split(dotted, ".")
	return catalog.Ident{Namespace: levels[:len(levels)-1], Name: levels[len(levels)-1]}
}

// decided is the catalog's operation.
func (o operation) decided(warehouse string) kernel.Operation {
	switch o.kind {
	case bootstrap:
		return &catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: rootOf(strict)}}
	case makeLax:
		return &catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
			ID: "lax-id", Name: lax, Root: rootOf(lax), Properties: map[string]string{catalog.PropertyAllowOverlap: "true"},
		}}
	case makeNamespace:
		return &catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: warehouse, Levels: o.tables[:1]}}
	case dropNamespace:
		return &catalog.DropNamespace{Request: catalog.DropNamespaceRequest{Warehouse: warehouse, Levels: o.tables[:1]}}
	case makeTable:
		return &catalog.CreateTable{Request: catalog.CreateTableRequest{
			Warehouse: warehouse, Table: ident(o.tables[0]), Location: o.at, Properties: map[string]string{"made": o.token},
			Schema: []byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`),
		}}
	case commit, firstCommit:
		c := o.change(o.tables[0])
		return &catalog.CommitTable{Request: catalog.CommitTableRequest{
			Warehouse: warehouse, Table: c.Table, Requirements: c.Requirements, Updates: c.Updates,
		}}
	case skew:
		return &catalog.CommitTransaction{Request: catalog.CommitTransactionRequest{Warehouse: warehouse, Changes: []catalog.TableCommit{
			{Table: ident(o.tables[0]), Requirements: []byte(noSnapshot), Updates: []byte(`[]`)}, o.change(o.tables[1]),
		}}}
	case transact:
		op := &catalog.CommitTransaction{Request: catalog.CommitTransactionRequest{Warehouse: warehouse}}
		for _, t := range o.tables {
			op.Request.Changes = append(op.Request.Changes, o.change(t))
		}
		return op
	case rename:
		return &catalog.RenameTable{Request: catalog.RenameTableRequest{Warehouse: warehouse, Source: ident(o.tables[0]), Destination: ident(o.tables[1])}}
	case drop:
		return &catalog.DropTable{Request: catalog.DropTableRequest{Warehouse: warehouse, Table: ident(o.tables[0])}}
	case load:
		return &catalog.LoadTable{Request: catalog.LoadTableRequest{Warehouse: warehouse, Table: ident(o.tables[0])}}
	case listTables:
		return &catalog.ListTables{Request: catalog.ListTablesRequest{Warehouse: warehouse, Namespace: o.tables[:1]}}
	}
	panic("exhaust: no operation " + o.kind)
}

// What makes an empty catalog. The model does not know it.
const (
	bootstrap kind = "bootstrap"
	makeLax   kind = "create lax warehouse"
)

const noSnapshot = `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`

// change adds the token to a table. The first commit also adds a snapshot, and requires that there is none.
func (o operation) change(table string) catalog.TableCommit {
	c := catalog.TableCommit{Table: ident(table), Requirements: []byte(`[]`)}
	updates := fmt.Sprintf(`{"action":"set-properties","updates":{"by %s":""}}`, o.token)
	if o.kind == firstCommit || o.kind == skew {
		c.Requirements = []byte(noSnapshot)
		updates = fmt.Sprintf(`{"action":"set-properties","updates":{"by %s!":""}},
			{"action":"add-snapshot","snapshot":{"snapshot-id":7,"sequence-number":1,"timestamp-ms":%d,"manifest-list":"file:///w/main/list.avro","summary":{"operation":"append"},"schema-id":0}},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7}`, o.token, now().UnixMilli())
	}
	c.Updates = []byte("[" + updates + "]")
	return c
}

// seen is what an answer shows: of a table the tokens of what made and changed it, as the model has them.
func seen(op kernel.Operation) string {
	switch op := op.(type) {
	case *catalog.CreateTable:
		return tokens(op.Result)
	case *catalog.CommitTable:
		return tokens(op.Result)
	case *catalog.LoadTable:
		return tokens(op.Result.TableState)
	case *catalog.ListTables:
		return strings.Join(op.Result.Names, " ")
	}
	return ""
}

func tokens(t catalog.TableState) string {
	var metadata struct {
		Properties map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(t.Metadata, &metadata); err != nil {
		return err.Error()
	}
	all := []string{metadata.Properties["made"]}
	for p := range metadata.Properties {
		if by, ok := strings.CutPrefix(p, "by "); ok {
			all = append(all, by)
		}
	}
	slices.Sort(all[1:])
	return strings.Join(all, " ")
}

// inspected looks at every record below the namespaces, and says what does not fit together.
func inspected(ctx context.Context, e *env, warehouse string, namespaces []string) (wrong []string) {
	failf := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	all := func(p key.Prefix) []store.Record {
		rs, err := e.db.List(ctx, p, "", 1000)
		if err != nil {
			failf("%v: %v", p, err)
		}
		return rs
	}
	live := map[string]string{} // namespaces, to their id
	for _, n := range all(key.NamespacesIn(warehouse, nil)) {
		live[n.Key.Name()] = n.ID
	}
	named := map[string]string{} // ids of pointers, to their name
	for _, ns := range namespaces {
		for _, n := range all(key.TableNamesIn(warehouse, []string{ns})) {
			if live[ns] == "" {
				failf("%v is in a namespace that is gone", n.Key)
			}
			if other, ok := named[n.ID]; ok {
				failf("%s and %s are one table", other, n.Key.Name())
			}
			named[n.ID] = ns + "." + n.Key.Name()
		}
	}
	claims := map[string]string{}
	for _, r := range all(key.PointersIn(warehouse)) {
		var p struct {
			Ident            catalog.Ident `json:"ident"`
			NamespaceID      string        `json:"namespace-id"`
			MetadataLocation string        `json:"metadata-location"`
			Claim            string        `json:"claim"`
		}
		if err := json.Unmarshal(r.Value, &p); err != nil {
			failf("%v: %v", r.Key, err)
		}
		if named[r.ID] != p.Ident.String() {
			failf("%v bears the name %s, which is not its own", r.Key, p.Ident)
		}
		delete(named, r.ID)
		if live[p.Ident.Namespace[0]] != p.NamespaceID {
			failf("%v is in a namespace that is gone", r.Key)
		}
		if there, err := (files{e}).Exists(ctx, blob.Scope{rootOf(warehouse)}, p.MetadataLocation); err != nil || !there {
			failf("%v names a file that is gone: %v", r.Key, err)
		}
		if p.Claim != "" {
			claims[p.Claim] = r.ID
		}
	}
	for _, name := range named {
		failf("%s has no pointer", name)
	}
	for canonical, id := range claims {
		r, err := e.db.Get(ctx, key.ForLocation(canonical))
		if err != nil || r.ID != id {
			failf("the claim of %s is %q: %v", id, r.ID, err)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// epilogue is what happens after each end: it is looked at, everything is recovered, it is looked at again;
// then what is still on its way arrives, and all that once more.
type epilogue struct {
	s       *search
	does    []operation         // to recover, to inspect, and all that looks
	trees   []*tree             // one for each
	known   map[string][]looked // by the contents of the cells
	scratch []byte
}

type looked struct {
	op    operation
	reply reply
}

func (e *epilogue) prepare() {
	w := e.s.world
	var tables, namespaces []string
	note := func(ops []operation) {
		for _, o := range ops {
			for _, t := range o.tables {
				if !strings.Contains(t, ".") {
					namespaces = append(namespaces, t)
					continue
				}
				tables, namespaces = append(tables, t), append(namespaces, namespaceOf(t))
			}
		}
	}
	note(w.setup)
	for _, a := range w.actors {
		note(a.does)
	}
	for _, list := range []*[]string{&tables, &namespaces} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	e.does = []operation{{kind: scrub}, {kind: inspect, tables: namespaces}}
	for _, t := range tables {
		e.does = append(e.does, operation{kind: load, tables: []string{t}})
	}
	for _, n := range namespaces {
		e.does = append(e.does, operation{kind: listTables, tables: []string{n}})
	}
	for i, o := range e.does {
		e.trees = append(e.trees, newTree(e.s.T, e.s.space, o.String(), 91+i, w.script([]operation{o})))
	}
}

func (e *epilogue) look(st *state) []looked {
	if e.trees == nil {
		e.prepare()
	}
	b := fmt.Append(e.scratch[:0], st.cells)
	for _, l := range st.late {
		b = fmt.Append(b, l.tree, l.node.id, l.by)
	}
	e.scratch = b
	found, ok := e.known[string(b)]
	if !ok {
		old, _ := e.s.space.older(st.cells)
		found = e.afterwards(old, st.late)
		e.known[string(b)] = found
	}
	return found
}

func (e *epilogue) afterwards(c cells, flying []late) (all []looked) {
	sp := e.s.space
	do := func(i int) {
		var replies []reply
		c, replies = sp.alone(c, e.trees[i])
		all = append(all, looked{e.does[i], replies[0]})
	}
	look := func() {
		for i := range e.does[2:] {
			do(2 + i)
		}
	}
	recovered := func() {
		do(0)
		before := c
		do(0)
		if !slices.Equal(before, c) {
			all = append(all, looked{e.does[0], reply{how: broken, why: "recovery did not finish: it found more to do"}})
		}
		do(1)
	}
	look()
	recovered()
	look()
	for _, l := range flying {
		var ans answer
		if ans, c = sp.perform(c, l.node.pending[l.by]); ans.code == fine {
			c, _ = sp.older(c)
			look()
			recovered()
			look()
		}
	}
	return all
}
