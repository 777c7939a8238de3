package local_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// With LANDFAST_TEST_FAULT it runs a broken table; TestSuiteCatchesFaults does so.
func TestLocker(t *testing.T) {
	locktest.Run(t, func(t *testing.T) lock.Locker {
		table := local.New(local.Options{})
		t.Cleanup(func() { expectIdle(t, table) })
		return withFault(t, table, os.Getenv("LANDFAST_TEST_FAULT"))
	}, locktest.Caps{Fenced: true, FIFO: true})
}

// The suite also holds for a Locker of several nodes that promises less.
func TestLockerWithFewerCaps(t *testing.T) {
	locktest.Run(t, func(t *testing.T) lock.Locker {
		return unfenced(local.New(local.Options{}))
	}, locktest.Caps{Peer: func(_ *testing.T, first lock.Locker) lock.Locker { return first }})
}
