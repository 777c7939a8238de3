package exhaust

import (
	"slices"
	"strings"
)

// bits is a set of numbers of names.
type bits []uint64

//go:norace
func (b bits) has(n int) bool { return n/64 < len(b) && b[n/64]&(1<<(n%64)) != 0 }

func (b *bits) add(n int) {
	for n/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

//go:norace
func (b bits) meets(o bits) bool {
	for i := range min(len(b), len(o)) {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

func (b bits) within(o bits) bool {
	for i, w := range b {
		if i < len(o) {
			w &^= o[i]
		}
		if w != 0 {
			return false
		}
	}
	return true
}

func (b *bits) join(o bits) {
	for len(*b) < len(o) {
		*b = append(*b, 0)
	}
	for i, w := range o {
		(*b)[i] |= w
	}
}

// reach is a set of cells that are read and written, and of prefixes that are listed.
type reach struct {
	reads, writes bits
	lists         []string
}

// touch adds what an access reads and writes.
func (r *reach) touch(sp *space, a *access) {
	switch a.verb {
	case get, read, record:
		r.reads.add(sp.number(a))
	case put, create, remove, outcome:
		r.reads.add(sp.number(a))
		r.writes.add(sp.number(a))
	case list, records:
		r.list(a.cell)
	case apply:
		r.reads.add(sp.number(a))
		r.writes.add(sp.number(a))
		for _, c := range a.batch.Conds {
			r.reads.add(sp.name(recordCell(c.Key)))
			if c.Prefix.Path != "" {
				r.list(recordsUnder(c.Prefix))
			}
		}
		for _, w := range a.batch.Writes {
			r.writes.add(sp.name(recordCell(w.Key)))
		}
	}
}

func (r *reach) list(prefix string) {
	if !slices.Contains(r.lists, prefix) {
		r.lists = append(r.lists, prefix)
	}
}

func (r *reach) join(o *reach) {
	r.reads.join(o.reads)
	r.writes.join(o.writes)
	for _, l := range o.lists {
		r.list(l)
	}
}

func (r *reach) within(o *reach) bool {
	return r.reads.within(o.reads) && r.writes.within(o.writes) &&
		!slices.ContainsFunc(r.lists, func(l string) bool { return !slices.Contains(o.lists, l) })
}

// meets reports whether one writes what the other reads, lists or writes.
//
//go:norace
func (r *reach) meets(sp *space, o *reach) bool {
	return r.writes.meets(o.reads) || r.writes.meets(o.writes) || o.writes.meets(r.reads) ||
		sp.covers(r.lists, o.writes) || sp.covers(o.lists, r.writes)
}

// covers reports whether a name in the set begins with one of the prefixes.
func (sp *space) covers(prefixes []string, set bits) bool {
	for _, p := range prefixes {
		for n := range sp.names {
			if set.has(n) && strings.HasPrefix(sp.names[n], p) {
				return true
			}
		}
	}
	return false
}

// now is what the actor touches with its next accesses.
func (n *node) now(sp *space) *reach {
	if n.asks == nil {
		n.asks = &reach{}
		for _, a := range n.pending {
			n.asks.touch(sp, a)
		}
	}
	return n.asks
}

// future is what the actor may still touch, as far as was known when the search began.
//
//go:norace
func (n *node) future() *reach {
	for n.reach == nil {
		if n.up == nil {
			return &reach{}
		}
		n = n.up
	}
	return n.reach
}

// learn makes reach of every node what was found below it.
func (tr *tree) learn() {
	tr.each(func(n *node) {
		r := &reach{}
		r.join(n.now(tr.space))
		for _, c := range n.children {
			r.join(c.reach) // there are no circles: each answer is one more
		}
		n.reach = r
	})
}

// expect adds to what is known of a node and of all that led there, until the next learn.
func (n *node) expect(more *reach) {
	for ; n != nil; n = n.up {
		if n.reach != nil {
			n.reach.join(more)
		}
	}
}
