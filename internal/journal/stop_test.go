package journal

import (
	"context"
	"testing"
)

// stoppedDisk has the server stop while a Sync is under way.
type stoppedDisk struct {
	*disk
	stop context.CancelFunc
}

func (s stoppedDisk) Sync(ctx context.Context) error {
	err := s.disk.Sync(ctx)
	s.stop()
	return err
}

// Property: a Sync that fails while the server stops is not taken for one that was not tried.
func TestSyncFailsDuringStop(t *testing.T) {
	h := newHarness(t, Options{})
	f := file("a", "a")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h.opt.Files = stoppedDisk{h.disk, stop}
	h.commit(f)
	h.disk.failSync = errDisk
	h.settle(ctx)         // Run's, when it is told to stop
	h.want(1, 1)          // what is left to do
	h.settle(t.Context()) // the last one
	h.want(0, 0)
	h.wantSafe(f)
}
