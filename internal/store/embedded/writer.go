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
	path    string
	options Options
	conn    *conn // nil when the last one failed and no new one could be had
	pruner  pruner
	broken  error // an fsync failed: nothing is written any more

	// The seams at which tests inject faults: dial makes a connection to path,
	// commit ends the transaction that is open on one.
	dial   func(path string, readOnly bool) (*conn, error)
	commit func(*conn) error
}

func newWriter(path string, options Options, c *conn) *writer {
	return &writer{
		path:    path,
		options: options,
		conn:    c,
		pruner:  pruner{retention: options.Retention},
		dial:    dial,
		commit:  func(c *conn) error { return c.exec("COMMIT") },
	}
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
	now := w.options.Now()
	for _, r := range group {
		answer, err := applyOne(w.conn, r, now)
		if err != nil {
			return nil, notSent, err
		}
		replies = append(replies, answer)
	}
	if err := w.pruner.prune(w.conn, now, len(group)); err != nil {
		return nil, notSent, err
	}
	if planted.Is(planted.AnswerBeforeCommit) {
		for i, r := range group {
			r.answer <- replies[i]
		}
		time.Sleep(time.Millisecond)
	}
	start := time.Now()
	if err := w.commit(w.conn); err != nil {
		return nil, uncertain, err
	}
	w.options.Observe(len(group), time.Since(start))
	return replies, 0, nil
}

func (w *writer) connect() (err error) {
	if w.conn == nil {
		w.conn, err = w.dial(w.path, false)
	}
	return err
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
	state, lookErr := lookUp(w.conn, r.id)
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

// applyOne does one request inside the open transaction. A batch whose conditions
// fail writes nothing. An error is the file's, not the batch's.
func applyOne(c *conn, r *request, now time.Time) (reply, error) {
	state, err := lookUp(c, r.id)
	if err != nil {
		return reply{}, err
	}
	if state != unseen {
		return settled(r, state), nil
	}
	if r.batch == nil {
		return reply{outcome: store.NotApplied}, remember(c, r.id, true, nil, now)
	}
	failed, err := failing(c, r.batch)
	if err != nil {
		return reply{}, err
	}
	if len(failed) > 0 {
		return reply{err: &store.ConflictError{Conds: failed}}, nil
	}
	for _, w := range r.batch.Writes {
		if err := write(c, w, r.id); err != nil {
			return reply{}, err
		}
	}
	return reply{}, remember(c, r.id, false, r.batch.Ops, now)
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

// failing gives the conditions that do not hold in the open transaction.
func failing(c *conn, b *store.Batch) ([]store.Cond, error) {
	var failed []store.Cond
	for _, cond := range b.Conds {
		holds, err := holds(c, cond, b.Writes)
		if err != nil {
			return nil, err
		}
		if !holds {
			failed = append(failed, cond)
		}
	}
	return failed, nil
}

func holds(c *conn, cond store.Cond, own []store.Write) (bool, error) {
	if cond.Kind == store.KindEmpty {
		return empty(c, cond.Prefix, own)
	}
	var version store.Version
	var id string
	_, err := c.first("SELECT version, id FROM records WHERE level = ? AND path = ?",
		[]any{cond.Key.Level, cond.Key.Path}, &version, &id)
	switch cond.Kind {
	case store.KindIs:
		return version == cond.Version, err
	case store.KindLive:
		return id == cond.ID, err
	}
	panic(fmt.Sprintf("embedded: Validate let a condition of kind %q pass", cond.Kind))
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

func write(c *conn, w store.Write, version string) error {
	if w.Delete {
		return c.exec("DELETE FROM records WHERE level = ? AND path = ?", w.Key.Level, w.Key.Path)
	}
	return c.exec("INSERT OR REPLACE INTO records (level, path, version, id, value) VALUES (?, ?, ?, ?, ?)",
		w.Key.Level, w.Key.Path, version, w.ID, string(w.Value))
}
