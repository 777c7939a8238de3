package embedded

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/landfast/landfast/internal/store"
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

// lookUp reads the state of a batch id.
func lookUp(c *conn, id string) (state, error) {
	s := unseen
	_, err := c.first(`
		SELECT void FROM applied WHERE batch_id = ?1
		UNION ALL
		SELECT 2 FROM meta WHERE key = 'forgotten' AND value >= ?1
		LIMIT 1`, []any{id}, &s)
	return s, err
}

// remember settles a batch id that is unseen.
func remember(c *conn, id string, isVoid bool, ops []store.OpRecord, now time.Time) error {
	var text sql.NullString
	if len(ops) > 0 {
		encoded, err := json.Marshal(ops)
		if err != nil {
			return err
		}
		text = sql.NullString{String: string(encoded), Valid: true}
	}
	return c.exec("INSERT INTO applied (batch_id, void, ops, at_ms) VALUES (?, ?, ?, ?)", id, isVoid, text, now.UnixMilli())
}

// pruner forgets old batch ids, a few in each second's first group, always more
// than came since: the table stays as long as the retention, and no group waits
// for a long delete.
type pruner struct {
	retention time.Duration
	last      time.Time
	since     int // requests since last
}

// pruneInterval is how often the pruner looks, while there are groups.
const pruneInterval = time.Second

// prune forgets ids in the order of the ids and not of at_ms: only then does the
// greatest forgotten id tell all that are covered from all that are not.
func (p *pruner) prune(c *conn, now time.Time, group int) error {
	p.since += group
	if elapsed := now.Sub(p.last); 0 <= elapsed && elapsed < pruneInterval {
		return nil
	}
	atMost := 2*p.since + 100
	p.last, p.since = now, 0
	var greatest sql.NullString
	_, err := c.first("SELECT max(batch_id) FROM (SELECT batch_id FROM applied WHERE batch_id < ? ORDER BY batch_id LIMIT ?)",
		[]any{idFloor(now.Add(-p.retention)), atMost}, &greatest)
	if err != nil || !greatest.Valid {
		return err
	}
	if err := c.exec("DELETE FROM applied WHERE batch_id <= ?", greatest.String); err != nil {
		return err
	}
	return c.exec("UPDATE meta SET value = ?1 WHERE key = 'forgotten' AND value < ?1", greatest.String)
}

// idFloor comes before every UUIDv7 of time t or later, and behind all earlier
// ones: they begin with the Unix time in milliseconds, as 48 bits.
func idFloor(t time.Time) string {
	ms := uint64(max(t.UnixMilli(), 0)) & (1<<48 - 1)
	return fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
}
