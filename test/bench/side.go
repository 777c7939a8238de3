package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// side is one of those that a row drives in turns: a catalog or the floor. What is
// nil is not there.
type side struct {
	name    string
	workers []worker // the row's figures are theirs
	beside  []worker // run at the same time
	process *process // whose CPU and allocations are counted
	bytes   int      // of an answer, or of a metadata file where one is written

	before  func(context.Context) error // comes before each turn
	check   func(context.Context) error // looks for what was acknowledged
	files   func() (int, error)         // counts the metadata files there are
	commits func() int                  // counts what was acknowledged so far; set where files is
	release func()                      // ends what it holds besides connections
	least   *least                      // what the floor does
	conns   []*client

	// foreign is a catalog that is not ours: it may lack what a row needs, and its
	// faults are figures.
	foreign bool
	fault   error // why a foreign one has no figures
	lost    error // what a foreign one lacks of what it acknowledged

	sample              sample
	besideSample        sample
	usage               usage
	filesMade, accepted int // metadata files and accepted commits between the first count and the last
}

// close ends the side's connections, and what else it holds.
func (x *side) close() {
	if x.release != nil {
		x.release()
	}
	for _, c := range x.conns {
		c.hangUp()
	}
}

// connect gives n clients of an address, whose connections close ends.
func (x *side) connect(address string, n int) []*client {
	var list []*client
	for range n {
		list = append(list, newClient(address))
	}
	x.conns = append(x.conns, list...)
	return list
}

// forgive remembers what a foreign side did not do, instead of ending the bench.
func (x *side) forgive(err error) error {
	if err == nil || !x.foreign {
		return err
	}
	x.fault = err
	return nil
}

// warmUp lets every worker run once, which connects it and shows whether it can do
// what it is to do. A foreign side is driven for d, too: programs on a virtual
// machine, which compiles them as they run, begin slowly.
func (x *side) warmUp(ctx context.Context, d time.Duration) error {
	for _, work := range slices.Concat(x.workers, x.beside) {
		if x.fault != nil {
			return nil
		}
		if _, err := work(map[int]int{}); x.forgive(err) != nil {
			return err
		}
	}
	if !x.foreign || x.fault != nil {
		return nil
	}
	_, err := drive(ctx, d, x.workers, x.beside)
	return x.forgive(err)
}

// turn drives the side once.
func (x *side) turn(ctx context.Context, d time.Duration) error {
	if x.fault != nil {
		return nil
	}
	return x.forgive(func() error {
		if x.before != nil {
			if err := x.before(ctx); err != nil {
				return err
			}
		}
		began, err := x.process.usage(ctx)
		if err != nil {
			return err
		}
		samples, err := drive(ctx, d, x.workers, x.beside)
		if err != nil {
			return err
		}
		ended, err := x.process.usage(ctx)
		if err != nil {
			return err
		}
		x.sample.add(samples[0])
		x.besideSample.add(samples[1])
		x.usage.add(began, ended)
		return nil
	}())
}

// contest is a row whose sides are the catalogs and the floor.
type contest struct {
	name    string
	prepare func(ctx context.Context, s *site, c *catalog) (*side, error)
	// limit, if not nil, makes one more side where a catalog is on PostgreSQL: what that does without a catalog.
	limit func(ctx context.Context, s *site) (*side, error)
}

func (r contest) row() row {
	return row{name: r.name, run: r.run}
}

func (r contest) run(ctx context.Context, s *site) (result, error) {
	if err := s.serve(ctx); err != nil {
		return result{}, err
	}
	var sides []*side
	defer func() {
		for _, x := range sides {
			x.close()
		}
	}()
	for _, c := range s.catalogs {
		x, err := r.prepare(ctx, s, c)
		if x == nil {
			x = &side{}
		}
		x.name, x.process, x.foreign = c.name, c.process, c.foreign
		sides = append(sides, x)
		if err := x.forgive(err); err != nil {
			return result{}, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if r.limit != nil && len(s.clusters) > 0 {
		x, err := r.limit(ctx, s)
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", limitName, err)
		}
		sides = append(sides, x)
	}
	floor, err := s.floorSide(ctx, r.name, sides[0])
	if err != nil {
		return result{}, fmt.Errorf("floor: %w", err)
	}
	sides = append(sides, floor)

	for _, x := range sides {
		if err := x.count(-1); err != nil {
			return result{}, fmt.Errorf("%s: %w", x.name, err)
		}
	}
	if err := takeTurns(ctx, sides, s.options.duration()); err != nil {
		return result{}, err
	}
	for _, x := range sides {
		if x.check != nil && x.fault == nil {
			if err := x.check(ctx); err != nil && !x.foreign {
				return result{}, fmt.Errorf("%s: %w", x.name, err)
			} else if err != nil {
				x.lost = err
			}
		}
		if err := x.count(+1); err != nil {
			return result{}, fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return contestResult(r.name, sides), s.removeFloorFiles()
}

// count adds the metadata files that there are, and the commits that were
// accepted, to the side's sums, or takes them away.
func (x *side) count(sign int) error {
	if x.files == nil || x.fault != nil {
		return nil
	}
	files, err := x.files()
	x.filesMade += sign * files
	x.accepted += sign * x.commits()
	return err
}
