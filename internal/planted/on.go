//go:build planted

package planted

import "sync/atomic"

var current atomic.Value // of Bug

// Is reports whether this is the mistake to make.
func Is(b Bug) bool { return current.Load() == b }

// Make makes a mistake until the function it returns is called. One at a time.
func Make(b Bug) (undo func()) {
	if was := current.Swap(b); was != nil && was != Bug("") {
		panic("planted: there is a mistake already")
	}
	return func() { current.Store(Bug("")) }
}
