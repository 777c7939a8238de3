package exhaust

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// how an operation ended, as its client was told.
type how string

const (
	done    how = "done"
	refused how = "refused"
	gaveUp  how = "gave up" // nothing was changed
	unsure  how = "unknown" // it was carried out, once and whole, or not at all; perhaps later
	broken  how = "broken"  // what no client may be told
)

// reply is what a client was told.
type reply struct {
	how  how
	why  string // of a refusal
	seen string // what the answer showed
}

// kind is what an operation does.
type kind string

const (
	makeNamespace kind = "create namespace"
	dropNamespace kind = "drop namespace"
	makeTable     kind = "create"
	commit        kind = "commit"
	firstCommit   kind = "first commit" // refused unless the table has no snapshot
	transact      kind = "transaction"
	skew          kind = "write one that rests on another" // a first commit to the second table, refused unless the first has no snapshot either
	rename        kind = "rename"
	drop          kind = "drop"
	load          kind = "load"
	listTables    kind = "list"
	recovery      kind = "recover"
	scrub         kind = "scrub"
	inspect       kind = "inspect" // looks at the records themselves, and finds nothing wrong
)

// operation is one of a few that a model can carry out.
type operation struct {
	kind   kind
	tables []string // dotted; of a rename from and to; of namespaces, theirs
	token  string   // of what changes: each another
	at     string   // the location of a new table; empty: the server chooses
}

func (o operation) String() string {
	return strings.TrimSpace(string(o.kind) + " " + strings.Join(o.tables, " "))
}

// model is a catalog in the smallest words: the tables by name, each with the tokens of what
// made and changed it, and the namespaces.
type model struct {
	tables     map[string]string
	namespaces map[string]bool
}

func (m model) copied() model { return model{maps.Clone(m.tables), maps.Clone(m.namespaces)} }

func namespaceOf(table string) string { return table[:strings.LastIndexByte(table, '.')] }

// step carries out an operation, and says what its client is to be told.
func (m model) step(o operation) reply {
	refuse := func(why string) reply { return reply{how: refused, why: why} }
	switch o.kind {
	case makeNamespace:
		if m.namespaces[o.tables[0]] {
			return refuse("already exists")
		}
		m.namespaces[o.tables[0]] = true
	case dropNamespace:
		if !m.namespaces[o.tables[0]] {
			return refuse("no such namespace")
		}
		if len(m.in(o.tables[0])) > 0 {
			return refuse("not empty")
		}
		delete(m.namespaces, o.tables[0])
	case makeTable:
		t := o.tables[0]
		if !m.namespaces[namespaceOf(t)] {
			return refuse("no such namespace")
		}
		if _, ok := m.tables[t]; ok {
			return refuse("already exists")
		}
		m.tables[t] = o.token
		return reply{how: done, seen: o.token}
	case commit, firstCommit, transact, skew:
		for _, t := range o.tables {
			if _, ok := m.tables[t]; !ok {
				return refuse("no such table")
			}
			if (o.kind == firstCommit || o.kind == skew) && strings.Contains(m.tables[t], "!") {
				return refuse("requirement failed")
			}
		}
		for i, t := range o.tables {
			if o.kind == skew && i == 0 {
				continue
			}
			tokens := append(strings.Fields(m.tables[t]), o.token)
			if o.kind == firstCommit || o.kind == skew {
				tokens[len(tokens)-1] += "!"
			}
			slices.Sort(tokens[1:])
			m.tables[t] = strings.Join(tokens, " ")
		}
		if o.kind == commit || o.kind == firstCommit {
			return reply{how: done, seen: m.tables[o.tables[0]]}
		}
	case rename:
		from, to := o.tables[0], o.tables[1]
		if _, ok := m.tables[from]; !ok {
			return refuse("no such table")
		}
		if !m.namespaces[namespaceOf(to)] {
			return refuse("no such namespace")
		}
		if _, ok := m.tables[to]; ok {
			return refuse("already exists")
		}
		m.tables[to] = m.tables[from]
		delete(m.tables, from)
	case drop:
		if _, ok := m.tables[o.tables[0]]; !ok {
			return refuse("no such table")
		}
		delete(m.tables, o.tables[0])
	case load:
		seen, ok := m.tables[o.tables[0]]
		if !ok {
			return refuse("no such table")
		}
		return reply{how: done, seen: seen}
	case listTables:
		if !m.namespaces[o.tables[0]] {
			return refuse("no such namespace")
		}
		return reply{how: done, seen: strings.Join(m.in(o.tables[0]), " ")}
	}
	return reply{how: done}
}

// in are the names of the tables in a namespace.
func (m model) in(namespace string) []string {
	var names []string
	for _, t := range slices.Sorted(maps.Keys(m.tables)) {
		if namespaceOf(t) == namespace {
			names = append(names, t[len(namespace)+1:])
		}
	}
	return names
}

// event is an operation that some client called, with what it was told.
type event struct {
	actor  string
	op     operation
	before uint32 // events that had ended when it began
	reply  reply
}

// explained reports whether there is an order of the events, which keeps what ended before
// something began before it, in which a catalog that does one thing after the
// other tells every client what it was told. What is unknown may happen once or not at all.
func explained(m model, events []event, left uint32) bool {
	open := false
	for i, e := range events {
		if left&(1<<i) == 0 || e.before&left != 0 {
			open = open || left&(1<<i) != 0 && e.reply.how != unsure
			continue
		}
		if e.reply.how != unsure {
			open = true
		}
		next := m.copied()
		told := next.step(e.op)
		if (e.reply.how == unsure || told == e.reply) && explained(next, events, left&^(1<<i)) {
			return true
		}
	}
	return !open
}

// judge looks at an end: what is left over is recovered, everything is looked at, and it must all have
// an explanation.
func (s *search) judge(st *state) {
	s.counts.ends++
	s.last = st
	var events []event
	stuck, open := false, false
	renumber := map[int]int{}
	for i, a := range s.world.actors {
		for j, o := range a.does {
			number := s.number[i] + j
			r := reply{how: unsure}
			replies := st.at[i].replies
			switch {
			case j < len(replies):
				r = replies[j]
			case j > len(replies) || st.gone&(1<<i) == 0:
				continue // it was never called
			}
			if r.how == broken {
				s.fail(events, fmt.Sprintf("%s: %v: %s", a.name, o, r.why))
				return
			}
			stuck, open = stuck || r.how == gaveUp, open || r.how == unsure
			if r.how == gaveUp {
				continue
			}
			before := uint32(0)
			if st.calls[number].begun {
				before = st.calls[number].before
			}
			renumber[number] = len(events)
			events = append(events, event{a.name, o, before, r})
		}
	}
	for i := range events {
		events[i].before = renumbered(events[i].before, renumber)
	}
	if stuck {
		s.counts.gaveUp++
	}
	if open {
		s.counts.unknown++
	}
	for _, l := range s.epi.look(st) {
		last := uint32(1)<<len(events) - 1
		for i, e := range events {
			if e.reply.how == unsure {
				last &^= 1 << i
			}
		}
		events = append(events, event{"afterwards", l.op, last, l.reply})
	}
	if len(events) > 32 {
		panic("exhaust: more events than a set of them can hold")
	}
	identity := fmt.Sprint(events)
	if s.outcomes != nil {
		s.outcomes[outcomeOf(events)] = true
	}
	verdict, ok := s.judged[identity]
	if !ok {
		verdict = s.verdict(events)
		s.judged[identity] = verdict
	}
	if verdict != "" {
		s.fail(events, verdict)
	}
}

func outcomeOf(events []event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s: %v: %v\n", e.actor, e.op, e.reply)
	}
	return b.String()
}

func renumbered(set uint32, to map[int]int) (n uint32) {
	for from, i := range to {
		if set&(1<<from) != 0 {
			n |= 1 << i
		}
	}
	return n
}

func (s *search) verdict(events []event) string {
	for _, e := range events {
		if e.reply.how == broken {
			return fmt.Sprintf("%s: %v: %s", e.actor, e.op, e.reply.why)
		}
	}
	m := model{map[string]string{}, map[string]bool{}}
	for _, o := range s.world.setup {
		m.step(o)
	}
	if !explained(m, events, uint32(1)<<len(events)-1) {
		return "no order of the operations explains what the clients were told"
	}
	return ""
}

// fail says what is wrong, how it came about, and what everybody was told.
func (s *search) fail(events []event, what string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", what)
	for i, a := range s.world.actors {
		if s.last.gone&(1<<i) != 0 && s.last.at[i].up == nil {
			fmt.Fprintf(&b, "     %-10s CRASHES before it does anything\n", a.name)
		}
	}
	b.WriteString(s.transcript())
	for i, e := range events {
		fmt.Fprintf(&b, "  [%d] %-10s %v: %s %s %q", i, e.actor, e.op, e.reply.how, e.reply.why, e.reply.seen)
		var after []string
		for j := range events {
			if e.before&(1<<j) != 0 && e.actor != "afterwards" {
				after = append(after, fmt.Sprint(j))
			}
		}
		if after != nil {
			fmt.Fprintf(&b, ", begun after %s had ended", strings.Join(after, ", "))
		}
		b.WriteString("\n")
	}
	s.failure = b.String()
}
