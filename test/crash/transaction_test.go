package crash

import (
	"maps"
	"net/http"
	"slices"
)

// part is what a transaction does to one table.
type part struct {
	*operation
	requirements []object
	updates      []object
}

// partOf commits to a table; false if it has no name just now.
func (w *writer) partOf(kind string, t *table, refusable ...int) (part, bool) {
	o := w.operation(kind)
	o.table, o.addressed, o.refusable = t, w.h.nameOf(t), refusable
	return part{o, []object{}, o.updates()}, o.addressed != ""
}

// commitTransaction changes two or three tables at once: its own, shared ones, the
// hot one, and one that it creates.
func (w *writer) commitTransaction() {
	var parts []part
	add := func(p part, ok bool) {
		if ok && !slices.ContainsFunc(parts, func(other part) bool { return other.table == p.table }) {
			parts = append(parts, p)
		}
	}
	if t := w.pick(); t != nil {
		add(w.partOf("transaction", t))
	}
	switch w.rng.IntN(4) {
	case 0: // one that nobody else can be in the way of
		if t := w.pick(); t != nil {
			add(w.partOf("transaction", t))
		}
	case 1:
		base := w.load(w.hot)
		if base == nil {
			return
		}
		o := w.appendTo(w.hot, base)
		o.kind = "transaction append"
		add(part{o, o.requirements(base), o.updates()}, true)
	default:
		add(w.partOf("transaction", w.sharedTable(), http.StatusNotFound))
		add(w.partOf("transaction", w.sharedTable(), http.StatusNotFound))
	}
	// Who creates in a transaction is told 409 for the name only, which is fresh.
	if w.rng.IntN(3) == 0 {
		if o, updates := w.stage("transaction create", w.ownName()); o != nil {
			add(part{o, assertCreate, updates}, true)
		}
	}
	if len(parts) < 2 {
		return
	}
	if w.transact(parts).outcome() == done {
		for _, p := range parts {
			if p.naming != nil {
				w.tables = append(w.tables, p.table)
			}
		}
	}
}

// commitHopelessTransaction sends good changes of some tables, and one that is refused.
func (w *writer) commitHopelessTransaction() {
	t := w.pick()
	if t == nil {
		return
	}
	good, there := w.partOf("hopeless transaction", t)
	bad, _ := w.partOf("hopeless transaction", w.hot)
	if !there {
		return
	}
	status := http.StatusConflict
	switch w.rng.IntN(4) {
	case 0:
		bad.requirements = []object{{"type": "assert-table-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}}
	case 1:
		bad.requirements = assertCreate
	case 2:
		status = http.StatusBadRequest
		bad.updates = append(bad.updates, object{"action": "set-current-schema", "schema-id": 1000})
	case 3:
		status = http.StatusNotFound
		bad.addressed = arenaSpace + ".nowhere"
	}
	parts := []part{good, bad}
	for _, p := range parts {
		p.hopeless, p.refusable = true, []int{status}
	}
	if w.rng.IntN(2) == 0 {
		slices.Reverse(parts)
	}
	w.transact(parts)
}

// transact sends a transaction. At times the first table is named twice in it, and
// each of both changes it by half.
func (w *writer) transact(parts []part) answer {
	var changes []object
	var ops []*operation
	refusable := []int{}
	for _, p := range parts {
		refusable = append(refusable, p.refusable...)
	}
	for i, p := range parts {
		p.refusable = refusable
		ops = append(ops, p.operation)
		name := p.addressed
		if p.naming != nil {
			name = p.naming.to
		}
		updates := p.updates
		if i == 0 && p.naming == nil && p.edit.snapshot == nil && !p.hopeless && w.rng.IntN(3) == 0 {
			first, second := map[string]string{}, map[string]string{}
			for j, k := range slices.Sorted(maps.Keys(p.edit.set)) {
				[]map[string]string{first, second}[j%2][k] = p.edit.set[k]
			}
			changes = append(changes, object{
				"identifier": identify(name), "requirements": p.requirements, "updates": []object{{"action": "set-properties", "updates": first}},
			})
			updates = []object{{"action": "set-properties", "updates": second}}
		}
		changes = append(changes, object{"identifier": identify(name), "requirements": p.requirements, "updates": updates})
	}
	return w.sent(requestOf("POST", prefix+"/transactions/commit", object{"table-changes": changes}), ops...)
}

// sharedTable is one of those that everybody commits to.
func (w *writer) sharedTable() *table {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shared[w.rng.IntN(len(w.shared))]
}

// readTogether loads tables that transactions change together, one after the other.
func (w *writer) readTogether() {
	for _, t := range []*table{w.sharedTable(), w.hot, w.sharedTable(), w.sharedTable()} {
		w.load(t)
	}
}
