package mem_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Env { return storetest.Env{Store: mem.New()} })
}
