package embedded

import (
	"errors"
	"fmt"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// writer applies groups of requests. One goroutine uses it.
type writer struct {
	path         string
	options      Options
	cache        *cache
	conn         *conn // nil when the last one failed and no new one could be had
	pruner       pruner
	checkpointer *checkpointer
	broken       error // an fsync failed: nothing is written any more

	// What is known of the file as long as conn lives and nobody else writes in it.
	dataVersion int    // SQLite's; it changes when others have written
	forgotten   string // the greatest batch id that was forgotten
	// unsynced are the paths of all records of key.Unsynced. They are few, and every batch that brings small files
	// asks whether its own, which is new, is there: that it is not need not be looked up.
	unsynced map[string]bool

	// The seams at which tests inject faults: dial makes a connection to path,
	// commit ends the transaction that is open on one.
	dial   func(path string, readOnly bool) (*conn, error)
	commit func(*conn) error
}

func newWriter(path string, options Options, c *conn, kept *cache) (*writer, error) {
	w := &writer{
		path:         path,
		options:      options,
		cache:        kept,
		pruner:       pruner{retention: options.Retention},
		checkpointer: newCheckpointer(),
		dial:         dial,
		commit:       func(c *conn) error { return c.exec("COMMIT") },
	}
	return w, w.adopt(c)
}

// adopt makes c the connection, and learns what is known of its file.
func (w *writer) adopt(c *conn) (err error) {
	w.conn = c
	if _, err = c.first("PRAGMA data_version", nil, &w.dataVersion); err != nil {
		return err
	}
	if w.forgotten, err = readForgotten(c); err != nil {
		return err
	}
	w.options.Forgot(w.forgotten)
	w.unsynced, err = readPaths(c, key.Unsynced)
	return err
}

// readPaths gives the paths of all records of a level.
func readPaths(c *conn, level key.Level) (map[string]bool, error) {
	rows, err := c.query("SELECT path FROM records WHERE level = ?", int64(level))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	paths := map[string]bool{}
	for rows.Next() {
		var path string
		if err := rows.Scan(&path); err != nil {
			return nil, err
		}
		paths[path] = true
	}
	return paths, rows.Err()
}

// progress is how far a transaction came before it failed.
type progress uint8

const (
	notBegun  progress = iota // nothing can be said of its requests
	notSent                   // something in it failed; it is undone
	uncertain                 // its COMMIT failed; it is there whole, or not at all
)

// answerGroup answers every request of a group, after what the answer rests on is
// durable. doubt says that an earlier transaction with these requests may have
// been committed.
//
// A transaction that failed is tried again with each request on its own, so that
// one which asks for more than there is (room, say) fails alone. If what failed
// was the COMMIT, that is also the reading again: each request begins by looking
// for its own id.
func (w *writer) answerGroup(group []*request, doubt bool) {
	if w.broken != nil {
		w.refuse(group, fmt.Errorf("stopped after a failed fsync: %w", w.broken), doubt)
		return
	}
	replies, reached, err := w.try(group)
	switch {
	case err == nil && planted.Is(planted.AnswerBeforeCommit):
	case err == nil:
		for i, r := range group {
			r.answer <- replies[i]
		}
	case distrust(err):
		w.broken = err
		w.options.Fatal(fmt.Errorf("embedded: %s: %w", w.path, err))
		w.refuse(group, err, true)
	case len(group) > 1 && reached != notBegun:
		for _, r := range group {
			w.answerGroup([]*request{r}, doubt || reached == uncertain)
		}
	default:
		for _, r := range group {
			r.answer <- w.verdict(r, err, doubt || reached == uncertain)
		}
	}
}

// refuse answers a group that the store does not work on any more.
func (w *writer) refuse(group []*request, err error, doubt bool) {
	if doubt {
		err = fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
	}
	for _, r := range group {
		r.answer <- reply{err: err}
	}
}

// try runs the group in one transaction. Its connection does not outlive a
// failure, and closing it undoes what is left of the transaction.
func (w *writer) try(group []*request) (replies []reply, reached progress, err error) {
	defer func() {
		if err != nil && w.conn != nil {
			_ = w.conn.close() // the error that matters is err
			w.conn = nil
		}
	}()
	if err := w.connect(); err != nil {
		return nil, notBegun, err
	}
	if err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return nil, notBegun, err
	}
	if err := w.noticeOthers(); err != nil {
		return nil, notSent, err
	}
	t := transaction{
		conn:      w.conn,
		cache:     w.cache,
		unsynced:  w.unsynced,
		forgotten: w.forgotten,
		now:       w.options.Now(),
		changes:   make(map[key.Key]content, 2*len(group)),
	}
	replies = make([]reply, len(group))
	for i, r := range group {
		if replies[i], err = t.answer(r); err != nil {
			return nil, notSent, err
		}
	}
	forgotten, err := w.pruner.prune(w.conn, t.now, len(group))
	if err != nil {
		return nil, notSent, err
	}
	if planted.Is(planted.AnswerBeforeCommit) {
		for i, r := range group {
			r.answer <- replies[i]
		}
		time.Sleep(time.Millisecond)
	}
	start := time.Now()
	w.cache.begin(t.changes)
	if err := w.commit(w.conn); err != nil {
		w.cache.doubt()
		return nil, uncertain, err
	}
	w.cache.publish(t.changes)
	for k, now := range t.changes {
		switch {
		case k.Level != key.Unsynced:
		case now.version == store.Absent:
			delete(w.unsynced, k.Path)
		default:
			w.unsynced[k.Path] = true
		}
	}
	w.checkpointer.count(group)
	if forgotten > w.forgotten {
		w.forgotten = forgotten
		w.options.Forgot(forgotten)
	}
	w.options.Observe(len(group), time.Since(start))
	return replies, 0, nil
}

// connect has a connection, if need be a new one. While there was none others may have
// written.
func (w *writer) connect() error {
	if w.conn != nil {
		return nil
	}
	c, err := w.dial(w.path, false)
	if err != nil {
		return err
	}
	if err := w.adopt(c); err != nil {
		w.conn = nil
		return errors.Join(err, c.close())
	}
	w.cache.doubt()
	return nil
}

// noticeOthers looks, in the open transaction, whether another process has written.
func (w *writer) noticeOthers() error {
	var now int
	if _, err := w.conn.first("PRAGMA data_version", nil, &now); err != nil || now == w.dataVersion {
		return err
	}
	w.cache.doubt()
	return w.adopt(w.conn)
}

// verdict answers a request whose own transaction failed with err.
func (w *writer) verdict(r *request, err error, doubt bool) reply {
	if isPrimary(err, sqlite3.SQLITE_FULL) {
		err = fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	if !doubt {
		return reply{err: err}
	}
	unknown := func(err error) reply { return reply{err: fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)} }
	if err := w.connect(); err != nil {
		return unknown(err)
	}
	t := transaction{conn: w.conn, forgotten: w.forgotten}
	state, lookErr := t.stateOf(r.id)
	switch {
	case lookErr != nil:
		return unknown(errors.Join(err, lookErr))
	case state != unseen:
		return settled(r, state)
	case isPrimary(err, sqlite3.SQLITE_IOERR):
		// The log may hold all of it beyond what counts now, and a crash could make
		// it count until the next COMMIT writes over it. Outcome is such a COMMIT.
		return unknown(err)
	}
	return reply{err: err}
}

// transaction is what the requests of a group share, one after another.
type transaction struct {
	conn      *conn
	cache     *cache
	unsynced  map[string]bool
	forgotten string
	now       time.Time
	changes   map[key.Key]content // what the requests so far have written
}

// answer does one request. A batch whose conditions fail writes nothing. An error is
// the file's, not the batch's.
//
// Nearly every batch is new and holds, so that is tried first: whether its id was seen
// is told by the insertion that makes it seen.
func (t *transaction) answer(r *request) (reply, error) {
	if r.id <= t.forgotten {
		return settled(r, forgotten), nil
	}
	becomes, answer := applied, reply{}
	if r.batch == nil {
		becomes, answer = void, reply{outcome: store.NotApplied}
	} else {
		failed, err := t.failing(r.batch)
		if err != nil {
			return reply{}, err
		}
		if len(failed) > 0 {
			state, err := t.stateOf(r.id)
			if state != unseen {
				return settled(r, state), err
			}
			return reply{err: &store.ConflictError{Conds: failed}}, err
		}
	}
	isNew, err := remember(t.conn, r, becomes, t.now)
	if err != nil {
		return reply{}, err
	}
	if !isNew {
		state, err := t.stateOf(r.id)
		return settled(r, state), err
	}
	return answer, t.write(r)
}

// stateOf reads the state of a batch id.
func (t *transaction) stateOf(id string) (state, error) {
	if id <= t.forgotten {
		return forgotten, nil
	}
	return lookUp(t.conn, id)
}

// settled answers a request whose id the store has seen.
func settled(r *request, s state) reply {
	switch {
	case s == forgotten:
		return reply{err: fmt.Errorf("%w: the id is older than the store remembers", store.ErrOutcomeUnknown)}
	case r.batch == nil && s == applied:
		return reply{outcome: store.Applied}
	case r.batch == nil:
		return reply{outcome: store.NotApplied}
	case s == applied:
		return reply{}
	}
	return reply{err: &store.ConflictError{}}
}

// failing gives the conditions that do not hold.
func (t *transaction) failing(b *store.Batch) ([]store.Cond, error) {
	var failed []store.Cond
	for _, cond := range b.Conds {
		holds, err := t.holds(cond, b.Writes)
		if err != nil {
			return nil, err
		}
		if !holds {
			failed = append(failed, cond)
		}
	}
	return failed, nil
}

func (t *transaction) holds(cond store.Cond, own []store.Write) (bool, error) {
	if cond.Kind == store.KindEmpty {
		return empty(t.conn, cond.Prefix, own)
	}
	now, err := t.current(cond.Key)
	switch cond.Kind {
	case store.KindIs:
		return now.version == cond.Version, err
	case store.KindLive:
		return now.id == cond.ID, err
	}
	panic(fmt.Sprintf("embedded: Validate let a condition of kind %q pass", cond.Kind))
}

// current gives the version and the id of a record, not always its value. What the
// cache knows is certain: nobody else writes now, and no COMMIT is under way.
func (t *transaction) current(k key.Key) (content, error) {
	if now, ok := t.changes[k]; ok {
		return now, nil
	}
	if k.Level == key.Unsynced && !t.unsynced[k.Path] {
		return content{}, nil
	}
	if now, ok, _ := t.cache.look(k); ok {
		return now, nil
	}
	var now content
	_, err := t.conn.first("SELECT version, id FROM records WHERE level = ? AND path = ?",
		[]any{int64(k.Level), k.Path}, (*string)(&now.version), &now.id)
	return now, err
}

// write does the writes of a request, if it has any.
func (t *transaction) write(r *request) error {
	for i, now := range r.leaves {
		k := r.batch.Writes[i].Key
		var err error
		if now.version == store.Absent {
			err = t.conn.exec("DELETE FROM records WHERE level = ? AND path = ?", int64(k.Level), k.Path)
		} else {
			err = t.conn.exec("INSERT OR REPLACE INTO records (level, path, version, id, value) VALUES (?, ?, ?, ?, ?)",
				int64(k.Level), k.Path, string(now.version), now.id, now.value)
		}
		if err != nil {
			return err
		}
		t.changes[k] = now
	}
	return nil
}

// empty looks for a record under p that is not among the batch's own. It reads
// at most one more than there are of those.
func empty(c *conn, p key.Prefix, own []store.Write) (bool, error) {
	mine := make(map[key.Key]bool, len(own))
	for _, w := range own {
		mine[w.Key] = true
	}
	rows, err := c.query("SELECT path FROM records WHERE level = ? AND path >= ? ORDER BY path LIMIT ?",
		p.Level, p.Path, len(own)+1)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		k := key.Key{Level: p.Level}
		if err := rows.Scan(&k.Path); err != nil {
			return false, err
		}
		if !strings.HasPrefix(k.Path, p.Path) {
			break
		}
		if !mine[k] {
			return false, nil
		}
	}
	return true, rows.Err()
}
