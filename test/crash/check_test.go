package crash

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// observation is what a restarted server shows.
type observation struct {
	listed     map[string]int // names of tables, and how often the lists have them
	tables     map[string]loaded
	unloadable map[string]string            // what was answered instead
	namespaces map[string]map[string]string // listed, with their properties
	files      archive
	// started is when the server was, in milliseconds since 1970, and now when all this was seen.
	started, now int64
	// clockMoved says that the server's clock was wrong at times: it tells no durations.
	clockMoved bool
}

// loaded is a table as a load answers it.
type loaded struct {
	location string
	metadata *version
}

// report is what a check found.
type report struct {
	problems []string

	// What unknown operations turned out to be, and where everything is.
	resolved   map[*operation]outcome
	versionsOf map[*operation]*version // of commits that were resolved, or whose answer did not show it
	names      map[*table]string
	exists     map[*namespace]bool
	// doomed are the files of purged tables, which must go away.
	doomed []string
	// reached are the metadata files in the histories of tables and views, and what
	// else of theirs must be there.
	reached map[string]bool

	looked
}

// looked is how much a check has looked at.
type looked struct {
	live, dropped, purged, views, spaces     int // tables that are there, or are gone
	versions, snapshots, reads, transactions int
	forgotten                                int // tables whose first files were deleted before they were seen
}

func (l *looked) add(other looked) {
	l.live, l.dropped, l.purged, l.views, l.spaces = l.live+other.live, l.dropped+other.dropped, l.purged+other.purged, l.views+other.views, l.spaces+other.spaces
	l.versions, l.snapshots, l.reads = l.versions+other.versions, l.snapshots+other.snapshots, l.reads+other.reads
	l.transactions, l.forgotten = l.transactions+other.transactions, l.forgotten+other.forgotten
}

func (r *report) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// checker compares a history with an observation.
type checker struct {
	*report
	h   *history
	obs observation
	// createdAs maps the token of a creation to the names its table is seen under.
	createdAs map[string][]string
	// Of the tables of a transaction: who was the first that is known to have come
	// after it, and the last that is known to have come before.
	after, before map[*operation]*operation
}

// check reports every way in which the observation cannot have come from the history.
func check(h *history, obs observation) *report {
	c := &checker{
		report: &report{
			resolved: map[*operation]outcome{}, versionsOf: map[*operation]*version{},
			names: map[*table]string{}, exists: map[*namespace]bool{}, reached: map[string]bool{},
		},
		h: h, obs: obs, createdAs: map[string][]string{}, after: map[*operation]*operation{}, before: map[*operation]*operation{},
	}
	c.answers()
	c.lists()
	for _, n := range h.namespaces {
		c.namespace(n)
	}
	for _, t := range h.tables {
		c.table(t)
	}
	c.allTogether()
	c.refusals()
	c.locations()
	slices.Sort(c.doomed)
	return c.report
}

// answers looks at each answer by itself.
func (c *checker) answers() {
	for _, o := range c.h.ops {
		switch {
		case o.outcome == done && o.hopeless:
			c.problem("%s had to be refused and was acknowledged", o)
		case o.outcome == refused && o.busy && o.status == http.StatusBadRequest && c.obs.clockMoved: // a clock was ahead when it was sent
		case o.outcome == refused && o.busy && o.status != http.StatusTooManyRequests && !o.excused:
			c.problem("%s was refused although nothing had failed: %d %s", o, o.status, o.message)
		case o.outcome == refused && !o.busy && o.status != 0 && !o.mayBeRefused(o.status):
			c.problem("%s was refused without a reason: %d %s", o, o.status, o.message)
		case o.outcome == unknown && o.answered == never && !o.excused:
			c.problem("%s has no outcome although nothing had failed: %d %s", o, o.status, o.message)
		}
	}
}

// mayBeRefused tells whether a status may refuse the operation on a server that is not busy. What it is about may have been
// taken away before it was repeated; for the reason see refusals.
func (o *operation) mayBeRefused(status int) bool {
	again := o.sending.repeated && (status == http.StatusNotFound || status == http.StatusBadRequest && o.hopeless)
	return again || slices.Contains(o.refusable, status)
}

// lists compares listings with loads and finds what nobody made.
func (c *checker) lists() {
	for name, times := range c.obs.listed {
		if times != 1 {
			c.problem("table %s is listed %d times", name, times)
		}
		if _, ok := c.obs.tables[name]; !ok {
			c.problem("table %s is listed but cannot be loaded: %s", name, c.obs.unloadable[name])
		}
	}
	known := map[string]bool{}
	for _, t := range c.h.tables {
		known[t.id] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.obs.tables)) {
		if c.obs.listed[name] == 0 {
			c.problem("table %s can be loaded but is not listed", name)
		}
		id := c.obs.tables[name].metadata.Properties[createdProperty]
		if !known[id] {
			c.problem("phantom table %s, created by %q", name, id)
		}
		c.createdAs[id] = append(c.createdAs[id], name)
	}
	made := map[string]bool{}
	for _, n := range c.h.namespaces {
		made[n.id] = true
	}
	for name, properties := range c.obs.namespaces {
		if id := properties[createdProperty]; !made[id] {
			c.problem("phantom namespace %s, created by %q", name, id)
		}
	}
}

// bindings are the names that a subject may have now; empty is none.
type bindings map[string]bool

func (b bindings) String() string {
	var names []string
	for name := range b {
		if name == "" {
			name = "nowhere"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// possible follows the changes of a subject's name. They come one after another,
// save the drops, which may race; those are taken in the order in which they can
// have happened: the one that succeeded, those that may have, those that found nothing.
func (c *checker) possible(ops []*operation, subject string) bindings {
	var steps, drops []*operation
	for _, o := range ops {
		switch {
		case o.naming == nil:
		case o.naming.drops():
			drops = append(drops, o)
		default:
			steps = append(steps, o)
		}
	}
	rank := map[outcome]int{done: 0, unknown: 1, refused: 2}
	slices.SortStableFunc(drops, func(a, b *operation) int { return rank[a.outcome] - rank[b.outcome] })
	at := bindings{"": true}
	for _, o := range append(steps, drops...) {
		switch o.outcome {
		case done:
			if !at[o.naming.from] {
				c.problem("%s: %s was acknowledged when it was %s", subject, o, at)
			}
			at = bindings{o.naming.to: true}
		case unknown:
			if at[o.naming.from] && !o.hopeless {
				at = maps.Clone(at)
				at[o.naming.to] = true
			}
		case refused:
			if o.naming.drops() && o.status == http.StatusNotFound { // which no busy server answers
				if !at[""] {
					c.problem("%s: %s found nothing to drop, but it was %s", subject, o, at)
				}
				at = bindings{"": true}
			}
		}
	}
	return at
}

// resolveNames tells, of the unknown changes of a name, which must have happened
// for the subject to be where it is.
func (c *checker) resolveNames(ops []*operation, now string) {
	gone := slices.ContainsFunc(ops, func(o *operation) bool {
		return o.naming != nil && o.naming.drops() && o.outcome == done
	})
	for _, o := range ops {
		if o.naming == nil || o.outcome != unknown {
			continue
		}
		switch {
		case o.naming.to == now && !(now == "" && gone):
			c.resolved[o] = done
			gone = gone || now == "" // of two unknown drops, one suffices
		default:
			c.resolved[o] = refused
		}
	}
}

// table checks one table: its name, its pointer, its files.
func (c *checker) table(t *table) {
	subject := "table " + t.id
	may := c.possible(t.ops, subject)
	seen := c.createdAs[t.id]
	if len(seen) > 1 {
		c.problem("%s has %d names: %s", subject, len(seen), strings.Join(seen, ", "))
		return
	}
	now := ""
	if len(seen) == 1 {
		now = seen[0]
	}
	switch {
	case may[now]:
	case now == "":
		c.problem("%s is lost: it should be %s", subject, may)
		return
	default:
		c.problem("%s is %s, where it cannot be: it should be %s", subject, now, may)
		return
	}
	c.names[t] = now
	// Commits are resolved first: one that went through keeps its table's drop from having come before.
	switch {
	case t.view:
		c.view(t, now)
	case now != "":
		c.liveTable(t, c.obs.tables[now])
	default:
		c.droppedTable(t)
	}
	c.resolveNames(t.ops, now)
}

// namespace checks one namespace: whether it is there, and its properties.
func (c *checker) namespace(n *namespace) {
	name := dotted(n.levels)
	subject := "namespace " + n.id + " (" + name + ")"
	var own []*operation
	for _, o := range n.ops {
		if o.table == nil {
			own = append(own, o)
		}
	}
	may := c.possible(own, subject)
	properties, there := c.obs.namespaces[name]
	there = there && properties[createdProperty] == n.id
	now := ""
	if there {
		now = name
	}
	if !may[now] {
		if there {
			c.problem("%s is there but should not be", subject)
		} else {
			c.problem("%s is lost", subject)
		}
		return
	}
	c.exists[n] = there
	c.resolveNames(own, now)
	if !there {
		return
	}
	c.spaces++
	c.namespaceProperties(subject, own, properties)
}

// namespaceProperties wants each writer's property, and the one that they share, to be that
// of a change which no other is known to have followed.
func (c *checker) namespaceProperties(subject string, ops []*operation, properties map[string]string) {
	byWriter := map[string][]*operation{} // that were done
	var edits []*operation
	for _, o := range ops {
		if o.edit == nil {
			continue
		}
		edits = append(edits, o)
		if o.outcome == done {
			byWriter[o.writer] = append(byWriter[o.writer], o)
		}
	}
	for k, token := range properties {
		writer, ok := strings.CutPrefix(k, writerProperty)
		if !ok {
			continue
		}
		o := c.h.byToken[token]
		switch {
		case o == nil || !slices.Contains(edits, o) || o.writer != writer:
			c.problem("%s: phantom property %s=%s", subject, k, token)
		case o.outcome == refused:
			c.problem("%s: %s was refused and is visible", subject, o)
		case o.hopeless:
			c.problem("%s: %s could never succeed and is visible", subject, o)
		}
	}
	for _, o := range edits {
		has := properties[writerProperty+o.writer] == o.token
		switch {
		case o.outcome == unknown && has:
			c.resolved[o] = done
		case o.outcome == unknown: // or another of the writer's has replaced it, which comes to the same
			c.resolved[o] = refused
		}
	}
	for writer, made := range byWriter {
		k := writerProperty + writer
		is := c.h.byToken[properties[k]]
		for _, o := range made {
			if is == nil || is.answered < o.sent {
				c.problem("%s: %s is lost: %s is %q", subject, o, k, properties[k])
			}
		}
	}
	for k, token := range properties {
		writer, ok := strings.CutPrefix(k, writerProperty)
		if ok && properties[pairProperty+writer] != token {
			c.problem("%s: half a change: %s is %q but %s%s is %q", subject, k, token, pairProperty, writer, properties[pairProperty+writer])
		}
	}
	for k := range properties {
		writer, ok := strings.CutPrefix(k, pairProperty)
		if ok && properties[k] != properties[writerProperty+writer] {
			c.problem("%s: half a change: %s is %q but %s%s is %q", subject, k, properties[k], writerProperty, writer, properties[writerProperty+writer])
		}
	}
	o := c.h.byToken[properties[lastProperty]]
	if o == nil || !slices.Contains(edits, o) {
		c.problem("%s: phantom property %s=%s", subject, lastProperty, properties[lastProperty])
		return
	}
	if o.outcome == refused || c.resolved[o] == refused {
		c.problem("%s: %s is visible as the last change, but did not happen", subject, o)
	}
	for _, other := range edits {
		if other.outcome == done && o.answered < other.sent {
			c.problem("%s: %s replaced the later %s", subject, o, other)
		}
	}
}

// refusals wants the reason of each refusal to be there still: a change that a
// refusal had seen was visible, so it must not be lost.
func (c *checker) refusals() {
	binds, unbinds, claims := map[string][]*operation{}, map[string][]*operation{}, map[string][]*operation{}
	for _, o := range c.h.ops {
		if o.naming == nil || c.finally(o) == refused {
			continue
		}
		if o.contested != "" {
			claims[o.contested] = append(claims[o.contested], o)
		}
		if o.naming.to != "" {
			binds[o.naming.to] = append(binds[o.naming.to], o)
		}
		if o.naming.from != "" {
			unbinds[o.naming.from] = append(unbinds[o.naming.from], o)
		}
	}
	before := func(ops []*operation, o *operation) bool {
		return slices.ContainsFunc(ops, func(other *operation) bool { return other != o && other.sent < o.answered })
	}
	// That of one table is the reason for all of a transaction.
	wasGone := func(o *operation) bool { return before(unbinds[o.addressed], o) }
	for _, o := range c.h.ops {
		if o.outcome != refused || o.busy || o.hopeless || o.answered == never {
			continue
		}
		switch {
		case o.status == http.StatusConflict && o.naming != nil && o.naming.to != "" && len(o.sending.ops) == 1 && !before(binds[o.naming.to], o):
			c.problem("%s was refused because %s was taken, which it never was", o, o.naming.to)
		case o.status == http.StatusBadRequest && o.contested != "" && !before(claims[o.contested], o):
			c.problem("%s was refused because the location %s was taken, which it never was", o, o.contested)
		case o.status == http.StatusNotFound && o.addressed != "" && !slices.ContainsFunc(o.sending.ops, wasGone):
			c.problem("%s was refused because there was no %s, which nobody took away", o, o.addressed)
		case o.status == http.StatusNotFound && o.addressed == "" && o.namespace != nil && !before(unbinds[dotted(o.namespace.levels)], o):
			c.problem("%s was refused because there was no namespace %s, which nobody dropped", o, dotted(o.namespace.levels))
		}
	}
}

// allTogether wants every transaction to be in all of its tables or in none, and to
// have come to all of them at one moment.
func (c *checker) allTogether() {
	checked := map[*sending]bool{}
	for _, o := range c.h.ops {
		s := o.sending
		if len(s.ops) < 2 || checked[s] {
			continue
		}
		checked[s] = true
		c.transactions++
		is := map[outcome]*operation{}
		var saw, missed *operation
		for _, part := range s.ops {
			is[c.finally(part)] = part
			if after := c.after[part]; after != nil && (saw == nil || after.answered < saw.answered) {
				saw = after
			}
			if before := c.before[part]; before != nil && (missed == nil || before.sent > missed.sent) {
				missed = before
			}
		}
		switch {
		case is[done] != nil && is[refused] != nil:
			c.problem("half of a transaction: %s happened to table %s, and %s did not to table %s", is[done], is[done].table.id, is[refused], is[refused].table.id)
		case is[done] != nil && saw != nil && missed != nil && saw.answered < missed.sent:
			c.problem("half of a transaction was visible: of %s, %s saw one table's part in table %s, and the later %s missed another's in table %s",
				is[done], saw, saw.table.id, missed, missed.table.id)
		case is[unknown] == nil: // all are known
		case is[done] != nil || is[refused] != nil: // those of tables that were dropped since are known by the others
			for _, part := range s.ops {
				if c.finally(part) != unknown {
					continue
				}
				c.resolved[part] = refused
				if is[done] != nil {
					c.resolved[part] = done
				}
			}
		}
	}
}

// finally is the outcome of an operation after this check.
func (c *checker) finally(o *operation) outcome {
	if found, ok := c.resolved[o]; ok {
		return found
	}
	return o.outcome
}

// locations wants the locations of live tables apart.
func (c *checker) locations() {
	at := map[string]string{}
	for name, t := range c.obs.tables {
		l := strings.TrimSuffix(t.metadata.Location, "/") + "/"
		if other, taken := at[l]; taken {
			c.problem("tables %s and %s have one location, %s", name, other, l)
		}
		at[l] = name
	}
	sorted := slices.Sorted(maps.Keys(at))
	for i := 1; i < len(sorted); i++ {
		if strings.HasPrefix(sorted[i], sorted[i-1]) {
			c.problem("table %s lies within the location of table %s: %s", at[sorted[i]], at[sorted[i-1]], sorted[i])
		}
	}
}

func dotted(levels []string) string { return strings.Join(levels, ".") }
