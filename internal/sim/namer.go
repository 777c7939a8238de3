package sim

import (
	"context"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// namer draws what the kernel of a node needs, in the order in which it asks: as no two goroutines wake
// at one instant, that is always the same.
type namer struct {
	node *node

	mu     sync.Mutex
	stream stream
}

func (n *namer) draw() (high, low uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stream.next(), n.stream.next()
}

// newID gives UUIDv4s.
func (n *namer) newID() string {
	high, low := n.draw()
	return formatID(high, low, 4)
}

// newBatchID gives UUIDv7s of the node's clock.
func (n *namer) newBatchID() string {
	high, low := n.draw()
	return formatID(uint64(n.node.clock().UnixMilli())<<16|high&0xffff, low, 7)
}

// backoff implements kernel.Options.Backoff.
func (n *namer) backoff(limit time.Duration) time.Duration {
	high, _ := n.draw()
	return time.Duration(high % uint64(limit))
}

// arrivals is a queue to which no two come at one instant: who was woken together, as those of one batch, comes
// in an order of the world's.
type arrivals struct {
	w     *world
	queue lock.Gatherer
}

// Acquire implements lock.Locker.
func (a arrivals) Acquire(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
	a.arrive(ctx)
	return a.queue.Acquire(ctx, set, wait)
}

// Join implements lock.Gatherer.
func (a arrivals) Join(ctx context.Context, set lock.Set, wait time.Duration, member any) (lock.Hold, bool, error) {
	a.arrive(ctx)
	return a.queue.Join(ctx, set, wait, member)
}

// Gather implements lock.Gatherer.
func (a arrivals) Gather(h lock.Hold, k key.Key, most int) []any { return a.queue.Gather(h, k, most) }

func (a arrivals) arrive(ctx context.Context) {
	c := callerOf(ctx)
	a.w.sleep(c.actor, 0, c.stream("queue", ""))
}
