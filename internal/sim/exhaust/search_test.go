package exhaust

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/store"
)

// budget is what may still go wrong.
type budget struct {
	Crashes int // actors that stop for ever
	Lost    int // puts and batches that are answered "unknown", and arrive at once, later or never
	Copies  int // puts that arrive a second time, later; or whose second arrival is what is answered
	Ages    int // moments in which every lease runs out
	Fails   int // reads of objects that fail
}

func (b budget) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{b.Crashes, "crash"}, {b.Lost, "lost reply"}, {b.Copies, "copy"}, {b.Ages, "leases over"}, {b.Fails, "failed read"}} {
		for range p.n {
			parts = append(parts, p.what)
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// late is a request that is still on its way.
type late struct {
	tree int
	node *node // whose pending access it is
	by   int
}

// call is an operation of an actor, as others could tell it.
type call struct {
	begun  bool
	before uint32 // the operations that had ended when it began
}

// state is everything that the future depends on. It is never changed once made.
type state struct {
	cells cells
	at    []*node // of each actor
	gone  uint32  // actors that crashed
	left  budget
	late  []late
	calls []call // of all actors
	ended uint32 // calls that have ended, with an answer other than "unknown"
}

// step is one thing that happens.
type step struct {
	what   happening
	actor  int
	access int
}

type happening uint8

const (
	answered happening = iota // the access is done and answered
	crashed                   // the access is done, and its actor is gone
	lost                      // the access is on its way, and the actor is told so
	doubled                   // the access is done and answered, and a copy is on its way
	echoed                    // the access is done, its copy as well: the copy's failure is answered
	landed                    // what was on its way arrives
	aged                      // every lease runs out
	failed                    // it cannot be read, and its actor is told so
)

// counts say how large a world is, with one budget.
type counts struct {
	schedules       float64 // that lead from the beginning to an end
	states, steps   int
	deepest         int // steps from the beginning that the search went
	ends            int // different ends, each of which was judged
	gaveUp, unknown int // ends in which an operation gave up, or its client was not told what became of it
	crashes, lost   int // steps that were crashes; lost replies or copies
	late, ages      int // steps in which something late arrived; in which every lease ran out
	fails           int // steps in which a read failed
	passes          int // of the search, until all accesses were known
	runs            int // of real code
}

func (c *counts) add(o counts) {
	c.schedules += o.schedules
	c.states += o.states
	c.steps += o.steps
	c.deepest = max(c.deepest, o.deepest)
	c.ends += o.ends
	c.gaveUp += o.gaveUp
	c.unknown += o.unknown
	c.crashes += o.crashes
	c.lost += o.lost
	c.late += o.late
	c.ages += o.ages
	c.fails += o.fails
	c.runs += o.runs
}

// search visits all states of a world. It is one goroutine: what it does for each state is marked norace, so
// that the detector's time goes to the code that is tested.
type search struct {
	*testing.T
	world  world
	space  *space
	trees  []*tree
	number []int // of each actor's first call
	first  *state
	last   *state // that was judged
	epi    *epilogue
	seen   map[[2]uint64]float64
	path   []taken
	buf    []byte
	counts counts
	fresh  bool // an access was found that was not reckoned with
	enough int  // states, after which a search that is fresh is broken off

	judged  map[string]string // what was said of an end
	failure string

	// What a test looks at, and changes.
	outcomes  map[string]bool // what everybody was told, and what was found afterwards; nil: not kept
	unhurried bool            // also what disturbs nobody is interleaved
}

// taken is a step, for the transcript.
type taken struct {
	step   step
	tree   *tree
	access *access
	answer answer
}

// Bounds of one world. Where one is met the world fails: nothing is left out silently.
const (
	statesMax = 6_000_000
	depthMax  = 1000
	passesMax = 40
)

// explore visits everything, in one round after the other, and gives the counts of each, and what is
// wrong: empty if nothing is.
func (w world) explore(t *testing.T) (all []counts, wrong string) {
	var s *search
	for _, r := range w.rounds {
		if s == nil || s.world.attempts != r.attempts { // otherwise what is known of the actors is still true
			w.attempts = r.attempts
			s = newSearch(t, w)
			defer s.stop()
		}
		all = append(all, s.all(r.faults))
		if s.failure != "" {
			return all, fmt.Sprintf("%s (faults: %v): %s", w.name, r.faults, s.failure)
		}
	}
	return all, ""
}

func newSearch(t *testing.T, w world) *search {
	s := &search{T: t, world: w, space: newSpace(w.overlap), judged: map[string]string{}}
	s.prepare()
	return s
}

// all visits all states, again and again until every access that an actor can make was reckoned with.
func (s *search) all(b budget) counts {
	before := s.runs()
	for pass, enough := 1, 10_000; s.failure == ""; pass, enough = pass+1, 3*enough {
		for _, tr := range s.trees {
			tr.learn()
		}
		s.fresh, s.enough, s.seen, s.path, s.counts = false, enough, map[[2]uint64]float64{}, nil, counts{passes: pass}
		for _, st := range s.beginnings(b) {
			s.counts.schedules += s.visit(st)
		}
		if !s.fresh {
			break
		}
		if pass == passesMax {
			s.failure = "the accesses of the actors are never all known"
		}
	}
	s.counts.runs = s.runs() - before
	return s.counts
}

func (s *search) runs() (n int) {
	for _, tr := range append(s.trees, s.epi.trees...) {
		n += tr.runs
	}
	return n
}

// beginnings are the first state, and those in which an actor is gone before it did anything.
func (s *search) beginnings(b budget) []*state {
	first := *s.first
	first.left = b
	all := []*state{&first}
	for i := range s.trees {
		if b.Crashes > 0 {
			gone := first
			gone.gone, gone.left.Crashes = 1<<i, b.Crashes-1
			all = append(all, &gone)
			s.counts.crashes++
		}
	}
	return all
}

// prepare brings about the first state.
func (s *search) prepare() {
	s.epi = &epilogue{s: s, known: map[string][]looked{}}
	first := &state{}
	setup := append([]operation{{kind: bootstrap}, {kind: makeLax}}, s.world.setup...)
	tr := newTree(s.T, s.space, "setup", 90, s.world.script(setup))
	defer tr.stop()
	var replies []reply
	first.cells, replies = s.space.alone(nil, tr)
	for i, r := range replies {
		if r.how != done {
			s.Fatalf("%s: setup: %v: %+v", s.world.name, setup[i], r)
		}
	}
	first.cells, _ = s.space.older(first.cells)
	for i, a := range s.world.actors {
		tr := newTree(s.T, s.space, a.name, i+1, s.world.script(a.does))
		tr.onEdge = func(from, to *node) {
			known := to.future()
			if to.up == from && to.reach == nil {
				known = to.now(s.space)
			}
			if !known.within(from.future()) {
				s.fresh = true
				from.expect(known)
			}
		}
		s.trees = append(s.trees, tr)
		s.number = append(s.number, len(first.calls))
		first.at = append(first.at, tr.start())
		first.calls = append(first.calls, make([]call, len(a.does))...)
		s.space.alone(first.cells, tr) // to learn what it does when nobody disturbs it
	}
	s.first = first
}

func (s *search) stop() {
	for _, tr := range append(s.trees, s.epi.trees...) {
		tr.stop()
	}
}

// alone runs an actor to its end with nobody else about.
func (sp *space) alone(c cells, tr *tree) (cells, []reply) {
	n := tr.start()
	for !n.finished {
		var ans answer
		ans, c = sp.perform(c, n.pending[0])
		n = tr.next(n, turn{0, ans})
		if n.depth > depthMax {
			panic("exhaust: " + tr.name + " does not come to an end: " + n.pending[0].String())
		}
	}
	return c, n.replies
}

// visit is the number of schedules that lead from a state to an end.
//
//go:norace
func (s *search) visit(st *state) float64 {
	k := s.key(st)
	if n, ok := s.seen[k]; ok {
		return n
	}
	s.counts.states++
	s.counts.deepest = max(s.counts.deepest, len(s.path))
	switch {
	case s.counts.states > statesMax:
		s.failure = "there are too many states"
	case len(s.path) > depthMax:
		s.failure = "a schedule does not come to an end\n" + s.transcript()
	}
	steps, over := s.steps(st)
	total := 0.0
	if over && s.failure == "" {
		total = 1
		s.judge(st)
	}
	for _, next := range steps {
		if s.failure != "" || s.fresh && s.counts.states > s.enough {
			return 0
		}
		s.counts.steps++
		s.path = append(s.path, taken{step: next})
		total += s.visit(s.take(st, next, &s.path[len(s.path)-1]))
		s.path = s.path[:len(s.path)-1]
	}
	s.seen[k] = total
	return total
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// key identifies a state: equal keys, equal futures. (That two states share the 128 bits by chance is
// not to be expected.)
//
//go:norace
func (s *search) key(st *state) [2]uint64 {
	b := s.buf[:0]
	b = binary.AppendUvarint(b, uint64(st.gone))
	for _, n := range []int{st.left.Crashes, st.left.Lost, st.left.Copies, st.left.Ages, st.left.Fails, len(st.late)} {
		b = append(b, byte(n))
	}
	for _, l := range st.late {
		b = binary.AppendUvarint(b, uint64(l.tree))
		b = binary.AppendUvarint(b, uint64(l.node.id))
		b = binary.AppendUvarint(b, uint64(l.by))
	}
	for i, n := range st.at {
		// Of who is gone, or has finished, only what it was told counts.
		if st.gone&(1<<i) != 0 || n.finished {
			for _, r := range n.replies {
				b = fmt.Append(b, r.how, r.why, r.seen, ";")
			}
			b = append(b, '|')
		} else {
			b = binary.AppendUvarint(b, uint64(n.id)+1)
		}
	}
	for _, c := range st.calls {
		if c.begun {
			b = binary.AppendUvarint(b, uint64(c.before)+1)
		} else {
			b = append(b, 0)
		}
	}
	b = binary.AppendUvarint(b, uint64(st.ended))
	last := len(st.cells)
	for last > 0 && st.cells[last-1] == 0 {
		last--
	}
	for _, c := range st.cells[:last] {
		b = binary.AppendUvarint(b, uint64(c))
	}
	s.buf = b
	return [2]uint64{maphash.Bytes(seeds[0], b), maphash.Bytes(seeds[1], b)}
}

// steps are what may happen next, and whether it may also be over.
//
//go:norace
func (s *search) steps(st *state) (steps []step, over bool) {
	var at []int
	for i, n := range st.at {
		if st.gone&(1<<i) == 0 && !n.finished {
			at = append(at, i)
		}
	}
	for _, i := range at {
		if s.undisturbed(st, i, at) {
			return s.stepsOf(st, i), false
		}
	}
	for _, i := range at {
		steps = append(steps, s.stepsOf(st, i)...)
	}
	for i, l := range st.late {
		if ans, _ := s.space.perform(st.cells, l.node.pending[l.by]); ans.code == fine {
			steps = append(steps, step{what: landed, access: i})
		}
	}
	if st.left.Ages > 0 && len(at) > 0 {
		if _, young := s.space.older(st.cells); young {
			steps = append(steps, step{what: aged})
		}
	}
	return steps, len(at) == 0
}

// undisturbed reports whether nothing else that may yet happen meets the next accesses of
// an actor: then the order in which they happen does not matter, and they happen now.
//
//go:norace
func (s *search) undisturbed(st *state, actor int, at []int) bool {
	if s.unhurried {
		return false
	}
	next := st.at[actor].now(s.space)
	if st.left.Ages > 0 && s.minds(st, st.at[actor]) {
		return false
	}
	for _, j := range at {
		if j != actor && st.at[j].future().meets(s.space, next) {
			return false
		}
	}
	for _, l := range st.late {
		flying := reach{}
		flying.touch(s.space, l.node.pending[l.by])
		if flying.meets(s.space, next) {
			return false
		}
	}
	return true
}

// minds reports whether it makes a difference to the next accesses of an actor that the leases that
// there are run out before or after.
//
//go:norace
func (s *search) minds(st *state, n *node) bool {
	for _, a := range n.pending {
		switch a.verb {
		case get:
			name := s.space.number(a)
			if there := st.cells.at(name); !there.old() && s.space.leased(name, there) {
				return true
			}
		case put:
			if s.space.leased(s.space.number(a), cell(s.space.bytes(a)<<1)) {
				return true
			}
		}
	}
	return false
}

// stepsOf are what may happen to the accesses that an actor waits for.
//
//go:norace
func (s *search) stepsOf(st *state, actor int) (steps []step) {
	n := st.at[actor]
	for i, a := range n.pending {
		steps = append(steps, step{answered, actor, i})
		if a.verb == get && st.left.Fails > 0 {
			steps = append(steps, step{failed, actor, i})
		}
		if !a.verb.writes() {
			continue
		}
		if st.left.Crashes > 0 {
			steps = append(steps, step{crashed, actor, i})
		}
		if a.verb != put && a.verb != apply {
			continue
		}
		if st.left.Lost > 0 {
			steps = append(steps, step{lost, actor, i})
		}
		if st.left.Copies > 0 {
			if ans, _ := s.space.perform(st.cells, a); ans.code == fine {
				steps = append(steps, step{doubled, actor, i})
				if a.verb == put {
					steps = append(steps, step{echoed, actor, i})
				}
			}
		}
	}
	return steps
}

// take is the state after a step.
//
//go:norace
func (s *search) take(st *state, next step, t *taken) *state {
	to := *st
	t.step = next
	switch next.what {
	case aged:
		s.counts.ages++
		to.left.Ages--
		to.cells, _ = s.space.older(st.cells)
		return &to
	case landed:
		s.counts.late++
		l := st.late[next.access]
		t.tree, t.access = s.trees[l.tree], l.node.pending[l.by]
		t.answer, to.cells = s.space.perform(st.cells, t.access)
		to.late = slices.Delete(slices.Clone(st.late), next.access, next.access+1)
		return &to
	}
	n, tr := st.at[next.actor], s.trees[next.actor]
	t.tree, t.access = tr, n.pending[next.access]
	s.begin(&to, next.actor, n)
	inFlight := late{next.actor, n, next.access}
	switch next.what {
	case lost:
		s.counts.lost++
		to.left.Lost--
		to.late = append(slices.Clone(st.late), inFlight)
		t.answer = answer{code: unknown}
	case failed:
		s.counts.fails++
		to.left.Fails--
		t.answer = answer{code: fault}
	case doubled, echoed:
		s.counts.lost++
		to.left.Copies--
		t.answer, to.cells = s.space.perform(st.cells, t.access)
		if next.what == doubled {
			to.late = append(slices.Clone(st.late), inFlight)
		} else {
			t.answer = answer{code: mismatch}
		}
	default:
		t.answer, to.cells = s.space.perform(st.cells, t.access)
	}
	if next.what == crashed {
		s.counts.crashes++
		to.gone |= 1 << next.actor
		to.left.Crashes--
	} else {
		to.at = slices.Clone(st.at)
		to.at[next.actor] = tr.next(n, turn{next.access, t.answer})
		s.end(&to, next.actor, n)
	}
	if s.tooLate(&to) {
		to.late = nil
	}
	return &to
}

// tooLate reports whether what is on its way can change nothing any more, as it is the last that can
// bring back what it would have replaced: pages never have the same content twice, and
// only status records are ever deleted.
//
//go:norace
func (s *search) tooLate(st *state) bool {
	if st.left.Lost+st.left.Copies > 0 || len(st.late) != 1 {
		return false
	}
	a := st.late[0].node.pending[st.late[0].by]
	there := st.cells.at(s.space.number(a))
	switch {
	case a.verb == apply:
		return there != 0
	case a.match != store.NoTag:
		return s.space.tag(there) != a.match
	}
	return there != 0 && !strings.HasPrefix(a.cell, objectCells+statusRecords)
}

// begin notes that an operation of an actor begins, unless nobody could tell yet.
//
//go:norace
func (s *search) begin(to *state, actor int, n *node) {
	number := s.number[actor] + len(n.replies)
	if len(n.replies) == len(s.world.actors[actor].does) || to.calls[number].begun {
		return // what it does after its last operation has ended
	}
	var others []int
	for i, o := range to.at {
		if to.gone&(1<<i) == 0 && !o.finished {
			others = append(others, i)
		}
	}
	if s.undisturbed(to, actor, others) {
		return
	}
	to.calls = slices.Clone(to.calls)
	to.calls[number] = call{true, to.ended}
}

// end notes the operations that an actor has ended since it was at n.
//
//go:norace
func (s *search) end(to *state, actor int, n *node) {
	replies := to.at[actor].replies
	for i := len(n.replies); i < len(replies); i++ {
		number := s.number[actor] + i
		if !to.calls[number].begun {
			to.calls = slices.Clone(to.calls)
			to.calls[number] = call{true, to.ended}
		}
		if replies[i].how != unsure {
			to.ended |= 1 << number
		}
	}
}

// transcript shows how the search came to where it is, a step a line.
func (s *search) transcript() string {
	var b strings.Builder
	for i, t := range s.path {
		fmt.Fprintf(&b, "%3d  ", i+1)
		switch t.step.what {
		case answered, failed:
			fmt.Fprintf(&b, "%-10s %v -> %s\n", t.tree.name, t.access, s.space.show(t.access, t.answer))
		case crashed:
			fmt.Fprintf(&b, "%-10s %v -> %s, and CRASHES before it knows\n", t.tree.name, t.access, s.space.show(t.access, t.answer))
		case lost:
			fmt.Fprintf(&b, "%-10s %v -> IS ON ITS WAY, and is told that nothing is known\n", t.tree.name, t.access)
		case doubled:
			fmt.Fprintf(&b, "%-10s %v -> %s; A COPY IS ON ITS WAY\n", t.tree.name, t.access, s.space.show(t.access, t.answer))
		case echoed:
			fmt.Fprintf(&b, "%-10s %v -> done TWICE, and is told that the second failed\n", t.tree.name, t.access)
		case landed:
			fmt.Fprintf(&b, "%-10s %v -> ARRIVES NOW\n", t.tree.name, t.access)
		case aged:
			b.WriteString("           TIME PASSES: every lease runs out\n")
		}
	}
	return b.String()
}
