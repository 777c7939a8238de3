package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/sim/check"
	"github.com/landfast/landfast/internal/sim/history"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/txn"
)

// Result is what became of a run.
type Result struct {
	Config   Config
	Problems []string // what must not happen: none
	History  []history.Operation
	Records  []store.Record  // that are there in the end
	Files    map[string]File // that were ever made, by their location
	// Leftovers are what package txn has left in the bucket: nothing.
	Leftovers []string
	Faults    map[string]int // that happened, by kind
	// Trace is the hash of all that happened, in its order.
	Trace uint64
	// Ties counts who woke at the same instant as another: only then, another run of the
	// seed may differ.
	Ties       int
	Transcript []string // if it was asked for
	// Undecided: the checkers ran out of time.
	Undecided bool
	Mix       string        // what its clients did most
	Took      time.Duration // in the world's time

	// Batches says how many operations landed in batches of this size.
	Batches map[int]int
	// Rides says that small files rode in their batches: so many, of which the loss of power took some.
	// Some were written anew.
	Rides            bool
	Rode, Lost, Anew int

	injected []uint64 // the names of the faults that happened
	steps    []step   // that were taken
}

// Run runs a seed. It must be called in a synctest bubble, and leaves no goroutine in it.
func Run(cfg Config) Result {
	w := newWorld(cfg)
	made := w.setUp()
	w.mu.Lock()
	w.faulty = true
	w.mu.Unlock()
	for _, n := range w.nodes {
		n.suffer()
	}
	clients := make([]*client, w.profile.clients)
	var living sync.WaitGroup
	for i := range clients {
		clients[i] = &client{w: w, id: i, home: i % len(w.nodes), seen: maps.Clone(made)}
		if w.profile.crowd > 0 {
			clients[i].home = 0
		}
		living.Go(clients[i].live)
	}
	living.Wait()
	w.heal()
	if !cfg.Without.ending {
		w.progress(clients)
	}
	w.cleanUp()
	records, err := w.left()
	if err != nil {
		w.problem("at rest: the records cannot be read: %v", err)
	}
	return Result{
		Config: cfg, Problems: w.problems, History: w.history, Faults: w.faults, Trace: w.trace, Ties: w.ties,
		Transcript: w.transcript, Mix: w.profile.mix, Records: records, Files: w.files.all(), Leftovers: w.leftovers,
		Took: w.now(), Batches: w.batches, Rides: w.rides != nil, Rode: w.files.deferred, Lost: w.files.lost, Anew: w.files.anew, injected: w.injected, steps: w.steps,
	}
}

// setupActor makes what is there from the beginning, and looks at what is left in the end.
const setupActor = 10

// setUp makes a catalog in which there is something to do, and gives the tables in it.
func (w *world) setUp() map[history.Name]seen {
	for _, n := range w.nodes {
		n.start()
	}
	c := &client{w: w, id: setupActor, seen: map[history.Name]seen{}}
	s := c.stream("set up")
	if !c.ask(&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: formatID(s.next(), s.next(), 4), Root: root(mainWarehouse)}}, &s) {
		w.problem("the catalog cannot be made")
		return c.seen
	}
	warehouses := []string{mainWarehouse}
	if s.chance(3000) {
		warehouses = append(warehouses, openWarehouse, sideWarehouse)
	}
	for _, warehouse := range warehouses {
		if warehouse != mainWarehouse {
			c.take(func() { c.makeWarehouse(warehouse) })
		}
		for _, namespace := range namespaceNames[:3] {
			c.take(func() { c.makeNamespace(history.Name{Warehouse: warehouse, Namespace: namespace}, "") })
			c.take(func() { c.create(history.Name{Warehouse: warehouse, Namespace: namespace, Name: "x"}) })
		}
	}
	c.take(func() { c.create(history.Name{Warehouse: mainWarehouse, Namespace: "a", Name: "y"}) })
	return c.seen
}

// create makes a table and tells whether that was done.
func (c *client) create(name history.Name) history.Outcome {
	token := c.token()
	r := mutation(history.CreateTable, name, token, &catalog.CreateTable{Request: catalog.CreateTableRequest{
		Warehouse: name.Warehouse, Table: ident(name), Schema: []byte(schema), Properties: map[string]string{"token": token},
	}})
	r.Parts = []history.Part{{Name: name, Creates: true}}
	r.after = func(op kernel.Operation) { c.learn(name, op.(*catalog.CreateTable).Result.Metadata) }
	return c.call(r)
}

// healTime is longer than anything that is late.
const healTime = lateMost + applyLimit + 5*time.Second

// heal ends all faults, and waits until what is still under way has arrived.
func (w *world) heal() {
	w.mu.Lock()
	w.faulty = false
	w.profile.keyed = 0
	w.mu.Unlock()
	for _, n := range w.nodes {
		n.heal()
	}
	w.event("world", "heals", "everything", "well")
	w.sleep(setupActor, healTime, 0)
	w.background.Wait()
	w.sleep(setupActor, time.Millisecond, 0)
}

// progressLimit is the time in which every client can make a change once nothing is wrong.
const progressLimit = 2 * time.Minute

// progress demands that every client can make changes, and that every table can be
// changed and one be made in every namespace, all at once.
func (w *world) progress(clients []*client) {
	tables, _, namespaces := w.look()
	began := w.now()
	var all sync.WaitGroup
	for i, c := range clients {
		c.step, c.calls = w.profile.steps, 0
		all.Go(func() {
			w.sleep(c.id, time.Millisecond, 0)
			demand := func(what string, name history.Name, outcome history.Outcome) {
				if outcome != history.Done {
					w.problem("no progress: client %d cannot %s %v once everything is well: %s", c.id, what, name, outcome)
				}
			}
			for _, name := range shareOf(tables, i, len(clients)) {
				token := c.token()
				demand("commit to", name, c.call(c.commit(history.Part{Name: name}, token, noAssert, "["+setToken(token)+"]")))
			}
			for _, name := range shareOf(namespaces, i, len(clients)) {
				name.Name = fmt.Sprintf("made-by-%d", c.id)
				demand("create", name, c.create(name))
			}
		})
	}
	all.Wait()
	if took := w.now() - began; took > progressLimit {
		w.problem("no progress: one change of each table and namespace took %v", took)
	}
	w.sleep(setupActor, time.Millisecond, 0)
}

// shareOf is the i-th of n shares of what everybody has a part in: each thing is in one
// share at least, and no share is empty.
func shareOf[T any](all []T, i, n int) (share []T) {
	for j := i; j < max(len(all), n) && len(all) > 0; j += n {
		share = append(share, all[j%len(all)])
	}
	return share
}

// look finds the tables, the views and the namespaces that there are.
func (w *world) look() (tables, views, namespaces []history.Name) {
	records, err := w.left()
	if err != nil {
		w.problem("the records cannot be read: %v", err)
	}
	pointers, _ := check.Pointers(records)
	for _, p := range pointers {
		if p.View {
			views = append(views, p.Name)
		} else {
			tables = append(tables, p.Name)
		}
	}
	for _, r := range records {
		if r.Key.Level == key.Namespace {
			parent, name, _ := strings.Cut(r.Key.Path, "//")
			warehouse, levels, nested := strings.Cut(parent, "/")
			if nested {
				name = strings.ReplaceAll(levels, "/", ".") + "." + name
			}
			namespaces = append(namespaces, history.Name{Warehouse: warehouse, Namespace: name})
		}
	}
	return tables, views, namespaces
}

// cleanUp waits until what is due has been reclaimed, and all nodes have stopped.
func (w *world) cleanUp() {
	for _, n := range w.nodes {
		n.stop()
	}
	w.background.Wait()
	w.losePower()
	// Some lists bear the time of a clock that was ahead.
	w.sleep(setupActor, 2*w.profile.clocks+grace+time.Second, 0)
	last := w.nodes[0]
	last.start()
	c := &client{w: w, id: setupActor, step: 2000, seen: map[history.Name]seen{}}
	s := c.stream("clean up")
	last.awaitRecovery(&caller{w: w, life: last.life, actor: setupActor})
	if w.profile.sweep {
		c.calls++
		who := &caller{w: w, node: last, life: last.life, actor: setupActor, name: uint64(c.stream("sweep")), label: "sweep"}
		if _, err := last.reclaimer.Sweep(withCaller(context.Background(), who), mainWarehouse, false); err != nil {
			w.problem("the sweep of a healthy catalog: %v", err)
		}
	}
	for range 3 {
		w.sleep(setupActor, time.Minute, 0)
		if left := c.dying(&s); left == 0 {
			break
		}
		w.sleep(setupActor, 10*time.Minute, 0)
	}
	if left := c.dying(&s); left > 0 {
		w.problem("at rest: %d lists of dying files are left", left)
	}
	w.revisit()
	last.stop()
	w.losePower()
	if w.objects != nil {
		w.scrub(c)
	}
}

// losePower takes what is not durable: nothing that is named, after a clean stop.
func (w *world) losePower() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files.lose()
}

// revisit reads all that there is once more: the history ends with what was left.
func (w *world) revisit() {
	c := &client{w: w, id: setupActor, step: 3000, seen: map[history.Name]seen{}}
	tables, views, namespaces := w.look()
	for _, name := range tables {
		if outcome := c.loadTable(name); outcome != history.Done {
			w.problem("at rest: table %v cannot be loaded: %s", name, outcome)
		}
	}
	for _, name := range namespaces {
		c.call(query(history.LoadNamespace, name, &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: name.Warehouse, Levels: levels(name)}}))
	}
	for _, name := range views {
		c.call(query(history.LoadView, name, &catalog.LoadView{Request: viewOf(name)}))
	}
}

// scrub ends what is left in the bucket, and demands that then nothing is.
func (w *world) scrub(c *client) {
	over := txn.New(txn.Options{Objects: w.objects, Layout: txn.Packed{}})
	c.calls++
	who := &caller{w: w, node: w.nodes[0], life: w.nodes[0].life, actor: setupActor, name: uint64(c.stream("scrub")), label: "scrub"}
	ctx := withCaller(context.Background(), who)
	if err := over.Scrub(ctx); err != nil {
		w.problem("at rest: the bucket cannot be scrubbed: %v", err)
	}
	left, err := over.Leftovers(ctx)
	if err != nil {
		w.problem("at rest: %v", err)
	}
	w.leftovers = left
}

// left is every record that there is, in the order of keys.
func (w *world) left() (all []store.Record, _ error) {
	var from store.Atomic
	if w.records != nil {
		if all, ok := w.records.inner.(interface{ Snapshot() []store.Record }); ok {
			return all.Snapshot(), nil
		}
		from = w.records.inner
	} else {
		from = txn.New(txn.Options{Objects: w.objects.inner, Layout: txn.Packed{}})
	}
	prefixes := []key.Prefix{
		key.Warehouses(), key.Onces(), {Level: key.Location, Path: "//"}, key.DyingIn(""),
	}
	if w.rides != nil {
		prefixes = append(prefixes, key.Unsynceds())
	}
	single := []key.Key{key.ForCatalog(), key.LocationGuard()}
	for _, warehouse := range []string{mainWarehouse, openWarehouse, sideWarehouse} {
		prefixes = append(prefixes, key.NamespacesIn(warehouse, nil), key.PointersIn(warehouse), key.DyingIn(warehouse))
		for _, namespace := range namespaceNames {
			levels := strings.Split(namespace, ".")
			prefixes = append(prefixes, key.NamespacesIn(warehouse, levels), key.TableNamesIn(warehouse, levels))
		}
	}
	for _, k := range single {
		r, err := from.Get(context.Background(), k)
		if err != nil {
			return nil, err
		}
		if r.Exists() {
			all = append(all, r)
		}
	}
	for _, p := range prefixes {
		found, err := from.List(context.Background(), p, "", 10_000)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b store.Record) int { return key.Compare(a.Key, b.Key) })
	return slices.CompactFunc(all, func(a, b store.Record) bool { return a.Key == b.Key }), nil
}

// dying counts the lists of dying files that there are.
func (c *client) dying(s *stream) (n int) {
	for _, warehouse := range []string{mainWarehouse, openWarehouse, sideWarehouse} {
		find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: warehouse}}
		if c.ask(kernel.Operation(find), s) {
			n += len(find.Result.Lists)
		}
	}
	return n
}
