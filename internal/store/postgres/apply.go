package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

const (
	// pathMax is the longest path, in bytes: PostgreSQL's index holds 2,704 bytes of level and path.
	pathMax = 2600
	// valuesMax is the most bytes of one batch, as its columns hold them: a message has at most 1 GiB.
	valuesMax = 256 << 20
)

// isPath reports whether a path can be held.
func isPath(path string) bool {
	return len(path) <= pathMax && strings.IndexByte(path, 0) < 0 && utf8.ValidString(path)
}

// mode is how a row is locked, from the weakest on. The numbers are those of landfast.apply_1.
type mode int16

const (
	forKeyShare    mode = 1
	forShare       mode = 2
	forNoKeyUpdate mode = 3
	forUpdate      mode = 4
)

// call holds the arguments of landfast.apply_1.
type call struct {
	batch string
	ops   *string

	lockLevel, lockMode []int16
	lockPath            []string

	condKind  []string
	condLevel []int16
	condPath  []string
	condWant  []string

	writeLevel []int16
	writePath  []string
	writeID    []string
	writeValue []string
	writeKind  []int16
}

// The kinds of write. The numbers are those of landfast.apply_1.
const (
	insert     int16 = 1
	remove     int16 = 2
	updateSame int16 = 3 // of a record that keeps its incarnation
	updateAny  int16 = 4
)

// nowhere is a key that no record has: that of a record which cannot be there.
var nowhere = key.Key{}

// newCall translates a valid batch, or gives a store.ErrUnstorable. Where it is strict, rows that are written are locked against
// Live, too, which is needed only where a write changes the incarnation.
func newCall(b store.Batch, strict bool) (*call, error) {
	c := &call{batch: b.ID}
	if len(b.Ops) > 0 {
		text, err := json.Marshal(b.Ops)
		if err != nil {
			return nil, err
		}
		ops := encodeText(text)
		c.ops = &ops
	}
	modes := map[key.Key]mode{}
	strongest := map[key.Level]mode{}
	lock := func(k key.Key, m mode) {
		modes[k] = max(modes[k], m)
		strongest[k.Level] = max(strongest[k.Level], m)
	}
	was := map[key.Key]store.Version{}
	for _, cond := range b.Conds {
		k, want := cond.Key, ""
		switch cond.Kind {
		case store.KindIs:
			was[k], want = cond.Version, string(cond.Version)
			if cond.Version != store.Absent { // what is not there cannot be locked, and its neighbours need not be
				lock(k, forShare)
			}
		case store.KindLive:
			want = encodeText(cond.ID)
			lock(k, forKeyShare)
		case store.KindEmpty:
			lock(k, forUpdate)
			k = key.Key(cond.Prefix)
		}
		if !isPath(k.Path) {
			k = nowhere
		}
		c.condKind = append(c.condKind, string(cond.Kind))
		c.condLevel = append(c.condLevel, int16(k.Level))
		c.condPath = append(c.condPath, k.Path)
		c.condWant = append(c.condWant, want)
	}
	size := len(b.ID)
	writes := slices.Clone(b.Writes)
	slices.SortFunc(writes, func(a, b store.Write) int { return key.Compare(a.Key, b.Key) })
	for _, w := range writes {
		if !isPath(w.Key.Path) {
			return nil, fmt.Errorf("%w: the key %v %.100q has %d bytes, or is no text that PostgreSQL can hold (at most %d bytes of UTF-8)",
				store.ErrUnstorable, w.Key.Level, w.Key.Path, len(w.Key.Path), pathMax)
		}
		kind := updateSame
		switch isNew := was[w.Key] == store.Absent; {
		case isNew && w.Delete:
			continue // nothing is there, and nothing will be
		case isNew:
			kind = insert
		case w.Delete:
			kind = remove
			lock(w.Key, forUpdate)
		case strict:
			kind = updateAny
			lock(w.Key, forUpdate)
		default:
			lock(w.Key, forNoKeyUpdate)
		}
		c.writeLevel = append(c.writeLevel, int16(w.Key.Level))
		c.writePath = append(c.writePath, w.Key.Path)
		c.writeID = append(c.writeID, encodeText(w.ID))
		var value string
		if size+len(w.Value) <= valuesMax {
			value = encodeText(w.Value)
		}
		c.writeValue = append(c.writeValue, value)
		c.writeKind = append(c.writeKind, kind)
		if size += max(len(w.Value), len(value)); size > valuesMax {
			return nil, fmt.Errorf("%w: the values of the batch are too large together (at most %d bytes)", store.ErrUnstorable, valuesMax)
		}
	}
	keys := make([]key.Key, 0, len(modes))
	for k := range modes {
		if isPath(k.Path) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, key.Compare)
	if planted.Is(planted.LocksAsAsked) {
		keys = keys[:0]
		for _, cond := range b.Conds {
			if modes[cond.Key] > 0 {
				keys = append(keys, cond.Key)
			}
		}
	}
	for _, k := range keys {
		c.lockLevel = append(c.lockLevel, int16(k.Level))
		c.lockPath = append(c.lockPath, k.Path)
		c.lockMode = append(c.lockMode, int16(strongest[k.Level]))
	}
	return c, nil
}

const applySQL = `SELECT landfast.apply_1($1, $2, $3, $4, $5::smallint[], $6::text[], $7::smallint[],
	$8::text[], $9::smallint[], $10::text[], $11::text[], $12::smallint[], $13::text[], $14::text[], $15::text[], $16::smallint[])`

func (c *call) send(ctx context.Context, conn *pgx.Conn, waiter string, wait time.Duration) (failed []int32, err error) {
	err = conn.QueryRow(ctx, applySQL, c.batch, c.ops, waiter, max(1, wait.Milliseconds()), c.lockLevel, c.lockPath, c.lockMode,
		c.condKind, c.condLevel, c.condPath, c.condWant, c.writeLevel, c.writePath, c.writeID, c.writeValue, c.writeKind).Scan(&failed)
	return failed, err
}

// look is how long the first attempt waits for a row: the least that PostgreSQL knows.
const look = time.Millisecond

// Apply implements [store.Atomic]. A *store.BlockedError says that another transaction has
// locked a row for longer than a slice.
func (s *Store) Apply(ctx context.Context, b store.Batch) (err error) {
	began := time.Now()
	defer func() { s.ended(began, err) }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := b.Validate(); err != nil {
		return err
	}
	waiting, cancel := store.Waiting(ctx)
	defer cancel()
	err = s.apply(waiting, b)
	if waiting.Err() != nil && ctx.Err() == nil && errors.Is(err, waiting.Err()) {
		return s.blocked("all who use the connections to PostgreSQL")
	}
	return err
}

// apply waits no longer than ctx lasts before it sends something.
func (s *Store) apply(ctx context.Context, b store.Batch) error {
	err := s.try(ctx, b, look)
	if !isLocked(err) {
		return err
	}
	s.observe(Event{Kind: RowLocked})
	if s.options.NoWait {
		return s.blocked("a transaction that has locked a row, which was not to be waited for,")
	}
	until := time.Now().Add(s.options.Slice)
	timeout := time.NewTimer(s.options.Slice)
	defer timeout.Stop()
	select {
	case s.slices <- struct{}{}:
		defer func() { <-s.slices }()
	case <-timeout.C:
		return s.blocked("a transaction that has locked a row")
	case <-ctx.Done():
		return ctx.Err()
	}
	if end, ok := ctx.Deadline(); ok {
		until = earlier(until, end)
	}
	wait := time.Now()
	err = s.try(ctx, b, time.Until(until))
	s.observe(Event{Kind: SliceEnded, Took: time.Since(wait)})
	if isLocked(err) {
		return s.blocked("a transaction that has locked a row")
	}
	return err
}

func (s *Store) blocked(by string) error {
	return &store.BlockedError{By: by, Until: time.Now().Add(jitter(s.options.RetryInterval))}
}

// isLocked reports whether a wait was in vain. One that ends in the moment in which the lock is free is
// a canceled query to PostgreSQL. So is one that statement_timeout has ended.
func isLocked(err error) bool {
	state := stateOf(err)
	return state == lockNotAvailable || state == queryCanceled && refused(err)
}

// triesMax bounds the attempts after each of which somebody else has got on, or a connection
// turned out to be dead.
const triesMax = 10

// try sends a batch, and again while somebody was quicker in making one of its records. Its error
// is one of Apply, or isLocked.
func (s *Store) try(ctx context.Context, b store.Batch, wait time.Duration) error {
	strict := false
	for range triesMax {
		c, err := newCall(b, strict)
		if err != nil {
			return err
		}
		conn, over, err := s.turn(ctx)
		if err != nil {
			return err
		}
		sent, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.ApplyTimeout)
		began := time.Now()
		var failed []int32
		err = s.patiently(sent, conn, wait, func(conn *pgx.Conn) (err error) {
			failed, err = c.send(sent, conn, s.batchName(ctx, b), wait)
			return err
		})
		s.answered("apply", began, err)
		if err == nil && len(failed) == 0 {
			s.unanswered.Store(false) // it is committed, and where it must be
		}
		cancel()
		over()
		switch state := stateOf(err); {
		case err == nil:
			return verdict(b, failed)
		case notSent(err):
			continue
		case !refused(err):
			return fmt.Errorf("%w: %s", store.ErrOutcomeUnknown, plain(err))
		case state == madeMeanwhile, state == uniqueViolation:
			strict = true
		case state == serializationFailure, state == deadlockDetected:
			return s.blocked("a transaction that was in its way")
		case isLocked(err):
			return err
		case state == idForgotten:
			return errForgotten
		default:
			return definite(err)
		}
	}
	return s.blocked("others who make the same records")
}

// turn gives a connection for a batch, when it is its turn, which the caller ends.
func (s *Store) turn(ctx context.Context) (conn *pgxpool.Conn, over func(), err error) {
	for !s.unanswered.Load() {
		if conn, err = s.acquire(ctx); err != nil {
			return nil, nil, err
		}
		if !s.unanswered.Load() {
			return conn, func() {}, nil
		}
		conn.Release() // since it was asked for there is a batch without an answer
	}
	if over, err = s.goAlone(ctx); err != nil {
		return nil, nil, err
	}
	if conn, err = s.behindCrowd(ctx); err != nil {
		over()
		return nil, nil, err
	}
	return conn, over, nil
}

// behindCrowd gives a connection for a batch once fewer of those that were given up are still under way than may be. It
// waits for that as long as for a connection.
func (s *Store) behindCrowd(ctx context.Context) (*pgxpool.Conn, error) {
	for end := time.Now().Add(s.options.Patience); ; {
		conn, err := s.acquire(ctx)
		if err != nil {
			return nil, err
		}
		crowded, err := s.isCrowded(ctx, conn)
		switch {
		case err == nil && !crowded:
			return conn, nil
		case err == nil:
			s.release(ctx, conn, nil)
		case !passes(err):
			return nil, definite(err)
		}
		select {
		case <-time.After(jitter(s.options.RetryInterval)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if time.Now().After(end) {
			return nil, errCommitsNothing
		}
	}
}

// isCrowded reports whether as many batches of this instance as may be are under way in PostgreSQL without an answer. A
// backend that waits for a synchronous standby, or for its disk, does not see that its client is gone: each batch that was given up
// keeps one, so their number is PostgreSQL's to tell. conn is released after an error.
func (s *Store) isCrowded(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
	if planted.Is(planted.CrowdUncounted) {
		return false, nil
	}
	sent, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.askTimeout())
	defer cancel()
	var stuck int
	err := conn.QueryRow(sent, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND usename = current_user AND starts_with(application_name, $1)
		AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Lock' AND query_start < clock_timestamp() - $2 * interval '1 millisecond'`,
		s.options.sessionName()+" ", s.askTimeout().Milliseconds()).Scan(&stuck)
	if err != nil {
		s.release(sent, conn, err)
	}
	return stuck >= s.options.Connections/2, err
}

var errCommitsNothing = fmt.Errorf("%w: the server commits nothing; does a synchronous standby hang (pg_stat_replication), or its disk?", store.ErrUnavailable)

// goAlone waits until no other batch is under way that does.
func (s *Store) goAlone(ctx context.Context) (over func(), err error) {
	patience := time.NewTimer(s.options.Patience)
	defer patience.Stop()
	select {
	case s.alone <- struct{}{}:
		return func() { <-s.alone }, nil
	case <-patience.C:
		return nil, errCommitsNothing
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// patiently sends a batch on a connection, and releases that. One whose answer takes long, beside the time that it may wait for
// rows, leaves the pool, and waits beside it: reads go on, also where all connections have gone silent with a batch.
func (s *Store) patiently(ctx context.Context, conn *pgxpool.Conn, wait time.Duration, send func(*pgx.Conn) error) error {
	raw := conn.Conn() // the pool's is not looked at while it may be taken away
	var mu sync.Mutex
	answered, left := false, false
	long := time.AfterFunc(s.askTimeout()+wait, func() {
		mu.Lock()
		defer mu.Unlock()
		if !answered {
			conn.Hijack()
			left = true
			s.unanswered.Store(true)
		}
	})
	err := uncanceled(raw, func() error { return send(raw) })
	long.Stop()
	mu.Lock()
	answered = true
	mu.Unlock()
	switch {
	case !left:
		s.release(ctx, conn, err)
	case raw.IsClosed():
		s.doubtOthers(ctx)
	default:
		_ = raw.Close(ctx) // it has answered
	}
	return err
}

var errForgotten = fmt.Errorf("%w: the id is older than the store remembers", store.ErrOutcomeUnknown)

// verdict translates the numbers of the conditions that did not hold.
func verdict(b store.Batch, failed []int32) error {
	if len(failed) == 0 {
		return nil
	}
	conflict := &store.ConflictError{}
	slices.SortFunc(failed, cmp.Compare)
	for _, n := range failed {
		if n > 0 {
			conflict.Conds = append(conflict.Conds, b.Conds[n-1])
		}
	}
	return conflict
}

// Outcome implements [store.Atomic]. It waits in memory for a batch that is just being committed.
func (s *Store) Outcome(ctx context.Context, b store.Batch) (store.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	limit := time.Now().Add(s.options.ApplyTimeout)
	for wait := s.askTimeout(); ; wait *= 2 {
		acquire := s.acquire
		if s.unanswered.Load() {
			acquire = s.behindCrowd // it writes, too
		}
		conn, err := acquire(ctx)
		if errors.Is(err, errCommitsNothing) && time.Now().Before(limit) {
			continue
		}
		if err != nil {
			return 0, err
		}
		sent, cancel := context.WithDeadline(context.WithoutCancel(ctx), earlier(limit, time.Now().Add(wait)))
		var applied bool
		began := time.Now()
		err = uncanceled(conn.Conn(), func() error {
			return conn.QueryRow(sent, `SELECT landfast.outcome_1($1, $2, $3)`, b.ID, s.batchName(ctx, b), look.Milliseconds()).Scan(&applied)
		})
		s.answered("outcome", began, err)
		if err == nil || sent.Err() != nil {
			s.unanswered.Store(err != nil)
		}
		s.release(sent, conn, err)
		cancel()
		state := stateOf(err)
		switch {
		case err == nil && applied:
			return store.Applied, nil
		case err == nil:
			return store.NotApplied, nil
		case state == idForgotten:
			return 0, errForgotten
		case !passes(err) && state != uniqueViolation:
			return 0, definite(err)
		case time.Now().After(limit):
			return 0, fmt.Errorf("%w: nor can it be asked now: %s", store.ErrOutcomeUnknown, plain(err))
		}
		select { // asking twice does no harm
		case <-time.After(jitter(s.options.RetryInterval)):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
