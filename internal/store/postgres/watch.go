package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

// Event is one thing that a store tells [Options.Observe]. Its fields beside Kind and Word are
// zero where they do not fit.
type Event struct {
	Kind EventKind
	Word string        // which of the kind: one of few words of ours
	Took time.Duration // of a batch, a round trip or a slice
	Keys int           // of a read
}

// EventKind is what happened.
type EventKind int

const (
	// BatchEnded says that Apply has returned. The words are applied, conflict, blocked, unavailable, unknown and failed.
	BatchEnded EventKind = iota
	// RoundTrip says that the database has answered. The words are apply, outcome, read and list.
	RoundTrip
	// RowLocked says that the first attempt of a batch found a row that another transaction had locked.
	RowLocked
	// SliceEnded says that a batch has waited for such a row on a connection.
	SliceEnded
	// Undone says that PostgreSQL undid a batch in favour of another transaction. The words are deadlock and serialization.
	Undone
)

func (s *Store) observe(e Event) {
	if s.options.Observe != nil {
		s.options.Observe(e)
	}
}

// ended tells how Apply, which began then, has ended.
func (s *Store) ended(began time.Time, err error) {
	var (
		conflict *store.ConflictError
		blocked  *store.BlockedError
	)
	word := "failed"
	switch {
	case err == nil:
		word = "applied"
	case errors.As(err, &conflict):
		word = "conflict"
	case errors.As(err, &blocked):
		word = "blocked"
	case errors.Is(err, store.ErrOutcomeUnknown):
		word = "unknown"
	case errors.Is(err, store.ErrUnavailable):
		word = "unavailable"
	}
	s.observe(Event{Kind: BatchEnded, Word: word, Took: time.Since(began)})
}

// answered tells of a round trip that began then, and of what PostgreSQL undid in it.
func (s *Store) answered(word string, began time.Time, err error) {
	s.observe(Event{Kind: RoundTrip, Word: word, Took: time.Since(began)})
	switch stateOf(err) {
	case deadlockDetected:
		s.observe(Event{Kind: Undone, Word: "deadlock"})
	case serializationFailure:
		s.observe(Event{Kind: Undone, Word: "serialization"})
	}
}

// Connections is how the pool is used.
type Connections struct {
	Open, InUse, Idle, Max int
	// Opened counts all that were ever opened. A server that is left alone opens one an hour for each.
	Opened int64
	// Waits counts those who found none idle, Waited is how long they waited all together.
	Waits  int64
	Waited time.Duration
}

// Connections tells how the pool is used at this moment.
func (s *Store) Connections() Connections {
	p := s.pool.Stat()
	return Connections{
		Open: int(p.TotalConns()), InUse: int(p.AcquiredConns()), Idle: int(p.IdleConns()), Max: int(p.MaxConns()),
		Opened: p.NewConnsCount(), Waits: p.EmptyAcquireCount(), Waited: p.EmptyAcquireWaitTime(),
	}
}

// Sessions are told apart by their application_name, of which PostgreSQL shows 63 bytes:
// "landfast INSTANCE", and in a batch "landfast INSTANCE OPERATION REQUEST", cut where it is too long.
const (
	program      = "landfast"
	nameMax      = 63
	operationMax = 14 // still tells all operations apart
)

// sessionName is who we are in pg_stat_activity while we do nothing.
func (o Options) sessionName() string { return program + " " + o.Name }

// batchName is who we are in pg_stat_activity in a batch.
func (s *Store) batchName(ctx context.Context, b store.Batch) string {
	owner := lock.OwnerFrom(ctx)
	if owner.Op == "" && len(b.Ops) > 0 {
		owner.Op = b.Ops[0].Name
	}
	if owner.Op == "" {
		owner.Op = "-"
	}
	name := strings.TrimRight(fmt.Sprintf("%s %.*s %s", s.options.sessionName(), operationMax, owner.Op, owner.RequestID), " ")
	return name[:min(len(name), nameMax)]
}

// Session is a connection to the database that waits for what another has locked, or is in
// somebody's way, or may be. The times are 0, and the texts beside Application empty, where
// PostgreSQL does not show them to our user.
type Session struct {
	PID int
	// Instance is empty for one that is not Landfast's. Operation and Request are empty outside a
	// batch. They may be cut: Operation after 14 bytes, Request after what fits in 63 with the others.
	Instance, Operation, Request string

	User, Application, Address string
	State                      string        // as in pg_stat_activity: active, idle in transaction, ...
	WaitEvent                  string        // what it waits for: transactionid and tuple are rows
	Transaction                time.Duration // how long ago it began
	Statement                  time.Duration // how long ago the last one began
	// BlockedBy are the sessions that it waits for; 0 stands for a prepared transaction.
	BlockedBy []int
}

// Who has a lock on one of our tables that can be in a batch's way, or waits for one; who is in
// the way of these; for each of them who is in its own. pg_blocking_pids is asked only for those who wait, because
// it stops PostgreSQL's lock table for a moment.
const sessionsSQL = `
WITH held AS MATERIALIZED (
	SELECT l.pid, bool_or(NOT l.granted) AS waits
	FROM pg_locks l
	GROUP BY l.pid
	HAVING l.pid <> pg_backend_pid() AND bool_or(l.locktype = 'relation' AND l.mode <> 'AccessShareLock'
		AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
		AND l.relation IN (SELECT c.oid FROM pg_class c WHERE c.relnamespace = to_regnamespace('landfast') AND c.relkind = 'r'))
), chained AS MATERIALIZED (
	SELECT h.pid, CASE WHEN h.waits THEN pg_blocking_pids(h.pid) ELSE '{}' END AS blocked_by FROM held h
)
SELECT s.pid, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''), coalesce(a.state, ''), coalesce(a.wait_event, ''),
	coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::float8, coalesce(extract(epoch FROM clock_timestamp() - a.query_start), 0)::float8,
	coalesce(c.blocked_by, '{}')::integer[]
FROM (SELECT pid FROM chained UNION SELECT unnest(blocked_by) FROM chained) s
JOIN pg_stat_activity a ON a.pid = s.pid
LEFT JOIN chained c ON c.pid = s.pid
WHERE a.backend_type = 'client backend' OR s.pid IN (SELECT unnest(blocked_by) FROM chained)
ORDER BY a.xact_start NULLS LAST, s.pid
LIMIT 1000`

// Sessions are those that have locked something of the catalog, or wait for it, at this moment: of all
// instances, and of others. Whoever only reads is not among them. The oldest transaction comes first.
func (s *Store) Sessions(ctx context.Context) ([]Session, error) {
	var sessions []Session
	err := s.call(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		sessions, err = readSessions(ctx, conn)
		return err
	})
	return sessions, err
}

func readSessions(ctx context.Context, conn *pgxpool.Conn) ([]Session, error) {
	rows, err := conn.Query(ctx, sessionsSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var sessions []Session
	for rows.Next() {
		var (
			one                    Session
			transaction, statement float64
		)
		if err := rows.Scan(&one.PID, &one.User, &one.Application, &one.Address, &one.State, &one.WaitEvent, &transaction, &statement, &one.BlockedBy); err != nil {
			return nil, err
		}
		one.Transaction, one.Statement = seconds(transaction), seconds(statement)
		slices.Sort(one.BlockedBy) // several processes of one session are named one by one
		one.BlockedBy = slices.Compact(one.BlockedBy)
		if words := strings.Split(one.Application, " "); words[0] == program && len(words) >= 2 {
			one.Instance = words[1]
			if len(words) == 4 {
				one.Operation, one.Request = words[2], words[3]
			} else if len(words) == 3 {
				one.Operation = words[2]
			}
		}
		sessions = append(sessions, one)
	}
	rows.Close()
	return sessions, rows.Err()
}

func seconds(s float64) time.Duration { return max(0, time.Duration(s*float64(time.Second))) }
