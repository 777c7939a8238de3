package rest

import "sync/atomic"

// budget is the memory that the bodies of all requests share, in bytes. It is
// safe for concurrent use and never blocks: a body that waited for room while it
// holds some would wait for others that do the same.
type budget struct {
	free atomic.Int64
}

// take reports whether n bytes were free; then they are the caller's until it gives them back.
func (b *budget) take(n int64) bool {
	if b.free.Add(-n) >= 0 {
		return true
	}
	b.free.Add(n)
	return false
}

func (b *budget) give(n int64) { b.free.Add(n) }
