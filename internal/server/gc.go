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
)

// gcPercent is what debug.SetGCPercent should be for so many live bytes: a multiple of 50, for setting it
// stops the world for a moment.
func gcPercent(live uint64) int {
	percent := int(min(heapFloor*100/max(live, 1), gcPercentMax+100)) - 100
	return max(100, percent/50*50)
}

// easeGC keeps the garbage collector to the heap floor until ctx is done, unless the
// environment says how it should run.
func easeGC(ctx context.Context) {
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(gcInterval)
	defer tick.Stop()
	now := 0
	for {
		runtimemetrics.Read(live)
		if live[0].Value.Kind() == runtimemetrics.KindUint64 {
			if percent := gcPercent(live[0].Value.Uint64()); percent != now {
				now = percent
				debug.SetGCPercent(percent)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
