//go:build planted

package planted

import (
	"os"
	"sync/atomic"
)

var current atomic.Value // of Bug

// Variable is the environment variable that names the mistake which a process makes.
const Variable = "LANDFAST_PLANTED"

func init() { current.Store(Bug(os.Getenv(Variable))) }

// Is reports whether this is the mistake to make.
func Is(b Bug) bool { return current.Load() == b }

// Make makes a mistake until the function it returns is called. One at a time.
func Make(b Bug) (undo func()) {
	if !current.CompareAndSwap(Bug(""), b) {
		panic("planted: there is a mistake already")
	}
	return func() { current.Store(Bug("")) }
}
