package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

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
		case err == nil:
			return conn, nil
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

// release gives a connection back after a call that ended with err. One to a server that is no
// primary any more is closed: the next may lead to the new one. One that gave no answer is not waited for.
func (s *Store) release(ctx context.Context, conn *pgxpool.Conn, err error) {
	switch {
	case stateOf(err) == readOnly:
		_ = conn.Conn().Close(ctx) // whatever becomes of it
	case err != nil && ctx.Err() != nil && conn.Conn().IsClosed():
		// The pool would keep its place for 15 s, while its end is said and listened for.
		_ = conn.Hijack().PgConn().Conn().Close()
		s.doubtOthers()
		return
	}
	conn.Release()
}

const (
	// idleMax is for how long a connection may have been idle that is used without a look at it.
	idleMax = time.Second
	// pingTimeout is how long it may take to answer then.
	pingTimeout = time.Second
)

// isDead reports whether a connection that was idle gives no answer any more: what stands between has
// forgotten it, or the host is gone. The pool asks before it gives one out.
func (s *Store) isDead(ctx context.Context, p pgxpool.ShouldPingParams) bool {
	if p.IdleDuration <= idleMax {
		return false
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	if p.Conn.Ping(limited) == nil {
		return false
	}
	if limited.Err() != nil {
		_ = p.Conn.PgConn().Conn().Close() // its end is not waited for either
		s.doubtOthers()
	}
	return true
}

// doubtOthers closes the connections that are idle now, and the others after use, for one was silent and
// they are as old. It does so once in a while only: the server may just be slow.
func (s *Store) doubtOthers() {
	now, last := time.Now(), s.doubted.Load()
	if (last == nil || now.Sub(*last) >= s.options.ApplyTimeout) && s.doubted.CompareAndSwap(last, &now) {
		s.pool.Reset()
	}
}

// errForeign: what was read was not written by this store.
var errForeign = errors.New("it was not written by Landfast")

// askTimeout is how long the first attempt waits for the answer to a question that may be asked again,
// on another connection: a network may swallow what is sent and never say so.
func (s *Store) askTimeout() time.Duration { return s.options.ApplyTimeout / 4 }

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
