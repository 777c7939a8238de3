package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/landfast/landfast/internal/store"
)

// Options of a store; the zero value of each field but URL stands for its default.
type Options struct {
	// URL says where the database is and who we are, as libpq's URLs and keyword/value
	// strings do: postgres://user@host:5432/database?sslmode=verify-full. Environment variables (PGHOST,
	// PGPASSWORD, PGSSLROOTCERT, ...) and ~/.pgpass stand for what it does not say.
	URL string
	// Password, if not empty, takes the place of the URL's.
	Password string
	// Connections is how many connections there are at most, at least 2. Default 16.
	Connections int
	// Pooled says that PgBouncer stands between, in whatever mode: nothing is kept in a session.
	Pooled bool
	// Name is that of the instance in pg_stat_activity, where we are "landfast NAME": at most 20 bytes. Default "-".
	Name string
	// Slice is how long a row that another transaction has locked is waited for on a connection
	// before Apply gives a *store.BlockedError. Default 200 ms.
	Slice time.Duration
	// NoWait has Apply give a *store.BlockedError as soon as it finds a locked row.
	NoWait bool
	// RetryInterval is about how long after that Apply is worth trying again. Default 100 ms.
	RetryInterval time.Duration
	// Patience is how long a call waits for a connection: for one that is free, and for a server that
	// restarts. Default 5 s.
	Patience time.Duration
	// ApplyTimeout is how long a call waits for the answer to what was sent. Default 10 s.
	ApplyTimeout time.Duration
	// Retention is how long batch ids are remembered, by the database's clock. It must be longer than
	// any caller takes to ask for an outcome. Default 1 h.
	Retention time.Duration
	// Observe, if not nil, is told what happens. It is called by many at a time, and must be quick.
	Observe func(Event)
	// Forgot is told, by Open and once a minute, of a batch id, or how it begins: that of the database's time,
	// or the greatest that is forgotten if that is greater. The outcome of a batch whose id is much lower may count as unknown, so
	// a new one needs a greater: see [store.IDs]. It must not block. Default: nothing.
	Forgot func(id string)
	// Log is told what an operator should know. Default slog.Default().
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	positive := func(d *time.Duration, byDefault time.Duration) {
		if *d <= 0 {
			*d = byDefault
		}
	}
	if o.Connections <= 0 {
		o.Connections = 16
	}
	o.Connections = max(o.Connections, 2)
	if o.Name == "" {
		o.Name = "-"
	}
	positive(&o.Slice, 200*time.Millisecond)
	positive(&o.RetryInterval, 100*time.Millisecond)
	positive(&o.Patience, 5*time.Second)
	positive(&o.ApplyTimeout, 10*time.Second)
	positive(&o.Retention, time.Hour)
	if o.Forgot == nil {
		o.Forgot = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// Store is a database. It is safe for concurrent use.
type Store struct {
	options Options
	pool    *pgxpool.Pool
	reader  *reader
	doubted atomic.Pointer[time.Time] // when the pool was emptied last; nil: never
	// While unanswered is set, which a batch does whose answer takes long, until one is committed, batches go one at a time,
	// that which has a token in alone, and only while there is no crowd of them. Otherwise a server that commits
	// nothing (its standby hangs) would collect backends, with one batch in each.
	unanswered atomic.Bool
	alone      chan struct{}
	// slices holds a token for each connection that waits for a row.
	slices chan struct{}

	stop    context.CancelFunc
	running sync.WaitGroup // what forgets batch ids
	close   sync.Once
	closed  atomic.Bool
}

var (
	_ store.Atomic   = (*Store)(nil)
	_ store.Gatherer = (*Store)(nil)
)

// Open connects, and makes the schema where there is none. It waits for a server that is about to be there. The caller
// closes the store.
// Its errors say what to do.
func Open(ctx context.Context, options Options) (*Store, error) {
	o := options.withDefaults()
	config, err := o.pool()
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s := &Store{options: o, slices: make(chan struct{}, o.Connections/2), alone: make(chan struct{}, 1)}
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // acquire does
	config.BeforeConnect = withLink
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: %s", plain(err))
	}
	s.pool = pool
	s.reader = newReader(s)
	for end := time.Now().Add(startPatience); ; {
		if err = prepare(ctx, pool, o); err == nil {
			err = s.tellForgotten(ctx)
		}
		if !comes(err) || time.Now().After(end) {
			break
		}
		select {
		case <-time.After(jitter(pause)):
		case <-ctx.Done():
		}
	}
	if err != nil {
		pool.Close()
		if errors.Is(err, ErrNewer) || errors.Is(err, ErrUnfit) {
			return nil, fmt.Errorf("postgres: %s: %w", where(config), err)
		}
		return nil, fmt.Errorf("postgres: %s: %s", where(config), plain(err))
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.running.Go(func() { s.forget(background) })
	return s, nil
}

// startPatience is how long Open insists where something answers, and has no database for us yet: PostgreSQL that
// starts, PgBouncer that waits for it, a server whose connections are all in use.
const startPatience = 10 * time.Second

// comes reports whether that is so.
func comes(err error) bool {
	class := classOf(stateOf(err))
	return class == "53" || class == "57" || loginFails(err)
}

// where names the database, without a password.
func where(c *pgxpool.Config) string {
	return fmt.Sprintf("database %s at %s:%d", c.ConnConfig.Database, c.ConnConfig.Host, c.ConnConfig.Port)
}

// pool makes the configuration of the pool.
func (o Options) pool() (*pgxpool.Config, error) {
	if o.URL == "" {
		return nil, errors.New("no URL")
	}
	c, err := pgxpool.ParseConfig(o.URL)
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("a file that the URL names (sslrootcert, sslcert, sslkey, passfile, service) cannot be read: %w", file)
	}
	if err != nil {
		// What was parsed may hold a password.
		return nil, errors.New("the URL is not one that PostgreSQL's own programs take: postgres://user@host:5432/database?sslmode=verify-full")
	}
	if o.Password != "" {
		c.ConnConfig.Password = o.Password
	}
	c.MaxConns = int32(o.Connections)
	c.MinIdleConns = 1
	c.MaxConnLifetimeJitter = c.MaxConnLifetime / 10
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if c.ConnConfig.ValidateConnect == nil {
		c.ConnConfig.ValidateConnect = isPrimary
	}
	// What has died without a word is noticed by the operating system, too.
	c.ConnConfig.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}).DialContext
	params := c.ConnConfig.RuntimeParams
	params["application_name"] = o.sessionName()
	params["client_encoding"] = "UTF8"
	if o.Pooled {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		c.ConnConfig.StatementCacheCapacity = 0
		c.ConnConfig.DescriptionCacheCapacity = 0
		return c, nil
	}
	// Whatever is set for the role or the database.
	params["default_transaction_isolation"] = "read committed"
	params["statement_timeout"] = "0" // every call has its own limit
	// A plan that was made while a table was small is kept: it must be right when it is large.
	params["enable_indexscan"] = "on"
	params["enable_seqscan"] = "off"
	params["jit"] = "off"
	return c, nil
}

// isPrimary refuses a connection to a standby, which may lead anywhere in the past: of several hosts
// in the URL the next is tried.
func isPrimary(ctx context.Context, conn *pgconn.PgConn) error {
	if err := pgconn.ValidateConnectTargetSessionAttrsPrimary(ctx, conn); stateOf(err) != "" {
		return err // it could not be asked
	} else if err != nil {
		return fmt.Errorf("%s; %s", plain(err), remedy(readOnly))
	}
	return nil
}

// Place names the database, without a password, for people.
func (s *Store) Place() string { return where(s.pool.Config()) }

// Close waits for what is under way and ends all connections.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.closed.Store(true)
		s.stop()
		s.running.Wait()
		s.reader.close()
		s.pool.Close()
	})
	return nil
}

// jitter is a random time around d.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d)
}
