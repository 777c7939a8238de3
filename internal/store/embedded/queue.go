package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/landfast/landfast/internal/store"
)

// request is a batch to apply or, without one, an outcome to settle.
type request struct {
	id     string
	batch  *store.Batch
	leaves []content      // for each of the batch's writes, what it leaves
	size   int            // how many bytes of values those are
	ops    sql.NullString // the batch's operations, as JSON
	answer chan reply     // holds one: the writer never waits for a caller that left
}

// reply is what a request is answered with once that is durable.
type reply struct {
	outcome store.Outcome // for a request without a batch
	err     error
}

// newRequest prepares on the caller's goroutine what the writer would have to do for
// all of them.
func newRequest(id string, b *store.Batch) *request {
	r := &request{id: id, batch: b, answer: make(chan reply, 1)}
	if b == nil {
		return r
	}
	r.leaves = make([]content, len(b.Writes))
	for i, w := range b.Writes {
		if !w.Delete {
			r.leaves[i] = content{version: store.Version(id), id: w.ID, value: string(w.Value)}
			r.size += len(w.Value)
		}
	}
	if len(b.Ops) > 0 {
		text, err := json.Marshal(b.Ops)
		if err != nil {
			panic(fmt.Sprintf("embedded: two strings cannot be encoded: %v", err))
		}
		r.ops = sql.NullString{String: string(text), Valid: true}
	}
	return r
}

// queue is the bounded line of requests before the writer, first come first
// served. What is in it when it is closed is still taken.
type queue struct {
	room    chan struct{} // one token for each request in line
	wake    chan struct{} // holds one: something changed since the writer looked
	closing chan struct{} // closed by close

	mu struct {
		sync.Mutex
		line   []*request
		closed bool // no request is put in line any more
	}
}

func newQueue(length int) *queue {
	return &queue{
		room:    make(chan struct{}, length),
		wake:    make(chan struct{}, 1),
		closing: make(chan struct{}),
	}
}

// put gets r in line, waiting for room as long as ctx lasts. After an error r is
// not in line.
func (q *queue) put(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case q.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-q.closing:
		return store.ErrClosed
	}
	q.mu.Lock()
	if q.mu.closed {
		q.mu.Unlock()
		<-q.room
		return store.ErrClosed
	}
	q.mu.line = append(q.mu.line, r)
	q.mu.Unlock()
	q.signal()
	return nil
}

// take waits for requests and gives those at the head: at least one, at most
// count of them, of at most size bytes together unless the first is larger. None
// means that the queue is closed and empty. Only the writer calls it.
func (q *queue) take(count, size int) []*request {
	for {
		q.mu.Lock()
		n := 0
		for left := size; n < min(count, len(q.mu.line)); n++ {
			left -= q.mu.line[n].size
			if left < 0 && n > 0 {
				break
			}
		}
		group := slices.Clone(q.mu.line[:n])
		q.mu.line = slices.Delete(q.mu.line, 0, n)
		closed := q.mu.closed
		q.mu.Unlock()
		for range group {
			<-q.room
		}
		if n > 0 || closed {
			return group
		}
		<-q.wake
	}
}

func (q *queue) close() {
	q.mu.Lock()
	already := q.mu.closed
	q.mu.closed = true
	q.mu.Unlock()
	if !already {
		close(q.closing)
		q.signal()
	}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
