package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// Store is an open file. It is safe for concurrent use.
type Store struct {
	path    string
	options Options
	queue   *queue
	readers chan *conn // those that are idle
	copying *conn      // the checkpointer's
	cache   *cache
	writer  *writer
	running sync.WaitGroup // the writer, until it has answered its last request, and the checkpointer

	close    sync.Once
	closeErr error
}

var _ store.Atomic = (*Store)(nil)

// opened holds the path of each file that this process has open. Looking into a
// file that is open already would drop SQLite's locks on it: POSIX gives them up
// when any descriptor of the file is closed.
var opened struct {
	sync.Mutex
	paths map[string]bool
}

// Open opens the file at path and creates it if there is none; its directory
// must exist. It takes a few milliseconds, or as long as recovering the log of a
// process that was killed. The caller closes the store.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := open(path, options.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("embedded: open %s: %w", path, explain(err))
	}
	return s, nil
}

func open(path string, options Options) (_ *Store, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	opened.Lock()
	if opened.paths[path] {
		opened.Unlock()
		return nil, ErrInUse
	}
	if opened.paths == nil {
		opened.paths = map[string]bool{}
	}
	opened.paths[path] = true
	opened.Unlock()

	s := &Store{
		path:    path,
		options: options,
		queue:   newQueue(options.Queue),
		readers: make(chan *conn, options.Readers),
		cache:   newCache(options.CacheBytes),
	}
	var writing *conn
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release(len(s.readers), s.copying, writing))
		}
	}()
	if err = create(path); err != nil {
		return nil, err
	}
	if writing, err = dial(path, false); err != nil {
		return nil, err
	}
	if err = prepare(writing, options); err != nil {
		return nil, err
	}
	if s.copying, err = dial(path, false); err != nil {
		return nil, err
	}
	for range options.Readers {
		c, err := dial(path, true)
		if err != nil {
			return nil, err
		}
		s.readers <- c
	}
	if s.writer, err = newWriter(path, options, writing, s.cache); err != nil {
		return nil, err
	}
	s.running.Go(func() { s.writer.checkpointer.run(s.copying, s.queue.closing, options.Log) })
	s.running.Go(func() {
		for group := s.queue.take(options.GroupBatches, options.GroupBytes); len(group) > 0; {
			s.writer.answerGroup(group, false)
			group = s.queue.take(options.GroupBatches, options.GroupBytes)
		}
	})
	return s, nil
}

// Close applies what is queued, waits for reads and backups under way, and closes
// the file. Later calls answer store.ErrClosed. It may be called more than once.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.queue.close()
		s.running.Wait()
		s.closeErr = s.release(s.options.Readers, s.copying, s.writer.conn)
	})
	return s.closeErr
}

// release closes the readers before those that write: the last connection to leave
// empties the log, which a read-only one cannot.
func (s *Store) release(readers int, writing ...*conn) error {
	var errs []error
	for range readers {
		errs = append(errs, (<-s.readers).close())
	}
	for _, c := range writing {
		if c != nil {
			errs = append(errs, c.close())
		}
	}
	opened.Lock()
	delete(opened.paths, s.path)
	opened.Unlock()
	return errors.Join(errs...)
}

// Apply is that of [store.Atomic]. It answers after the COMMIT of the batch's
// group, even a batch that conflicts.
func (s *Store) Apply(ctx context.Context, b store.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	r := newRequest(b.ID, &b)
	if err := s.queue.put(ctx, r); err != nil {
		return fmt.Errorf("embedded: apply %s: %w", b.ID, err)
	}
	limit := time.NewTimer(s.options.ApplyTimeout)
	defer limit.Stop()
	select {
	case answer := <-r.answer:
		if answer.err != nil {
			return fmt.Errorf("embedded: apply %s: %w", b.ID, explain(answer.err))
		}
		return nil
	case <-limit.C:
		return fmt.Errorf("embedded: apply %s: no answer after %v: %w", b.ID, s.options.ApplyTimeout, store.ErrOutcomeUnknown)
	}
}

// Outcome is that of [store.Atomic]. It is settled in turn with the batches
// before it, and is durable when it answers.
func (s *Store) Outcome(ctx context.Context, b store.Batch) (store.Outcome, error) {
	r := newRequest(b.ID, nil)
	if err := s.queue.put(ctx, r); err != nil {
		return 0, fmt.Errorf("embedded: outcome of %s: %w", b.ID, err)
	}
	select {
	case answer := <-r.answer:
		if answer.err != nil {
			return 0, fmt.Errorf("embedded: outcome of %s: %w", b.ID, answer.err)
		}
		return answer.outcome, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("embedded: outcome of %s: %w", b.ID, ctx.Err())
	}
}

// Get is that of [store.Atomic].
func (s *Store) Get(ctx context.Context, k key.Key) (store.Record, error) {
	if err := s.readable(ctx); err != nil {
		return store.Record{}, fmt.Errorf("embedded: get %v: %w", k, err)
	}
	for {
		known, ok, generation := s.cache.look(k)
		if ok {
			return known.record(k), nil
		}
		err := s.read(ctx, func(c *conn) (err error) {
			known, err = find(c, k)
			return err
		})
		if err != nil {
			return store.Record{}, fmt.Errorf("embedded: get %v: %w", k, explain(err))
		}
		if s.cache.offer(k, known, generation) {
			return known.record(k), nil
		} // else the writer overtook this read
	}
}

// find reads what the file says of k.
func find(c *conn, k key.Key) (content, error) {
	var found content
	_, err := c.first("SELECT version, id, value FROM records WHERE level = ? AND path = ?",
		[]any{int64(k.Level), k.Path}, (*string)(&found.version), &found.id, &found.value)
	return found, err
}

// List is that of [store.Atomic].
func (s *Store) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("embedded: list %v: limit %d is below 1", p, limit)
	}
	from := p.Path
	if after != "" && after >= from {
		from = after + "\x00" // the least path behind it
	}
	var found []store.Record
	err := s.read(ctx, func(c *conn) error {
		rows, err := c.query("SELECT path, version, id, value FROM records WHERE level = ? AND path >= ? ORDER BY path LIMIT ?",
			int64(p.Level), from, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		var path, version, id string
		var value []byte
		row := []any{&path, &version, &id, &value}
		for rows.Next() && ctx.Err() == nil {
			if err := rows.Scan(row...); err != nil {
				return err
			}
			if !strings.HasPrefix(path, p.Path) {
				break // what is covered lies together
			}
			found = append(found, store.Record{
				Key: key.Key{Level: p.Level, Path: path}, Version: store.Version(version), ID: id, Value: value,
			})
		}
		return errors.Join(rows.Err(), ctx.Err())
	})
	if err != nil {
		return nil, fmt.Errorf("embedded: list %v: %w", p, explain(err))
	}
	s.cache.listed(p, from, found, len(found) == limit)
	return found, nil
}

// readable tells why nothing can be read any more.
func (s *Store) readable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.queue.closing: // before the lottery between ready cases
		return store.ErrClosed
	default:
		return nil
	}
}

// read lends an idle reader to do.
func (s *Store) read(ctx context.Context, do func(*conn) error) error {
	if err := s.readable(ctx); err != nil {
		return err
	}
	select {
	case c := <-s.readers:
		defer func() { s.readers <- c }()
		return do(c)
	case <-s.queue.closing:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
