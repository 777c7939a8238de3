package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// pause is about how long is waited before a server that could not be reached is tried again.
const pause = 50 * time.Millisecond

// acquire gives a connection that the caller releases. While all are busy, or the server cannot be
// reached, it waits, as long as ctx lasts and Options.Patience. Its errors are ctx's, store.ErrClosed and
// store.ErrUnavailable.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, s.options.Patience)
	defer cancel()
	why := "no connection became free: all are busy (postgres.max_connections), or the server does not answer"
	for {
		conn, err := s.pool.Acquire(limited)
		switch {
		case err == nil && s.isAlive(limited, conn):
			return conn, nil
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case s.closed.Load():
			return nil, store.ErrClosed
		case limited.Err() == nil:
			why = plain(err)
		}
		if passes(err) {
			select {
			case <-time.After(jitter(pause)):
				continue
			case <-limited.Done():
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %s", store.ErrUnavailable, why)
	}
}

const (
	// idleMax is for how long a connection may have been idle that is used without a look at it.
	idleMax = time.Second
	// pingTimeout is how long it may take to answer then.
	pingTimeout = time.Second
)

// isAlive looks whether a connection that was idle still answers, and gives it up otherwise: what stands
// between may have forgotten it, or the host be gone.
func (s *Store) isAlive(ctx context.Context, conn *pgxpool.Conn) bool {
	if time.Since(linkOf(conn.Conn()).used) <= idleMax {
		return true
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout) // who leaves has not been kept waiting by it
	defer cancel()
	err := conn.Ping(limited)
	if err != nil {
		s.giveUp(ctx, conn, limited.Err() != nil)
	}
	return err == nil
}

// release gives a connection back after a call that ended with err, under ctx. One to a server that is no
// primary any more is closed: the next may lead to the new one.
func (s *Store) release(ctx context.Context, conn *pgxpool.Conn, err error) {
	linkOf(conn.Conn()).used = time.Now()
	if stateOf(err) == readOnly {
		_ = conn.Conn().Close(ctx) // whatever becomes of it
	}
	if conn.Conn().IsClosed() {
		s.giveUp(ctx, conn, err != nil && ctx.Err() != nil)
		return
	}
	conn.Release()
}

// giveUp takes a connection that has ended out of the pool, which would keep its place for up to 15 s while its
// end is said and listened for.
func (s *Store) giveUp(ctx context.Context, conn *pgxpool.Conn, silent bool) {
	conn.Hijack()
	if silent {
		s.doubtOthers(ctx)
	}
}

// doubtOthers closes the other connections, those in use after that, for one was silent and they are as old; not where
// the server is slow to everybody. It looks at that once in a while only.
func (s *Store) doubtOthers(ctx context.Context) {
	now, last := time.Now(), s.doubted.Load()
	if last != nil && now.Sub(*last) < s.options.ApplyTimeout || !s.doubted.CompareAndSwap(last, &now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	fresh, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return
	}
	_ = fresh.Close(ctx) // it has answered
	s.pool.Reset()
}

// link is what we remember of a connection.
type link struct {
	used time.Time
	// closed says that no other connection is made on its account: see [withLink].
	closed atomic.Bool
}

// linkKey is its place in what pgx keeps for us.
const linkKey = "link"

func linkOf(conn *pgx.Conn) *link {
	return conn.PgConn().CustomData()[linkKey].(*link)
}

var errNoRequest = errors.New("no cancel request is sent on account of a batch")

// withLink makes a link for a connection that is about to be made.
//
// When an answer takes too long pgx asks the server, on a connection of its own, to cancel what it does. A batch must
// not be canceled: one that waits for a synchronous standby is committed, and would be let go and be
// seen by others, although it is not where synchronous_commit wants it.
func withLink(_ context.Context, c *pgx.ConnConfig) error {
	l := &link{used: time.Now()}
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if l.closed.Load() {
			return nil, errNoRequest
		}
		return dial(ctx, network, addr)
	}
	c.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[linkKey] = l
		return nil
	}
	return nil
}

// uncanceled runs a call that must not be canceled when its answer does not come.
func uncanceled(conn *pgx.Conn, call func() error) error {
	l := linkOf(conn)
	l.closed.Store(!planted.Is(planted.BatchCanceled))
	err := call()
	if !conn.IsClosed() {
		l.closed.Store(false)
	}
	return err
}

// errForeign: what was read was not written by this store.
var errForeign = errors.New("it was not written by Landfast")

// askTimeout is how long the first attempt waits for the answer to a question that may be asked again,
// on another connection: a network may swallow what is sent and never say so.
func (s *Store) askTimeout() time.Duration { return s.options.ApplyTimeout / 10 }

// call calls fn with a connection and a context for what it asks; again on another connection when one
// turns out to be dead, or silent, for which ctx must not end what was sent. It must do no harm twice.
func (s *Store) call(ctx context.Context, fn func(context.Context, *pgxpool.Conn) error) error {
	limit := time.Now().Add(s.options.ApplyTimeout)
	for wait := s.askTimeout(); ; wait *= 2 { // an answer may also be slow
		conn, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		sent, cancel := context.WithDeadline(context.WithoutCancel(ctx), earlier(limit, time.Now().Add(wait)))
		err = fn(sent, conn)
		s.release(sent, conn, err)
		cancel()
		switch {
		case err == nil, errors.Is(err, errForeign):
			return err
		case !passes(err):
			return fmt.Errorf("postgres: %s", plain(err))
		}
		select {
		case <-time.After(min(jitter(pause), time.Until(limit))):
		case <-ctx.Done():
			return ctx.Err()
		}
		if !time.Now().Before(limit) {
			return fmt.Errorf("%w: %s", store.ErrUnavailable, plain(err))
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
