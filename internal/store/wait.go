package store

import (
	"context"
	"time"
)

type waitKey struct{}

// WaitUntil gives a context under which [Atomic.Apply] ends what it waits for before it sends the batch (a connection,
// a row that others have locked) at a time, with a *BlockedError: somebody who is decided in it can
// wait no longer. What was sent is waited for as ever.
func WaitUntil(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, waitKey{}, t)
}

// Waiting is the context of what is waited for before a batch is sent: ctx, until the time that WaitUntil has set.
func Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	if t, ok := ctx.Value(waitKey{}).(time.Time); ok {
		return context.WithDeadline(ctx, t)
	}
	return ctx, func() {}
}
