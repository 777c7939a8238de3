package local

import (
	"slices"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// Snapshot is the whole table as it was at one moment, sorted by key. It copies
// under the mutex: the cost is that of the requests in the table.
func (t *Table) Snapshot() []lock.KeyState {
	states := t.copyQueues()
	slices.SortFunc(states, func(a, b lock.KeyState) int { return key.Compare(a.Key, b.Key) })
	return states
}

func (t *Table) copyQueues() []lock.KeyState {
	t.mu.Lock()
	defer t.mu.Unlock()
	states := make([]lock.KeyState, 0, len(t.mu.queues))
	for k, q := range t.mu.queues {
		state := lock.KeyState{Key: k}
		for s := q.first; s != nil; s = s.next {
			r := s.request
			e := lock.Entry{Owner: r.owner, Mode: s.mode}
			if r.state == held {
				e.Since = r.granted
				if r.leader != nil {
					e.Batch = r.leader.owner.RequestID
				}
				state.Holders = append(state.Holders, e)
			} else {
				e.Since, e.Elsewhere, e.WaitsAt = r.arrived, s.clear, r.firstBlockedLocked()
				state.Waiters = append(state.Waiters, e)
			}
		}
		if len(state.Holders) == 1 {
			state.Holders[0].Batch = "" // whom it gathered has gone, or nobody waited
		}
		states = append(states, state)
	}
	return states
}
