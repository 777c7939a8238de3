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

// worker does one thing, waits until it is done, and counts the statuses of the
// answers it got. It is used by one goroutine at a time. ok says that the thing was
// done; an error ends the row.
type worker func(statuses map[int]int) (ok bool, err error)

// step is a worker that makes no request.
func step(do func() error) worker {
	return func(map[int]int) (bool, error) { return true, do() }
}

// succeeded says that a request did what it was to do.
func succeeded(status int) bool { return status < 400 }

// sample is what workers did.
type sample struct {
	took     []time.Duration // of what succeeded
	statuses map[int]int
	each     []int // successes of each worker
	elapsed  time.Duration
}

func (s *sample) add(o sample) {
	s.took = append(s.took, o.took...)
	s.elapsed += o.elapsed
	if s.statuses == nil {
		s.statuses = map[int]int{}
	}
	for status, n := range o.statuses {
		s.statuses[status] += n
	}
	s.each = append(s.each, make([]int, max(0, len(o.each)-len(s.each)))...)
	for i, n := range o.each {
		s.each[i] += n
	}
}

// rate is the successes in a second.
func (s *sample) rate() float64 {
	if s.elapsed == 0 {
		return 0
	}
	return float64(len(s.took)) / s.elapsed.Seconds()
}

// quantile is the smallest duration that the share q of the successes did not
// exceed; 0 if there are none. It sorts.
func (s *sample) quantile(q float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[min(int(q*float64(len(s.took))), len(s.took)-1)]
}

// fairness is the rate of the slowest worker by that of the median one: 1 where
// all were equally quick, and where there is only one.
func (s *sample) fairness() float64 {
	if len(s.each) < 2 {
		return 1
	}
	sorted := slices.Sorted(slices.Values(s.each))
	median := sorted[len(sorted)/2]
	if median == 0 {
		return 0
	}
	return float64(sorted[0]) / float64(median)
}

// answers is how often each status came.
func (s *sample) answers() string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(s.statuses)) {
		parts = append(parts, fmt.Sprintf("%d ×%s", status, count(s.statuses[status])))
	}
	return strings.Join(parts, ", ")
}

// drive runs all workers of all groups at once, each in a goroutine and again and
// again, for d. It waits for what was begun, and for nothing else. The samples are
// those of the groups.
func drive(ctx context.Context, d time.Duration, groups ...[]worker) ([]sample, error) {
	var (
		mu      sync.Mutex
		first   error
		wg      sync.WaitGroup
		samples = make([]sample, len(groups))
		start   = time.Now()
		end     = start.Add(d)
	)
	for g, workers := range groups {
		samples[g].each = make([]int, len(workers))
		for i, work := range workers {
			wg.Go(func() {
				mine := sample{statuses: map[int]int{}}
				var err error
				for began := time.Now(); began.Before(end) && err == nil; {
					var ok bool
					if ok, err = work(mine.statuses); err == nil {
						err = ctx.Err()
					}
					now := time.Now()
					if err == nil && ok {
						mine.took = append(mine.took, now.Sub(began))
					}
					began = now
				}
				mu.Lock()
				defer mu.Unlock()
				samples[g].add(mine)
				samples[g].each[i] = len(mine.took)
				if first == nil {
					first = err
				}
			})
		}
	}
	wg.Wait()
	for g := range samples {
		samples[g].elapsed = time.Since(start)
	}
	return samples, first
}

// comparison is what we do beside its floor.
type comparison struct{ ours, floor sample }

// comparisonTurns is how often each side runs: often enough that both see what
// else the machine does, seldom enough that starting and stopping do not matter.
const comparisonTurns = 4

// compare drives both sides for d each, in turns. Before that, every worker runs
// once unmeasured, which opens its files.
func compare(ctx context.Context, ours, floor []worker, d time.Duration) (comparison, error) {
	a, b := &side{workers: ours}, &side{workers: floor}
	err := takeTurns(ctx, []*side{a, b}, d)
	return comparison{a.sample, b.sample}, err
}

// takeTurns drives every side for d, in turns and each time in the other order, so
// that what else the machine does, and what grows, falls on all of them.
func takeTurns(ctx context.Context, sides []*side, d time.Duration) error {
	for _, x := range sides {
		if err := x.warmUp(ctx, d/comparisonTurns); err != nil {
			return err
		}
	}
	order := slices.Clone(sides)
	for range comparisonTurns {
		for _, x := range order {
			if err := x.turn(ctx, d/comparisonTurns); err != nil {
				return err
			}
		}
		slices.Reverse(order)
	}
	return nil
}
