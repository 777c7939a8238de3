package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// writesMin is how many writes are acknowledged in a round before its fault.
	writesMin = 200
	// writesMore bounds the random number on top.
	writesMore = 60
	// writesAfter is how many must be acknowledged once the fault is healed.
	writesAfter = 20
	// sufferMin is how many operations end under a fault, unless sufferMax passes before.
	sufferMin = 60
	sufferMax = 2 * time.Second
	// progressTimeout bounds the time for any of these numbers.
	progressTimeout = time.Minute
	// quietTimeout bounds the time until nothing is under way any more.
	quietTimeout = time.Minute
	// purgeTimeout bounds the time in which a server deletes the files of purged tables, purgeShort
	// that in which those are gone whose purge was not cut short.
	purgeTimeout = 30 * time.Second
	purgeShort   = time.Second
	// takenOverAfter is more than a server keeps to itself the purge that it had begun.
	takenOverAfter = 2 * time.Minute
	// requestTimeLimit is the server's: shorter than by default, because files that fell off
	// a log stay for this and 30 s.
	requestTimeLimit = 10 * time.Second
	// keyLifetime is longer than clocks jump.
	keyLifetime = 48 * time.Hour
	jumpMin     = time.Hour
	jumpMax     = 8 * time.Hour
	// problemsMax is how many problems of one round are told.
	problemsMax = 40
)

// sharedTables is how many tables all writers commit to, beside the hot one.
const sharedTables = 4

// drill is a few rounds on one state, from an empty catalog on.
type drill struct {
	mode      configuration
	variant   variant
	nth       int
	work      string // directory with all that the drill makes
	state     string // directory of the servers' state, in that or on the volume
	instances []*instance
	ground    ground
	volume    *volume // nil: the state lies on an ordinary disk
	rng       *rand.Rand
	seed      uint64

	h      *history
	files  *disk
	root   string // location of the warehouse main
	crew   [writers]*writer
	shared []*table
	// clockMoved says that the servers' clock was not always right.
	clockMoved bool
	ahead      time.Duration // of their clocks

	round   int
	began   time.Time // the round
	from    int       // operation of the history with which the round began
	world   *world    // of the round
	clients []*client // of the writers, one for each instance

	settled, replayed, interrupted int  // in the round
	cuts                           bool // the fault of the round cuts purges short
	// owed are the files whose deletion was cut short, and waits for another server to take it over.
	owed map[string]bool
	// met is how often in the round a fault of the database was in the way of a server.
	met    atomic.Int64
	remark string // of the round's fault
	looked looked // what the last check looked at
}

// newDrill begins with an empty catalog.
func newDrill(mode configuration, nth int, binary, work string, seed uint64) (_ *drill, err error) {
	d := &drill{
		mode: mode, variant: mode.variants[nth%len(mode.variants)], nth: nth,
		work: work, state: filepath.Join(work, "state"), seed: seed, rng: rand.New(rand.NewPCG(seed, 0)),
		h: newHistory(), files: &disk{parsed: map[string]parsedFile{}}, ground: bare{}, owed: map[string]bool{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.variant.onVolume {
		d.state = filepath.Join(work, "volume")
		if d.volume, err = newVolume(d.state); err != nil {
			return d, err
		}
	}
	ground, err := mode.found(d)
	if err != nil {
		return d, err
	}
	d.ground = ground
	for n := range mode.instances {
		i := &instance{binary: binary, args: append(mode.args(d, n), d.variant.flags...), log: filepath.Join(work, fmt.Sprintf("server-%d.log", n))}
		if i.clock, err = newClock(filepath.Join(work, fmt.Sprintf("clock-%d", n))); err != nil {
			return d, err
		}
		if i.proxy, err = newProxy(); err != nil {
			return d, err
		}
		d.instances = append(d.instances, i)
		if err := i.launch(); err != nil {
			return d, err
		}
	}
	for _, i := range d.instances { // which all find that there is no catalog yet
		if err := i.ready(); err != nil {
			return d, fmt.Errorf("%w\n%s", err, tail(i.log))
		}
	}
	return d, d.furnish()
}

// close ends everything that the drill started.
func (d *drill) close() error {
	var errs []error
	for _, i := range d.instances {
		if i.process != nil {
			errs = append(errs, i.kill())
		}
		errs = append(errs, i.proxy.close())
	}
	errs = append(errs, d.ground.close())
	if d.volume != nil {
		errs = append(errs, d.volume.close())
	}
	return errors.Join(errs...)
}

// furnish makes what every round needs.
func (d *drill) furnish() error {
	c := newClient(d.instances[0].process.url)
	defer c.close()
	a := c.call("GET", "/management/v1/warehouses/main", nil)
	var warehouse struct{ Location string }
	if err := json.Unmarshal(a.body, &warehouse); a.outcome() != done || err != nil || warehouse.Location == "" {
		return fmt.Errorf("find the warehouse main: %d %s", a.status, a.text())
	}
	d.root = strings.TrimSuffix(warehouse.Location, "/")
	for i := range d.crew {
		d.crew[i] = &writer{index: i, name: fmt.Sprintf("w%02d", i)}
	}
	w := d.crew[0]
	w.world, w.client, w.rng = &world{h: d.h, root: d.root}, c, d.rng
	for _, space := range []string{sharedSpace, eastSpace, westSpace, arenaSpace} {
		if _, a := w.makeNamespace(space); a.outcome() != done {
			return fmt.Errorf("create namespace %s: %d %s", space, a.status, a.message())
		}
	}
	for i := range sharedTables {
		table, a := w.create("create", fmt.Sprintf("%s.shared-%d", sharedSpace, i), nil)
		if a.outcome() != done {
			return fmt.Errorf("create a shared table: %d %s", a.status, a.message())
		}
		d.shared = append(d.shared, table)
	}
	return nil
}

// tally is what happened in a round.
type tally struct {
	rounds, before                     int // rounds; writes that were acknowledged before the fault
	acknowledged, refused, unknown     int
	answered, applied, absent          int // of the unknown ones
	transactions, replays, interrupted int
	busy, storeFull                    int // see counted
	met                                int // see drill
	failed                             int // rounds
	took                               time.Duration
	remark                             string // of one round
}

func (n *tally) add(other tally) {
	n.rounds, n.before = n.rounds+other.rounds, n.before+other.before
	n.acknowledged, n.refused, n.unknown = n.acknowledged+other.acknowledged, n.refused+other.refused, n.unknown+other.unknown
	n.answered, n.applied, n.absent = n.answered+other.answered, n.applied+other.applied, n.absent+other.absent
	n.transactions, n.replays = n.transactions+other.transactions, n.replays+other.replays
	n.interrupted, n.busy, n.storeFull = n.interrupted+other.interrupted, n.busy+other.busy, n.storeFull+other.storeFull
	n.met, n.failed, n.took = n.met+other.met, n.failed+other.failed, n.took+other.took
}

// play plays one round: write, meet a fault, go on, check. The error says how the server
// failed its clients, or everything that the checker found.
func (d *drill) play(f fault) (tally, error) {
	d.round++
	d.began, d.from = time.Now(), len(d.h.ops)
	d.settled, d.replayed, d.interrupted, d.remark, d.cuts = 0, 0, 0, "", false
	d.met.Store(0)
	n := tally{rounds: 1}
	err := d.write(f, &n)
	n.met, n.remark = int(d.met.Load()), d.remark
	if err != nil {
		return n, err
	}
	counts := d.h.counts(d.from)
	n.acknowledged, n.refused, n.unknown = counts.outcomes[done], counts.outcomes[refused], counts.outcomes[unknown]
	n.transactions, n.busy, n.storeFull = counts.transactions, counts.busy, counts.storeFull

	r, made, err := d.check()
	if err != nil {
		return n, err
	}
	for _, found := range r.resolved {
		if found == done {
			n.applied++
		} else {
			n.absent++
		}
	}
	d.h.settle(r)
	d.regroup(r, made)
	n.answered, n.replays, n.interrupted, n.took = d.settled, d.replayed, d.interrupted, time.Since(d.began)
	d.looked = r.looked
	return n, r.err()
}

// write lets the writers loose, has the fault strike in their midst and heals it.
func (d *drill) write(f fault, n *tally) error {
	d.clients = nil
	for _, i := range d.instances {
		d.clients = append(d.clients, newClient(i.proxy.url()))
	}
	defer d.hangUp()
	d.world = &world{h: d.h, root: d.root, round: d.round, over: make(chan struct{}), shared: d.shared}
	for i, member := range d.crew {
		member.world, member.client = d.world, d.clients[i%len(d.clients)]
		member.rng = rand.New(rand.NewPCG(d.seed, uint64(d.round*writers+i+1)))
		member.avoided = map[string]bool{}
	}
	if err := d.stage(); err != nil {
		return err
	}
	if err := f.prepare(d); err != nil {
		return fmt.Errorf("prepare %s: %w", f.name(), err)
	}
	d.h.begin()
	var running sync.WaitGroup
	for _, member := range d.crew {
		running.Go(member.run)
	}
	err := d.meet(f, n)
	close(d.world.over)
	running.Wait() // no request lasts longer than a client waits
	if err != nil {
		return err
	}
	return d.quiet()
}

// stage makes the table and the view that everybody changes in this round.
func (d *drill) stage() error {
	w := d.crew[0]
	var a answer
	d.world.hot, a = w.create("create", fmt.Sprintf("%s.hot-%d", sharedSpace, d.round), func(o *operation, _ object) {
		switch d.round % 3 {
		case 1:
			o.deleteAfterCommit(5)
		case 2:
			o.edit.set["write.metadata.previous-versions-max"] = "20"
			o.table.keepsLog = 20
		}
	})
	if a.outcome() != done {
		return fmt.Errorf("create the hot table: %d %s", a.status, a.message())
	}
	d.world.view, a = w.makeView("create view", fmt.Sprintf("%s.view-%d", sharedSpace, d.round), nil)
	if a.outcome() != done {
		return fmt.Errorf("create the shared view: %d %s", a.status, a.message())
	}
	return nil
}

// meet waits for the writes that come before the fault, and sees it through until writes
// succeed again.
func (d *drill) meet(f fault, n *tally) error {
	if err := d.acknowledge(writesMin + d.rng.IntN(writesMore)); err != nil {
		return fmt.Errorf("before the fault: %w", err)
	}
	n.before, _ = d.h.progress()
	if n.before < writesMin {
		return fmt.Errorf("%d writes were acknowledged before the fault", n.before)
	}
	if err := f.strike(d); err != nil {
		return fmt.Errorf("%s strikes: %w", f.name(), err)
	}
	d.suffer()
	if err := f.heal(d); err != nil {
		return fmt.Errorf("%s is healed: %w", f.name(), err)
	}
	d.patience(requestTimeout)
	if err := d.acknowledge(writesAfter); err != nil {
		return fmt.Errorf("after the fault: %w", err)
	}
	return nil
}

// acknowledge waits until so many more writes are acknowledged.
func (d *drill) acknowledge(more int) error {
	ctx, cancel := context.WithTimeout(context.Background(), progressTimeout)
	defer cancel()
	begun, _ := d.h.progress()
	return poll(ctx, func() error {
		for _, i := range d.instances {
			if !i.process.alive() {
				return fmt.Errorf("%w: %v\n%s", errEnded, i.process.cmd.ProcessState, tail(i.log))
			}
		}
		if now, _ := d.h.progress(); now < begun+more {
			return fmt.Errorf("%d writes were acknowledged within %v", now-begun, progressTimeout)
		}
		return nil
	})
}

// suffer leaves the writers with the fault for a while. Its time is counted in ticks, of which there are none while
// the machine stands still: a fault is to meet somebody.
func (d *drill) suffer() {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	_, begun := d.h.progress()
	for range sufferMax / pollEvery {
		if _, now := d.h.progress(); now >= begun+sufferMin {
			return
		}
		<-tick.C
	}
}

// quiet waits until nothing that the writers sent is under way any more, and nothing that came of it.
func (d *drill) quiet() error {
	ctx, cancel := context.WithTimeout(context.Background(), quietTimeout)
	defer cancel()
	for n, i := range d.instances {
		err := i.proxy.idle(ctx, func() int {
			for _, c := range d.clients {
				c.close() // a connection is idle only some time after its last answer
			}
			return int(d.clients[n].dials.Load())
		})
		if err != nil {
			return fmt.Errorf("the server never finished what it had begun: %w\n%s", err, tail(i.log))
		}
	}
	if err := d.ground.quiet(ctx); err != nil {
		return err
	}
	d.h.calm()
	return nil
}

func (d *drill) hangUp() {
	for _, c := range d.clients {
		c.close()
	}
}

// excuse says that, from now on in this round, answers with these statuses may be due to
// the fault; silence is none at all, and doubt is one that leaves the outcome open.
func (d *drill) excuse(statuses ...int) { d.h.excuse(statuses...) }

const (
	// silence is the status of an answer that did not come.
	silence = 0
	// doubt is the status of an answer which says that nobody knows.
	doubt = -1
)

// patience is how long clients wait for an answer from now on.
func (d *drill) patience(most time.Duration) {
	for _, c := range d.clients {
		c.patience.Store(int64(most))
	}
}

// upTo is a random duration.
func (d *drill) upTo(least, most time.Duration) time.Duration {
	return least + time.Duration(d.rng.Int64N(int64(most-least)))
}

// chance is a source of random choices for who makes them beside the drill.
func (d *drill) chance() *rand.Rand { return rand.New(rand.NewPCG(d.rng.Uint64(), 0)) }

func (d *drill) pickInstance() *instance { return d.instances[d.rng.IntN(len(d.instances))] }

// jump is how far to set a clock: hours forward or backward.
func (d *drill) jump() time.Duration {
	by := d.upTo(jumpMin, jumpMax)
	if d.rng.IntN(2) == 0 {
		return -by
	}
	return by
}

// setClocks sets the clocks of all servers ahead of the machine's.
func (d *drill) setClocks(ahead time.Duration) error {
	d.ahead = ahead
	for _, i := range d.instances {
		if err := i.clock.set(ahead); err != nil {
			return err
		}
	}
	if d.world.follow {
		d.world.ahead.Store(int64(ahead))
	}
	return nil
}

// checkClocks wants the servers that run to tell the time that was set.
func (d *drill) checkClocks() error {
	for _, i := range d.instances {
		if !i.process.alive() {
			continue
		}
		if err := checkClock(i.process.url, d.ahead); err != nil {
			return err
		}
	}
	return nil
}

// progress wants writes to succeed, if all servers run.
func (d *drill) progress() error {
	for _, i := range d.instances {
		if !i.process.alive() {
			return nil
		}
	}
	d.patience(requestTimeout) // another fault may have made clients impatient
	return d.acknowledge(writesAfter)
}

// check looks at everything that the servers show and holds it against the history. It
// also returns the operations that were done only when they were repeated.
func (d *drill) check() (r *report, made []*operation, err error) {
	var clients []*client
	for _, i := range d.instances {
		c := newClient(i.process.url)
		defer c.close()
		clients = append(clients, c)
	}
	var sweeping sync.WaitGroup
	var swept sweep
	var sweepErr error
	sweeper := d.round % len(clients)
	sweeping.Go(func() { swept, sweepErr = sweepMain(clients[sweeper]) })
	problems, made := d.replay(clients)
	sweeping.Wait()
	if sweepErr != nil {
		return nil, nil, fmt.Errorf("sweep: %w\n%s", sweepErr, tail(d.instances[sweeper].log))
	}
	var obs observation
	started := time.Now()
	for n, i := range d.instances {
		seen, err := observe(clients[n], d.h, d.files)
		if err != nil {
			return nil, nil, fmt.Errorf("observe: %w\n%s", err, tail(i.log))
		}
		if n == 0 {
			obs = seen
		} else if !seen.shows(obs) {
			problems = append(problems, fmt.Sprintf("server %d shows another catalog than the first", n))
		}
		obs.now = seen.now
		if i.process.started.Before(started) {
			started = i.process.started
		}
	}
	d.h.watch(obs)
	obs.started, obs.clockMoved = started.UnixMilli(), d.clockMoved
	r = check(d.h, obs)
	r.problems = append(r.problems, problems...)
	for _, f := range swept.Files {
		if r.reached[f] {
			r.problem("a sweep gave up %s, which a table has", f)
		}
	}
	d.cleaned(r)
	broken, err := d.files.sweep(d.root)
	if err != nil {
		return nil, nil, err
	}
	killed := slices.ContainsFunc(d.instances, func(i *instance) bool { return i.killed })
	for location, why := range broken {
		if !killed || r.reached[location] { // a file whose batch never came may be cut short
			r.problem("a metadata file is there under its name but broken: %s: %v", location, why)
		}
	}
	return r, made, nil
}

// err is the problems of a report.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	problems := r.problems
	if len(problems) > problemsMax {
		problems = append(problems[:problemsMax:problemsMax], fmt.Sprintf("and %d problems more", len(r.problems)-problemsMax))
	}
	return errors.New(strings.Join(problems, "\n"))
}

// cutPurges counts the purges, of those sent in this round, that a kill came in the
// middle of: some of the table's data is gone and some is there.
func (d *drill) cutPurges() (n int) {
	for _, o := range d.h.since(d.from) {
		if o.naming == nil || !o.naming.purge {
			continue
		}
		files, left := 0, 0
		for _, f := range d.h.filesOf(o.table) {
			files++
			if d.files.exists(f) {
				left++
			}
		}
		if left > 0 && left < files {
			n++
		}
	}
	return n
}

// sweep is the answer to one.
type sweep struct {
	Complete bool
	Tables   int
	Files    []string
}

// sweepMain has the warehouse swept, after the daily sweep where a clock that jumped has brought that on.
func sweepMain(c *client) (s sweep, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var a answer
	_ = poll(ctx, func() error {
		if a = c.call("POST", "/management/v1/warehouses/main/sweep", nil); a.status == 429 {
			return errors.New(a.message())
		}
		return nil
	})
	if a.outcome() != done {
		return s, fmt.Errorf("%d %s", a.status, a.message())
	}
	if err = json.Unmarshal(a.body, &s); err == nil && (!s.Complete || s.Tables == 0) {
		err = fmt.Errorf("it is not complete: %s", a.body)
	}
	return s, err
}

// cleaned waits until the files of purged tables are gone, except where another server is to see to it.
func (d *drill) cleaned(r *report) {
	expected := slices.DeleteFunc(slices.Clone(r.doomed), func(location string) bool { return d.owed[location] })
	cut := d.cuts && d.mode.handsOver
	timeout := purgeTimeout
	if cut {
		timeout = purgeShort
	}
	for _, location := range d.left(expected, timeout) {
		if cut {
			d.owed[location] = true
		} else {
			r.problem("a file of a purged table is there %v after the round: %s", purgeTimeout, location)
		}
	}
}

// left waits until files are gone, and is those that are not in time.
func (d *drill) left(files []string, timeout time.Duration) (left []string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = poll(ctx, func() error {
		left = left[:0]
		for _, location := range files {
			if d.files.exists(location) {
				left = append(left, location)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d files are left", len(left))
		}
		return nil
	})
	return left
}

// takeOver wants the purges that were cut short to be finished by a server that starts when those
// that had begun them have had their time. It is the end of the drill.
func (d *drill) takeOver() error {
	if len(d.owed) == 0 {
		return nil
	}
	i := d.pickInstance()
	err := i.kill()
	if err == nil {
		err = i.clock.set(jumpMax + takenOverAfter) // they may have been ahead
	}
	if err == nil {
		err = i.start()
	}
	if err != nil {
		return err
	}
	if left := d.left(slices.Sorted(maps.Keys(d.owed)), purgeTimeout); len(left) > 0 {
		return fmt.Errorf("of %d files whose purge was cut short, %d are there %v after another server could take it over, such as %s",
			len(d.owed), len(left), purgeTimeout, left[0])
	}
	return nil
}

// regroup lets each writer keep what is still there, and gives it what it made
// without knowing: what a check found out, or a repeated request was answered.
func (d *drill) regroup(r *report, made []*operation) {
	for o, found := range r.resolved {
		if found == done {
			made = append(made, o)
		}
	}
	for _, w := range d.crew {
		for _, o := range made {
			switch {
			case o.writer != w.name || o.naming == nil || o.naming.from != "":
			case o.table == nil:
				w.spaces = append(w.spaces, o.namespace)
			case o.table.view:
				w.views = append(w.views, o.table)
			case !slices.Contains(d.shared, o.table) && !slices.Contains(w.detached, o.table):
				w.tables = append(w.tables, o.table)
			}
		}
		all := append(w.tables, w.detached...)
		w.tables, w.detached = nil, nil
		for _, t := range all {
			switch {
			case t.at != "":
				w.tables = append(w.tables, t)
			case t.registrable():
				w.detached = append(w.detached, t)
			}
		}
		w.views = slices.DeleteFunc(w.views, func(v *table) bool { return v.at == "" })
		w.spaces = slices.DeleteFunc(w.spaces, func(n *namespace) bool { return !n.exists })
		// The order in which they were found out is random, and a seed's choices are not to be.
		for _, tables := range []*[]*table{&w.tables, &w.detached, &w.views} {
			slices.SortFunc(*tables, func(a, b *table) int { return strings.Compare(a.id, b.id) })
			*tables = slices.Compact(*tables)
		}
		slices.SortFunc(w.spaces, func(a, b *namespace) int { return strings.Compare(a.id, b.id) })
		w.spaces = slices.Compact(w.spaces)
	}
}

// registrable tells whether the last change of a table's name took it away for a while.
func (t *table) registrable() bool {
	for _, o := range slices.Backward(t.ops) {
		if o.naming != nil && o.outcome == done {
			return o.naming.unbinds && o.location != ""
		}
	}
	return false
}
