package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// forgetEvery is how often batch ids are forgotten.
	forgetEvery = time.Minute
	// forgetMost is how many are at a time.
	forgetMost = 5000
)

// Both by the database's clock: the instances' own need not agree.
const (
	forgetSQL    = `SELECT coalesce(landfast.forget_1(landfast.id_1(now() - make_interval(secs => $1)), $2), 0)`
	forgottenSQL = `SELECT greatest(m.value, landfast.id_1(now())) FROM landfast.meta m WHERE m.key = 'forgotten'`
)

// forget drops the ids of old batches until ctx is done. Of several instances one does it at a time.
func (s *Store) forget(ctx context.Context) {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.forgetOld(ctx); err != nil && ctx.Err() == nil {
			s.options.Log.Warn("old batch ids could not be forgotten; it is tried again", "error", plain(err))
		}
	}
}

// forgetOld is one round.
func (s *Store) forgetOld(ctx context.Context) error {
	for {
		var n int
		if err := s.call(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return conn.QueryRow(ctx, forgetSQL, s.options.Retention.Seconds(), forgetMost).Scan(&n)
		}); err != nil {
			return err
		}
		if n < forgetMost {
			return s.tellForgotten(ctx)
		}
	}
}

func (s *Store) tellForgotten(ctx context.Context) error {
	var id string
	if err := s.call(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, forgottenSQL).Scan(&id)
	}); err != nil {
		return err
	}
	s.options.Forgot(id)
	return nil
}
