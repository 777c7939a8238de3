package check_test

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/sim/check"
	"github.com/landfast/landfast/internal/sim/history"
)

// world is a catalog that is right because it does one thing after the other. Clients
// call it at one time, it acts at a later, and they are told at a still later one.
type world struct {
	random *rand.Rand
	now    int64
	spaces map[history.Name]string // tokens of namespaces, and of warehouses
	tables map[history.Name]*thing
	files  map[string]*metadata
	done   map[string]history.Operation // by idempotency key
	ids    int
	// registered are the uuids of tables of which there may be several.
	registered map[string]bool
	doomed     []string // files that fall off a log

	// bug is a mistake that is made now and then, and made is how often it was.
	bug  string
	made int
	was  map[history.Name]history.State // what a load has shown
}

// errs tells whether to make the mistake.
func (w *world) errs(bug string) bool {
	if w.bug != bug || w.random.IntN(4) > 0 {
		return false
	}
	w.made++
	return true
}

// thing is a table or a view.
type thing struct {
	view bool
	at   string // its metadata file
}

// metadata is a metadata file, as far as the checkers read it.
type metadata struct {
	Format         int               `json:"format-version"`
	UUID           string            `json:"table-uuid,omitempty"`
	ViewUUID       string            `json:"view-uuid,omitempty"`
	Location       string            `json:"location"`
	LastUpdated    int64             `json:"last-updated-ms"`
	LastSequence   int64             `json:"last-sequence-number"`
	Properties     map[string]string `json:"properties"`
	CurrentID      int64             `json:"current-snapshot-id"`
	Snapshots      []snapshot        `json:"snapshots"`
	SnapshotLog    []snapshotEntry   `json:"snapshot-log"`
	MetadataLog    []fileEntry       `json:"metadata-log"`
	number, keeps  int
	deletesDropped bool
}

type snapshot struct {
	ID       int64 `json:"snapshot-id"`
	Sequence int64 `json:"sequence-number"`
	Time     int64 `json:"timestamp-ms"`
}

type snapshotEntry struct {
	Time int64 `json:"timestamp-ms"`
	ID   int64 `json:"snapshot-id"`
}

type fileEntry struct {
	Time int64  `json:"timestamp-ms"`
	File string `json:"metadata-file"`
}

func newWorld(random *rand.Rand) *world {
	return &world{
		random: random, spaces: map[history.Name]string{{Warehouse: "w"}: ""},
		tables: map[history.Name]*thing{}, files: map[string]*metadata{}, done: map[string]history.Operation{},
		registered: map[string]bool{}, was: map[history.Name]history.State{},
	}
}

func (w *world) id() int { w.ids++; return w.ids }

func (w *world) read(location string) ([]byte, error) {
	m, ok := w.files[location]
	if !ok {
		return nil, fmt.Errorf("%s: %w", location, fs.ErrNotExist)
	}
	return json.Marshal(m)
}

func (w *world) pointers() []check.Pointer {
	var all []check.Pointer
	for n, t := range w.tables {
		m := w.files[t.at]
		all = append(all, check.Pointer{Name: n, View: t.view, File: t.at, Registered: m != nil && w.registered[m.UUID]})
	}
	return all
}

func (w *world) state(t *thing) history.State {
	m := w.files[t.at]
	return history.State{Token: m.Properties["token"], Snapshot: m.CurrentID, UUID: m.UUID + m.ViewUUID, Location: t.at}
}

func spaceOf(n history.Name) history.Name {
	return history.Name{Warehouse: n.Warehouse, Namespace: n.Namespace}
}

func parentOf(n history.Name) history.Name {
	parent, _, ok := cutLast(n.Namespace)
	if !ok {
		return history.Name{Warehouse: n.Warehouse}
	}
	return history.Name{Warehouse: n.Warehouse, Namespace: parent}
}

func cutLast(dotted string) (before, after string, ok bool) {
	i := strings.LastIndexByte(dotted, '.')
	if i < 0 {
		return "", dotted, false
	}
	return dotted[:i], dotted[i+1:], true
}

// missing is the refusal for a container that is not there.
func (w *world) missing(n history.Name) history.Refusal {
	if _, ok := w.spaces[n]; ok {
		return ""
	}
	if n.Namespace == "" {
		return history.NoSuchWarehouse
	}
	return history.NoSuchNamespace
}

// write makes the next metadata of a table or view.
func (w *world) write(base *thing, p history.Part, token string, isView bool) *thing {
	m := &metadata{Format: 2, Properties: map[string]string{}, keeps: 1 + w.random.IntN(6), deletesDropped: w.random.IntN(2) == 0}
	if base == nil {
		uuid := fmt.Sprintf("u%d", w.id())
		if m.Location = "file:///w/" + uuid; isView {
			m.ViewUUID = uuid
		} else {
			m.UUID = uuid
		}
	} else {
		was := w.files[base.at]
		*m = *was
		m.number++
		m.Properties = maps.Clone(was.Properties)
		m.Snapshots, m.SnapshotLog, m.MetadataLog = slices.Clone(was.Snapshots), slices.Clone(was.SnapshotLog), slices.Clone(was.MetadataLog)
		if !isView {
			m.MetadataLog = append(m.MetadataLog, fileEntry{was.LastUpdated, base.at})
		}
		for len(m.MetadataLog) > m.keeps {
			if m.deletesDropped && !w.registered[m.UUID] {
				w.doomed = append(w.doomed, m.MetadataLog[0].File)
			}
			m.MetadataLog = m.MetadataLog[1:]
		}
	}
	m.Properties["token"] = token
	m.LastUpdated = max(m.LastUpdated, 1_700_000_000_000+w.now+w.random.Int64N(90_000)-45_000)
	m.add(p)
	at := fmt.Sprintf("%s/metadata/%05d-%d.metadata.json", m.Location, m.number, w.id())
	w.files[at] = m
	return &thing{isView, at}
}

// add makes the part's snapshot current, if it has one.
func (m *metadata) add(p history.Part) {
	if p.Snapshot != 0 {
		m.LastSequence++
		m.CurrentID = p.Snapshot
		m.Snapshots = append(m.Snapshots, snapshot{p.Snapshot, m.LastSequence, m.LastUpdated})
		m.SnapshotLog = append(m.SnapshotLog, snapshotEntry{m.LastUpdated, p.Snapshot})
	}
}

// do carries an operation out and fills in what came of it.
func (w *world) do(o *history.Operation) {
	if was, ok := w.done[o.Key]; ok && o.Key != "" && !w.errs("a replay is carried out again") {
		o.Outcome, o.Seen = was.Outcome, was.Seen
		return
	}
	w.doomed = nil
	tables := maps.Clone(w.tables)
	if o.Refusal = w.change(o); o.Refusal != "" {
		o.Outcome = history.Refused
		return
	}
	for _, file := range w.doomed {
		delete(w.files, file)
	}
	o.Outcome = history.Done
	if o.Kind == history.Commit && w.errs("a commit is lost") || o.Kind == history.DropTable && w.errs("a drop is lost") ||
		o.Kind == history.RenameTable && w.errs("a rename is lost") {
		w.tables = tables
	}
	if o.Kind == history.Transaction && w.errs("half of a transaction is lost") {
		n := o.Parts[len(o.Parts)-1].Name
		if w.tables[n] = tables[n]; tables[n] == nil {
			delete(w.tables, n)
		}
	}
	if o.Key != "" {
		w.done[o.Key] = *o
	}
}

func (w *world) change(o *history.Operation) history.Refusal {
	isView := strings.HasSuffix(string(o.Kind), "view")
	there := w.tables[o.Name]
	if there != nil && there.view != isView {
		there = nil // of the wrong kind
	}
	switch o.Kind {
	case history.CreateNamespace:
		if r := w.missing(parentOf(o.Name)); r != "" {
			return r
		}
		if w.missing(o.Name) == "" {
			return history.AlreadyExists
		}
		w.spaces[o.Name] = o.Token
		return ""
	case history.CreateWarehouse:
		if w.missing(o.Name) == "" {
			return history.AlreadyExists
		}
		w.spaces[o.Name] = o.Token
		return ""
	case history.SetNamespace, history.LoadNamespace, history.ListNamespaces, history.ListTables:
		if r := w.missing(o.Name); r != "" {
			return r
		}
		switch o.Kind {
		case history.SetNamespace:
			w.spaces[o.Name] = o.Token
		case history.LoadNamespace:
			o.Seen = history.State{Token: w.spaces[o.Name]}
		case history.ListTables:
			for n, t := range w.tables {
				if spaceOf(n) == o.Name && !t.view {
					o.Listed = append(o.Listed, n.Name)
				}
			}
		case history.ListNamespaces:
			for n := range w.spaces {
				if n.Namespace != "" && parentOf(n) == o.Name {
					o.Listed = append(o.Listed, n.Namespace)
				}
			}
		}
		slices.Sort(o.Listed)
		return ""
	case history.DropNamespace, history.DropWarehouse:
		if r := w.missing(o.Name); r != "" {
			return r
		}
		for n := range w.tables {
			if spaceOf(n) == o.Name && !w.errs("a namespace is dropped under its tables") {
				return history.NotEmpty
			}
		}
		for n := range w.spaces {
			if n.Namespace != "" && parentOf(n) == o.Name {
				return history.NotEmpty
			}
		}
		delete(w.spaces, o.Name)
		return ""
	case history.CreateTable, history.CreateView:
		if r := w.missing(spaceOf(o.Name)); r != "" {
			return r
		}
		if w.tables[o.Name] != nil {
			return history.AlreadyExists
		}
		w.tables[o.Name] = w.write(nil, history.Part{}, o.Token, isView)
		o.Seen = w.state(w.tables[o.Name])
		return ""
	case history.RegisterTable:
		if w.files[o.From] == nil {
			return history.Busy
		}
		if there == nil || !o.Overwrite {
			if r := w.missing(spaceOf(o.Name)); r != "" {
				return r
			}
			if w.tables[o.Name] != nil {
				return history.AlreadyExists
			}
		}
		w.tables[o.Name] = &thing{at: o.From}
		w.registered[w.files[o.From].UUID] = true
		o.Seen = w.state(w.tables[o.Name])
		return ""
	case history.Commit, history.Transaction, history.ReplaceView:
		staged := map[history.Name]*thing{}
		for _, p := range o.Parts {
			t, again := staged[p.Name]
			if !again {
				t = w.tables[p.Name]
			}
			switch {
			case t != nil && t.view != isView && p.Creates:
				return history.AlreadyExists
			case t != nil && t.view != isView, t == nil && !p.Creates:
				return history.NoSuchTable
			case t == nil:
				if r := w.missing(spaceOf(p.Name)); r != "" {
					return r
				}
			case p.Creates,
				p.Expect != nil && *p.Expect != w.state(t).Snapshot && !w.errs("a requirement is passed over"),
				p.UUID != "" && p.UUID != w.state(t).UUID:
				if w.errs("a commit is refused and applied") && o.Kind == history.Commit {
					w.tables[p.Name] = w.write(t, p, o.Token, isView)
				}
				return history.Requirement
			}
			if again {
				w.files[t.at].add(p) // one file for all parts of a table
				continue
			}
			staged[p.Name] = w.write(t, p, o.Token, isView)
		}
		maps.Copy(w.tables, staged)
		if o.Kind != history.Transaction {
			o.Seen = w.state(w.tables[o.Name])
		}
		return ""
	}
	if there == nil {
		return history.NoSuchTable
	}
	switch o.Kind {
	case history.LoadTable, history.LoadView:
		o.Seen = w.state(there)
		if was, ok := w.was[o.Name]; ok && was != o.Seen && w.errs("a load is stale") {
			o.Seen = was
		}
		w.was[o.Name] = o.Seen
	case history.TableExists:
	case history.DropTable, history.DropView:
		delete(w.tables, o.Name)
	case history.Unregister:
		o.Seen = w.state(there)
		delete(w.tables, o.Name)
	case history.RenameTable, history.RenameView:
		if o.To == o.Name {
			return ""
		}
		if r := w.missing(spaceOf(o.To)); r != "" {
			return r
		}
		if w.tables[o.To] != nil {
			return history.AlreadyExists
		}
		w.tables[o.To] = there
		delete(w.tables, o.Name)
	default:
		panic(o.Kind)
	}
	return ""
}

// play is a history of clients who do everything to few names.
type play struct {
	*world
	clients, steps int
	tables         int     // how many names in each namespace
	unknown        float64 // how often an answer is lost
	ops            []history.Operation
	events         events
	known          map[history.Name]history.State // what anybody saw last
	files          []string
}

type event struct {
	at, order int64
	do        func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { x := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return x }

func (p *play) later(d int64, do func()) {
	heap.Push(&p.events, event{p.now + d, int64(p.id()), do})
}

func newPlay(seed uint64, clients, steps, tables int, unknown float64) *play {
	return &play{
		world: newWorld(rand.New(rand.NewPCG(seed, 1))), clients: clients, steps: steps, tables: tables, unknown: unknown,
		known: map[history.Name]history.State{},
	}
}

func (p *play) run() []history.Operation {
	for _, namespace := range []string{"a", "b", "a.c"} {
		o := history.Operation{
			ID: len(p.ops), Kind: history.CreateNamespace, Name: history.Name{Warehouse: "w", Namespace: namespace},
			Token: "made " + namespace, Replays: -1,
		}
		p.do(&o)
		p.ops = append(p.ops, o)
	}
	p.now = 1
	for c := range p.clients {
		p.later(p.random.Int64N(10), func() { p.client(c, p.steps) })
	}
	for p.events.Len() > 0 {
		e := heap.Pop(&p.events).(event)
		p.now = e.at
		e.do()
	}
	return p.ops
}

// client calls one operation, and then the others.
func (p *play) client(c, left int) {
	if left == 0 {
		return
	}
	p.call(p.operation(), c, func() { p.later(p.random.Int64N(5), func() { p.client(c, left-1) }) })
}

// call sends an operation; then is what follows its answer.
func (p *play) call(o history.Operation, c int, then func()) {
	o.ID, o.Client, o.Call = len(p.ops), c, p.now
	p.ops = append(p.ops, o)
	act, answer := 1+p.random.Int64N(40), 1+p.random.Int64N(20)
	lost := p.random.Float64() < p.unknown
	if lost && p.random.IntN(3) == 0 {
		act = 1 + p.random.Int64N(2000) // it was only delayed
	}
	never := lost && p.random.IntN(3) == 0
	result := &o
	p.later(act, func() {
		if never {
			return
		}
		if p.random.IntN(40) == 0 {
			o.Outcome, o.Refusal = history.Refused, history.Busy
			return
		}
		p.do(result)
	})
	if lost {
		p.later(60, func() {
			told := &p.ops[o.ID]
			told.Outcome, told.Return = history.Unknown, history.Forever
			if o.Key != "" && p.random.IntN(2) == 0 {
				again := p.ops[o.ID]
				again.Outcome, again.Return = "", 0
				if again.Replays < 0 {
					again.Replays = o.ID
				}
				p.call(again, c, then)
				return
			}
			then()
		})
		return
	}
	p.later(act+answer, func() {
		result.Return = p.now
		p.ops[o.ID] = *result
		if o.Seen.Location != "" {
			p.known[o.Name] = o.Seen
			p.files = append(p.files, o.Seen.Location)
		}
		then()
	})
}

// operation is what a client comes to think of.
func (p *play) operation() history.Operation {
	id := p.id()
	o := history.Operation{Token: fmt.Sprintf("t%d", id), Replays: -1}
	if p.random.IntN(3) == 0 {
		o.Key = fmt.Sprintf("k%d", id)
	}
	pick := func(kinds ...history.Kind) { o.Kind = kinds[p.random.IntN(len(kinds))] }
	namespace := func() history.Name {
		return history.Name{Warehouse: "w", Namespace: []string{"a", "b", "a.c"}[p.random.IntN(3)]}
	}
	name := func() history.Name {
		n := namespace()
		n.Name = fmt.Sprintf("x%d", p.random.IntN(p.tables))
		return n
	}
	part := func(n history.Name) history.Part {
		q := history.Part{Name: n, Creates: p.random.IntN(8) == 0}
		if p.random.IntN(2) == 0 {
			q.Snapshot = int64(p.id())
		}
		if seen, ok := p.known[n]; ok && !q.Creates && p.random.IntN(3) > 0 {
			q.Expect = new(seen.Snapshot)
			if p.random.IntN(3) == 0 {
				q.UUID = seen.UUID
			}
		}
		return q
	}
	o.Name = name()
	switch p.random.IntN(36) {
	case 0, 1:
		pick(history.SetNamespace, history.LoadNamespace, history.ListTables, history.ListNamespaces)
		o.Name = namespace()
	case 2:
		pick(history.DropNamespace, history.DropNamespace, history.DropNamespace, history.DropWarehouse, history.CreateWarehouse, history.ListNamespaces)
		if o.Name = namespace(); o.Kind != history.DropNamespace {
			o.Name = history.Name{Warehouse: "w"}
		}
	case 3, 4:
		o.Kind = history.CreateNamespace
		o.Name = namespace()
	case 5, 6, 7, 8:
		pick(history.CreateTable, history.CreateTable, history.CreateTable, history.CreateView)
	case 9, 10:
		pick(history.DropTable, history.DropTable, history.Unregister, history.DropView)
	case 11, 12:
		pick(history.RenameTable, history.RenameTable, history.RenameView)
		o.To = name()
	case 13, 14, 15, 16, 17, 18, 19:
		o.Kind = history.Commit
		o.Parts = []history.Part{part(o.Name)}
	case 20, 21, 22:
		o.Kind = history.Transaction
		for range 2 + p.random.IntN(2) {
			o.Parts = append(o.Parts, part(name()))
		}
		o.Name = history.Name{}
	case 23, 24:
		if len(p.files) == 0 {
			o.Kind = history.TableExists
			break
		}
		o.Kind, o.From, o.Overwrite = history.RegisterTable, p.files[p.random.IntN(len(p.files))], p.random.IntN(2) == 0
		if m := p.world.files[o.From]; m == nil || m.ViewUUID != "" {
			o.Kind, o.From, o.Overwrite = history.TableExists, "", false
		}
	case 25:
		o.Kind = history.ReplaceView
		o.Parts = []history.Part{{Name: o.Name}}
	case 26:
		o.Kind = history.ListTables
		o.Name = namespace()
	default:
		pick(history.LoadTable, history.LoadTable, history.LoadTable, history.LoadView, history.TableExists)
	}
	switch o.Kind {
	case history.LoadTable, history.LoadView, history.TableExists, history.LoadNamespace, history.ListTables, history.ListNamespaces:
		o.Token, o.Key = "", ""
	}
	return o
}
