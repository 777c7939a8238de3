package contention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// sessionsMax is how many sessions of each kind a Report has.
const sessionsMax = 100

// Session is a connection to the database that instances share, as it was at one moment. It waits for
// rows that others have locked, or is in the way of one that does, or may be.
type Session struct {
	PID int
	// Instance is empty where the session is not one of ours, and RequestID where it does nothing
	// for a request. They may be cut at their ends.
	Instance, Operation, RequestID string

	User, Application, Address string
	State                      string        // empty: our user may not see it
	WaitEvent                  string        // what it waits for inside the database: SyncRep is a synchronous standby; empty: nothing
	Transaction                time.Duration // its age; 0: there is none, or our user may not see it
	Attempt                    time.Duration // how long one of ours has waited
	// BlockedBy are the PIDs that it waits for, 0 for a prepared transaction.
	BlockedBy []int
}

// Database is who waits for rows of a database that several instances share, as JSON shows it.
type Database struct {
	// Instance is the one that was asked.
	Instance string `json:"instance"`
	// Problem says why the database was not: empty, it was.
	Problem string `json:"problem,omitempty"`
	// Waiters are batches of all instances that wait for a locked row at this moment, the first the longest.
	// Beyond the first 100 they are only counted.
	Waiters        []RowWaiter `json:"waiters"`
	WaitersLeftOut int         `json:"waiters-left-out"`
	// Foreign are the sessions that are not of Landfast, hold locks of its tables, and may be in the way of a
	// batch, now or soon. Beyond the first 100 they are only counted.
	Foreign        []RowHolder `json:"foreign"`
	ForeignLeftOut int         `json:"foreign-left-out"`
}

// RowWaiter is one batch that waits for a locked row.
type RowWaiter struct {
	PID       int    `json:"pid"`
	Instance  string `json:"instance"`
	Operation string `json:"operation"`
	RequestID string `json:"request-id"`
	// SinceMillis is when the request got its table in the queue of the instance that was asked; with others, when
	// the attempt began that is under way: each takes 200 ms at most.
	SinceMillis int64       `json:"since-ms"`
	ForMillis   int64       `json:"for-ms"`
	BlockedBy   []RowHolder `json:"blocked-by"`
}

// RowHolder is a session with an open transaction.
type RowHolder struct {
	PID int `json:"pid"` // 0: a prepared transaction, which has no session
	// Instance, Operation and RequestID are those of one of ours.
	Instance  string `json:"instance,omitempty"`
	Operation string `json:"operation,omitempty"`
	RequestID string `json:"request-id,omitempty"`
	// User, Application, Address and State are PostgreSQL's. The statement is never shown.
	User        string `json:"user"`
	Application string `json:"application"`
	Address     string `json:"address"`
	State       string `json:"state"`
	// TransactionMillis is when its transaction began; 0: unknown.
	TransactionMillis    int64 `json:"transaction-ms"`
	TransactionForMillis int64 `json:"transaction-for-ms"`
}

// AddRows adds who waits for rows, as the instance of that name has seen it at the time of the report, and advice
// about them before all other. A problem says why nothing was seen.
func (r *Report) AddRows(instance string, sessions []Session, problem error) {
	d := &Database{Instance: instance}
	r.Database = d
	if problem != nil {
		d.Problem = problem.Error()
		return
	}
	byPID := map[int]Session{}
	for _, s := range sessions {
		byPID[s.PID] = s
	}
	holds := map[int]int{} // how many wait for each
	for _, s := range sessions {
		switch {
		case s.Instance != "" && len(s.BlockedBy) > 0:
			w := r.rowWaiter(s)
			for _, pid := range s.BlockedBy {
				w.BlockedBy = append(w.BlockedBy, r.rowHolder(byPID[pid], pid))
				holds[pid]++
			}
			d.Waiters = append(d.Waiters, w)
		case s.Instance == "":
			d.Foreign = append(d.Foreign, r.rowHolder(s, s.PID))
		}
	}
	slices.SortStableFunc(d.Waiters, func(a, b RowWaiter) int { return cmp.Compare(b.ForMillis, a.ForMillis) })
	var lines []Advice
	if n := holds[0]; n > 0 {
		lines = append(lines, Advice{"PostgreSQL", "prepared-transaction", fmt.Sprintf(
			"batches of ours that wait for a transaction that was prepared and neither committed nor rolled back: %d; find it with SELECT * FROM pg_prepared_xacts and end it with ROLLBACK PREPARED", n)})
	}
	for _, s := range sessions {
		if text := s.advice(holds[s.PID]); text != "" {
			lines = append(lines, Advice{fmt.Sprintf("session %d", s.PID), s.pattern(), text})
		}
	}
	if len(lines) > 0 { // what waits for a row holds its key meanwhile, and its storage is not to blame
		r.Advice = slices.DeleteFunc(r.Advice, func(a Advice) bool { return a.Pattern == "long-hold" })
	}
	r.Advice = append(lines, r.Advice...)
	r.Advice = r.Advice[:min(len(r.Advice), adviceMax)]
	d.WaitersLeftOut, d.ForeignLeftOut = max(0, len(d.Waiters)-sessionsMax), max(0, len(d.Foreign)-sessionsMax)
	d.Waiters, d.Foreign = d.Waiters[:min(len(d.Waiters), sessionsMax)], d.Foreign[:min(len(d.Foreign), sessionsMax)]
}

// rowWaiter shows one of ours. What is cut of a request of this instance is made whole from its queue.
func (r *Report) rowWaiter(s Session) RowWaiter {
	w := RowWaiter{
		PID: s.PID, Instance: s.Instance, Operation: s.Operation, RequestID: s.RequestID,
		SinceMillis: r.AtMillis - s.Attempt.Milliseconds(), ForMillis: s.Attempt.Milliseconds(),
	}
	if s.Instance != r.Database.Instance || s.RequestID == "" {
		return w
	}
	for _, k := range r.Keys {
		for _, h := range k.Holders {
			if strings.HasPrefix(h.RequestID, s.RequestID) && h.SinceMillis <= w.SinceMillis {
				w.Operation, w.RequestID, w.SinceMillis, w.ForMillis = h.Operation, h.RequestID, h.SinceMillis, h.ForMillis
			}
		}
	}
	return w
}

func (r *Report) rowHolder(s Session, pid int) RowHolder {
	h := RowHolder{
		PID: pid, Instance: s.Instance, Operation: s.Operation, RequestID: s.RequestID,
		User: s.User, Application: s.Application, Address: s.Address, State: s.State,
	}
	if s.Transaction > 0 {
		h.TransactionMillis, h.TransactionForMillis = r.AtMillis-s.Transaction.Milliseconds(), s.Transaction.Milliseconds()
	}
	return h
}

func (s Session) pattern() string {
	if s.Instance == "" {
		return "foreign-transaction"
	}
	return "slow-batch"
}

// slowBatch speaks of a batch of ours that takes what none takes, whether or not another waits for it yet: those that
// would wait are most often in the queue of its instance. One that waits for a row is not slow itself, and what we
// do for no request may take long.
func (s Session) slowBatch(waiters int) string {
	if s.Transaction < longHold || len(s.BlockedBy) > 0 || waiters == 0 && s.Operation == "" {
		return ""
	}
	who := "a batch of " + s.Instance
	if s.Operation != "" {
		who += fmt.Sprintf(" (%s, request %s)", s.Operation, cmp.Or(s.RequestID, "-"))
	}
	event := ""
	if s.WaitEvent != "" {
		event = "; it waits for " + s.WaitEvent
	}
	return fmt.Sprintf("%s has run for %v, batches that wait for it: %d%s; PostgreSQL itself is slow: its disk, or a synchronous standby that does not answer (SELECT * FROM pg_stat_replication)",
		who, roughly(s.Transaction), waiters, event)
}

// advice says what to do about a session for which so many of our batches wait, or nothing.
func (s Session) advice(waiters int) string {
	switch {
	case s.Instance != "":
		return s.slowBatch(waiters)
	case waiters == 0 && s.State != "" && s.Transaction < longHold:
		return ""
	}
	who := fmt.Sprintf("user %s", cmp.Or(s.User, "unknown"))
	if s.Application != "" {
		who += " with " + s.Application
	}
	if s.Address != "" {
		who += " at " + s.Address
	}
	what := fmt.Sprintf("has a transaction open for %v (%s)", roughly(s.Transaction), s.State)
	if s.State == "" {
		what = "has a transaction open (GRANT pg_read_all_stats to our user to see since when)"
	}
	effect := "it has locks of the catalog's tables"
	if waiters > 0 {
		effect = fmt.Sprintf("batches of ours that wait for it: %d", waiters)
	}
	return fmt.Sprintf("%s %s; %s; let it end, or end it: SELECT pg_terminate_backend(%d)", who, what, effect, s.PID)
}
