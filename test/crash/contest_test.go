package crash

import "net/http"

// contest is something that at most one of several writers can win. Each takes
// part once; the checker finds two winners, a winner who lost after all, and
// losers without a winner.
type contest struct {
	places int // left
	joined map[int]bool
	enter  func(*writer)
}

// contestants is how many take part in a contest.
const contestants = 4

// contend takes part in a contest of others, or opens one.
func (w *writer) contend() {
	w.mu.Lock()
	for i, c := range w.contests {
		if c.joined[w.index] {
			continue
		}
		c.joined[w.index] = true
		if c.places--; c.places == 0 {
			w.contests = append(w.contests[:i], w.contests[i+1:]...)
		}
		w.mu.Unlock()
		c.enter(w)
		return
	}
	w.mu.Unlock()
	if enter := w.newContest(); enter != nil {
		w.mu.Lock()
		w.contests = append(w.contests, &contest{places: contestants - 1, joined: map[int]bool{w.index: true}, enter: enter})
		w.mu.Unlock()
		enter(w)
	}
}

// newContest makes up a contest; nil if what it is about could not be made.
func (w *writer) newContest() (enter func(*writer)) {
	name := arenaSpace + ".c-" + w.token()
	switch w.rng.IntN(5) {
	case 0: // who creates the table?
		return func(w *writer) { w.create("contested create", name, conflicts) }
	case 1: // who renames a table to the name?
		return func(w *writer) {
			if t := w.pick(); t != nil {
				w.renameTo("contested rename", t, name, false, http.StatusConflict)
			}
		}
	case 2: // who drops the table?
		t, a := w.create("create", name, nil)
		if a.outcome() != done {
			return nil
		}
		purge := w.rng.IntN(2) == 0
		return func(w *writer) { w.dropTable("contested drop", t, purge, http.StatusNotFound) }
	case 3: // does somebody create a table in the namespace, or drop it?
		n, a := w.makeNamespace(arenaSpace, "n-"+w.token())
		if a.outcome() != done {
			return nil
		}
		return func(w *writer) {
			if w.rng.IntN(2) == 0 {
				w.dropSpace(n, false, http.StatusConflict, http.StatusNotFound)
				return
			}
			w.create("contested create", dotted(n.levels)+".c-"+w.token(), func(o *operation, _ object) {
				o.namespace, o.refusable = n, []int{http.StatusNotFound}
			})
		}
	default: // whose table gets the location, or one within it?
		location := w.root + "/contested/" + w.token()
		return func(w *writer) {
			suffix := []string{"", "/within"}[w.rng.IntN(2)]
			w.create("contested location", arenaSpace+".l-"+w.token(), func(o *operation, body object) {
				o.contested, o.refusable = location, []int{http.StatusBadRequest}
				body["location"] = location + suffix
			})
		}
	}
}

func conflicts(o *operation, _ object) { o.refusable = []int{http.StatusConflict} }
