package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

const (
	// flightsMax is how many reads of keys are under way at once.
	flightsMax = 3
	// flightMax is how many keys one of them reads.
	flightMax = 256
)

// reader reads single records. What waits at the same moment shares a round trip, and
// who waits for the same key a row.
//
// A read begins after it was asked for: who arrives while one is under way waits for
// the next.
type reader struct {
	// call calls a function with a connection and a context for what it asks.
	call    func(context.Context, func(context.Context, *pgxpool.Conn) error) error
	observe func(Event)

	mu struct {
		sync.Mutex
		next    map[key.Key]*answer // asked for and not begun
		order   []key.Key           // of those, the first first
		flights int
		closed  bool
	}
	running sync.WaitGroup
}

// answer is one record, once done is closed.
type answer struct {
	done   chan struct{}
	record store.Record // shared: its value must not be changed
	err    error
}

func newReader(s *Store) *reader {
	r := &reader{call: s.call, observe: s.observe}
	r.mu.next = map[key.Key]*answer{}
	return r
}

// ask asks for records, and has somebody read them.
func (r *reader) ask(keys ...key.Key) ([]*answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil, store.ErrClosed
	}
	answers := make([]*answer, len(keys))
	for i, k := range keys {
		a := r.mu.next[k]
		if a == nil {
			a = &answer{done: make(chan struct{})}
			r.mu.next[k] = a
			r.mu.order = append(r.mu.order, k)
		}
		answers[i] = a
	}
	if r.mu.flights < flightsMax {
		r.mu.flights++
		r.running.Go(r.fly)
	}
	return answers, nil
}

// wait gives the answer, when it is there, as the caller's own.
func (a *answer) wait(ctx context.Context) (store.Record, error) {
	select {
	case <-a.done:
	case <-ctx.Done():
		return store.Record{}, ctx.Err()
	}
	if a.err != nil {
		return store.Record{}, a.err
	}
	own := a.record
	own.Value = append([]byte(nil), own.Value...)
	return own, nil
}

// fly reads what waits until nothing does.
func (r *reader) fly() {
	for {
		r.mu.Lock()
		n := min(len(r.mu.order), flightMax)
		if n == 0 {
			r.mu.flights--
			r.mu.Unlock()
			return
		}
		keys := append([]key.Key(nil), r.mu.order[:n]...)
		r.mu.order = append(r.mu.order[:0], r.mu.order[n:]...)
		answers := make([]*answer, n)
		for i, k := range keys {
			answers[i] = r.mu.next[k]
			delete(r.mu.next, k)
		}
		r.mu.Unlock()
		err := r.call(context.Background(), func(ctx context.Context, conn *pgxpool.Conn) error {
			began := time.Now()
			defer func() { r.observe(Event{Kind: RoundTrip, Word: "read", Took: time.Since(began), Keys: n}) }()
			return read(ctx, conn, keys, answers)
		})
		for _, a := range answers {
			if err != nil {
				a.err = err
			}
			close(a.done)
		}
	}
}

const selectKeys = `SELECT k.nth, r.version, r.id, r.value
	FROM unnest($1::smallint[], $2::text[]) WITH ORDINALITY AS k (level, path, nth)
	CROSS JOIN LATERAL (SELECT * FROM landfast.records r WHERE r.level = k.level AND r.path = k.path OFFSET 0) r` // OFFSET: each by its key

const selectKey = `SELECT version, id, value FROM landfast.records WHERE level = $1 AND path = $2`

// read fills the answers, as often as it is called: who is not found is absent, and what we have not written is
// the error of whoever asked for that.
func read(ctx context.Context, conn *pgxpool.Conn, keys []key.Key, answers []*answer) error {
	var version, id, value string
	fill := func(nth int) { answers[nth].record, answers[nth].err = decode(keys[nth], version, id, value) }
	for i, k := range keys {
		answers[i].record, answers[i].err = store.Record{Key: k}, nil
	}
	if len(keys) == 1 {
		rows, err := conn.Query(ctx, selectKey, int16(keys[0].Level), keys[0].Path)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			return rows.Err()
		}
		if err := rows.Scan(&version, &id, &value); err != nil {
			return err
		}
		fill(0)
		return nil
	}
	levels, paths := make([]int16, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		levels[i], paths[i] = int16(k.Level), k.Path
	}
	rows, err := conn.Query(ctx, selectKeys, levels, paths)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var nth int
		if err := rows.Scan(&nth, &version, &id, &value); err != nil {
			return err
		}
		fill(nth - 1)
	}
	return rows.Err()
}

func (r *reader) close() {
	r.mu.Lock()
	r.mu.closed = true
	r.mu.Unlock()
	r.running.Wait()
}

// decode makes a record of a row.
func decode(k key.Key, version, id, value string) (store.Record, error) {
	v, err := decodeText(value)
	if err != nil {
		return store.Record{}, fmt.Errorf("%v: %w", k, err)
	}
	incarnation, err := decodeText(id)
	if err != nil {
		return store.Record{}, fmt.Errorf("%v: %w", k, err)
	}
	return store.Record{Key: k, Version: store.Version(version), ID: string(incarnation), Value: v}, nil
}

// Get implements [store.Atomic].
func (s *Store) Get(ctx context.Context, k key.Key) (store.Record, error) {
	if err := ctx.Err(); err != nil {
		return store.Record{}, err
	}
	if !isPath(k.Path) {
		return store.Record{Key: k}, nil // what cannot be held is not there
	}
	answers, err := s.reader.ask(k)
	if err != nil {
		return store.Record{}, err
	}
	return answers[0].wait(ctx)
}

// GetAll implements [store.Gatherer].
func (s *Store) GetAll(ctx context.Context, keys []key.Key) ([]store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records := make([]store.Record, len(keys))
	var held []key.Key
	var at []int
	for i, k := range keys {
		records[i].Key = k
		if isPath(k.Path) { // what cannot be held is not there
			held, at = append(held, k), append(at, i)
		}
	}
	answers, err := s.reader.ask(held...)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		if records[at[i]], err = a.wait(ctx); err != nil {
			return nil, err
		}
	}
	return records, nil
}

const (
	listFrom       = `SELECT path, version, id, value FROM landfast.records WHERE level = $1 AND path >= $2 ORDER BY path LIMIT $3`
	listAfter      = `SELECT path, version, id, value FROM landfast.records WHERE level = $1 AND path > $2 ORDER BY path LIMIT $3`
	listAfterBytes = `SELECT path, version, id, value FROM landfast.records
		WHERE level = $1 AND path >= $2 AND convert_to(path, 'UTF8') > $4 ORDER BY path LIMIT $3`
)

// List implements [store.Atomic].
func (s *Store) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.closed.Load() {
		return nil, store.ErrClosed
	}
	if !isPath(p.Path) {
		return nil, nil // nothing that can be held lies there
	}
	query, from := listFrom, p.Path
	args := []any{int16(p.Level), from, limit}
	if after >= p.Path && after != "" {
		query, from = listAfter, after
		if !isPath(from) { // no path of ours, but it has its place among them
			from = strings.ToValidUTF8(strings.SplitN(after, "\x00", 2)[0], "\xff")
			from, _, _ = strings.Cut(from, "\xff")
			query, args = listAfterBytes, append(args, []byte(after))
		}
		args[1] = from
	}
	var records []store.Record
	err := s.call(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		began := time.Now()
		defer func() { s.answered("list", began, err) }()
		records, err = list(ctx, conn, p, query, args)
		return err
	})
	return records, err
}

func list(ctx context.Context, conn *pgxpool.Conn, p key.Prefix, query string, args []any) ([]store.Record, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var records []store.Record
	for rows.Next() {
		var path, version, id, value string
		if err := rows.Scan(&path, &version, &id, &value); err != nil {
			return nil, err
		}
		k := key.Key{Level: p.Level, Path: path}
		if !p.Covers(k) {
			break
		}
		record, err := decode(k, version, id, value)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	rows.Close()
	return records, rows.Err()
}
