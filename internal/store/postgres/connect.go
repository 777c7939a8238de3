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
// primary any more is closed: the next may lead to the new one.
func release(ctx context.Context, conn *pgxpool.Conn, err error) {
	if stateOf(err) == readOnly {
		_ = conn.Conn().Close(ctx) // whatever becomes of it
	}
	conn.Release()
}

// errForeign: what was read was not written by this store.
var errForeign = errors.New("it was not written by Landfast")

// call calls fn with a connection and a context for what it asks; again on another connection when one
// turns out to be dead, for which ctx must not end what was sent. It must do no harm twice.
func (s *Store) call(ctx context.Context, fn func(context.Context, *pgxpool.Conn) error) error {
	sent, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.ApplyTimeout)
	defer cancel()
	for {
		conn, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		err = fn(sent, conn)
		release(sent, conn, err)
		switch {
		case err == nil, errors.Is(err, errForeign):
			return err
		case !passes(err):
			return fmt.Errorf("postgres: %s", plain(err))
		}
		select {
		case <-time.After(jitter(pause)):
		case <-ctx.Done():
			return ctx.Err()
		case <-sent.Done():
			return fmt.Errorf("%w: %s", store.ErrUnavailable, plain(err))
		}
	}
}
