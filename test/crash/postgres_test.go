package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// postgres is three servers that share a database, each of which reaches it by a wire of its
// own, and a directory for files. In one drill of three they have two connections each, in another PgBouncer stands before
// the database.
var postgres = configuration{
	name:      "postgres",
	instances: 3,
	found:     func(d *drill) (ground, error) { return newDatabase(d) },
	args: func(d *drill, instance int) []string {
		return append(commonFlags(), "--store", "postgres",
			"--postgres-url", "postgres://postgres@"+d.database().wires[instance].address()+"/postgres?sslmode=disable",
			"--warehouse-main-location", "file://"+d.state)
	},
	rounds:    15,
	handsOver: true,
	variants: []variant{
		{faults: postgresFaults, alone: slow},
		{faults: postgresFaults, alone: slow, flags: []string{"--postgres-max-connections", "2"}},
		{faults: postgresFaults, alone: slow, flags: []string{"--postgres-pgbouncer"}, pooled: true},
	},
}

var (
	postgresFaults = slices.Concat(freezes, networks, drifts, databases, deaths)

	// databases are the faults of the database and of the ways to it.
	databases = []func() fault{
		func() fault { return &wires{} },
		func() fault { return &terminations{} },
		func() fault { return &databaseCrash{} },
	}
	// slow are faults that have everybody wait.
	slow = []func() fault{func() fault { return &rowLock{} }, func() fault { return &silentWires{} }}
)

// trouble says that the servers cannot rely on the database.
func (d *drill) trouble() {
	d.excuse(silence, 408, 409, 429, 499, 500, 503)
	d.cuts = true
}

// database is the ground of servers on PostgreSQL: a cluster of the drill's own.
type database struct {
	cluster *pgtest.Cluster
	bouncer *pgtest.Bouncer // nil: none
	wires   []*wire         // of each server
	log     string          // where its own goes in the end
}

// pooledConnections is how many connections PgBouncer has: fewer than the servers together.
const pooledConnections = 20

func newDatabase(d *drill) (_ *database, err error) {
	if err := wipeDirectory(d.state); err != nil {
		return nil, err
	}
	db := &database{log: filepath.Join(d.work, "postgres.log")}
	if db.cluster, err = pgtest.Start(); err != nil {
		return nil, err
	}
	port := db.cluster.Port
	if d.variant.pooled {
		if db.bouncer, err = db.cluster.StartPgBouncer(pooledConnections); err != nil {
			return nil, errors.Join(err, db.close())
		}
		port = db.bouncer.Port
	}
	for range d.mode.instances {
		w, err := newWire(fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return nil, errors.Join(err, db.close())
		}
		db.wires = append(db.wires, w)
	}
	return db, nil
}

// database is that of a configuration which has one.
func (d *drill) database() *database { return d.ground.(*database) }

func (db *database) close() error {
	errs := []error{os.WriteFile(db.log, []byte(db.cluster.Log()), 0o600)}
	for _, w := range db.wires {
		errs = append(errs, w.close())
	}
	if db.bouncer != nil {
		errs = append(errs, db.bouncer.Stop())
	}
	return errors.Join(append(errs, db.cluster.Stop())...)
}

// quiet waits until nothing is on the wires, and no transaction runs any more that a server began.
func (db *database) quiet(ctx context.Context) error {
	if err := poll(ctx, func() error {
		for _, w := range db.wires {
			if n := w.holds(); n > 0 {
				return fmt.Errorf("%d requests are on the way to the database", n)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return db.ask(ctx, func(conn *pgx.Conn) error {
		return poll(ctx, func() error {
			var n int
			err := conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND `+ours).Scan(&n)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d sessions are busy", n)
			}
			return err
		})
	})
}

// ours is the condition on pg_stat_activity that tells the servers' sessions from all others.
const ours = `backend_type = 'client backend' AND pid <> pg_backend_pid() AND application_name NOT IN ('` + outsider + `', '')`

// ask connects past the wires and does something.
func (db *database) ask(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, db.cluster.URL("postgres"))
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(context.WithoutCancel(ctx)))
}

// meetsMin is how often a fault is in the way of the servers, unless sufferMax passes before.
const meetsMin = 80

// linger leaves the writers with the fault until it has been in the way often enough.
func (d *drill) linger() {
	ctx, cancel := context.WithTimeout(context.Background(), sufferMax)
	defer cancel()
	_ = poll(ctx, func() error { // both ends are fine
		if d.met.Load() < meetsMin {
			return errors.New("too little has gone wrong")
		}
		return nil
	})
}

// wires drops, cuts and delays some of what is said between the servers and the database.
type wires struct{ unprepared }

func (*wires) name() string { return "wires" }

func (*wires) strike(d *drill) error {
	d.trouble()
	const metOneIn = 10
	for _, w := range d.database().wires {
		rng := d.chance()
		late := func() time.Duration { return time.Duration(rng.Int64N(int64(delayMax))) }
		w.misbehave(func() mischief {
			if rng.IntN(metOneIn) > 0 {
				return mischief{}
			}
			d.met.Add(1)
			switch rng.IntN(6) {
			case 0:
				return mischief{cutRequest: rng.Float64() + 1e-9}
			case 1:
				return mischief{cutAnswer: rng.Float64() + 1e-9}
			case 2:
				return mischief{holdRequest: late()}
			case 3:
				return mischief{delayAnswer: late()}
			}
			return mischief{dropAnswer: true} // so nobody knows whether it was committed
		})
	}
	return nil
}

func (*wires) heal(d *drill) error {
	d.linger()
	for _, w := range d.database().wires {
		w.misbehave(nil)
	}
	return nil
}

// silentWires has all connections of servers to the database go silent at once, as when a firewall forgets them: no end of
// them is seen. New ones are as good as ever, so what is read meanwhile is answered all the same.
type silentWires struct{ unprepared }

func (*silentWires) name() string { return "silent wires" }

func (*silentWires) strike(d *drill) error {
	d.trouble()
	for _, i := range d.rng.Perm(d.mode.instances)[:1+d.rng.IntN(d.mode.instances)] {
		d.met.Add(int64(d.database().wires[i].silence()))
	}
	began := time.Now()
	for n := range d.instances {
		w := d.helper(fmt.Sprintf("reader-%d", n), n)
		if w.load(d.world.hot) == nil {
			return fmt.Errorf("server %d could not load a table", n)
		}
	}
	d.remark = fmt.Sprintf(", all read again after %v", time.Since(began).Round(time.Millisecond))
	return nil
}

func (*silentWires) heal(*drill) error { return nil }

// terminations ends sessions of the servers with pg_terminate_backend, at random and again and again.
type terminations struct {
	unprepared
	stop  context.CancelFunc
	ended chan struct{}
}

// terminateMax bounds the time between two of them.
const terminateMax = 20 * time.Millisecond

func (*terminations) name() string { return "terminations" }

func (t *terminations) strike(d *drill) error {
	d.trouble()
	ctx, stop := context.WithCancel(context.Background())
	t.stop, t.ended = stop, make(chan struct{})
	rng, db := d.chance(), d.database()
	go func() {
		defer close(t.ended)
		for ctx.Err() == nil {
			// The database may be down on account of another fault.
			_ = db.ask(ctx, func(conn *pgx.Conn) error {
				for {
					var n int64
					err := conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM
						(SELECT pid FROM pg_stat_activity WHERE `+ours+` 
							ORDER BY (state = 'active' AND $1) DESC, random() LIMIT $2) victims`, rng.IntN(2) == 0, 1+rng.IntN(3)).Scan(&n)
					if err != nil {
						return err
					}
					d.met.Add(n)
					select {
					case <-time.After(time.Duration(rng.Int64N(int64(terminateMax)))):
					case <-ctx.Done():
						return nil
					}
				}
			})
		}
	}()
	return nil
}

func (t *terminations) heal(d *drill) error {
	d.linger()
	t.stop()
	<-t.ended
	return nil
}

// databaseCrash ends PostgreSQL in immediate mode, and starts it again.
type databaseCrash struct{ unprepared }

func (*databaseCrash) name() string { return "PostgreSQL" }

func (*databaseCrash) strike(d *drill) error {
	d.trouble()
	d.met.Add(1)
	return d.database().cluster.Kill()
}

func (*databaseCrash) heal(d *drill) error { return d.database().cluster.Restart() }
