package crash

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	roundsFlag = flag.Int("rounds", 3, "how often TestKill kills the server")
	seedFlag   = flag.Uint64("seed", 0, "of TestKill's random choices; 0 takes another each time")
)

const (
	// writesMin is how many writes are acknowledged in a round before its kill.
	writesMin = 200
	// writesMore bounds the random number on top.
	writesMore = 200
	// killDelayMax bounds the time between the choice of the moment and the kill.
	killDelayMax = 20 * time.Millisecond
	// purgeTimeMax bounds the time that a large table's purge gets before it.
	purgeTimeMax = 30 * time.Millisecond
	// writeTimeout bounds the time until then.
	writeTimeout = 3 * time.Minute
	// purgeTimeout bounds the time in which a restarted server deletes the files of purged tables.
	purgeTimeout = 30 * time.Second
	// requestTimeLimit is the server's: shorter than by default, because files that fell off
	// a log stay for this and 30 s.
	requestTimeLimit = 10 * time.Second
	// replayKillMax bounds the time that the requests which are repeated get before a second kill.
	replayKillMax = 20 * time.Millisecond
	// problemsMax is how many problems of one round are printed.
	problemsMax = 40
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server that is killed in the middle of its writers loses nothing that it
// acknowledged, shows nothing that it refused, and leaves nothing half done. The
// package comment lists what is checked.
func TestKill(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test ./test/crash -run TestKill -rounds %d -seed %d", seed, *roundsFlag, seed)
	work, err := os.MkdirTemp("", "landfast-crash-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the data directory and the server's log are kept in %s", work)
			return
		}
		if err := os.RemoveAll(work); err != nil {
			t.Error(err)
		}
	})
	log := filepath.Join(work, "server.log")
	d := &drill{
		configuration: configuration{buildServer(t), []string{
			"serve", "--data", filepath.Join(work, "data"), "--listen", "127.0.0.1:0", "--log-level", "warn",
			"--request-timeout", requestTimeLimit.String(),
		}, log},
		h: newHistory(), files: &disk{parsed: map[string]parsedFile{}},
		rng: rand.New(rand.NewPCG(seed, 0)), seed: seed,
	}
	d.server = d.start(t)
	d.prepare(t)
	for d.round = 1; d.round <= *roundsFlag; d.round++ {
		d.play(t)
		if t.Failed() {
			return
		}
	}
	t.Logf("what was sent, with unknown outcomes as they were found out:\n%s", d.h.byKind())
	t.Logf("total: %d rounds, %d requests that change something: %d acknowledged, %d refused, %d unknown, of which %d turned out applied and %d absent, and %d were answered when they were repeated; %s",
		*roundsFlag, d.acknowledged+d.refused+d.unknown, d.acknowledged, d.refused, d.unknown, d.applied, d.absent, d.settled, d.last)
}

// drill is the rounds on one data directory.
type drill struct {
	configuration
	h      *history
	files  *disk
	rng    *rand.Rand
	seed   uint64
	server *process
	root   string // location of the warehouse main
	round  int
	began  time.Time // the round

	crew   [writers]*writer
	shared []*table

	acknowledged, refused, unknown, applied, absent, settled, replayed, swept, interrupted int
	last                                                                                   string // what the last check looked at
}

// sharedTables is how many tables all writers commit to, beside the hot one.
const sharedTables = 4

// prepare makes what every round needs.
func (d *drill) prepare(t *testing.T) {
	c := newClient(d.server.url)
	defer c.close()
	a := c.call("GET", "/management/v1/warehouses/main", nil)
	var warehouse struct{ Location string }
	if err := json.Unmarshal(a.body, &warehouse); a.outcome() != done || err != nil || warehouse.Location == "" {
		t.Fatalf("find the warehouse main: %d %s %v", a.status, a.message(), err)
	}
	d.root = strings.TrimSuffix(warehouse.Location, "/")
	for i := range d.crew {
		d.crew[i] = &writer{index: i, name: fmt.Sprintf("w%02d", i)}
	}
	w := d.crew[0]
	w.world, w.rng = &world{h: d.h, client: c, root: d.root}, d.rng
	for _, space := range []string{sharedSpace, eastSpace, westSpace, arenaSpace} {
		if _, a := w.makeNamespace(space); a.outcome() != done {
			t.Fatalf("create namespace %s: %d %s", space, a.status, a.message())
		}
	}
	for i := range sharedTables {
		table, a := w.create("create", fmt.Sprintf("%s.shared-%d", sharedSpace, i), nil)
		if a.outcome() != done {
			t.Fatalf("create a shared table: %d %s", a.status, a.message())
		}
		d.shared = append(d.shared, table)
	}
}

// play plays one round: write, kill, restart, check.
func (d *drill) play(t *testing.T) {
	began, from := time.Now(), len(d.h.ops)
	d.began = began
	d.write(t)
	wrote := time.Since(began)
	counts, settled := d.h.counts(from), d.settled
	d.interrupted += d.cutPurges(from)

	began = time.Now()
	d.server = d.start(t)
	recovered := "restarted"
	var made []*operation
	var problems []string
	if d.rng.IntN(4) == 0 { // a crash while it may still be cleaning up after the last one
		recovered = "restarted twice"
		problems, made = d.replayAndKill(t)
		d.server = d.start(t)
	}
	ready, started := time.Since(began), time.Now()
	d.h.restarted()

	c := newClient(d.server.url)
	defer c.close()
	var sweeping sync.WaitGroup
	var swept sweep
	var sweepErr error
	sweeping.Go(func() { swept, sweepErr = sweepMain(c) })
	wrong, more := d.replay(c)
	problems, made = append(problems, wrong...), append(made, more...)
	sweeping.Wait()
	if sweepErr != nil {
		t.Fatalf("round %d: sweep: %v\n%s", d.round, sweepErr, tail(d.log))
	}
	d.swept += swept.Orphans + swept.Leftovers
	obs, err := observe(c, d.h, d.files)
	if err != nil {
		t.Fatalf("round %d: observe: %v\n%s", d.round, err, tail(d.log))
	}
	obs.started = started.UnixMilli()
	r := check(d.h, obs)
	r.problems = append(problems, r.problems...)
	for _, f := range swept.Files {
		if r.reached[f] {
			r.problem("a sweep gave up %s, which a table has", f)
		}
	}
	d.cleaned(t, r)
	files, broken, err := d.files.sweep(d.root)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		r.problem("a metadata file is there under its name but broken: %s", b)
	}
	d.judge(t, r)
	applied, absent := 0, 0
	for _, found := range r.resolved {
		if found == done {
			applied++
		} else {
			absent++
		}
	}
	d.h.settle(r)
	d.regroup(r, made)
	d.acknowledged, d.refused, d.unknown = d.acknowledged+counts[done], d.refused+counts[refused], d.unknown+counts[unknown]
	d.applied, d.absent = d.applied+applied, d.absent+absent
	d.last = fmt.Sprintf("at the end %d live tables, %d dropped, %d purged, %d namespaces, %d metadata files in their histories and %d in all, %d snapshots, %d views, %d transactions, %d reads; %d requests were repeated under their keys, %d purges of data were cut in the middle, sweeps found %d files, the first files of %d tables were gone before they were seen",
		r.live, r.dropped, r.purged, r.spaces, r.versions, files, r.snapshots, r.views, r.transactions, r.reads, d.replayed, d.interrupted, d.swept, r.forgotten)
	t.Logf("round %2d: %d acknowledged, %d refused, %d unknown (%d applied, %d absent, %d answered when repeated) in %v; %s, ready in %v; checked %d live tables, %d dropped, %d purged (%d files gone), %d namespaces, %d versions, %d snapshots, %d views, %d transactions, %d reads",
		d.round, counts[done], counts[refused], counts[unknown], applied, absent, d.settled-settled, wrote.Round(time.Millisecond), recovered, ready.Round(time.Millisecond),
		r.live, r.dropped, r.purged, len(r.doomed), r.spaces, r.versions, r.snapshots, r.views, r.transactions, r.reads)
}

// cutPurges counts the purges, of those sent since, that the kill came in the middle
// of: some of the table's data is gone and some is there.
func (d *drill) cutPurges(from int) (n int) {
	for _, o := range d.h.ops[from:] {
		if o.naming == nil || !o.naming.purge || o.outcome == refused {
			continue
		}
		files, left := 0, 0
		for _, other := range o.table.ops {
			if other.edit == nil || other.outcome != done {
				continue
			}
			for _, f := range other.edit.files {
				files++
				if d.files.exists(f) {
					left++
				}
			}
		}
		if left > 0 && left < files {
			n++
		}
	}
	return n
}

// replayAndKill repeats requests and kills the server in the middle of it.
func (d *drill) replayAndKill(t *testing.T) (problems []string, made []*operation) {
	c := newClient(d.server.url)
	defer c.close()
	server := d.server
	kill := time.AfterFunc(time.Duration(d.rng.Int64N(int64(replayKillMax))), func() {
		_ = server.cmd.Process.Kill() // it is killed again below
	})
	problems, made = d.replay(c)
	kill.Stop()
	server.kill(t)
	return problems, made
}

// sweep is the answer to one.
type sweep struct {
	Complete           bool
	Tables             int
	Orphans, Leftovers int
	Files              []string
}

// sweepMain has the warehouse swept.
func sweepMain(c *client) (s sweep, err error) {
	a := c.call("POST", "/management/v1/warehouses/main/sweep", nil)
	if a.outcome() != done {
		return s, fmt.Errorf("%d %s", a.status, a.message())
	}
	if err = json.Unmarshal(a.body, &s); err == nil && (!s.Complete || s.Tables == 0) {
		err = fmt.Errorf("it is not complete: %s", a.body)
	}
	return s, err
}

// write lets the writers loose until the server is dead.
func (d *drill) write(t *testing.T) {
	c := newClient(d.server.url)
	defer c.close()
	w := &world{h: d.h, client: c, root: d.root, round: d.round, over: d.server.exited, shared: d.shared}
	var hot answer
	d.crew[0].world, d.crew[0].rng = w, d.rng
	w.hot, hot = d.crew[0].create("create", fmt.Sprintf("%s.hot-%d", sharedSpace, d.round), func(o *operation, _ object) {
		switch d.round % 3 {
		case 1:
			o.deleteAfterCommit(5)
		case 2:
			o.edit.set["write.metadata.previous-versions-max"] = "20"
			o.table.keepsLog = 20
		}
	})
	var view answer
	w.view, view = d.crew[0].makeView("create view", fmt.Sprintf("%s.view-%d", sharedSpace, d.round), nil)
	if view.outcome() != done {
		t.Fatalf("round %d: create the shared view: %d %s", d.round, view.status, view.message())
	}
	if hot.outcome() != done {
		t.Fatalf("round %d: create the hot table: %d %s", d.round, hot.status, hot.message())
	}
	purger := &writer{world: w, name: "purger", index: writers, rng: rand.New(rand.NewPCG(d.seed, uint64(d.round)<<32))}
	heavy := purger.heavyTable(t)
	purged := make(chan struct{})
	// An answer comes when the server has just finished something. The delay makes
	// every other moment as likely.
	delay, purge := time.Duration(d.rng.Int64N(int64(killDelayMax))), time.Duration(d.rng.Int64N(int64(purgeTimeMax)))
	d.h.begin(trigger{
		acknowledged: writesMin + d.rng.IntN(writesMore),
		thenSent:     d.rng.IntN(2 * writers),
		fire: func() {
			time.AfterFunc(delay, func() {
				time.AfterFunc(purge, func() {
					d.h.kill(func() { _ = d.server.cmd.Process.Kill() }) // it is killed again below
				})
				purger.dropTable("drop", heavy, true)
				close(purged)
			})
		},
	})
	var running sync.WaitGroup
	for _, member := range d.crew {
		member.world, member.stopped = w, false
		member.rng = rand.New(rand.NewPCG(d.seed, uint64(d.round*writers+member.index+1)))
		running.Go(member.run)
	}
	select {
	case <-d.server.exited:
	case <-time.After(writeTimeout):
		t.Errorf("round %d: %d writes were acknowledged within %v", d.round, d.h.counts(0)[done], writeTimeout)
		d.server.kill(t)
	}
	running.Wait() // their connections are gone
	d.server.kill(t)
	if !d.h.killing {
		t.Fatalf("round %d: the server ended by itself: %v\n%s", d.round, d.server.cmd.ProcessState, tail(d.log))
	}
	<-purged
}

// cleaned waits until the files of purged tables are gone.
func (d *drill) cleaned(t *testing.T, r *report) {
	ctx, cancel := context.WithTimeout(t.Context(), purgeTimeout)
	defer cancel()
	var left []string
	_ = poll(ctx, func() error {
		left = left[:0]
		for _, location := range r.doomed {
			if d.files.exists(location) {
				left = append(left, location)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d files are left", len(left))
		}
		return nil
	})
	for _, location := range left {
		r.problem("a file of a purged table is there %v after the restart: %s", purgeTimeout, location)
	}
}

// judge reports the problems of a round.
func (d *drill) judge(t *testing.T, r *report) {
	for i, p := range r.problems {
		if i == problemsMax {
			t.Errorf("round %d: and %d problems more", d.round, len(r.problems)-problemsMax)
			break
		}
		t.Errorf("round %d: %s", d.round, p)
	}
	if len(r.problems) > 0 {
		t.Logf("the server's log ends with\n%s", tail(d.log))
	}
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
