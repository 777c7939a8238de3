package rest

import (
	"context"
	"sync"
	"time"
)

// requestContext is the context of a request: it ends at a deadline, or when the client goes
// away. It bears the request's id. Unlike what context.WithDeadline makes it costs nothing
// until somebody waits for its end or asks for it again and again, which most reads do not.
type requestContext struct {
	context.Context // of the connection's request
	deadline        time.Time
	id              string

	mu     sync.Mutex
	timed  context.Context // made when somebody waits
	cancel context.CancelFunc
	ended  bool
	asked  int // how often for Err, while nobody waited
}

// askedMax is how often a context is asked whether it has ended before its time is kept for it. What is
// at its end before, as most reads are, was not long enough for the deadline to matter.
const askedMax = 16

// Deadline implements context.Context.
func (c *requestContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *requestContext) Done() <-chan struct{} { return c.wait().Done() }

// Err implements context.Context.
func (c *requestContext) Err() error {
	c.mu.Lock()
	c.asked++
	timed := c.timed != nil || c.ended || c.asked > askedMax
	c.mu.Unlock()
	if timed {
		return c.wait().Err()
	}
	return c.Context.Err()
}

// Value implements context.Context. Once somebody waits, package context finds here what ends
// the context, so that those made from it need no goroutine each to hear of it.
func (c *requestContext) Value(key any) any {
	if key == (requestIDKey{}) {
		return c.id
	}
	c.mu.Lock()
	timed := c.timed
	c.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return c.Context.Value(key)
}

// wait gives the context that ends by itself.
func (c *requestContext) wait() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadline(c.Context, c.deadline)
		if c.ended {
			c.cancel()
		}
	}
	return c.timed
}

// end ends the context, as the request does.
func (c *requestContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}

type requestIDKey struct{}

// WithRequestID is ctx with the id of the request that it is for.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID is the id of the request that ctx is for; empty: it is for none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
