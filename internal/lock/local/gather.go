package local

import (
	"context"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// Join is that of [lock.Gatherer].
func (t *Table) Join(ctx context.Context, set lock.Set, wait time.Duration, member any) (h lock.Hold, gathered bool, err error) {
	r, err := t.acquire(ctx, set, wait, member)
	if err != nil {
		return nil, false, err
	}
	return r, r.leader != nil, nil // no longer changes: only those who wait are gathered
}

// Gather is that of [lock.Gatherer].
func (t *Table) Gather(h lock.Hold, k key.Key, most int) []any {
	leader := h.(*request)
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.mu.queues[k]
	if leader.state != held || q == nil {
		return nil
	}
	leader.leader = leader
	now := t.opts.Now()
	var members []any
	for len(members) < most && q.barrier != nil {
		r := q.barrier.request
		if r.member == nil || !r.waitsOnlyForLocked(leader) {
			break
		}
		r.leader = leader
		for i := range r.slots {
			if s := &r.slots[i]; !s.clear {
				s.queue.clearFirst()
				t.clearedLocked(s, now)
			}
		}
		members = append(members, r.member)
	}
	return members
}

// waitsOnlyForLocked tells whether everything that r waits for is held by leader and those
// it has gathered. An exclusive slot that is clear has none but its own group before it.
func (r *request) waitsOnlyForLocked(leader *request) bool {
	for i := range r.slots {
		s := &r.slots[i]
		if s.clear {
			continue
		}
		before := s.prev
		if s.queue.barrier != s || s.mode != lock.Exclusive || before.mode != lock.Exclusive || before.request.leader != leader {
			return false
		}
	}
	return true
}
