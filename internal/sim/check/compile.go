package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/sim/history"
)

// This file makes steps of operations, and cuts a history into partitions that have
// nothing to do with each other.

// words gives numbers to things, from 0 in the order in which they come.
type words[T comparable] struct {
	numbers map[T]int32
	list    []T
}

func newWords[T comparable](first ...T) *words[T] {
	w := &words[T]{numbers: map[T]int32{}}
	for _, v := range first {
		w.number(v)
	}
	return w
}

func (w *words[T]) number(v T) int32 {
	n, ok := w.numbers[v]
	if !ok {
		n = int32(len(w.list))
		w.numbers[v], w.list = n, append(w.list, v)
	}
	return n
}

// find is the number of v, or another where v has none.
func (w *words[T]) find(v T, otherwise int32) int32 {
	if n, ok := w.numbers[v]; ok {
		return n
	}
	return otherwise
}

// text is what has the number n, for people.
func (w *words[T]) text(n int32) string {
	switch n {
	case unknown:
		return "that is not known"
	case unnamed:
		return "that nobody names"
	}
	return fmt.Sprint(w.list[n])
}

// dictionary is what the answers of a history show, and the requirements name.
type dictionary struct {
	tokens    *words[string] // 0: unshown
	snapshots *words[int64]  // 0: noMain
	uuids     *words[string]
	files     *words[string]

	contents []history.State // of files
	lookers  []int32         // by file: how many answers show it that did not write it
	spaces   []int32         // by token: how many loads of namespaces show it
	// versions are the files that have a token and a uuid; none: there are several. A uuid
	// that is unknown stands for any.
	versions map[[2]int32]int32
	// shared are the uuids that answers showed under several names.
	shared map[int32]bool
}

// unshownToken is no operation's.
const unshownToken = "that no answer shows"

func newDictionary(ops []history.Operation) *dictionary {
	d := &dictionary{
		tokens: newWords(unshownToken), snapshots: newWords[int64](0), uuids: newWords[string](), files: newWords[string](),
		versions: map[[2]int32]int32{}, shared: map[int32]bool{},
	}
	bearers := map[int32]history.Name{} // of uuids
	version := func(token, uuid, file int32) {
		k := [2]int32{token, uuid}
		if there, ok := d.versions[k]; ok && there != file {
			file = none
		}
		d.versions[k] = file
	}
	for i := range ops {
		o := &ops[i]
		for _, p := range o.Parts {
			if p.Expect != nil {
				d.snapshots.number(*p.Expect)
			}
			if p.UUID != "" {
				d.uuids.number(p.UUID)
			}
		}
		if !showsState(o) {
			continue
		}
		token := d.tokens.number(o.Seen.Token)
		d.snapshots.number(o.Seen.Snapshot)
		uuid := unknown
		if o.Seen.UUID != "" {
			uuid = d.uuids.number(o.Seen.UUID)
		}
		for len(d.spaces) <= int(token) {
			d.spaces = append(d.spaces, 0)
		}
		if o.Kind == history.LoadNamespace {
			d.spaces[token]++
		}
		if o.Seen.Location == "" {
			continue
		}
		file := d.files.number(o.Seen.Location)
		if int(file) == len(d.contents) {
			d.contents, d.lookers = append(d.contents, o.Seen), append(d.lookers, 0)
		}
		version(token, uuid, file)
		if uuid != unknown {
			version(token, unknown, file)
			if bearer, ok := bearers[uuid]; ok && bearer != o.Name {
				d.shared[uuid] = true
			}
			bearers[uuid] = o.Name
		}
		if looks(o.Kind) && o.Replays < 0 {
			d.lookers[file]++
		}
	}
	for i := range ops { // what is registered may come back after it was overwritten
		if file := d.files.find(ops[i].From, none); file != none {
			d.lookers[file] = 0
		}
	}
	return d
}

// version is the file that holds what a step writes, if the answers tell, and how many of
// them show it. Where the step writes several tables, it must be certain which of them it is.
func (d *dictionary) version(c cell, several bool) (file, left int32) {
	if c.what == container {
		if int(c.token) < len(d.spaces) {
			left = d.spaces[c.token]
		}
		return none, left
	}
	file, ok := d.versions[[2]int32{c.token, c.uuid}]
	if !ok || file == none || several && (c.uuid == unknown || d.shared[c.uuid]) {
		return unknown, 0
	}
	return file, d.lookers[file]
}

// content is what a file holds, as far as answers have shown it.
func (d *dictionary) content(location string) seen {
	file := d.files.find(location, unknown)
	if file == unknown {
		return seen{token: unknown, snapshot: unknown, uuid: unknown, file: unknown}
	}
	s := d.seen(d.contents[file])
	if s.uuid == none {
		s.uuid = unknown
	}
	return s
}

func (d *dictionary) seen(s history.State) seen {
	show := seen{token: d.tokens.find(s.Token, unshown), snapshot: d.snapshots.find(s.Snapshot, unnamed), uuid: none, file: none}
	if s.UUID != "" {
		show.uuid = d.uuids.number(s.UUID)
	}
	if s.Location != "" {
		show.file = d.files.number(s.Location)
	}
	return show
}

// looks reports whether an answer of this kind shows what was there, and not what the
// operation made.
func looks(k history.Kind) bool {
	switch k {
	case history.LoadTable, history.LoadView, history.LoadNamespace, history.Unregister:
		return true
	}
	return false
}

// showsState reports whether the answer showed a state. A load always does; what else
// answers may leave it out.
func showsState(o *history.Operation) bool {
	switch {
	case o.Outcome != history.Done:
		return false
	case o.Kind == history.LoadTable, o.Kind == history.LoadView, o.Kind == history.LoadNamespace:
		return true
	}
	return o.Seen != (history.State{})
}

// isLook reports whether an operation changes nothing.
func isLook(k history.Kind) bool {
	switch k {
	case history.LoadNamespace, history.LoadTable, history.LoadView, history.TableExists, history.ListTables, history.ListNamespaces:
		return true
	}
	return false
}

// isOfView reports whether an operation is about views, not tables.
func isOfView(k history.Kind) bool {
	switch k {
	case history.CreateView, history.ReplaceView, history.LoadView, history.RenameView, history.DropView:
		return true
	}
	return false
}

// partsOf is what an operation does to single tables; none of a request that has no such.
func partsOf(o *history.Operation) []history.Part {
	switch o.Kind {
	case history.CreateTable, history.CreateView:
		p := history.Part{Name: o.Name}
		if len(o.Parts) > 0 {
			p = o.Parts[0]
		}
		p.Creates = true
		return []history.Part{p}
	case history.Commit, history.ReplaceView:
		if len(o.Parts) == 0 {
			return []history.Part{{Name: o.Name}}
		}
	}
	return o.Parts
}

// space is the namespace of a table or view.
func space(n history.Name) history.Name {
	return history.Name{Warehouse: n.Warehouse, Namespace: n.Namespace}
}

// above is what contains a name: its namespace, its parent, or its warehouse.
func above(n history.Name) history.Name {
	if n.Name != "" {
		return space(n)
	}
	i := strings.LastIndexByte(n.Namespace, '.')
	return history.Name{Warehouse: n.Warehouse, Namespace: n.Namespace[:max(i, 0)]}
}

// place is what has a cell: a name, or the idempotency key of an operation and its replays.
type place struct {
	history.Name
	key int // 1 + the ID of the operation; 0: it is a name
}

func (p place) String() string {
	if p.key > 0 {
		return fmt.Sprintf("the key of #%d", p.key-1)
	}
	return p.Name.String()
}

// request is an operation with its replays: they take place once among them.
type request struct {
	first   *history.Operation
	members []*history.Operation
}

// answer is what those of its members were told that succeeded; nil: none was.
func (r *request) answer() *history.Operation {
	for _, o := range r.members {
		if showsState(o) {
			return o
		}
	}
	return nil
}

// shown is what an answer tells of the change: nothing, or all of it, or where only a later state
// was shown, the uuid.
func (r *request) shown() history.State {
	if o := r.answer(); o != nil {
		return o.Seen
	}
	for _, o := range r.members {
		if showsLatest(o) {
			return history.State{UUID: o.Latest.UUID}
		}
	}
	return history.State{}
}

// has reports whether a member had the outcome.
func (r *request) has(outcome history.Outcome) bool {
	return slices.ContainsFunc(r.members, func(o *history.Operation) bool { return o.Outcome == outcome })
}

// happened reports whether the request may have been carried out.
func (r *request) happened() bool { return r.has(history.Done) || r.has(history.Unknown) }

// span is when it may have been: not before the first member was sent, and not after one
// was told that it had been.
func (r *request) span() (from, to int64) {
	from, to = math.MaxInt64, history.Forever
	for _, o := range r.members {
		if o.Outcome != history.Refused {
			from = min(from, o.Call)
		}
		if o.Outcome == history.Done {
			to = min(to, o.Return)
		}
	}
	return from, to
}

// requestsOf are the requests of a history in the order of their first operations, and the
// one of each operation.
func requestsOf(ops []history.Operation) (all []*request, of []*request) {
	byID := make(map[int]int, len(ops))
	for i := range ops {
		byID[ops[i].ID] = i
	}
	of = make([]*request, len(ops))
	for i := range ops {
		o := &ops[i]
		if at, ok := byID[o.Replays]; ok && o.Replays >= 0 && at < i && of[at] != nil {
			of[i] = of[at]
			of[i].members = append(of[i].members, o)
			continue
		}
		of[i] = &request{first: o, members: []*history.Operation{o}}
		all = append(all, of[i])
	}
	return all, of
}

// compiler makes the steps of a whole history. Its indices are of all places.
type compiler struct {
	*dictionary
	places   *words[place]
	children map[history.Name][]int32
	steps    []*step
}

// compile makes steps of all operations that tell something.
func compile(ops []history.Operation) *compiler {
	c := &compiler{dictionary: newDictionary(ops), places: newWords[place](), children: map[history.Name][]int32{}}
	for i := range ops {
		o := &ops[i]
		c.place(o.Name)
		c.place(o.To)
		for _, p := range o.Parts {
			c.place(p.Name)
		}
	}
	requests, _ := requestsOf(ops)
	needed, evident := c.needed(requests)
	for i, r := range requests {
		key := none
		if len(r.members) > 1 {
			key = c.places.number(place{key: 1 + r.first.ID})
		}
		var answer *seen
		if o := r.answer(); o != nil {
			answer = new(c.seen(o.Seen))
			if o.Kind == history.LoadNamespace || o.Kind == history.CreateNamespace || o.Kind == history.SetNamespace {
				answer.snapshot, answer.uuid, answer.file = none, none, none
			}
		}
		began := false
		for _, o := range r.members {
			if isSilent(o) {
				continue
			}
			st := c.step(r.first, o)
			st.key, st.evident = key, evident[i]
			switch {
			case key == none:
			case o.Outcome == history.Refused:
				st.reads.add(key)
			default:
				st.writes.add(key)
			}
			if o.Outcome != history.Refused {
				st.answer = answer
			}
			if o.Outcome == history.Unknown {
				if began || !needed[i] && !r.has(history.Done) {
					continue
				}
				began = true
			}
			c.steps = append(c.steps, st)
		}
	}
	return c
}

// isSilent reports whether an operation neither changed anything nor told anything.
func isSilent(o *history.Operation) bool {
	switch o.Outcome {
	case history.Refused:
		return o.Refusal == history.Busy || o.Refusal == history.Location
	case history.Unknown:
		return isLook(o.Kind)
	}
	return false
}

// place gives a cell to a name, and to what contains it.
func (c *compiler) place(n history.Name) {
	if n == (history.Name{}) {
		return
	}
	before := len(c.places.list)
	at := c.places.number(place{Name: n})
	if len(c.places.list) == before || n.Namespace == "" {
		return
	}
	c.children[above(n)] = append(c.children[above(n)], at)
	c.place(above(n))
}

func (c *compiler) at(n history.Name) int32 {
	if n == (history.Name{}) {
		return none
	}
	return c.places.number(place{Name: n})
}

// step is what one member of a request did.
func (c *compiler) step(request, o *history.Operation) *step {
	st := &step{
		op: o, kind: request.Kind, outcome: o.Outcome, refusal: o.Refusal, what: table, key: none,
		name: c.at(request.Name), to: c.at(request.To), token: c.tokens.find(request.Token, unshown),
	}
	if isOfView(request.Kind) {
		st.what = view
	}
	if o.Outcome == history.Refused {
		c.refusal(request, st)
		return st
	}
	switch request.Kind {
	case history.CreateNamespace:
		st.inside = []int32{c.at(above(request.Name))}
	case history.DropNamespace, history.DropWarehouse:
		st.under = c.children[request.Name]
	case history.ListTables, history.ListNamespaces:
		st.inside, st.name = []int32{st.name}, none
	case history.RegisterTable:
		st.inside, st.from = []int32{c.at(space(request.Name))}, c.content(request.From)
	case history.RenameTable, history.RenameView:
		st.inside = []int32{c.at(space(request.To))}
	}
	if parts := partsOf(request); len(parts) > 0 {
		st.name = none
		for _, p := range parts {
			st.parts = append(st.parts, c.part(p))
			if p.Creates {
				st.inside = append(st.inside, c.at(space(p.Name)))
			}
		}
	}
	st.each(func(at int32) { st.reads.add(at) }, func(at int32) { st.writes.add(at) })
	return st
}

func (c *compiler) part(p history.Part) part {
	q := part{name: c.at(p.Name), creates: p.Creates, snapshot: c.snapshots.find(p.Snapshot, unnamed), expect: none, uuid: none, onto: unknown}
	if p.Expect != nil {
		q.expect = c.snapshots.number(*p.Expect)
	}
	if p.UUID != "" {
		q.uuid = c.uuids.number(p.UUID)
	}
	if p.Onto != "" {
		q.onto = c.files.find(p.Onto, unknown)
	}
	return q
}

// refusal says what a refusal is about.
func (c *compiler) refusal(request *history.Operation, st *step) {
	for _, p := range partsOf(request) {
		st.parts = append(st.parts, c.part(p))
	}
	switch st.refusal {
	case history.NoSuchWarehouse:
		st.inside = []int32{c.at(history.Name{Warehouse: warehouseOf(request)})}
	case history.NoSuchNamespace:
		st.inside = c.namespacesOf(request)
	case history.NotEmpty:
		st.under = c.children[request.Name]
	}
	st.each(func(at int32) { st.reads.add(at) }, func(at int32) { st.reads.add(at) })
}

func warehouseOf(o *history.Operation) string {
	if o.Name.Warehouse == "" && len(o.Parts) > 0 {
		return o.Parts[0].Name.Warehouse
	}
	return o.Name.Warehouse
}

// namespacesOf are the namespaces that an operation may find missing.
func (c *compiler) namespacesOf(o *history.Operation) []int32 {
	names := []history.Name{o.Name, o.To}
	if o.Kind == history.CreateNamespace {
		names[0] = above(o.Name)
	}
	for _, p := range o.Parts {
		names = append(names, p.Name)
	}
	var all []int32
	for _, n := range names {
		if n.Namespace != "" {
			all = append(all, c.at(space(n)))
		}
	}
	return all
}

// each visits the places that a step depends on, and those that it is about.
func (st *step) each(reads, about func(at int32)) {
	for _, at := range st.inside {
		reads(at)
	}
	for _, at := range st.under {
		reads(at)
	}
	for _, p := range st.parts {
		about(p.name)
	}
	for _, at := range []int32{st.name, st.to} {
		switch {
		case at == none:
		case isLook(st.kind):
			reads(at)
		default:
			about(at)
		}
	}
}

// needed says of each request whether, if its outcome is unknown, it can explain anything. A
// commit of which no answer shows a trace explains at most why others were refused. And it
// says whether there is a trace.
func (c *compiler) needed(requests []*request) (needed, evident []bool) {
	named := map[int64]bool{}       // snapshots
	refused := int64(math.MinInt64) // when the last requirement failed
	for _, r := range requests {
		for _, o := range r.members {
			if showsState(o) {
				named[o.Seen.Snapshot] = true
			}
			for _, p := range partsOf(r.first) {
				if p.Expect != nil && o.Outcome != history.Refused {
					named[*p.Expect] = true
				}
			}
			if o.Outcome == history.Refused && o.Refusal == history.Requirement {
				refused = max(refused, o.Return)
			}
		}
	}
	needed, evident = make([]bool, len(requests)), make([]bool, len(requests))
	for i, r := range requests {
		parts := partsOf(r.first)
		evident[i] = c.tokens.find(r.first.Token, unshown) != unshown || slices.ContainsFunc(parts, func(p history.Part) bool {
			return p.Snapshot != 0 && named[p.Snapshot]
		})
		switch r.first.Kind {
		case history.Commit, history.Transaction, history.ReplaceView, history.SetNamespace:
			from, _ := r.span()
			needed[i] = evident[i] || refused >= from || slices.ContainsFunc(parts, func(p history.Part) bool { return p.Creates })
		default:
			needed[i] = true
		}
	}
	return needed, evident
}
