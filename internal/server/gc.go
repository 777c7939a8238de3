package server

import (
	"context"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

const (
	// heapFloor is up to which size of its heap, in bytes, the garbage collector is not in a hurry. A server with few
	// tables has a few megabytes of live heap: doubling only that, as Go does, it would be collecting many times a second.
	heapFloor = 24 << 20
	// gcPercentMax is for a heap of next to nothing, of which Go collects no earlier than at 4 MiB times that.
	gcPercentMax = 500
	gcInterval   = time.Second
	// calmAfter is for how many intervals a server must have done next to nothing, heapFloor of allocations at most, until
	// the memory that its work took goes back to the system. Go alone keeps a tenth more than its heap may grow to: twice
	// what is live.
	calmAfter = 30
)

// gcPercent is what debug.SetGCPercent should be for so many live bytes: a multiple of 50, for setting it
// stops the world for a moment.
func gcPercent(live uint64) int {
	percent := int(min(heapFloor*100/max(live, 1), gcPercentMax+100)) - 100
	return max(100, percent/50*50)
}

// calm tells when a server has come to rest.
type calm struct {
	allocated uint64 // bytes, since the start, when it last worked
	intervals int    // since then
}

// tick is told after each interval how many bytes were allocated since the start. It is true once after each time of work.
func (c *calm) tick(allocated uint64) bool {
	if allocated-c.allocated > heapFloor {
		*c = calm{allocated: allocated}
		return false
	}
	c.intervals++
	return c.intervals == calmAfter
}

// easeGC keeps the garbage collector to the heap floor until ctx is done, and gives memory back
// when the server comes to rest, unless the environment says how the collector should run.
func easeGC(ctx context.Context) {
	heap := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	tick := time.NewTicker(gcInterval)
	defer tick.Stop()
	now := 0
	var c calm
	for {
		runtimemetrics.Read(heap)
		if heap[0].Value.Kind() == runtimemetrics.KindUint64 {
			if percent := gcPercent(heap[0].Value.Uint64()); percent != now {
				now = percent
				debug.SetGCPercent(percent)
			}
		}
		if heap[1].Value.Kind() == runtimemetrics.KindUint64 && c.tick(heap[1].Value.Uint64()) {
			debug.FreeOSMemory()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
