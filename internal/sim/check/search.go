package check

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/sim/history"
)

// This file looks for an order. Porcupine judges what it finds; it could look itself, but
// takes too long where many clients meet and answers get lost, because a wrong choice at one
// table is noticed late, and everything that was done elsewhere in between is tried again.
//
// Operations are placed as late as possible: one that returns must have its place by then,
// and before it only those are placed, of the ones that are under way, which it depends on
// or which depend on it. That loses no order, for what has nothing to do with it may
// as well come later. An operation that changes nothing is placed as soon as it can be.
//
// What is possible then is kept as a set, and nothing is ever tried again. The set is a
// product: what is undecided at one table is a group of its own as long as no operation
// ties it to another. Most places are in no group, because only one thing is possible.

// group is places of which several things are possible, and what is possible.
type group struct {
	places  []int32
	choices []*choice
}

// choice is one of the things that are possible.
type choice struct {
	cells []cell // of the group's places
	// placed are the slots of the steps under way that have their place in this choice,
	// though not in all.
	placed bitset
	trail  *trail
}

// trail is the steps that were placed, the last first.
type trail struct {
	before, beside *trail
	step           *step // nil: only joins two trails
	at             int   // rises in the order of places
}

// search is under way through one partition.
type search struct {
	*model
	turn  turn     // on the cells of the places that are in no group
	of    []*group // by place; nil: it is in no group
	trail *trail

	// slots are the steps under way. One whose outcome is unknown stays, unless it has its place.
	slots  []*step
	homes  []*group // by slot: the group in some of whose choices it has its place
	slotOf map[*step]int32
	clock  int
	tries  int
	// frugal is set to place unknown operations of which no answer shows a trace only
	// before what is impossible without. Then an order may be missed.
	frugal bool
	// lost is set when more was possible than could be followed.
	lost     bool
	deadline time.Time
}

const (
	choicesMax = 5000    // of a group
	triesMax   = 3000000 // of a partition: some seconds
)

// find looks for an order of the steps. If there is none it gives the step that cannot
// have a place, and the search as it then stood.
func (m *model) find(frugal bool, deadline time.Time) (order []*step, stuck *step, s *search) {
	s = &search{model: m, of: make([]*group, len(m.start)), slotOf: map[*step]int32{}, frugal: frugal, deadline: deadline}
	s.turn = turn{model: m, cells: slices.Clone(m.start)}
	type event struct {
		at      int64
		returns bool
		step    *step
	}
	var events []event
	for _, st := range m.steps {
		events = append(events, event{st.op.Call, false, st})
		if st.outcome != history.Unknown {
			events = append(events, event{st.op.Return, true, st})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if c := cmp.Compare(a.at, b.at); c != 0 || a.returns == b.returns {
			return c
		}
		if a.returns {
			return 1
		}
		return -1
	})
	for _, e := range events {
		if !e.returns {
			s.call(e.step)
		} else if _, ok := s.slotOf[e.step]; ok && !s.place(e.step) {
			return nil, e.step, s
		}
	}
	return s.order(), nil, s
}

// call lets a step be under way.
func (s *search) call(st *step) {
	if st.writes == nil && s.certain(st) && s.try(st) {
		s.turn.changed = s.turn.changed[:0] // it stays
		s.trail = s.step(st, s.trail)
		return
	}
	slot := slices.Index(s.slots, nil)
	if slot < 0 {
		slot = len(s.slots)
		s.slots, s.homes = append(s.slots, nil), append(s.homes, nil)
	}
	s.slots[slot], s.slotOf[st] = st, int32(slot)
}

// end takes a step that has its place from those under way.
func (s *search) end(slot int32) {
	delete(s.slotOf, s.slots[slot])
	s.slots[slot], s.homes[slot] = nil, nil
}

// certain reports whether only one thing is possible at all places of a step.
func (s *search) certain(st *step) bool {
	certain := true
	st.reads.each(func(at int32) { certain = certain && s.of[at] == nil })
	return certain
}

// try takes a step that changes nothing, if that is possible without learning what it
// might as well be elsewhere.
func (s *search) try(st *step) bool {
	s.turn.learned = false
	if s.turn.take(st) && !s.turn.learned {
		return true
	}
	s.turn.undo()
	return false
}

func (s *search) step(st *step, before *trail) *trail {
	s.clock++
	return &trail{before: before, step: st, at: s.clock}
}

// place finds all that is possible once the step has its place.
func (s *search) place(x *step) bool {
	after, g := s.placed(x, !s.frugal)
	if s.frugal && len(after) == 0 {
		after, g = s.placed(x, true)
	}
	if len(after) == 0 {
		return false
	}
	g.choices = after
	s.reduce(g)
	return true
}

// placed is the group of all that the step has to do with, and what is possible there once
// the step has its place.
func (s *search) placed(x *step, deep bool) (after []*choice, g *group) {
	relevant := s.relevant(x, deep)
	g = s.gather(x, relevant)
	slot := s.slotOf[x]
	s.lost = s.lost || len(g.choices) > choicesMax
	for _, c := range g.choices {
		switch {
		case s.lost:
			return nil, g
		case c.placed.has(slot):
			after = s.add(after, c)
		default:
			after = s.explore(after, g, c, x, relevant)
		}
	}
	return after, g
}

// relevant are the slots of the steps under way that x may depend on or that may depend on
// it, through others, too; if it need not be deep, not through unknown ones.
func (s *search) relevant(x *step, deep bool) []int32 {
	var (
		found         []int32
		reads, writes bitset
		included      = make([]bool, len(s.slots))
	)
	include := func(slot int32) {
		included[slot] = true
		s.slots[slot].reads.each(reads.add)
		s.slots[slot].writes.each(writes.add)
	}
	include(s.slotOf[x])
	for grown := true; grown; {
		grown = false
		for slot, st := range s.slots {
			if st == nil || included[slot] || !st.writes.meets(reads) && !st.writes.meets(writes) && !st.reads.meets(writes) {
				continue
			}
			found = append(found, int32(slot))
			if included[slot] = true; deep || st.outcome != history.Unknown {
				include(int32(slot))
				grown = true
			}
		}
	}
	return found
}

// gather makes one group of all places of some steps, and of the groups that hold some.
func (s *search) gather(x *step, relevant []int32) *group {
	g := &group{choices: []*choice{{}}}
	take := func(other *group) {
		if other == g {
			return
		}
		g.places = append(g.places, other.places...)
		var product []*choice
		for _, a := range g.choices {
			for _, b := range other.choices {
				c := &choice{cells: slices.Concat(a.cells, b.cells), placed: slices.Clone(a.placed), trail: b.trail}
				b.placed.each(c.placed.add)
				if a.trail != nil {
					c.trail = &trail{before: a.trail, beside: b.trail}
				}
				product = append(product, c)
			}
		}
		g.choices = product
		for _, at := range other.places {
			s.of[at] = g
		}
		for slot, home := range s.homes {
			if home == other {
				s.homes[slot] = g
			}
		}
	}
	touch := func(at int32) {
		switch other := s.of[at]; {
		case other != nil:
			take(other)
		default:
			take(&group{places: []int32{at}, choices: []*choice{{cells: []cell{s.turn.cells[at]}}}})
		}
	}
	include := func(slot int32) {
		s.slots[slot].reads.each(touch)
		s.slots[slot].writes.each(touch)
	}
	include(s.slotOf[x])
	for _, slot := range relevant {
		include(slot)
	}
	return g
}

// explore adds what is possible once x has its place to what is known to be.
func (s *search) explore(after []*choice, g *group, c *choice, x *step, relevant []int32) []*choice {
	slot := s.slotOf[x]
	queue, found := []*choice{s.settle(g, c, relevant)}, false
	for i := 0; i < len(queue); i++ {
		r := queue[i]
		if next, learned := s.apply(g, r, slot); next != nil {
			found = true
			after = s.add(after, next)
			if x.writes == nil && !learned {
				continue // what else could come before it may as well come after it
			}
		}
		for _, u := range relevant {
			if len(queue) > choicesMax || len(after) > choicesMax || s.spent() {
				s.lost = true
				return after
			}
			st := s.slots[u]
			if st.writes == nil || r.placed.has(u) || s.frugal && found && st.outcome == history.Unknown && !st.evident {
				continue
			}
			if next, _ := s.apply(g, r, u); next != nil {
				queue = s.add(queue, s.settle(g, next, relevant))
			}
		}
	}
	return after
}

// spent reports whether the search has taken too long.
func (s *search) spent() bool {
	return s.tries > triesMax || s.tries%4096 == 0 && time.Now().After(s.deadline)
}

// show puts a choice into the cells.
func (s *search) show(g *group, c *choice) {
	for i, at := range g.places {
		s.turn.cells[at] = c.cells[i]
	}
}

// apply is the choice after the step in the slot; nil: it is impossible there.
func (s *search) apply(g *group, c *choice, slot int32) (next *choice, learned bool) {
	s.tries++
	s.show(g, c)
	s.turn.changed, s.turn.learned = s.turn.changed[:0], false
	if !s.turn.take(s.slots[slot]) {
		s.turn.undo()
		return nil, false
	}
	next = &choice{cells: make([]cell, len(g.places)), placed: c.placed.with(slot), trail: s.step(s.slots[slot], c.trail)}
	for i, at := range g.places {
		next.cells[i] = s.turn.cells[at]
	}
	s.turn.undo()
	return next, s.turn.learned
}

// settle places the steps that change nothing and are possible now.
func (s *search) settle(g *group, c *choice, relevant []int32) *choice {
	for _, u := range relevant {
		if st := s.slots[u]; st.writes == nil && !c.placed.has(u) {
			if next, learned := s.apply(g, c, u); next != nil && !learned {
				c = next
			}
		}
	}
	return c
}

// add appends a choice unless there is one that allows as much: the same, or the same with
// fewer unknown steps placed. Who comes first has fewer.
func (s *search) add(all []*choice, c *choice) []*choice {
	for _, o := range all {
		if slices.Equal(o.cells, c.cells) && s.outdoes(o.placed, c.placed) {
			return all
		}
	}
	return append(all, c)
}

// outdoes reports whether b has the same steps placed as a, and unknown ones besides.
func (s *search) outdoes(a, b bitset) bool {
	for i := range max(len(a), len(b)) {
		var x, y uint64
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x&^y != 0 {
			return false
		}
		for more := y &^ x; more != 0; more &= more - 1 {
			if s.slots[i*64+bits.TrailingZeros64(more)].outcome != history.Unknown {
				return false
			}
		}
	}
	return true
}

// reduce ends the steps that have their place in all choices of a group, and lets go of the
// places at which only one thing is possible.
func (s *search) reduce(g *group) {
	tied := map[int32]bool{}
	for slot, st := range s.slots {
		if st == nil {
			continue
		}
		placed := 0
		for _, c := range g.choices {
			if c.placed.has(int32(slot)) {
				placed++
			}
		}
		switch placed {
		case 0:
			if s.homes[slot] == g {
				s.homes[slot] = nil
			}
		case len(g.choices):
			s.end(int32(slot))
			for _, c := range g.choices {
				c.placed = c.placed.without(int32(slot))
			}
		default:
			s.homes[slot] = g
			st.reads.each(func(at int32) { tied[at] = true })
			st.writes.each(func(at int32) { tied[at] = true })
		}
	}
	s.show(g, g.choices[0])
	var kept []int
	for i, at := range g.places {
		same := !slices.ContainsFunc(g.choices, func(c *choice) bool { return c.cells[i] != g.choices[0].cells[i] })
		if same && !tied[at] {
			s.of[at] = nil
		} else {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 {
		s.trail = &trail{before: s.trail, beside: g.choices[0].trail}
		return
	}
	places := make([]int32, len(kept))
	for n, i := range kept {
		places[n] = g.places[i]
		s.of[places[n]] = g
	}
	for _, c := range g.choices {
		cells := make([]cell, len(kept))
		for n, i := range kept {
			cells[n] = c.cells[i]
		}
		c.cells = cells
	}
	g.places = places
}

// order is that of the first choice of every group.
func (s *search) order() []*step {
	seen := map[*group]bool{}
	trails := []*trail{s.trail}
	for _, g := range s.of {
		if g != nil && !seen[g] {
			seen[g] = true
			trails = append(trails, g.choices[0].trail)
		}
	}
	var all []*trail
	for len(trails) > 0 {
		t := trails[len(trails)-1]
		trails = trails[:len(trails)-1]
		for ; t != nil; t = t.before {
			if t.step != nil {
				all = append(all, t)
			}
			if t.beside != nil {
				trails = append(trails, t.beside)
			}
		}
	}
	slices.SortFunc(all, func(a, b *trail) int { return cmp.Compare(a.at, b.at) })
	var order []*step
	for _, t := range all {
		order = append(order, t.step)
	}
	return order
}
