package locktest

import (
	"context"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// Yes is a Locker that grants everything to everybody at once. It keeps no
// promise of exclusion: what is still correct with it does not rest on locks.
type Yes struct{}

var _ lock.Locker = Yes{}

// Acquire refuses only under a ctx that is done.
func (Yes) Acquire(ctx context.Context, _ lock.Set, _ time.Duration) (lock.Hold, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	held, cancel := context.WithCancelCause(ctx)
	return yesHold{held, cancel}, nil
}

type yesHold struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (h yesHold) Context() context.Context { return h.ctx }
func (yesHold) Token(key.Key) lock.Token   { return 0 }
func (h yesHold) Release()                 { h.cancel(lock.ErrReleased) }
