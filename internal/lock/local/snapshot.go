package local

import (
	"slices"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// KeyState is who holds one key and who waits there, each in order of arrival.
type KeyState struct {
	Key     key.Key `json:"key"`
	Holders []Entry `json:"holders"`
	Waiters []Entry `json:"waiters"`
}

// Entry is one request at one key.
type Entry struct {
	Owner lock.Owner `json:"owner"`
	Mode  lock.Mode  `json:"mode"`

	// Since is when a holder was granted, and when a waiter arrived.
	Since time.Time `json:"since"`

	// Elsewhere marks a waiter whom nobody holds up at this key: it waits for
	// another of its keys, and meanwhile holds up those behind it here.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Snapshot is the whole table as it was at one moment, sorted by key. It copies
// under the mutex: the cost is that of the requests in the table.
func (t *Table) Snapshot() []KeyState {
	states := t.copyQueues()
	slices.SortFunc(states, func(a, b KeyState) int { return key.Compare(a.Key, b.Key) })
	return states
}

func (t *Table) copyQueues() []KeyState {
	t.mu.Lock()
	defer t.mu.Unlock()
	states := make([]KeyState, 0, len(t.mu.queues))
	for k, q := range t.mu.queues {
		state := KeyState{Key: k}
		for s := q.first; s != nil; s = s.next {
			e := Entry{Owner: s.request.owner, Mode: s.mode}
			if s.request.state == held {
				e.Since = s.request.granted
				state.Holders = append(state.Holders, e)
			} else {
				e.Since, e.Elsewhere = s.request.arrived, s.clear
				state.Waiters = append(state.Waiters, e)
			}
		}
		states = append(states, state)
	}
	return states
}
