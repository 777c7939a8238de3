package check

import (
	"fmt"
	"math"
	"slices"

	"github.com/landfast/landfast/internal/sim/history"
)

// Lists wants of every list what a list promises, which is no snapshot: a name that was
// there all the while is in it, once; a name that was not there at any moment is not. It
// says what is wrong, if anything is.
func Lists(ops []history.Operation) []string {
	var wrong []string
	l := lives{}
	requests, _ := requestsOf(ops)
	for _, r := range requests {
		l.request(r)
	}
	for i := range ops {
		l.look(&ops[i])
	}
	for i := range ops {
		o := &ops[i]
		if o.Outcome != history.Done || o.Kind != history.ListTables && o.Kind != history.ListNamespaces {
			continue
		}
		listed := map[history.Name]int{}
		for _, text := range o.Listed {
			n := history.Name{Warehouse: o.Name.Warehouse, Namespace: text}
			if o.Kind == history.ListTables {
				n = history.Name{Warehouse: o.Name.Warehouse, Namespace: o.Name.Namespace, Name: text}
			}
			if listed[n]++; listed[n] == 2 {
				wrong = append(wrong, fmt.Sprintf("a list shows %v twice:\n  %v", n, o))
			}
			if why := l.never(n, o); why != "" {
				wrong = append(wrong, fmt.Sprintf("a list shows %v, which was not there at any moment of it (%s):\n  %v", n, why, o))
			}
		}
		for n := range l {
			if above(n) != o.Name || (n.Name != "") != (o.Kind == history.ListTables) || listed[n] > 0 {
				continue
			}
			if why := l.always(n, o); why != "" {
				wrong = append(wrong, fmt.Sprintf("a list misses %v, which was there all the while (%s):\n  %v", n, why, o))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// lives are what is known of when tables and namespaces were there.
type lives map[history.Name]*life

// life is of one name.
type life struct {
	// makers and removers may have been carried out at any moment of their spans, or not at all.
	makers, removers []span
	// present and absent say that it was there, or was not, at some moment of a span.
	present, absent []span
}

// span is from one moment to another, both included.
type span struct {
	from, to int64
	why      *history.Operation
}

func (l lives) of(n history.Name) *life {
	if l[n] == nil {
		l[n] = &life{}
	}
	return l[n]
}

// request notes what a request may have made and removed.
func (l lives) request(r *request) {
	if !r.happened() {
		return
	}
	from, to := r.span()
	s := span{from, to, r.first}
	done := r.has(history.Done)
	made := func(n history.Name) {
		l.of(n).makers = append(l.of(n).makers, s)
		if done {
			l.of(n).present = append(l.of(n).present, s)
		}
	}
	removed := func(n history.Name) {
		l.of(n).removers = append(l.of(n).removers, s)
		if done {
			l.of(n).absent = append(l.of(n).absent, s)
		}
	}
	switch o := r.first; o.Kind {
	case history.CreateNamespace, history.RegisterTable:
		made(o.Name)
	case history.CreateTable, history.Commit, history.Transaction:
		for _, p := range partsOf(o) {
			switch {
			case p.Creates:
				made(p.Name)
			case done:
				l.of(p.Name).present = append(l.of(p.Name).present, s)
			}
		}
	case history.RenameTable:
		if o.To != o.Name {
			made(o.To)
			removed(o.Name)
		}
	case history.DropTable, history.Unregister, history.DropNamespace:
		removed(o.Name)
	}
}

// look notes what an answer or a refusal shows.
func (l lives) look(o *history.Operation) {
	s := span{o.Call, o.Return, o}
	switch {
	case o.Outcome == history.Done:
		switch o.Kind {
		case history.LoadTable, history.TableExists, history.LoadNamespace, history.ListTables:
			l.of(o.Name).present = append(l.of(o.Name).present, s)
		}
	case o.Refusal == history.NoSuchTable:
		switch o.Kind {
		case history.LoadTable, history.TableExists, history.DropTable, history.Unregister, history.RenameTable:
			l.of(o.Name).absent = append(l.of(o.Name).absent, s)
		}
	case o.Refusal == history.NoSuchNamespace:
		switch o.Kind {
		case history.LoadNamespace, history.SetNamespace, history.DropNamespace, history.ListTables:
			l.of(o.Name).absent = append(l.of(o.Name).absent, s)
		}
	}
}

// always says why a name was there all the while that the list took; empty: it may not
// have been.
func (l lives) always(n history.Name, list *history.Operation) string {
	known := latest(l[n].present, list.Call)
	if known.why == nil || anyIn(l[n].removers, known.from, list.Return) {
		return ""
	}
	return fmt.Sprintf("#%d shows it, and nobody removed it since", known.why.ID)
}

// never says why a name was not there at any moment of the list.
func (l lives) never(n history.Name, list *history.Operation) string {
	known := latest(l.of(n).absent, list.Call)
	switch {
	case anyIn(l.of(n).makers, known.from, list.Return):
		return ""
	case known.why == nil:
		return "nobody made it"
	}
	return fmt.Sprintf("#%d shows that it was gone, and nobody made it since", known.why.ID)
}

// latest is the span that was over before a moment and began last; without why if there is none.
func latest(spans []span, before int64) span {
	best := span{from: math.MinInt64}
	for _, s := range spans {
		if s.to < before && (best.why == nil || s.from > best.from) {
			best = s
		}
	}
	return best
}

// anyIn reports whether one of the spans shares a moment with the time.
func anyIn(spans []span, from, to int64) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.to >= from && s.from <= to })
}
