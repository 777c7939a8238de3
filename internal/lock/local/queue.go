package local

import (
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// queue is the order of the requests for one key, granted and waiting alike.
//
// A slot is clear when nothing incompatible stands before it. The clear slots are
// always the front of the queue, as long as it stays compatible: one exclusive
// slot, or a run of shared ones. So the whole state is one boundary, and a slot
// at the boundary need only look at its neighbour in front, which is clear. Exclusive
// slots that were gathered are clear behind that of their leader, and keep the others waiting like it.
type queue struct {
	key         key.Key
	first, last *slot
	barrier     *slot // the first slot that is not clear; nil if all are
	blocked     int   // the number of slots from barrier to last
}

// slot is the place of one request in one queue.
type slot struct {
	request    *request
	queue      *queue
	prev, next *slot
	mode       lock.Mode
	clear      bool          // stands before queue.barrier; once true it stays true
	waited     time.Duration // from arrival until clear, or until the request left
	behind     int           // queue.blocked on arrival
}

// admits tells whether a slot of this mode would be clear at the end of the queue.
func (q *queue) admits(m lock.Mode) bool {
	return q.barrier == nil && compatible(q.last, m)
}

// compatible tells whether a slot of this mode is clear right behind a clear one.
func compatible(before *slot, m lock.Mode) bool {
	return before == nil || before.mode == lock.Shared && m == lock.Shared
}

// push puts s at the end.
func (q *queue) push(s *slot) {
	s.clear = q.admits(s.mode)
	if !s.clear {
		q.blocked++
		if q.barrier == nil {
			q.barrier = s
		}
	}
	s.prev = q.last
	if q.last == nil {
		q.first = s
	} else {
		q.last.next = s
	}
	q.last = s
}

// remove takes s out, wherever it stands. The caller then calls clearNext until
// that gives nil.
func (q *queue) remove(s *slot) {
	if !s.clear {
		q.blocked--
	}
	if q.barrier == s {
		q.barrier = s.next
	}
	if s.prev == nil {
		q.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		q.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

// clearNext moves the barrier past one slot that has become clear, and gives it;
// nil if there is none.
func (q *queue) clearNext() *slot {
	s := q.barrier
	if s == nil || !compatible(s.prev, s.mode) {
		return nil
	}
	q.clearFirst()
	return s
}

// clearFirst moves the barrier past the slot that stands there, which is compatible
// with those before it, or of their group.
func (q *queue) clearFirst() {
	s := q.barrier
	s.clear = true
	q.blocked--
	q.barrier = s.next
}
