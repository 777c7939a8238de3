package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/landfast/landfast/internal/sim/history"
)

// Verdict is what came of a check.
type Verdict string

// The verdicts. Undecided is no pass: count it, and say so.
const (
	Holds     Verdict = "holds"
	Violated  Verdict = "violated"
	Undecided Verdict = "undecided" // more was possible than could be followed
)

// Options of [Linearizable].
type Options struct {
	// Warehouses are there from the beginning. Whatever else is, operations of the history
	// have made it: begin with some that were over before the others were sent.
	Warehouses []string
	// Timeout bounds the search in each partition; 0: 10 s. It is time of the machine: do not
	// check in a bubble of testing/synctest, where none passes meanwhile.
	Timeout time.Duration
	// Visualize is a file to draw the first violation to, as HTML; empty: none.
	Visualize string
}

const (
	timeoutDefault = 10 * time.Second
	// opinionMax bounds how long Porcupine looks for an order where there is none, after which it
	// is not asked any more: what is impossible takes it long.
	opinionMax = 50 * time.Millisecond
)

// Report is what [Linearizable] found.
type Report struct {
	Verdict Verdict
	// Text tells what is wrong, or what could not be decided; empty if it holds.
	Text string
	// Partitions is into how many histories, independent of each other, it was cut.
	Partitions int
}

// Linearizable looks for one order of the operations that explains every answer. The
// operations may be given in any order, their IDs are unique. Lists only tell here that
// what they list was there: see [Lists].
func Linearizable(ops []history.Operation, o Options) Report {
	ops = withLooks(ops)
	if wrong := facts(ops); len(wrong) > 0 {
		return Report{Verdict: Violated, Text: strings.Join(wrong, "\n")}
	}
	if o.Timeout == 0 {
		o.Timeout = timeoutDefault
	}
	models := compile(ops).partitions(o.Warehouses)
	report := Report{Verdict: Holds, Partitions: len(models)}
	var texts []string
	for _, m := range models {
		verdict, text := m.check(o)
		switch verdict {
		case Violated:
			o.Visualize = ""
			report.Verdict = Violated
		case Undecided:
			if report.Verdict == Holds {
				report.Verdict = Undecided
			}
		case Holds:
			continue
		}
		texts = append(texts, text)
	}
	report.Text = strings.Join(texts, "\n")
	return report
}

// partitions cuts the history into parts that share no place.
func (c *compiler) partitions(warehouses []string) []*model {
	initial := make([]bool, len(c.places.list))
	for _, w := range warehouses {
		if at := c.places.find(place{Name: history.Name{Warehouse: w}}, none); at != none {
			initial[at] = true
		}
	}
	c.forgetSteady(initial)
	joined := newUnion(len(c.places.list))
	for _, st := range c.steps {
		joined.join(st)
	}
	byRoot := map[int32]*model{}
	var models []*model
	local := make([]int32, len(c.places.list)) // 1 + the index in its model
	for _, st := range c.steps {
		first := st.first()
		if first == none {
			continue // all that it wants is there for certain
		}
		root := joined.find(first)
		m := byRoot[root]
		if m == nil {
			m = &model{words: c.dictionary}
			byRoot[root] = m
			models = append(models, m)
		}
		index := func(at int32) int32 {
			if at == none {
				return none
			}
			if local[at] == 0 {
				m.names = append(m.names, c.places.list[at].String())
				var there cell
				if initial[at] {
					there = cell{what: container, uuid: none, file: none}
				}
				m.start = append(m.start, there)
				local[at] = int32(len(m.names))
			}
			return local[at] - 1
		}
		st.move(index)
		m.steps = append(m.steps, st)
	}
	return models
}

// forgetSteady takes away the wish for containers that are certainly there: made once,
// before anybody wanted them, and never dropped. What they contain is then independent.
func (c *compiler) forgetSteady(initial []bool) {
	type life struct {
		made    int64 // when the maker was done
		makers  int
		wanted  int64 // when the first who wants it was sent
		dropped bool
	}
	lives := make([]life, len(c.places.list))
	for at := range lives {
		lives[at] = life{made: math.MaxInt64, wanted: math.MaxInt64}
		if initial[at] {
			lives[at].made, lives[at].makers = math.MinInt64, 1
		}
	}
	for _, st := range c.steps {
		switch st.kind {
		case history.CreateWarehouse, history.CreateNamespace:
			if l := &lives[st.name]; st.outcome != history.Refused {
				l.makers++
				if st.outcome == history.Done {
					l.made = min(l.made, st.op.Return)
				}
			}
		case history.DropWarehouse, history.DropNamespace:
			if st.outcome != history.Refused || st.refusal == history.NotEmpty {
				lives[st.name].dropped = true
			}
		}
		if st.outcome == history.Refused {
			continue
		}
		for _, in := range st.inside {
			lives[in].wanted = min(lives[in].wanted, st.op.Call)
		}
	}
	for _, st := range c.steps {
		if st.outcome == history.Refused {
			continue
		}
		st.inside = slices.DeleteFunc(st.inside, func(at int32) bool {
			l := lives[at]
			steady := l.makers == 1 && !l.dropped && l.made < l.wanted
			if steady {
				st.reads = st.reads.without(at)
			}
			return steady
		})
	}
}

// first is a place of the step; none if it has no places.
func (st *step) first() int32 {
	at := none
	for _, set := range []bitset{st.reads, st.writes} {
		set.each(func(i int32) { at = i })
	}
	return at
}

// move gives the places of a step other indices.
func (st *step) move(index func(int32) int32) {
	st.name, st.to, st.key = index(st.name), index(st.to), index(st.key)
	st.under = slices.Clone(st.under) // it is that of every drop of the container
	for _, list := range [][]int32{st.inside, st.under} {
		for i := range list {
			list[i] = index(list[i])
		}
	}
	for i := range st.parts {
		st.parts[i].name = index(st.parts[i].name)
	}
	moved := func(set bitset) (to bitset) {
		set.each(func(at int32) { to.add(index(at)) })
		return to
	}
	st.reads, st.writes = moved(st.reads), moved(st.writes)
}

// union joins places that one step touches.
type union []int32

func newUnion(n int) union {
	u := make(union, n)
	for i := range u {
		u[i] = int32(i)
	}
	return u
}

func (u union) find(at int32) int32 {
	for u[at] != at {
		u[at] = u[u[at]]
		at = u[at]
	}
	return at
}

func (u union) join(st *step) {
	first := st.first()
	for _, set := range []bitset{st.reads, st.writes} {
		set.each(func(at int32) { u[u.find(at)] = u.find(first) })
	}
}

// check looks for an order of one partition, and has Porcupine judge it.
func (m *model) check(o Options) (Verdict, string) {
	deadline := time.Now().Add(o.Timeout)
	order, stuck, s := m.find(true, deadline)
	if stuck != nil {
		order, stuck, s = m.find(false, deadline)
	}
	switch {
	case s.lost:
		return Undecided, fmt.Sprintf("undecided: too much is possible in a partition of %d operations", len(m.steps))
	case stuck == nil:
		if wrong := m.confirm(order); wrong != "" {
			return Undecided, "undecided: a bug of the checker: " + wrong
		}
		return Holds, ""
	}
	text := m.transcript(s, stuck)
	calls := make([]porcupine.Operation, len(m.steps))
	for i, st := range m.steps {
		calls[i] = porcupine.Operation{ClientId: st.op.Client, Input: st, Call: st.op.Call, Return: st.op.Return}
	}
	rules := m.rules()
	verdict, info := porcupine.CheckOperationsVerbose(rules, calls, min(o.Timeout, opinionMax))
	if o.Visualize != "" {
		if err := porcupine.VisualizePath(rules, info, o.Visualize); err != nil {
			text += fmt.Sprintf("\n(no picture: %v)", err)
		}
	}
	if verdict == porcupine.Ok {
		return Undecided, "undecided: a bug of the checker: Porcupine found an order of\n" + text
	}
	return Violated, text
}

// confirm says what is wrong with an order that was found, if anything is: it has each
// operation once, respects which was over before which was sent, and Porcupine accepts it.
func (m *model) confirm(order []*step) string {
	var (
		calls  []porcupine.Operation
		placed = map[*step]bool{}
		latest = int64(math.MinInt64)
	)
	for i, st := range order {
		if st.op.Return < latest {
			return "the order has an operation too late: " + st.op.String()
		}
		latest = max(latest, st.op.Call)
		calls = append(calls, porcupine.Operation{Input: st, Call: int64(2 * i), Return: int64(2*i + 1)})
		placed[st] = true
	}
	if len(placed) != len(order) {
		return "the order has an operation twice"
	}
	for _, st := range m.steps {
		if !placed[st] && st.outcome != history.Unknown {
			return "the order lacks an operation: " + st.op.String()
		}
	}
	rules := m.rules()
	rules.Step = func(s, input, _ any) (bool, any) { return m.next(s.([]cell), input.(*step)) }
	rules.Init, rules.Equal, rules.StepContext = func() any { return m.start }, equal, nil
	if !porcupine.CheckOperations(rules, calls) {
		return "Porcupine refuses the order"
	}
	return ""
}

// rules are the catalog for Porcupine. An operation whose outcome is unknown takes place
// or does not.
func (m *model) rules() porcupine.Model {
	rules := porcupine.NondeterministicModel{
		Init: func() []any { return []any{m.start} },
		Step: func(s, input, _ any) (after []any) {
			st := input.(*step)
			if st.outcome == history.Unknown {
				after = append(after, s)
			}
			if ok, next := m.next(s.([]cell), st); ok {
				after = append(after, next)
			}
			return after
		},
		Equal:             equal,
		DescribeOperation: func(input, _ any) string { return input.(*step).op.String() },
		DescribeState:     func(s any) string { return m.list(s.([]cell)) },
	}
	return rules.ToModel()
}

func equal(a, b any) bool { return slices.Equal(a.([]cell), b.([]cell)) }

// next is the catalog after a step, if that is possible.
func (m *model) next(before []cell, st *step) (bool, any) {
	t := turn{model: m, cells: slices.Clone(before)}
	return t.take(st), t.cells
}

// list is what is there, for people.
func (m *model) list(cells []cell) string {
	var b strings.Builder
	for at, c := range cells {
		if c.what != nothing {
			fmt.Fprintf(&b, "  %s\n", m.describe(int32(at), c))
		}
	}
	return b.String()
}

// transcript tells of a partition that has no order: its operations as they were called,
// where the search got stuck, and why.
func (m *model) transcript(s *search, stuck *step) string {
	order := s.order()
	position := map[*step]int{}
	for i, st := range order {
		position[st] = i + 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, "no order of these operations explains all answers; one that gets far places %d of %d of them.\n", len(order), len(m.steps))
	fmt.Fprintf(&b, "Operations as they were called, with their place in that order:\n")
	called := slices.Clone(m.steps)
	slices.SortStableFunc(called, func(a, b *step) int { return cmp.Compare(a.op.Call, b.op.Call) })
	for _, st := range called {
		where, until := "-", "..."
		switch p := position[st]; {
		case p > 0:
			where = strconv.Itoa(p)
		case st.op.Call > stuck.op.Return:
			where = "later"
		case st.outcome == history.Unknown:
			where = "never"
		}
		if st.op.Return != history.Forever {
			until = strconv.FormatInt(st.op.Return, 10)
		}
		fmt.Fprintf(&b, "%6s [%d, %s] %v\n", where, st.op.Call, until, st.op)
	}
	cells := slices.Clone(m.start)
	for _, st := range order {
		_, after := m.next(cells, st)
		cells = after.([]cell)
	}
	fmt.Fprintf(&b, "After that order there is\n%s", m.list(cells))
	fmt.Fprintf(&b, "and no place is left for\n  %v\n", stuck.op)
	if why := m.why(cells, stuck); why == "" {
		fmt.Fprintf(&b, "which can be next, but not in an order that explains the others\n")
	} else {
		fmt.Fprintf(&b, "because %s\n", why)
	}
	for _, st := range called {
		touches := st.writes.meets(stuck.reads) || st.writes.meets(stuck.writes)
		if st.outcome != history.Unknown || position[st] > 0 || st.op.Call > stuck.op.Return || !touches {
			continue
		}
		if why := m.why(cells, st); why != "" {
			fmt.Fprintf(&b, "and before it could not be\n  %v\nbecause %s\n", st.op, why)
		}
	}
	for _, st := range called {
		if position[st] == 0 && looks(st.kind) && st.answer != nil && slices.ContainsFunc(cells, func(c cell) bool {
			return c.left > 0 && c.file == st.answer.file && c.token == st.answer.token
		}) {
			fmt.Fprintf(&b, "Still to come is the answer to\n  %v\n", st.op)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// why says what keeps a step from being next; empty: nothing does.
func (m *model) why(cells []cell, st *step) string {
	t := turn{model: m, cells: slices.Clone(cells)}
	switch {
	case t.take(st):
		return ""
	case t.at == none:
		return t.why
	}
	return fmt.Sprintf("%s (%s)", t.why, m.describe(t.at, cells[t.at]))
}
