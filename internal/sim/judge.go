package sim

import (
	"io/fs"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/sim/check"
)

// judgeTimeout bounds the search for an order of a history.
const judgeTimeout = 2 * time.Second

// Judge looks at what became of a run, and notes what is wrong. It must not be called in
// a bubble.
func (r *Result) Judge() {
	note := func(kind string, wrong []string) {
		for _, text := range wrong {
			r.Problems = append(r.Problems, kind+": "+text)
		}
	}
	linear := check.Linearizable(r.History, check.Options{Warehouses: []string{mainWarehouse}, Timeout: judgeTimeout})
	switch linear.Verdict {
	case check.Violated:
		note("not linearizable", []string{linear.Text})
	case check.Undecided:
		r.Undecided = true
	}
	note("lists", check.Lists(r.History))
	note("transactions", check.TransactionsAtomic(r.History))
	there := func(location string) bool {
		f, ok := r.Files[location]
		return ok && !f.Deleted && !f.Lost
	}
	pointers, dying := check.Pointers(r.Records)
	note("chains", check.Chains(r.History, check.Files{Pointers: pointers, Dying: dying, Read: func(location string) ([]byte, error) {
		if !there(location) {
			return nil, fs.ErrNotExist
		}
		return r.Files[location].Data, nil
	}}))
	note("at rest", check.AtRest(check.Rest{Records: r.Records, Exists: there, Reclaimed: true, Leftovers: r.Leftovers}))
	slices.Sort(r.Problems)
}
