package txn_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/store/storetest"
	"github.com/landfast/landfast/internal/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A new Store on the same objects is another process that shares them.
func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Env {
		objects := mem.NewObjects()
		open := func() store.Atomic { return txn.New(txn.Options{Objects: objects, Layout: txn.Packed{}}) }
		return storetest.Env{Store: open(), Reopen: open}
	})
}
