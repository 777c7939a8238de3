package lock

import (
	"time"

	"github.com/landfast/landfast/internal/key"
)

// KeyState is who holds one key and who waits there, each in order of arrival.
type KeyState struct {
	Key     key.Key
	Holders []Entry
	Waiters []Entry
}

// Entry is one request at one key.
type Entry struct {
	Owner Owner
	Mode  Mode

	// Since is when a holder was granted, and when a waiter arrived.
	Since time.Time

	// WaitsAt is the first key that holds a waiter up; zero in a holder.
	WaitsAt key.Key

	// Elsewhere marks a waiter whom nobody holds up at this key: it waits for
	// another of its keys, and meanwhile holds up those behind it here.
	Elsewhere bool

	// Batch is the id of the request that a holder was gathered by: its own, if it has gathered
	// others; empty, if it is alone.
	Batch string
}
