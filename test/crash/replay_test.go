package crash

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// replaysMax is how many acknowledged requests are repeated after a restart.
	replaysMax = 40
	// replaysAtOnce is how many are repeated at a time.
	replaysAtOnce = 4
	// keyAgeMax is the age up to which keys are used: well below idempotency.lifetime.
	keyAgeMax = 15 * time.Minute
)

// replay repeats requests under their keys after a round: all whose answer did not come,
// each twice at once, and some that were acknowledged. What had happened must be answered as it
// was and not happen again, which the check of the histories shows; what had not may
// happen now, once. Each server repeats some of them, whichever had them first. It returns what is
// wrong, and the operations that are done now.
func (d *drill) replay(clients []*client) (problems []string, made []*operation) {
	var again []*sending
	acknowledged := 0
	for _, i := range d.rng.Perm(len(d.h.keyed)) {
		s := d.h.keyed[i]
		switch s.ops[0].outcome {
		case unknown:
			if s.at.After(d.began) { // others were resolved by an earlier check, or cannot be
				again = append(again, s)
			}
		case done:
			if acknowledged < replaysMax && time.Since(s.at) < keyAgeMax {
				acknowledged++
				again = append(again, s)
			}
		}
	}
	var mu sync.Mutex
	problem := func(s *sending, format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, fmt.Sprintf("%s, repeated under its key: ", s.ops[0])+fmt.Sprintf(format, args...))
	}
	// A request means the table that had its name when it was sent. So names are given to others
	// only when everything that uses them has been repeated.
	binds := func(s *sending) bool {
		return slices.ContainsFunc(s.ops, func(o *operation) bool { return o.naming != nil && o.naming.to != "" })
	}
	slices.SortStableFunc(again, func(a, b *sending) int {
		switch {
		case binds(a) == binds(b):
			return 0
		case binds(a):
			return 1
		}
		return -1
	})
	freed := namesFreed(again)
	var g errgroup.Group
	g.SetLimit(replaysAtOnce)
	for n, s := range again {
		if n > 0 && binds(s) && !binds(again[n-1]) {
			_ = g.Wait()
		}
		c, another := clients[n%len(clients)], clients[(n+1)%len(clients)]
		g.Go(func() error {
			if s.ops[0].outcome == unknown {
				found := d.repeatUnknown([2]*client{c, another}, s, freed, problem)
				mu.Lock()
				defer mu.Unlock()
				if found == done {
					made = append(made, s.ops...)
				}
				if found != unknown {
					d.settled += len(s.ops)
				}
				return nil
			}
			a := c.send(s.request)
			if !d.h.sameAnswer(s, a) && a.outcome() != unknown {
				problem(s, "answered %d %s instead of %d %s", a.status, a.body, s.answer.status, s.answer.body)
			}
			if other := s.request; other.body != nil {
				other.body = append(bytes.Clone(other.body), ' ')
				if a := c.send(other); a.status != http.StatusUnprocessableEntity && a.outcome() != unknown {
					problem(s, "another body was answered %d %s", a.status, a.message())
				}
			}
			return nil
		})
	}
	_ = g.Wait() // its functions return none
	d.replayed += len(again)
	return problems, made
}

// repeatUnknown sends a request twice at once whose answer never came. freed are the names that other requests, which are
// repeated at the same time, may take from what has them.
func (d *drill) repeatUnknown(clients [2]*client, s *sending, freed map[string]bool, problem func(*sending, string, ...any)) outcome {
	var answers [2]answer
	var both sync.WaitGroup
	for i, c := range clients {
		both.Go(func() { answers[i] = c.send(s.request) })
	}
	both.Wait()
	a, b := answers[0], answers[1]
	s.repeated = true
	found, agree := d.h.agreed(s, a, b, freed)
	if !agree {
		problem(s, "answered %d %s and, at the same time, %d %s", a.status, a.text(), b.status, b.text())
	}
	if found.outcome() == unknown || found.succeededBefore() {
		return unknown // in the latter case to us: it was done, but its answer is gone with its file
	}
	d.h.answer(s, found)
	return found.outcome()
}

// agreed gives the answer to a request that was sent twice at once after its first answer had not come, and tells whether
// the two answers agree with each other and with the history.
func (h *history) agreed(s *sending, a, b answer, freed map[string]bool) (found answer, agree bool) {
	if (a.succeededBefore() || b.succeededBefore()) && !h.mayBeGone(s) {
		return a, false
	}
	switch {
	case a.outcome() == unknown:
		return b, b.outcome() != unknown
	case b.outcome() == unknown:
		return a, true
	case a.outcome() == refused && b.outcome() == refused:
		// There may be two reasons: other requests are repeated meanwhile. The check of the histories sees only the first.
		return a, b.status == a.status || s.ops[0].mayBeRefused(b.status)
	case s.nameFreedBetween(b, a, freed):
		return a, true
	case s.nameFreedBetween(a, b, freed):
		return b, true
	case a.status != b.status:
		return a, false
	}
	return a, bytes.Equal(a.body, b.body) || s.changeShownBy(a) || s.changeShownBy(b)
}

// nameFreedBetween tells whether a rename may have been refused first, because its new name was taken, and done
// then: other requests are repeated at the same time, and one of those may have moved what had the name. The rename itself, once it
// is done, lets a second one find no table, and not a name that is taken.
func (s *sending) nameFreedBetween(first, later answer, freed map[string]bool) bool {
	n := s.ops[0].naming
	if n == nil || n.from == "" || n.to == "" || later.outcome() != done || first.status != http.StatusConflict {
		return false
	}
	return freed[n.to]
}

// namesFreed are the names that may be taken from what has them when the requests are repeated.
func namesFreed(again []*sending) map[string]bool {
	freed := map[string]bool{}
	for _, s := range again {
		for _, o := range s.ops {
			if o.outcome == unknown && o.naming != nil && o.naming.from != "" {
				freed[o.naming.from] = true
			}
		}
	}
	return freed
}

// sameAnswer tells whether a repeated request was answered as it was at first. Large
// metadata is not kept with the key, so its file may be gone, and that is said. Where the first answer showed
// what others had made of the change, it shows the change itself.
func (h *history) sameAnswer(s *sending, a answer) bool {
	if a.succeededBefore() {
		return h.mayBeGone(s)
	}
	if s.ops[0].showsLatest() {
		return a.status == s.answer.status && s.changeShownBy(a)
	}
	return a.status == s.answer.status && bytes.Equal(a.body, s.answer.body)
}

// succeededBefore tells whether the request had been done, and its answer is gone with the file that it was.
func (a answer) succeededBefore() bool {
	return a.status == http.StatusNotFound && strings.Contains(a.message(), "has succeeded before")
}

// mayBeGone tells whether files of the table that a request is about may have been deleted.
func (h *history) mayBeGone(s *sending) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := s.ops[0].table
	return t != nil && (t.at == "" || t.doubtful || t.forgets)
}

// changeShownBy tells whether an answer to a change of one table shows that very change.
func (s *sending) changeShownBy(a answer) bool {
	return len(s.ops) == 1 && a.outcome() == done && a.table.parsed != nil && shownBy(a.table.parsed).token == s.ops[0].token
}
