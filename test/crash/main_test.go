package crash

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	judge "github.com/landfast/landfast/internal/sim/check"
)

var (
	roundsFlag = flag.Int("rounds", 0, "how many rounds TestFaults plays; 0: every fault once, and some together")
	seedFlag   = flag.Uint64("seed", 0, "of TestFaults' random choices; 0 takes another each time")
)

func TestMain(m *testing.M) {
	if status, done := inNamespace(); done {
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}

const (
	// lanes is how many drills run side by side.
	lanes = 2
	// roundsShort is how many rounds are played beside a whole drill, where nobody asks for more.
	roundsShort = 6
)

// A server that meets faults in the middle of its writers loses nothing that it
// acknowledged, shows nothing that it refused, and leaves nothing half done. The
// package comment lists what is checked.
func TestFaults(t *testing.T) {
	binary := buildServer(t)
	for _, mode := range []configuration{embedded, postgres} {
		t.Run(mode.name, func(t *testing.T) { playAll(t, mode, binary) })
	}
}

// playAll plays the rounds of a run with one configuration.
func playAll(t *testing.T, mode configuration, binary string) {
	rounds, seed := cmp.Or(*roundsFlag, mode.rounds+roundsShort), *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	r := &run{mode: mode, binary: binary, seed: seed, sums: map[string]*tally{}, kinds: map[string]*[3]int{}}
	r.say("%s, seed %d: go test ./test/crash -run TestFaults/%s -v -args -rounds %d -seed %d", mode.name, seed, mode.name, rounds, seed)
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(lanes)
	for n := range (rounds + mode.rounds - 1) / mode.rounds {
		g.Go(func() error {
			if ctx.Err() != nil {
				return nil // another has failed
			}
			err := r.drill(ctx, n, min(mode.rounds, rounds-n*mode.rounds))
			if err != nil {
				t.Error(err)
			}
			return err
		})
	}
	_ = g.Wait() // each failure has been told
	r.summary()
	for name, n := range r.sums {
		if n.busy+n.unknown+n.met == 0 && !strings.HasPrefix(name, clockName) {
			t.Errorf("%s hindered nobody in %d rounds", name, n.rounds)
		}
	}
}

// run is the drills of one run of the tests.
type run struct {
	mode   configuration
	binary string
	seed   uint64

	mu    sync.Mutex
	sums  map[string]*tally  // by fault
	kinds map[string]*[3]int // operations by kind and outcome
	// ordered is the rounds, those before them included, for whose operations one order was found.
	ordered int
	looked  looked // at the end of each drill
	// takenOver is how many files had outlived the server that was to delete them.
	takenOver int
}

// say prints a line, if anybody wants to read it.
func (r *run) say(format string, args ...any) {
	if testing.Verbose() {
		fmt.Printf(format+"\n", args...)
	}
}

// drill plays the nth drill.
func (r *run) drill(ctx context.Context, n, rounds int) (err error) {
	work, err := os.MkdirTemp("", "landfast-faults-")
	if err != nil {
		return err
	}
	seed := r.seed + uint64(n)
	d, err := newDrill(r.mode, n, r.binary, work, seed)
	if err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	for i, f := range d.variant.schedule(r.mode.rounds, rand.New(rand.NewPCG(seed, 1))) {
		if i == rounds || ctx.Err() != nil {
			break
		}
		sum, failure := d.play(f)
		r.line(n*r.mode.rounds+i+1, f.name(), sum, failure)
		if failure != nil {
			return errors.Join(fmt.Errorf("round %d, %s: %w", n*r.mode.rounds+i+1, f.name(), failure), d.keep())
		}
	}
	if err := d.takeOver(); err != nil {
		return errors.Join(err, d.keep())
	}
	ordered, order := d.order()
	if order.Verdict == judge.Violated {
		return errors.Join(fmt.Errorf("no order of the operations of %d rounds explains every answer: %s", ordered, order.Text), d.keep())
	}
	r.mu.Lock()
	d.h.addKinds(r.kinds)
	r.ordered += ordered
	r.looked.add(d.looked)
	r.takenOver += len(d.owed)
	r.mu.Unlock()
	return errors.Join(d.close(), os.RemoveAll(work))
}

// schedule is the faults of a drill: each of them, then two at a time.
func (v variant) schedule(rounds int, rng *rand.Rand) (all []fault) {
	kinds := slices.Concat(v.faults, v.alone)
	for _, i := range rng.Perm(len(kinds)) {
		all = append(all, kinds[i]())
	}
	for len(all) < rounds {
		i, j := rng.IntN(len(v.faults)), rng.IntN(len(v.faults))
		one, other := v.faults[min(i, j)](), v.faults[max(i, j)]()
		if fmt.Sprintf("%T", one) != fmt.Sprintf("%T", other) {
			all = append(all, together{one, other})
		}
	}
	return all
}

// keep ends a drill that has failed and says where to find what is left of it.
func (d *drill) keep() error {
	kept := "the history, the servers' logs and their state are kept in " + d.work
	var err error
	if d.volume != nil {
		err = d.volume.keep(filepath.Join(d.work, "kept"))
	}
	var all strings.Builder
	for _, o := range d.h.since(0) {
		all.WriteString(o.record() + "\n")
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(d.work, "history"), []byte(all.String()), 0o600))
	return errors.Join(errors.New(kept), err, d.close())
}

// line tells of a round.
func (r *run) line(round int, name string, n tally, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	group := name
	if strings.Contains(name, " + ") {
		group = "two together"
	}
	if r.sums[group] == nil {
		r.sums[group] = &tally{}
	}
	sum := r.sums[group]
	sum.add(n)
	verdict := "ok"
	if failure != nil {
		verdict = "FAILED"
		sum.failed++
	}
	r.say("%s: round %4d %-31s %4d acknowledged (%d before), %3d refused, %3d unknown: %d answered, %d applied, %d absent; %v %s%s", r.mode.name, round, name,
		n.acknowledged, n.before, n.refused, n.unknown, n.answered, n.applied, n.absent, n.took.Round(time.Millisecond), verdict, n.remark)
}

// summary tells of all rounds.
func (r *run) summary() {
	r.say("%-14s %6s %12s %8s %6s %10s %8s %8s %8s %8s %12s %8s %10s %6s %7s %9s", r.mode.name, "rounds", "acknowledged", "refused", "busy", "store full",
		"unknown", "answered", "applied", "absent", "transactions", "repeated", "cut purges", "met", "failed", "a round")
	all := &tally{}
	row := func(name string, n *tally) {
		r.say("%-14s %6d %12d %8d %6d %10d %8d %8d %8d %8d %12d %8d %10d %6d %7d %9v", name, n.rounds, n.acknowledged, n.refused, n.busy, n.storeFull,
			n.unknown, n.answered, n.applied, n.absent, n.transactions, n.replays, n.interrupted, n.met, n.failed,
			(n.took / time.Duration(max(n.rounds, 1))).Round(time.Millisecond))
	}
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		row(name, r.sums[name])
		all.add(*r.sums[name])
	}
	row("all", all)
	r.say("one order of all operations was found for the first rounds of each drill, %d in all; for the others there was too much to try", r.ordered)
	l := r.looked
	r.say("looked at, at the end of the drills: %d live tables, %d dropped, %d purged, %d views, %d namespaces, %d versions, %d snapshots, %d transactions, %d reads; the first files of %d tables were gone before they were seen",
		l.live, l.dropped, l.purged, l.views, l.spaces, l.versions, l.snapshots, l.transactions, l.reads, l.forgotten)
	r.say("%d files of purges that were cut short were deleted by a server that took over", r.takenOver)
	r.say("%-26s %8s %8s %8s", "operation", done, refused, unknown)
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		n := r.kinds[kind]
		r.say("%-26s %8d %8d %8d", kind, n[done], n[refused], n[unknown])
	}
}
