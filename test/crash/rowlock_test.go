package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// outsider is the application_name of who locks a row and is none of the servers.
const outsider = "outsider"

const (
	// heldBriefly is how long the rows are locked: shorter than any request waits. heldLong is longer, in
	// one drill of longHeldOneIn where many rounds are asked for.
	heldBriefly   = 3 * time.Second
	heldLong      = 25 * time.Second
	longHeldOneIn = 3
	// probedBefore is for how long latencies are taken before that, and probeEvery how often.
	probedBefore = time.Second
	probeEvery   = 25 * time.Millisecond
	// slowerMax is how much longer than before the slowest but one in a hundred may take meanwhile, beside what holds
	// up the control.
	slowerMax = 500 * time.Millisecond
	// unreadyMax is how often in a row a server may say that it is not ready, where the control was held up as well.
	unreadyMax = 2
)

// rowLock has somebody with psql lock the rows of the tables that everybody commits to, and
// forget it. Who wants one of these waits, and nobody else notices.
type rowLock struct {
	probes  []*probe
	stop    func() error  // ends the probes, and tells what was wrong for them
	stalled time.Duration // the longest from one commit of the control to the next, while the probes ran last
	held    time.Duration // how long they are locked
	since   time.Time
	lock    *pgx.Conn
	rows    int

	waiter *writer
	waited chan answer
}

func (*rowLock) name() string { return "row lock" }

func (l *rowLock) prepare(d *drill) error {
	l.held = heldBriefly
	if *roundsFlag > 0 && d.nth%longHeldOneIn == 0 {
		l.held = heldLong
	}
	l.waiter = d.helper("waiter", 0)
	for n := range d.instances {
		p := &probe{writer: d.helper(fmt.Sprintf("probe-%d", n), n)}
		t, a := p.create("create", sharedSpace+".probe-"+p.token(), nil)
		if a.outcome() != done {
			return fmt.Errorf("create a table to probe: %d %s", a.status, a.message())
		}
		p.table = t
		l.probes = append(l.probes, p)
	}
	ctx, cancel := context.WithTimeout(context.Background(), progressTimeout)
	defer cancel()
	return d.database().ask(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS control (n int)")
		return err
	})
}

func (l *rowLock) strike(d *drill) error {
	if l.held > requestTimeLimit {
		d.excuse(409, 429, 503) // for who wants the table
	}
	l.probe(d, func(p *probe, took time.Duration) { p.before = append(p.before, took) })
	<-time.After(probedBefore)
	if err := l.stop(); err != nil {
		return fmt.Errorf("while no row was locked yet: %w", err)
	}
	if err := l.take(d); err != nil {
		return err
	}
	l.probe(d, func(p *probe, took time.Duration) { p.during = append(p.during, took) })
	l.waited = make(chan answer, 1)
	go func() {
		o := l.waiter.operation("commit")
		o.table, o.addressed = d.world.hot, d.h.nameOf(d.world.hot)
		l.waited <- l.waiter.commit(o, nil)
	}()
	return nil
}

// take locks the rows.
func (l *rowLock) take(d *drill) error {
	var locations []string
	d.world.mu.Lock()
	tables := append([]*table{d.world.hot}, d.world.shared...)
	d.world.mu.Unlock()
	for n, t := range tables {
		at := d.h.nameOf(t)
		if at == "" { // dropped
			continue
		}
		a := l.waiter.client.callTable("GET", tablePath(at), nil)
		switch {
		case a.outcome() == done:
			locations = append(locations, a.table.parsed.Location)
		case n == 0 || a.status != http.StatusNotFound: // others are renamed meanwhile
			return fmt.Errorf("load %s: %d %s", at, a.status, a.message())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), progressTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.database().cluster.URL("postgres")+"&application_name="+outsider)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "BEGIN")
	if err == nil {
		err = conn.QueryRow(ctx, `WITH locked AS (
				SELECT FROM landfast.records WHERE level = 5 AND EXISTS (SELECT FROM unnest($1::text[]) l WHERE position(l IN value) > 0)
				ORDER BY path FOR UPDATE)
			SELECT count(*) FROM locked`, locations).Scan(&l.rows)
	}
	if err == nil && l.rows == 0 {
		err = errors.New("no row is the pointer of any table")
	}
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	l.lock, l.since = conn, time.Now()
	return nil
}

func (l *rowLock) heal(d *drill) error {
	<-time.After(l.held - time.Since(l.since))
	probed := l.stop()
	early := len(l.waited) > 0
	if err := l.lock.Close(context.Background()); err != nil {
		return err
	}
	a := <-l.waited // no request lasts longer than a client waits
	switch {
	case early && a.outcome() != refused:
		return fmt.Errorf("a commit to the table whose row was locked was answered %d %s", a.status, a.message())
	case !early && a.outcome() != done:
		return fmt.Errorf("a commit that had waited for the row was answered %d %s", a.status, a.message())
	}
	d.met.Add(1)
	if probed != nil {
		return fmt.Errorf("while the rows of other tables were locked: %w", probed)
	}
	var before, during []time.Duration
	for _, p := range l.probes {
		before, during = append(before, p.before...), append(during, p.during...)
	}
	d.remark = fmt.Sprintf(", %d rows held %v; p99 of %d others: %v before, %v during; the control stood for %v", l.rows, l.held, len(during),
		nearlySlowest(before).Round(time.Millisecond), nearlySlowest(during).Round(time.Millisecond), l.stalled.Round(time.Millisecond))
	if nearlySlowest(during) > nearlySlowest(before)+l.stalled+slowerMax {
		return errors.New("who wanted another table than those whose rows were locked had to wait" + d.remark)
	}
	return nil
}

// nearlySlowest is the slowest but one in a hundred.
func nearlySlowest(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

// probe changes and reads a table of its own, through one server, and asks that whether it is ready.
type probe struct {
	*writer
	table          *table
	before, during []time.Duration // what each change and each read took
	unready        error           // the last answer that said so
	unreadies      int             // in a row
	err            error
}

// probe has all probes begin, and the control. They go on until stop.
func (l *rowLock) probe(d *drill, note func(*probe, time.Duration)) {
	over, probed := make(chan struct{}), make(chan struct{})
	var probing sync.WaitGroup
	for _, p := range l.probes {
		probing.Go(func() {
			tick := time.NewTicker(probeEvery)
			defer tick.Stop()
			for p.err == nil {
				p.err = p.once(func(took time.Duration) { note(p, took) })
				select {
				case <-tick.C:
				case <-over:
					return
				}
			}
		})
	}
	controlled := make(chan error, 1)
	go func() { controlled <- l.control(d.database(), probed) }()
	l.stop = func() error {
		close(over)
		probing.Wait()
		close(probed) // what holds up a probe at the end is to hold up the control, too
		if err := <-controlled; err != nil {
			return fmt.Errorf("the control: %w", err)
		}
		for _, p := range l.probes {
			err := p.err
			if err == nil && l.stalled <= slowerMax {
				err = p.unready
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			p.unready, p.unreadies = nil, 0
		}
		return nil
	}
}

// control commits to a table of its own as often as a probe, and asks no server for it: what holds up the machine, or
// its disk, holds up both, and what holds up a server only the probe.
func (l *rowLock) control(db *database, over <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.held+progressTimeout)
	defer cancel()
	l.stalled = 0
	last := time.Now()
	return db.ask(ctx, func(conn *pgx.Conn) error {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for ended := false; !ended; {
			select {
			case <-tick.C:
			case <-over:
				ended = true
			}
			if _, err := conn.Exec(ctx, "INSERT INTO control VALUES (0)"); err != nil {
				return err
			}
			now := time.Now()
			l.stalled, last = max(l.stalled, now.Sub(last)), now
		}
		return nil
	})
}

func (p *probe) once(note func(time.Duration)) error {
	began := time.Now()
	o := p.operation("commit")
	o.table, o.addressed = p.table, p.h.nameOf(p.table)
	if a := p.commit(o, nil); a.outcome() != done {
		return fmt.Errorf("a commit was answered %d %s", a.status, a.message())
	}
	note(time.Since(began))
	began = time.Now()
	if p.load(p.table) == nil {
		return errors.New("a table could not be loaded")
	}
	note(time.Since(began))
	a := p.client.call("GET", "/readyz", nil)
	if a.status == http.StatusOK {
		p.unreadies = 0
		return nil
	}
	p.unready = fmt.Errorf("/readyz answered %d %s", a.status, a.message())
	if p.unreadies++; p.unreadies > unreadyMax {
		return p.unready
	}
	return nil
}

// helper is a writer that is none of the crew.
func (d *drill) helper(name string, instance int) *writer {
	return &writer{world: d.world, client: d.clients[instance], name: name, index: writers, rng: d.chance(), avoided: map[string]bool{}}
}
