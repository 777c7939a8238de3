package sim

import (
	"maps"
	"slices"
	"strings"
)

// Shrink runs a failed seed again and again with fewer steps of clients and fewer
// faults, at most so many times, and returns the smallest run that still fails in the same
// way, with its transcript. run runs a seed and judges it.
func Shrink(failed Result, tries int, run func(Config) Result) Result {
	s := &shrinker{best: failed, tries: tries, run: run}
	s.try(Mask{ending: true})
	for s.tries > 0 {
		before := len(s.best.steps) + len(s.best.injected)
		dropPieces(s, func() []step { return s.best.steps }, func(m Mask, one step) { m.steps[one] = true })
		dropPieces(s, func() []uint64 { return s.best.injected }, func(m Mask, name uint64) { m.faults[name] = true })
		if len(s.best.steps)+len(s.best.injected) == before {
			break
		}
	}
	cfg := s.best.Config
	cfg.Transcript = true
	return run(cfg)
}

type shrinker struct {
	best  Result
	tries int
	run   func(Config) Result
}

// dropPieces leaves out half of what happens, then quarters, and so on down to single ones:
// whatever the failure does not need. left is what the best run so far has of it.
func dropPieces[T any](s *shrinker, left func() []T, drop func(Mask, T)) {
	for size := (len(left()) + 1) / 2; size >= 1; size /= 2 {
		for from := 0; from < len(left()) && s.tries > 0; {
			all := left()
			m := Mask{ending: s.best.Config.Without.ending, steps: maps.Clone(s.best.Config.Without.steps), faults: maps.Clone(s.best.Config.Without.faults)}
			if m.steps == nil {
				m.steps = map[step]bool{}
			}
			if m.faults == nil {
				m.faults = map[uint64]bool{}
			}
			for _, one := range all[from:min(from+size, len(all))] {
				drop(m, one)
			}
			if !s.try(m) {
				from += size
			}
		}
	}
}

// try runs the seed without something, and keeps that if it fails like the first time.
func (s *shrinker) try(m Mask) bool {
	s.tries--
	cfg := s.best.Config
	cfg.Without, cfg.Transcript = m, false
	r := s.run(cfg)
	same := func(problem string) bool { return kindOf(problem) == kindOf(s.best.Problems[0]) }
	if !slices.ContainsFunc(r.Problems, same) {
		return false
	}
	slices.SortStableFunc(r.Problems, func(a, b string) int {
		switch {
		case same(a) == same(b):
			return 0
		case same(a):
			return -1
		}
		return 1
	})
	s.best = r
	return true
}

// kindOf is what a problem begins with: which checker has found it.
func kindOf(problem string) string {
	kind, _, _ := strings.Cut(problem, ":")
	return kind
}
