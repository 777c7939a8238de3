package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// writers is how many write at once.
const writers = 16

// Namespaces that every round uses.
const (
	sharedSpace = "shared" // tables that everybody commits to
	eastSpace   = "east"   // tables of one writer each
	westSpace   = "west"   // the same, for renames across
	arenaSpace  = "arena"  // names that writers contend for
)

// world is what the writers of a round share.
type world struct {
	h     *history
	root  string // location of the warehouse
	round int
	over  chan struct{} // closed when they are to stop
	// ahead is how far the writers' clock is ahead of the machine's, a time.Duration, if they follow the servers'.
	follow bool
	ahead  atomic.Int64

	hot    *table
	view   *table   // a view that everybody replaces
	shared []*table // slot i is named, dropped and replaced by writer i

	mu       sync.Mutex
	contests []*contest
}

// writer is one of those who write at once. It sends one request after another.
type writer struct {
	*world
	client *client
	index  int
	name   string
	rng    *rand.Rand
	count  int // of tokens

	tables   []*table // its own
	detached []*table // its own, unregistered
	views    []*table
	spaces   []*namespace
	// avoided are the names, until the next round, of requests whose answer did not come:
	// they may be carried out yet, and on whatever has the name by then.
	avoided map[string]bool
	// taken are names that an operation may have got which was sent to be refused: nobody keeps count of what
	// came of it.
	taken map[string]bool
}

// action is one thing a writer may do next.
type action struct {
	weight int
	do     func(*writer)
}

var actions = []action{
	{12, (*writer).createTable},
	{4, (*writer).createStaged},
	{18, (*writer).commitOwn},
	{14, (*writer).commitShared},
	{16, (*writer).commitHot},
	{8, (*writer).commitHopeless},
	{3, (*writer).createHopeless},
	{8, (*writer).rename},
	{6, (*writer).drop},
	{3, (*writer).replaceShared},
	{4, (*writer).createNamespace},
	{7, (*writer).setNamespaceProperties},
	{3, (*writer).dropNamespace},
	{10, (*writer).contend},
	{5, (*writer).read},
	{12, (*writer).commitTransaction},
	{4, (*writer).commitHopelessTransaction},
	{8, (*writer).readTogether},
	{6, (*writer).addData},
	{5, (*writer).reregister},
	{4, (*writer).createView},
	{8, (*writer).replaceView},
	{8, (*writer).replaceSharedView},
	{3, (*writer).renameView},
	{2, (*writer).dropView},
}

// run acts until the writers are to stop.
func (w *writer) run() {
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	for !w.stopped() {
		if crowded(time.Now()) {
			w.commitInCrowd()
			continue
		}
		n := w.rng.IntN(total)
		for _, a := range actions {
			if n -= a.weight; n < 0 {
				a.do(w)
				break
			}
		}
	}
}

// crowded tells when all writers commit to one table, so that many wait there together: for some moments of
// each second.
func crowded(now time.Time) bool { return now.UnixMilli()%1000 < 200 }

// commitInCrowd commits to the table that everybody appends to, and asks for nothing.
func (w *writer) commitInCrowd() {
	o := w.operation("commit in a crowd")
	o.table, o.addressed = w.hot, w.h.nameOf(w.hot)
	w.commit(o, nil)
}

func (w *writer) stopped() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// token is a mark that nothing else bears.
func (w *writer) token() string {
	w.count++
	return fmt.Sprintf("r%02d-%s-%04d", w.round, w.name, w.count)
}

// operation begins an operation with a token of its own and the edit that leaves it.
func (w *writer) operation(kind string) *operation {
	token := w.token()
	return &operation{kind: kind, token: token, writer: w.name, edit: mark(w.name, token)}
}

// keyedOneIn is how many requests there are to one that bears an Idempotency-Key.
const keyedOneIn = 3

// Of a request whose answer did not come.
const (
	pauseMax   = 30 * time.Millisecond // before the writer goes on
	repeatsMax = 4                     // of those with a key that are repeated at all
)

// sent sends the request of an operation, or of several that must happen together,
// and records both ends. Some bear a key. If the answer does not come, some of these are
// repeated at once; all others are after the round.
func (w *writer) sent(r request, ops ...*operation) answer {
	s := &sending{request: r, ops: ops}
	if ops[0].token != "" && w.rng.IntN(keyedOneIn) == 0 {
		s.key = fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", w.rng.Uint32(), w.rng.IntN(1<<16), w.rng.IntN(1<<12), w.rng.IntN(1<<12), w.rng.Int64N(1<<48))
	}
	w.h.send(s)
	a := w.client.send(s.request)
	w.h.answer(s, a)
	if a.outcome() != unknown {
		return a
	}
	if ops[0].token != "" {
		for _, o := range ops {
			w.avoid(o)
			if o.naming != nil {
				if o.hopeless && w.taken == nil {
					w.taken = map[string]bool{}
				}
				if o.hopeless {
					w.taken[o.naming.to] = true
				}
				o.hopeless = false // by the time it is carried out, the name may be free
			}
		}
	}
	repeats := 0
	if s.key != "" {
		repeats = w.rng.IntN(repeatsMax)
	}
	w.pause()
	for range repeats {
		if w.stopped() {
			break
		}
		// Only success is final: the first request may be on its way still, and find
		// that what a later one was refused for is no longer so.
		if again := w.client.send(s.request); again.outcome() == done {
			s.repeated = true
			w.h.answer(s, again)
			return again
		}
		w.pause()
	}
	return a
}

func (w *writer) pause() {
	select {
	case <-time.After(time.Duration(w.rng.Int64N(int64(pauseMax)))):
	case <-w.over:
	}
}

// avoid keeps the writer from using the names of an operation again in this round.
func (w *writer) avoid(o *operation) {
	if w.avoided == nil {
		return // nobody else uses them
	}
	w.avoided[o.addressed] = true
	if o.naming != nil {
		w.avoided[o.naming.from], w.avoided[o.naming.to] = true, true
	}
	if o.namespace != nil {
		w.avoided[dotted(o.namespace.levels)] = true
	}
}

// avoids tells whether a name, or one within it, is among those.
func (w *writer) avoids(name string) bool {
	if w.avoided[name] || w.taken[name] {
		return true
	}
	for other := range w.avoided {
		if strings.HasPrefix(other, name+".") {
			return true
		}
	}
	return false
}

// Schema of every table.
const schema = `{"type":"struct","schema-id":0,"fields":[` +
	`{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"note","required":false,"type":"string"}]}`

type object = map[string]any

// create sends the creation of a table and returns it, whatever became of it.
func (w *writer) create(kind, name string, adapt func(*operation, object)) (*table, answer) {
	o := w.operation(kind)
	o.table = w.h.newTable(o.token)
	o.naming = &naming{to: name}
	o.edit.set[createdProperty] = o.token
	_, last := split(name)
	body := object{"name": last, "schema": json.RawMessage(schema), "properties": o.edit.set}
	if adapt != nil {
		adapt(o, body)
	}
	return o.table, w.sent(tableRequest("POST", tablesPath(name), body), o)
}

// ownName is a fresh name in one of the namespaces where this writer's tables are.
func (w *writer) ownName() string {
	spaces := []string{eastSpace, westSpace}
	for _, n := range w.h.sureSpaces(w.spaces) {
		spaces = append(spaces, dotted(n.levels))
	}
	return spaces[w.rng.IntN(len(spaces))] + ".t-" + w.token()
}

func (w *writer) createTable() {
	if len(w.tables) >= 12 {
		if len(w.h.sure(w.tables)) > 0 {
			w.drop()
		}
		return
	}
	name := w.ownName()
	if w.rng.IntN(3) == 0 { // a name that may have been used and dropped, by this writer only
		name = fmt.Sprintf("%s.again-%s-%d", eastSpace, w.name, w.rng.IntN(3))
		if w.avoids(name) {
			return
		}
		for _, t := range w.tables {
			if w.h.nameOf(t) == name {
				return
			}
		}
	}
	shape := w.rng.IntN(7)
	t, a := w.create("create", name, func(o *operation, body object) {
		switch shape {
		case 0:
			body["location"] = w.root + "/chosen/" + o.token
		case 1:
			o.edit.set["write.metadata.compression-codec"] = "gzip"
		case 2: // in another format
			body["properties"] = o.edit.apply(map[string]string{"format-version": "1"})
		case 3:
			o.deleteAfterCommit(1)
		}
	})
	if a.outcome() == done {
		w.tables = append(w.tables, t)
	}
}

// stagedCreate is the kind of a creation that is a commit.
const stagedCreate = "staged create"

// stage stages a table, and returns the operation that creates it and the updates
// that it takes; nil if it could not be staged.
func (w *writer) stage(kind, name string) (*operation, []object) {
	_, last := split(name)
	o := w.operation(kind)
	o.table, o.naming = w.h.newTable(o.token), &naming{to: name}
	o.edit.set[createdProperty] = o.token
	stage := w.client.callTable("POST", tablesPath(name), object{
		"name": last, "schema": json.RawMessage(schema), "stage-create": true, "properties": o.edit.set,
	})
	if stage.outcome() != done {
		return nil, nil
	}
	staged := stage.table.parsed
	return o, []object{
		{"action": "assign-uuid", "uuid": staged.UUID},
		{"action": "upgrade-format-version", "format-version": 2},
		{"action": "add-schema", "schema": json.RawMessage(schema), "last-column-id": 2},
		{"action": "set-current-schema", "schema-id": -1},
		{"action": "add-spec", "spec": object{"spec-id": 0, "fields": []any{}}},
		{"action": "set-default-spec", "spec-id": -1},
		{"action": "add-sort-order", "sort-order": object{"order-id": 0, "fields": []any{}}},
		{"action": "set-default-sort-order", "sort-order-id": -1},
		{"action": "set-location", "location": staged.Location},
		{"action": "set-properties", "updates": o.edit.set},
	}
}

var assertCreate = []object{{"type": "assert-create"}}

// createStaged stages a table and mostly, but not always, goes on to create it.
func (w *writer) createStaged() {
	name := w.ownName()
	o, updates := w.stage(stagedCreate, name)
	if o == nil || w.rng.IntN(4) == 0 {
		return // nothing of it may ever be seen
	}
	a := w.sent(tableRequest("POST", tablePath(name), object{"requirements": assertCreate, "updates": updates}), o)
	if a.outcome() == done {
		w.tables = append(w.tables, o.table)
	}
}

// pick is one of the writer's own tables, or nil.
func (w *writer) pick() *table {
	tables := w.h.sure(w.tables)
	if len(tables) == 0 {
		w.createTable()
		return nil
	}
	return tables[w.rng.IntN(len(tables))]
}

// updates are what an operation's edit is sent as.
func (o *operation) updates() []object {
	updates := []object{}
	if s := o.edit.snapshot; s != nil {
		updates = append(updates,
			object{"action": "add-snapshot", "snapshot": s},
			object{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": s.ID})
	}
	if len(o.edit.remove) > 0 {
		updates = append(updates, object{"action": "remove-properties", "removals": o.edit.remove})
	}
	return append(updates, object{"action": "set-properties", "updates": o.edit.set})
}

// commit sends an operation's edit to a table.
func (w *writer) commit(o *operation, requirements []object, more ...object) answer {
	requirements = append([]object{}, requirements...) // an empty array, not null
	return w.sent(tableRequest("POST", tablePath(o.addressed), object{
		"identifier": identify(o.addressed), "requirements": requirements, "updates": append(o.updates(), more...),
	}), o)
}

func (w *writer) commitOwn() {
	t := w.pick()
	if t == nil {
		return
	}
	o := w.operation("commit")
	o.table, o.addressed = t, w.h.nameOf(t)
	extra := "extra." + w.name
	if w.rng.IntN(2) == 0 {
		o.edit.set[extra] = o.token
	} else {
		o.edit.remove = []string{extra}
	}
	w.commit(o, nil)
}

// commitShared commits to a table that others commit to, rename and drop meanwhile.
func (w *writer) commitShared() {
	w.mu.Lock()
	t := w.shared[w.rng.IntN(len(w.shared))]
	w.mu.Unlock()
	o := w.operation("shared commit")
	o.table, o.addressed = t, w.h.nameOf(t)
	if o.addressed == "" {
		return
	}
	o.refusable = []int{http.StatusNotFound}
	w.commit(o, nil)
}

// load reads a table and records what it saw.
func (w *writer) load(t *table) *version {
	o := &operation{kind: "load", writer: w.name, table: t, addressed: w.h.nameOf(t), refusable: []int{http.StatusNotFound}}
	if o.addressed == "" {
		return nil
	}
	path := tablePath(o.addressed)
	if t.view {
		path = viewPath(o.addressed)
	}
	a := w.sent(tableRequest("GET", path, nil), o)
	if a.outcome() != done {
		return nil
	}
	return a.table.parsed
}

func (w *writer) read() {
	w.mu.Lock()
	t := w.shared[w.rng.IntN(len(w.shared))]
	w.mu.Unlock()
	if own := w.h.sure(w.tables); len(own) > 0 && w.rng.IntN(2) == 0 {
		t = own[w.rng.IntN(len(own))]
	}
	w.load(t)
}

// commitHot appends a snapshot to the table that everybody appends to. Whoever
// comes too late loads the table and tries again, with another snapshot.
func (w *writer) commitHot() {
	const triesMax = 4
	for range triesMax {
		base := w.load(w.hot)
		if base == nil {
			return
		}
		o := w.appendTo(w.hot, base)
		a := w.commit(o, o.requirements(base))
		if a.outcome() != refused {
			return
		}
	}
}

// appendTo is the operation that appends a snapshot to a table as it was loaded.
func (w *writer) appendTo(t *table, base *version) *operation {
	o := w.operation("append")
	o.table, o.addressed = t, w.h.nameOf(t)
	o.expectedMain, o.expectedUUID = base.main(), base.UUID
	o.refusable = []int{http.StatusConflict}
	o.edit.snapshot = &snapshot{
		ID: w.rng.Int64(), Parent: base.main(), Sequence: base.LastSequence + 1, Time: time.Now().Add(time.Duration(w.ahead.Load())).UnixMilli(),
		Summary: map[string]string{"operation": "append", "token": o.token},
	}
	o.edit.snapshot.ManifestList = fmt.Sprintf("%s/metadata/snap-%d.avro", base.Location, o.edit.snapshot.ID)
	return o
}

// requirements are those of an append to a table as it was loaded.
func (o *operation) requirements(base *version) []object {
	return []object{
		{"type": "assert-table-uuid", "uuid": base.UUID},
		{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": o.expectedMain},
	}
}

// commitHopeless sends a commit that must be refused, and whole: its updates are good.
func (w *writer) commitHopeless() {
	targets := append([]*table{w.hot}, w.h.sure(w.tables)...)
	t := targets[w.rng.IntN(len(targets))]
	o := w.operation("hopeless commit")
	o.table, o.addressed, o.hopeless = t, w.h.nameOf(t), true
	o.refusable = []int{http.StatusConflict}
	var requirements, more []object
	switch w.rng.IntN(6) {
	case 0:
		requirements = []object{{"type": "assert-table-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}}
	case 1: // random, so no snapshot of any table
		requirements = []object{{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": w.rng.Int64()}}
	case 2:
		requirements = []object{{"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1000}}
	case 3:
		requirements = []object{{"type": "assert-create"}}
	case 4: // the last update is wrong, those before it are not
		o.refusable = []int{http.StatusBadRequest}
		more = []object{{"action": "set-current-schema", "schema-id": 1000}}
	case 5:
		o.refusable = []int{http.StatusBadRequest}
		more = []object{{"action": "no-such-action"}}
	}
	w.commit(o, requirements, more...)
}

// createHopeless creates and renames onto a name that is taken.
func (w *writer) createHopeless() {
	t := w.pick()
	if t == nil {
		return
	}
	name := w.h.nameOf(t)
	if w.rng.IntN(2) == 0 {
		if other := w.pick(); other != nil && other != t {
			w.renameTo("hopeless rename", other, name, true, http.StatusConflict)
		}
		return
	}
	hopeless := func(o *operation, _ object) { o.hopeless, o.refusable = true, []int{http.StatusConflict} }
	switch { // tables and views share their names
	case w.rng.IntN(3) == 0:
		w.makeView("hopeless create", name, hopeless)
	case len(w.h.sure(w.views)) > 0 && w.rng.IntN(3) == 0:
		w.create("hopeless create", w.h.nameOf(w.h.sure(w.views)[0]), hopeless)
	default:
		w.create("hopeless create", name, hopeless)
	}
}

func (w *writer) renameTo(kind string, t *table, to string, hopeless bool, refusable ...int) answer {
	o := w.operation(kind)
	o.edit = nil
	o.table, o.addressed = t, w.h.nameOf(t)
	o.naming = &naming{from: o.addressed, to: to}
	o.hopeless, o.refusable = hopeless, refusable
	return w.sent(requestOf("POST", prefix+"/tables/rename", object{"source": identify(o.addressed), "destination": identify(to)}), o)
}

func (w *writer) rename() {
	if t := w.pick(); t != nil {
		w.renameTo("rename", t, w.ownName(), false)
	}
}

// dropTable sends a drop.
func (w *writer) dropTable(kind string, t *table, purge bool, refusable ...int) answer {
	o := w.operation(kind)
	o.edit = nil
	o.table, o.addressed = t, w.h.nameOf(t)
	if o.addressed == "" {
		return answer{status: http.StatusNotFound}
	}
	o.naming = &naming{from: o.addressed, purge: purge}
	o.refusable = refusable
	query := ""
	if purge {
		query = "?purgeRequested=true"
	}
	return w.sent(requestOf("DELETE", tablePath(o.addressed)+query, nil), o)
}

// drop drops one of the writer's own tables, with and without purge.
func (w *writer) drop() {
	if t := w.pick(); t != nil && w.dropTable("drop", t, w.rng.IntN(2) == 0).outcome() == done {
		w.forget(t)
	}
}

func (w *writer) forget(t *table) {
	for i := range w.tables {
		if w.tables[i] == t {
			w.tables = append(w.tables[:i], w.tables[i+1:]...)
			return
		}
	}
}

// replaceShared renames the writer's shared table, or drops it and puts another in
// its place, while the others commit to it.
func (w *writer) replaceShared() {
	if w.index >= len(w.shared) {
		w.commitShared()
		return
	}
	w.mu.Lock()
	t := w.shared[w.index]
	w.mu.Unlock()
	if len(w.h.sure([]*table{t})) == 0 {
		w.commitShared()
		return
	}
	at, space := w.h.nameOf(t), []string{sharedSpace, eastSpace}[w.rng.IntN(2)]
	switch choice := w.rng.IntN(4); {
	case at != "" && choice < 2:
		w.renameTo("rename", t, space+".shared-"+w.token(), false)
		return
	case at != "" && choice == 2:
		if a := w.unregister(t); a.outcome() == done {
			w.register(t, space+".shared-"+w.token(), a.table.MetadataLocation)
		}
		return
	case at != "" && w.dropTable("drop", t, w.rng.IntN(2) == 0).outcome() != done:
		return
	}
	w.makeShared()
}

func (w *writer) makeShared() {
	if t, a := w.create("create", sharedSpace+".shared-"+w.token(), nil); a.outcome() == done {
		w.mu.Lock()
		w.shared[w.index] = t
		w.mu.Unlock()
	}
}

// makeNamespace sends the creation of a namespace and returns it.
func (w *writer) makeNamespace(levels ...string) (*namespace, answer) {
	o := w.operation("create namespace")
	o.namespace = w.h.newNamespace(o.token, levels...)
	o.naming = &naming{to: dotted(levels)}
	o.edit.set[createdProperty] = o.token
	return o.namespace, w.sent(requestOf("POST", prefix+"/namespaces", object{"namespace": levels, "properties": o.edit.set}), o)
}

// createNamespace makes a namespace of the writer's own, at times within another
// or under a name that it used before.
func (w *writer) createNamespace() {
	if len(w.spaces) >= 6 {
		w.dropNamespace()
		return
	}
	var levels []string
	if sure := w.h.sureSpaces(w.spaces); len(sure) > 0 && w.rng.IntN(3) == 0 {
		levels = append(levels, sure[w.rng.IntN(len(sure))].levels...)
	}
	last := "n-" + w.token()
	if w.rng.IntN(3) == 0 {
		last = "again-" + w.name
	}
	levels = append(levels, last)
	if w.avoids(dotted(levels)) {
		return
	}
	if slices.ContainsFunc(w.spaces, func(n *namespace) bool { return slices.Equal(n.levels, levels) }) {
		return
	}
	if n, a := w.makeNamespace(levels...); a.outcome() == done {
		w.spaces = append(w.spaces, n)
	}
}

func (w *writer) setNamespaceProperties() {
	w.h.mu.Lock()
	targets := append([]*namespace{}, w.h.namespaces[:4]...) // the four that always are
	w.h.mu.Unlock()
	targets = append(targets, w.h.sureSpaces(w.spaces)...)
	o := w.operation("set namespace properties")
	o.namespace = targets[w.rng.IntN(len(targets))]
	o.hopeless = w.rng.IntN(4) == 0
	body := object{"updates": o.edit.set, "removals": []string{"absent"}}
	if o.hopeless { // what is updated is removed, too
		o.refusable = []int{http.StatusUnprocessableEntity}
		body["removals"] = []string{lastProperty}
	}
	w.sent(requestOf("POST", namespacePath(o.namespace.levels...)+"/properties", body), o)
}

// dropNamespace drops a namespace of the writer's own, which is refused if it still
// holds something.
func (w *writer) dropNamespace() {
	if len(w.spaces) == 0 {
		return
	}
	i := w.rng.IntN(len(w.spaces))
	n := w.spaces[i]
	if w.avoids(dotted(n.levels)) { // nobody knows what is in it
		return
	}
	full := false
	for _, t := range slices.Concat(w.tables, w.views) {
		full = full || strings.HasPrefix(w.h.nameOf(t), dotted(n.levels)+".")
	}
	for _, other := range w.spaces {
		full = full || strings.HasPrefix(dotted(other.levels), dotted(n.levels)+".")
	}
	if w.dropSpace(n, full).outcome() == done {
		w.spaces = append(w.spaces[:i], w.spaces[i+1:]...)
	}
}

// dropSpace sends the drop of a namespace; full says that it must be refused.
func (w *writer) dropSpace(n *namespace, full bool, refusable ...int) answer {
	o := w.operation("drop namespace")
	o.edit = nil
	o.namespace, o.hopeless, o.refusable = n, full, refusable
	if full {
		o.refusable = []int{http.StatusConflict}
	}
	o.naming = &naming{from: dotted(n.levels)}
	return w.sent(requestOf("DELETE", namespacePath(n.levels...), nil), o)
}
