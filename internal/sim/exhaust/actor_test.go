package exhaust

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// body is what an actor does. It is a function of the answers it gets through env.
type body func(context.Context, *env)

// tree is what an actor asks for after each sequence of answers.
type tree struct {
	t      *testing.T // the bubbles are its
	space  *space
	name   string
	number int
	body   body
	root   *node
	places map[string]*node // where it began afresh
	nodes  int
	runs   int // of the code
	// onEdge is told of each answer that is new, and where it leads. May be nil.
	onEdge func(from, to *node)
	alive  sync.WaitGroup // bubbles
}

// node is a place in a tree: the accesses that the actor waits for, all at once where its code
// does several things at once.
type node struct {
	id       int
	up       *node
	by       turn // the answer that led here
	depth    int
	pending  []*access
	replies  []reply // of the operations that have ended
	finished bool
	children map[turn]*node

	live *run // the code, waiting just here; nil: it is run again when it is needed
	// reach is what the actor may still touch from here on; nil in a node that is new.
	reach *reach
	asks  *reach // what pending touches; nil: not asked for yet
}

// turn is an answer to one of the accesses that an actor waits for.
type turn struct {
	access int
	answer answer
}

// run is the code of an actor, as far as it got.
type run struct {
	turns   chan delivery // closed: it ends
	reports chan report
}

type delivery struct {
	access int
	result result
}

// report is what an actor does once it can do no more without an answer.
type report struct {
	pending  []*access
	replies  []reply
	finished bool
	afresh   string
}

func newTree(t *testing.T, sp *space, name string, number int, b body) *tree {
	return &tree{t: t, space: sp, name: name, number: number, body: b, places: map[string]*node{}}
}

// start makes the root.
func (tr *tree) start() *node {
	if tr.root == nil {
		r, rep := tr.launch()
		tr.root = tr.grow(nil, turn{}, r, rep)
	}
	return tr.root
}

// grow makes the node where the code is now, or finds it: where it begins afresh, what led there is
// forgotten.
func (tr *tree) grow(up *node, by turn, r *run, rep report) *node {
	n, known := tr.places[rep.afresh]
	if !known || rep.afresh == "" {
		known = false
		n = &node{id: tr.nodes, up: up, by: by, pending: rep.pending, replies: rep.replies, finished: rep.finished, children: map[turn]*node{}}
		tr.nodes++
		if up != nil {
			n.depth = up.depth + 1
		}
		if rep.afresh != "" {
			tr.places[rep.afresh] = n
		}
	}
	if known && !rep.same(n) {
		r.endUnless(rep.finished)
		panic(fmt.Sprintf("exhaust: %s has forgotten nothing: it asks for %v, and asked for %v", tr.name, rep.pending, n.pending))
	}
	switch {
	case n.finished:
	case n.live == nil:
		n.live = r
	default:
		r.end()
	}
	if up != nil {
		up.children[by] = n
		if tr.onEdge != nil {
			tr.onEdge(up, n)
		}
	}
	return n
}

// same reports whether the code does what it did at a node.
func (rep *report) same(n *node) bool {
	return rep.finished == n.finished && slices.Equal(rep.replies, n.replies) && slices.EqualFunc(rep.pending, n.pending, (*access).same)
}

// end lets the code come to its end.
func (r *run) end() {
	close(r.turns)
	<-r.reports
}

func (r *run) endUnless(finished bool) {
	if !finished {
		r.end()
	}
}

// next is where an answer leads.
func (tr *tree) next(n *node, by turn) *node {
	if there, ok := n.children[by]; ok {
		return there
	}
	r := n.live
	n.live = nil
	if r == nil {
		r = tr.again(n)
	}
	return tr.grow(n, by, r, tr.deliver(r, n, by))
}

func (tr *tree) deliver(r *run, n *node, by turn) report {
	r.turns <- delivery{by.access, tr.space.result(n.pending[by.access], by.answer)}
	return <-r.reports
}

// again runs the code up to a node.
func (tr *tree) again(n *node) *run {
	var path []*node
	for at := n; at != nil; at = at.up {
		path = append(path, at)
	}
	slices.Reverse(path)
	r, rep := tr.launch()
	for i, at := range path {
		if i > 0 {
			rep = tr.deliver(r, path[i-1], at.by)
		}
		if !rep.same(at) {
			r.endUnless(rep.finished)
			panic(fmt.Sprintf("exhaust: %s does not depend on its answers alone: it asked for %v before, and now for %v", tr.name, at.pending, rep.pending))
		}
	}
	return r
}

// each visits every node once.
func (tr *tree) each(visit func(*node)) {
	if tr.root == nil {
		return
	}
	seen := make([]bool, tr.nodes)
	var walk func(*node)
	walk = func(n *node) {
		if !seen[n.id] {
			seen[n.id] = true
			for _, c := range n.children {
				walk(c)
			}
			visit(n) // after everything that follows it
		}
	}
	walk(tr.root)
}

// stop ends all code that waits.
func (tr *tree) stop() {
	tr.each(func(n *node) {
		if n.live != nil {
			n.live.end()
			n.live = nil
		}
	})
	tr.alive.Wait()
}

// asked is an access that waits for its result.
type asked struct {
	access *access
	result chan result
}

// launch runs the actor's code in a bubble of its own until it waits for an answer. Pauses in it take no
// time. The channels to the search are made outside of the bubble: while the code waits for
// the search, no time passes.
func (tr *tree) launch() (*run, report) {
	tr.runs++
	r := &run{turns: make(chan delivery), reports: make(chan report)}
	tr.alive.Go(func() { synctest.Test(tr.t, func(t *testing.T) { tr.bubble(t, r) }) })
	return r, <-r.reports
}

func (tr *tree) bubble(t *testing.T, r *run) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asking, done := make(chan asked), make(chan struct{})
	e := &env{number: tr.number, ask: func(a access) result {
		q := asked{&a, make(chan result)}
		asking <- q
		return <-q.result
	}}
	go func() {
		defer close(done)
		tr.body(ctx, e)
	}()
	var waiting []asked
	for {
		var rep report
		waiting, rep.finished = gather(waiting, asking, done)
		rep.replies, rep.afresh = slices.Clone(e.replies), e.afresh
		e.afresh = ""
		for _, q := range waiting {
			rep.pending = append(rep.pending, q.access)
		}
		r.reports <- rep
		if rep.finished {
			return
		}
		d, ok := <-r.turns
		if !ok {
			cancel()
			abandon(waiting, asking, done)
			close(r.reports)
			return
		}
		waiting[d.access].result <- d.result
		waiting = slices.Delete(waiting, d.access, d.access+1)
	}
}

// gather waits until the code can do no more without an answer. Time passes only if it
// waits for nothing else.
func gather(waiting []asked, asking <-chan asked, done <-chan struct{}) (_ []asked, finished bool) {
	for {
		synctest.Wait()
		select {
		case q := <-asking:
			waiting = append(waiting, q)
			continue
		default:
		}
		if len(waiting) > 0 {
			slices.SortFunc(waiting, func(a, b asked) int { return cmp.Compare(a.access.identity(), b.access.identity()) })
			return waiting, false
		}
		select {
		case q := <-asking:
			waiting = append(waiting, q)
		case <-done:
			return nil, true
		}
	}
}

// abandon lets the code come to its end: nothing is answered any more.
func abandon(waiting []asked, asking <-chan asked, done <-chan struct{}) {
	for _, q := range waiting {
		q.result <- result{err: errEnded}
	}
	for range 10_000 {
		select {
		case q := <-asking:
			q.result <- result{err: errEnded}
		case <-done:
			return
		}
	}
	panic("exhaust: the code does not come to an end")
}
