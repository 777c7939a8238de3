package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// worker does one thing and waits until it is done. It is used by one goroutine
// at a time. status is that of an HTTP answer, or 0 where there is none; an error
// ends the row.
type worker func() (status int, err error)

// sample is what workers did.
type sample struct {
	took     []time.Duration // of what succeeded
	statuses map[int]int
	elapsed  time.Duration
}

// succeeded says that a worker did what it was to do.
func succeeded(status int) bool { return status == 0 || status < 400 }

func (s *sample) add(o sample) {
	s.took = append(s.took, o.took...)
	s.elapsed += o.elapsed
	if s.statuses == nil {
		s.statuses = map[int]int{}
	}
	for status, n := range o.statuses {
		s.statuses[status] += n
	}
}

// rate is the successes in a second.
func (s *sample) rate() float64 { return float64(len(s.took)) / s.elapsed.Seconds() }

// quantile is the smallest duration that the share q of the successes did not
// exceed; 0 if there are none. It sorts.
func (s *sample) quantile(q float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[min(int(q*float64(len(s.took))), len(s.took)-1)]
}

// answers is how often each status came.
func (s *sample) answers() string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(s.statuses)) {
		parts = append(parts, fmt.Sprintf("%d ×%s", status, count(s.statuses[status])))
	}
	return strings.Join(parts, ", ")
}

// drive runs all workers, each in a goroutine and again and again, for d. It waits
// for what was begun, and for nothing else.
func drive(ctx context.Context, workers []worker, d time.Duration) (sample, error) {
	var (
		mu    sync.Mutex
		all   = sample{statuses: map[int]int{}}
		first error
		wg    sync.WaitGroup
		start = time.Now()
		end   = start.Add(d)
	)
	for _, work := range workers {
		wg.Go(func() {
			mine := sample{statuses: map[int]int{}}
			var err error
			for began := time.Now(); began.Before(end) && err == nil; {
				var status int
				if status, err = work(); err == nil {
					err = ctx.Err()
				}
				now := time.Now()
				if err == nil && succeeded(status) {
					mine.took = append(mine.took, now.Sub(began))
				}
				if status != 0 {
					mine.statuses[status]++
				}
				began = now
			}
			mu.Lock()
			defer mu.Unlock()
			all.add(mine)
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	all.elapsed = time.Since(start)
	return all, first
}

// comparison is Landfast beside its floor.
type comparison struct{ ours, floor sample }

// comparisonTurns is how often each side runs: often enough that both see what
// else the machine does, seldom enough that starting and stopping do not matter.
const comparisonTurns = 4

// compare drives both sides for d each, in turns. Before that, every worker runs
// once unmeasured, which opens its connection and its files.
func compare(ctx context.Context, ours, floor []worker, d time.Duration) (comparison, error) {
	var c comparison
	for _, work := range slices.Concat(ours, floor) {
		if _, err := work(); err != nil {
			return c, err
		}
	}
	for range comparisonTurns {
		for _, side := range []struct {
			sum     *sample
			workers []worker
		}{{&c.floor, floor}, {&c.ours, ours}} {
			part, err := drive(ctx, side.workers, d/comparisonTurns)
			if err != nil {
				return c, err
			}
			side.sum.add(part)
		}
	}
	return c, nil
}
