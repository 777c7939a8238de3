package check

import (
	"fmt"
	"math"

	"github.com/landfast/landfast/internal/sim/history"
)

// TransactionsAtomic wants that nobody sees a transaction in one table and later another of
// its tables as it was before. It says what is wrong, if anything is. It looks at single
// pairs of answers, and so misses what only several together show: that is for [Linearizable].
func TransactionsAtomic(ops []history.Operation) []string {
	ops = withLooks(ops)
	requests, of := requestsOf(ops)
	writers := map[string]*request{} // by token
	shown := map[string][]*history.Operation{}
	loads := map[history.Name][]*history.Operation{}
	bound := map[history.Name]int64{} // when a name may have got another table last
	for _, r := range requests {
		if r.first.Token != "" {
			writers[r.first.Token] = r
		}
		if !r.happened() {
			continue
		}
		_, to := r.span()
		switch r.first.Kind {
		case history.RenameTable:
			bound[r.first.To] = max(bound[r.first.To], to)
		case history.RegisterTable:
			bound[r.first.Name] = max(bound[r.first.Name], to)
		}
	}
	for i := range ops {
		o := &ops[i]
		if !showsState(o) {
			continue
		}
		if w := writers[o.Seen.Token]; w != nil && w != of[i] {
			shown[o.Seen.Token] = append(shown[o.Seen.Token], o)
		}
		if o.Kind == history.LoadTable || o.Kind == history.Unregister && len(of[i].members) == 1 { // a replay shows what the first saw
			loads[o.Name] = append(loads[o.Name], o)
		}
	}
	var wrong []string
	for _, t := range requests {
		if t.first.Kind != history.Transaction || !t.happened() {
			continue
		}
		from, to := t.span()
		for _, p := range t.first.Parts {
			certain, witness := int64(math.MaxInt64), t.first // from when on the transaction was
			if t.has(history.Done) {
				certain = to
			}
			for _, o := range shown[t.first.Token] {
				if o.Return < certain {
					certain, witness = o.Return, o
				}
			}
			if bound[p.Name] >= from {
				continue
			}
			for _, o := range loads[p.Name] {
				w := writers[o.Seen.Token]
				if o.Call <= certain || w == nil || w == t {
					continue
				}
				if _, before := w.span(); before < from {
					wrong = append(wrong, fmt.Sprintf("half of a transaction: %v is as it was before the transaction\n  %v\nwhich is certain since\n  %v\nand yet was then shown\n  %v",
						p.Name, t.first, witness, o))
					break
				}
			}
		}
	}
	return wrong
}
