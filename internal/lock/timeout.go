package lock

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Class says how patient an operation is in the queue. Operations of one class share
// one [DynamicTimeout].
type Class uint8

// The classes.
const (
	// Tables are most operations.
	Tables Class = iota
	// WholeNamespace are those that have a namespace for themselves: they come seldom, and
	// wait for whatever happens in it.
	WholeNamespace
)

// Classes are all of them.
var Classes = []Class{Tables, WholeNamespace}

func (c Class) String() string {
	switch c {
	case Tables:
		return "tables"
	case WholeNamespace:
		return "whole-namespace"
	}
	return "?"
}

// NewTimeout is the timeout that the class begins with. changed is that of [NewDynamicTimeout].
func (c Class) NewTimeout(changed func(from, to time.Duration)) *DynamicTimeout {
	if c == WholeNamespace {
		return NewDynamicTimeout(45*time.Second, 30*time.Second, changed)
	}
	return NewDynamicTimeout(30*time.Second, 5*time.Second, changed)
}

const (
	// timeoutLogSize is how many ends of waits one evaluation looks at.
	timeoutLogSize = 16
	// timeoutMax bounds what failures can make of a timeout.
	timeoutMax = 24 * time.Hour
	// tooMany and few are shares of waits that timed out: above the first the timeout grows,
	// below the second it shrinks.
	tooMany, few = 0.33, 0.10
)

// DynamicTimeout is how long the requests of one class wait, learned from how long
// they had to. It grows by a quarter when a third of 16 waits timed out, and when hardly any did it
// comes half-way down to what the longest took and a quarter more. So a table that is slow for a while
// gives its writers more time instead of errors, and a dead one is given up sooner.
//
// It is safe for concurrent use.
type DynamicTimeout struct {
	minimum time.Duration
	changed func(from, to time.Duration)
	current atomic.Int64

	mu         sync.Mutex
	log        [timeoutLogSize]time.Duration // what was waited; math.MaxInt64 where it timed out
	logged     int
	evaluating bool
}

// NewDynamicTimeout begins with a timeout that never falls below minimum. changed, which
// may be nil, is told of every other value, on the goroutine of Log.
func NewDynamicTimeout(initial, minimum time.Duration, changed func(from, to time.Duration)) *DynamicTimeout {
	if minimum <= 0 || initial < minimum {
		panic("lock: a dynamic timeout begins at its minimum or above, and that is positive")
	}
	t := &DynamicTimeout{minimum: minimum, changed: changed}
	t.current.Store(int64(initial))
	return t
}

// Current is the timeout.
func (t *DynamicTimeout) Current() time.Duration { return time.Duration(t.current.Load()) }

// Wait is how long a request may wait that has so much time left in all: the one
// deadline of a request bounds every wait in it.
func (t *DynamicTimeout) Wait(left time.Duration) time.Duration {
	return max(min(t.Current(), left), 0)
}

// Log notes how one wait ended: granted after so long, zero included, or timed out.
//
// Only what acquired for itself, or was given up because Wait had passed, is logged.
// What was cancelled, or found the queue full or closed, says nothing about how long waits must be, and a
// request that was gathered into the grant of another did not wait for its own. Nor is a
// wait logged that the request's own deadline cut short: more patience would not help it.
//
// Waits that end while 16 are being evaluated are dropped.
func (t *DynamicTimeout) Log(waited time.Duration, timedOut bool) {
	if timedOut {
		waited = math.MaxInt64
	}
	t.mu.Lock()
	if t.evaluating {
		t.mu.Unlock()
		return
	}
	t.log[t.logged] = waited
	t.logged++
	t.evaluating = t.logged == timeoutLogSize
	evaluate := t.evaluating
	t.mu.Unlock()
	if !evaluate {
		return
	}

	from := t.Current()
	to := t.next(from) // nobody writes to the log meanwhile
	t.current.Store(int64(to))
	if to != from && t.changed != nil {
		t.changed(from, to)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logged, t.evaluating = 0, false
}

// next is what follows from the log.
func (t *DynamicTimeout) next(current time.Duration) time.Duration {
	failures, longest := 0, time.Duration(0)
	for _, waited := range t.log {
		if waited == math.MaxInt64 {
			failures++
		} else {
			longest = max(longest, waited)
		}
	}
	switch share := float64(failures) / timeoutLogSize; {
	case share > tooMany:
		return min(current+current/4, timeoutMax)
	case share < few:
		enough := longest + longest/4
		if enough < current {
			current -= (current - enough) / 2
		}
		return max(current, t.minimum)
	}
	return current
}
