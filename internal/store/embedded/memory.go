package embedded

import (
	"fmt"
	"time"
)

// state is what the store knows of a batch id. The numbers of the first two are
// those of the column `void`.
type state int

const (
	applied   state = 0
	void      state = 1 // declared not applied
	forgotten state = 2 // it may have been either
	unseen    state = 3
)

// lookUp reads the state of a batch id that is not forgotten.
func lookUp(c *conn, id string) (state, error) {
	s := unseen
	_, err := c.first("SELECT void FROM applied WHERE batch_id = ?", []any{id}, &s)
	return s, err
}

// remember settles a batch id, and reports whether it was unseen. Nothing is changed
// if it was not.
func remember(c *conn, r *request, s state, now time.Time) (bool, error) {
	rows, err := c.change("INSERT INTO applied (batch_id, void, ops, at_ms) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		r.id, int64(s), r.ops, now.UnixMilli())
	return rows > 0, err
}

// readForgotten gives the greatest id that was forgotten: none up to it is remembered.
func readForgotten(c *conn) (id string, err error) {
	_, err = c.first("SELECT value FROM meta WHERE key = 'forgotten'", nil, &id)
	return id, err
}

// pruner forgets old batch ids, a few in each group, always more than the group adds:
// the table stays as long as the retention, and no group waits for a long delete.
type pruner struct {
	retention time.Duration
	idle      time.Time // when it last found that no more were due
}

// pruneInterval is how long the pruner does not look again where none was due.
const pruneInterval = time.Second

// prune forgets ids in the order of the ids and not of at_ms: only then does the
// greatest forgotten id tell all that are covered from all that are not. It gives
// that id, or none if it forgot none.
func (p *pruner) prune(c *conn, now time.Time, group int) (greatest string, err error) {
	if since := now.Sub(p.idle); 0 <= since && since < pruneInterval {
		return "", nil
	}
	atMost := 2*group + 100
	var due int
	_, err = c.first("SELECT count(*), ifnull(max(batch_id), '') FROM (SELECT batch_id FROM applied WHERE batch_id < ? ORDER BY batch_id LIMIT ?)",
		[]any{idFloor(now.Add(-p.retention)), atMost}, &due, &greatest)
	if err != nil {
		return "", err
	}
	if due < atMost {
		p.idle = now
	}
	if due == 0 {
		return "", nil
	}
	if err := c.exec("DELETE FROM applied WHERE batch_id <= ?", greatest); err != nil {
		return "", err
	}
	return greatest, c.exec("UPDATE meta SET value = ?1 WHERE key = 'forgotten' AND value < ?1", greatest)
}

// idFloor comes before every UUIDv7 of time t or later, and behind all earlier
// ones: they begin with the Unix time in milliseconds, as 48 bits.
func idFloor(t time.Time) string {
	ms := uint64(max(t.UnixMilli(), 0)) & (1<<48 - 1)
	return fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
}
