package crash

import "net/http"

// contest is something that at most one of several writers can win. Each takes
// part once, all at the same time; the checker finds two winners, a winner who lost
// after all, and losers without a winner.
type contest struct {
	joined map[int]bool // by writer; the world's mutex guards it
	full   chan struct{}
	enter  func(*writer)
}

// contestants is how many take part in a contest.
const contestants = 4

// contend takes part in a contest of others, or opens one.
func (w *writer) contend() {
	c := w.join()
	if c == nil {
		enter := w.newContest()
		if enter == nil {
			return
		}
		c = &contest{joined: map[int]bool{w.index: true}, full: make(chan struct{}), enter: enter}
		w.mu.Lock()
		w.contests = append(w.contests, c)
		w.mu.Unlock()
	}
	select { // few wait here: who comes joins them before opening another contest
	case <-c.full:
		c.enter(w)
	case <-w.over:
	}
}

// join joins an open contest; nil if there is none.
func (w *writer) join() *contest {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.contests {
		if c.joined[w.index] {
			continue
		}
		c.joined[w.index] = true
		if len(c.joined) == contestants {
			w.contests = append(w.contests[:i], w.contests[i+1:]...)
			close(c.full)
		}
		return c
	}
	return nil
}

// newContest makes up a contest; nil if what it is about could not be made.
func (w *writer) newContest() (enter func(*writer)) {
	name := arenaSpace + ".c-" + w.token()
	switch w.rng.IntN(6) {
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
	case 3, 4: // does somebody create a table in the namespace, or drop it?
		n, a := w.makeNamespace(arenaSpace, "n-"+w.token())
		if a.outcome() != done {
			return nil
		}
		return func(w *writer) {
			if w.rng.IntN(2) == 0 {
				// A drop is quicker than a creation, which has a file to write. Looking
				// at the namespace first makes either come first.
				for range w.rng.IntN(8) {
					w.client.call("HEAD", namespacePath(n.levels...), nil)
				}
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
