package check

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/sim/history"
)

// This file is the catalog as its clients may think of it: a map from names to what is
// there, changed by one operation after the other.
//
// What answers do not show is not told apart. Tokens and snapshots that no answer and no
// requirement names are all alike, so that the orders in which they could have been written
// are one order. The checker lives on that: most wrong orders are never tried.

// What is at a place.
const (
	nothing = iota
	table
	view
	container // a warehouse or a namespace
	taken     // an idempotency key under which the request was carried out
)

const (
	// unshown is the token that stands for all which no answer shows.
	unshown int32 = 0
	// unknown is what is found out by the first answer that shows it.
	unknown int32 = -1
	// unnamed is the snapshot that stands for all which nobody names.
	unnamed int32 = -2
	// none is the absence of an index or of a requirement.
	none int32 = -3
	// noMain is the absence of a snapshot; it has the index 0.
	noMain int32 = 0
)

// cell is what the model knows of one place. Its numbers are indices of a dictionary.
type cell struct {
	what     int32
	token    int32
	snapshot int32
	uuid     int32
	file     int32
	// left is how many answers are still to come that show this and nothing newer. Whoever
	// overwrites it before makes them impossible: that order is given up at once, instead of
	// after everything in between was tried.
	left int32
}

// bitset is a set of small numbers. It is never changed once it is part of a state.
type bitset []uint64

func (b bitset) has(i int32) bool { return int(i/64) < len(b) && b[i/64]&(1<<(i%64)) != 0 }

func (b bitset) with(i int32) bitset {
	c := make(bitset, max(len(b), int(i/64)+1))
	copy(c, b)
	c[i/64] |= 1 << (i % 64)
	return c
}

func (b bitset) without(i int32) bitset {
	c := slices.Clone(b)
	c[i/64] &^= 1 << (i % 64)
	return c
}

// add is with, in place.
func (b *bitset) add(i int32) {
	for int(i/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

func (b bitset) meets(o bitset) bool {
	for i := range min(len(b), len(o)) {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

func (b bitset) each(do func(i int32)) {
	for at, w := range b {
		for ; w != 0; w &= w - 1 {
			do(int32(at*64 + bits.TrailingZeros64(w)))
		}
	}
}

// seen is what an answer showed.
type seen struct {
	token, snapshot int32
	uuid, file      int32 // none: it did not show it
}

// part is what a step does to one table or view.
type part struct {
	name         int32
	creates      bool
	snapshot     int32 // noMain: adds none
	expect, uuid int32 // none: not required
	onto         int32 // the file that was there; unknown: any
}

// step is one operation as the model sees it. Places are indices of cells.
type step struct {
	op      *history.Operation
	kind    history.Kind
	outcome history.Outcome
	refusal history.Refusal

	what   int32 // table or view: what the operation is about
	name   int32 // the place that the operation is about
	to     int32
	inside []int32 // containers that the operation wants; of a refusal, of which it misses one
	under  []int32 // what is in the way of a drop of a container
	parts  []part
	token  int32
	from   seen // of a registration: what the file holds

	answer *seen // what the answer showed; nil: nothing
	key    int32 // the idempotency key; none: it bears none
	// evident is set if answers show a trace of it, or requirements name one.
	evident bool

	reads, writes bitset // of places
}

// model is the catalog for the steps of one partition.
type model struct {
	words *dictionary
	start []cell
	names []string // of the cells, for people
	steps []*step
}

// turn is one step that is being tried. It changes the cells, which are its model's to
// show, where they are; whoever gives up puts them back.
type turn struct {
	*model
	cells   []cell
	changed []change // in order
	// learned is set when what the answer showed could have been anything: the step is
	// then possible here, and perhaps only elsewhere true.
	learned bool
	// why and at say what was in the way.
	why string
	at  int32
}

type change struct {
	at  int32
	was cell
}

// undo puts back what the turn has changed.
func (t *turn) undo() {
	for _, c := range slices.Backward(t.changed) {
		t.cells[c.at] = c.was
	}
	t.changed = t.changed[:0]
}

func (t *turn) refuse(why string, at int32) bool {
	t.why, t.at = why, at
	return false
}

func (t *turn) set(at int32, c cell) {
	if t.cells[at] != c {
		t.changed = append(t.changed, change{at, t.cells[at]})
		t.cells[at] = c
	}
}

// take carries a step out, or says that it cannot be what happened.
func (t *turn) take(st *step) bool {
	if st.key != none && t.cells[st.key].what == taken {
		if st.outcome == history.Refused {
			return t.refuse("it was carried out before under its idempotency key, and must be answered alike", st.key)
		}
		return st.outcome == history.Done // an unknown one has nothing left to do
	}
	if st.outcome == history.Refused {
		return t.refused(st)
	}
	if !t.do(st) {
		return false
	}
	if st.key != none {
		t.set(st.key, cell{what: taken})
	}
	return true
}

// do carries out what succeeded.
func (t *turn) do(st *step) bool {
	for _, in := range st.inside {
		if t.cells[in].what != container {
			return t.refuse("that was not there", in)
		}
	}
	switch st.kind {
	case history.CreateWarehouse, history.CreateNamespace:
		return t.free(st.name) && t.write(st, st.name, cell{what: container, uuid: none, file: none})
	case history.SetNamespace:
		return t.there(st.name, container) && t.write(st, st.name, cell{what: container, uuid: none, file: none})
	case history.DropWarehouse, history.DropNamespace:
		for _, u := range st.under {
			if t.cells[u].what != nothing {
				return t.refuse("it was not empty", u)
			}
		}
		return t.there(st.name, container) && t.clear(st.name)
	case history.LoadNamespace, history.ListTables, history.ListNamespaces:
		return st.name == none || t.there(st.name, container) && t.show(st, st.name)
	case history.CreateTable, history.CreateView, history.Commit, history.ReplaceView, history.Transaction:
		for i := range st.parts {
			if !t.part(st, &st.parts[i]) {
				return false
			}
		}
		return true
	case history.RegisterTable:
		return t.register(st)
	case history.LoadTable, history.LoadView, history.TableExists:
		return t.there(st.name, st.what) && t.show(st, st.name)
	case history.DropTable, history.DropView, history.Unregister:
		return t.there(st.name, st.what) && t.show(st, st.name) && t.clear(st.name)
	case history.RenameTable, history.RenameView:
		if !t.there(st.name, st.what) {
			return false
		}
		if st.name == st.to {
			return true
		}
		if !t.free(st.to) {
			return false
		}
		t.set(st.to, t.cells[st.name])
		t.set(st.name, cell{})
		return true
	}
	panic(fmt.Sprintf("check: unknown kind of operation %q", st.kind))
}

func (t *turn) free(at int32) bool {
	return t.cells[at].what == nothing || t.refuse("that was there already", at)
}

func (t *turn) there(at, what int32) bool {
	return t.cells[at].what == what || t.refuse("that was not there", at)
}

// overwritable says whether what is there may be overwritten by who writes the token.
func (t *turn) overwritable(at, token int32) bool {
	c := t.cells[at]
	return c.left == 0 || c.token == token || t.refuse("a later answer shows what was to be overwritten", at)
}

func (t *turn) clear(at int32) bool {
	if !t.overwritable(at, none) {
		return false
	}
	t.set(at, cell{})
	return true
}

// write puts a new cell with the step's token, and compares it with the answer.
func (t *turn) write(st *step, at int32, c cell) bool {
	if !t.overwritable(at, st.token) {
		return false
	}
	c.token = st.token
	c.file, c.left = t.words.version(c, len(st.parts) > 1)
	t.set(at, c)
	return t.show(st, at)
}

func (t *turn) part(st *step, p *part) bool {
	c := t.cells[p.name]
	if p.creates {
		if !t.free(p.name) {
			return false
		}
		c = cell{what: st.what, uuid: unknown}
	} else if !t.there(p.name, st.what) {
		return false
	}
	if p.uuid != none && !p.creates {
		if c.uuid == unknown {
			c.uuid = p.uuid
		}
		if c.uuid != p.uuid {
			return t.refuse("it had another uuid than was required", p.name)
		}
	}
	if p.expect != none && !p.creates {
		if c.snapshot == unknown {
			c.snapshot = p.expect
		}
		if c.snapshot != p.expect {
			return t.refuse("main was not what was required", p.name)
		}
	}
	if p.onto != unknown && c.file != unknown && c.file != p.onto {
		return t.refuse("it was made on another metadata file", p.name)
	}
	if p.snapshot != noMain {
		c.snapshot = p.snapshot
	}
	return t.write(st, p.name, c)
}

func (t *turn) register(st *step) bool {
	switch c := t.cells[st.name]; {
	case c.what == table && st.op.Overwrite:
		if !t.overwritable(st.name, none) {
			return false
		}
	case !t.free(st.name):
		return false
	}
	// Other tables may show the same file, so nobody waits for the answers that do.
	t.set(st.name, cell{what: table, token: st.from.token, snapshot: st.from.snapshot, uuid: st.from.uuid, file: st.from.file})
	return t.show(st, st.name)
}

// show compares an answer with what is there, and learns from it what was unknown.
func (t *turn) show(st *step, at int32) bool {
	a := st.answer
	if a == nil {
		return true
	}
	c := t.cells[at]
	for _, v := range [...]struct {
		there *int32
		shown int32
		wrong string
	}{
		{&c.token, a.token, "the answer showed another token"},
		{&c.snapshot, a.snapshot, "the answer showed another snapshot"},
		{&c.uuid, a.uuid, "the answer showed another uuid"},
	} {
		if v.shown == none {
			continue
		}
		if *v.there == unknown {
			*v.there = v.shown
			t.learned = t.learned || v.there != &c.uuid
		}
		if *v.there != v.shown {
			return t.refuse(v.wrong, at)
		}
	}
	if a.file != none {
		if c.file == unknown {
			c.file, c.left = a.file, t.words.lookers[a.file]
		}
		if c.file != a.file {
			return t.refuse("the answer showed another metadata file", at)
		}
	}
	if looks(st.kind) && c.left > 0 {
		c.left--
	}
	t.set(at, c)
	return true
}

// refused says whether what the refusal tells is true.
func (t *turn) refused(st *step) bool {
	switch st.refusal {
	case history.NoSuchWarehouse, history.NoSuchNamespace:
		for _, in := range st.inside {
			if t.cells[in].what == nothing {
				return true
			}
		}
		return t.refuse("what is said to be missing was there", last(st.inside))
	case history.NotEmpty:
		for _, u := range st.under {
			if t.cells[u].what != nothing {
				return true
			}
		}
		return t.refuse("it was empty", st.name)
	case history.AlreadyExists:
		if len(st.parts) > 0 {
			return t.anyPart(st)
		}
		at := st.name
		if st.to != none {
			at = st.to
		}
		there := t.cells[at].what
		return there != nothing && (!st.op.Overwrite || there != table) || t.refuse("what is said to be in the way was not there", at)
	case history.NoSuchTable:
		if len(st.parts) > 0 {
			return t.anyPart(st)
		}
		return t.cells[st.name].what != st.what || t.refuse("what is said to be missing was there", st.name)
	case history.Requirement:
		return t.anyPart(st)
	}
	return t.refuse("no operation is refused for that", none)
}

// anyPart says whether the refusal is true of one of the parts, after the parts before it
// of the same table.
func (t *turn) anyPart(st *step) bool {
	scratch := turn{model: t.model, cells: t.cells}
	defer scratch.undo()
	silent := *st
	silent.answer = nil
	for i := range st.parts {
		p := &st.parts[i]
		c := scratch.cells[p.name]
		c.left = 0 // nothing is overwritten
		scratch.set(p.name, c)
		switch st.refusal {
		case history.NoSuchTable:
			if !p.creates && c.what != st.what {
				return true
			}
		case history.AlreadyExists:
			if p.creates && c.what != nothing {
				return true
			}
		case history.Requirement:
			switch {
			case c.what != st.what:
			case p.creates,
				p.expect != none && (c.snapshot == unknown || c.snapshot != p.expect),
				p.uuid != none && (c.uuid == unknown || c.uuid != p.uuid):
				return true
			}
		}
		scratch.part(&silent, p)
	}
	at := st.name
	if len(st.parts) > 0 {
		at = st.parts[0].name
	}
	return t.refuse("the reason that it was refused for was not there", at)
}

func last(list []int32) int32 {
	if len(list) == 0 {
		return none
	}
	return list[len(list)-1]
}

// describe says what is at a place, for people.
func (m *model) describe(at int32, c cell) string {
	var b strings.Builder
	b.WriteString(m.names[at])
	switch c.what {
	case nothing:
		b.WriteString(": nothing is there")
		return b.String()
	case taken:
		b.WriteString(": it was carried out")
		return b.String()
	case container:
		b.WriteString(": it is there")
	case table:
		b.WriteString(": a table")
	case view:
		b.WriteString(": a view")
	}
	fmt.Fprintf(&b, ", token %s", m.words.tokens.text(c.token))
	if c.what == table {
		fmt.Fprintf(&b, ", main %s", m.words.snapshots.text(c.snapshot))
	}
	if c.uuid >= 0 {
		fmt.Fprintf(&b, ", uuid %s", m.words.uuids.text(c.uuid))
	}
	if c.file >= 0 {
		fmt.Fprintf(&b, ", file %s", m.words.files.text(c.file))
	}
	if c.left > 0 {
		fmt.Fprintf(&b, " (%d later answers show it)", c.left)
	}
	return b.String()
}
