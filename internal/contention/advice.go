package contention

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// From when on something is worth a line.
const (
	// longHold is what no operation takes on a disk that works.
	longHold = time.Second
	// crowd is how many wait for one table before it is called hot.
	crowd = 4
	// bulk is how many tables of one namespace are created at a time before that is called bulk.
	bulk = 8
	// busyWaits and busyConflicts are how much a key must have seen in the last minute: two a
	// second. Waits shorter than busyWait are what a table with many writers is expected to cost.
	busyWaits     = 120
	busyWait      = 20 * time.Millisecond
	busyConflicts = 120
)

// situation is one key that advice is about, and what else is known.
type situation struct {
	lock.KeyState
	hot    HotKey // zero: the key is not among the hot ones
	all    []lock.KeyState
	queue  int // how many it holds up
	server Server
	now    time.Time
}

// patterns are what advice knows about a key, the gravest first: of those that fit the first is given. Each
// gives its text, or an empty one where it does not fit.
var patterns = []struct {
	name string
	text func(situation) string
}{
	{"queue-full", queueFull},
	{"retry", retry},
	{"long-hold", heldLong},
	{"namespace-drop", namespaceDrop},
	{"conflicts", conflicts},
	{"transactions", transactions},
	{"one-name", oneName},
	{"hot-table", hotTable},
	{"client-locations", clientLocations},
	{"structure", structure},
}

// advise gives a line for each key that needs one, in the order of states, then for namespaces and
// for what was hot in the last minute.
func advise(states []lock.KeyState, hot []HotKey, server Server, now time.Time) []Advice {
	var lines []Advice
	said, repeated := map[key.Key]bool{}, map[string]bool{}
	byKey := make(map[key.Key]HotKey, len(hot))
	for _, h := range hot {
		byKey[h.Key] = h
	}
	for _, s := range states {
		at := situation{s, byKey[s.Key], states, queueLength(s), server, now}
		for _, p := range patterns {
			text := p.text(at)
			if text == "" {
				continue
			}
			if !repeated[text] { // what is true of several keys is said of the worst
				lines = append(lines, Advice{Name(s.Key), p.name, text})
			}
			said[s.Key], repeated[text] = true, true
			break
		}
	}
	lines = append(lines, bulkCreation(states)...)
	for _, h := range hot {
		if said[h.Key] {
			continue
		}
		each := h.Waited / time.Duration(max(h.Waits, 1))
		if text := conflicts(situation{KeyState: lock.KeyState{Key: h.Key}, hot: h, server: server}); text != "" {
			lines = append(lines, Advice{Name(h.Key), "conflicts", text})
		} else if h.Waits >= busyWaits && each >= busyWait && h.Key.Level == key.TableName {
			lines = append(lines, Advice{Name(h.Key), "hot-table", fmt.Sprintf(
				"%d requests of the last minute waited here, %v each: fewer and larger commits wait less", h.Waits, roughly(each))})
		}
	}
	return lines[:min(len(lines), adviceMax)]
}

// roughly is a length of time as a person says it.
func roughly(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

func queueFull(s situation) string {
	if s.queue < s.server.QueueMax*3/4 {
		return ""
	}
	return fmt.Sprintf("%d requests wait, and at most %d may: those that come then are refused with 429; let fewer clients write here at a time", s.queue, s.server.QueueMax)
}

func heldLong(s situation) string {
	if len(s.Holders) == 0 {
		return ""
	}
	h := s.Holders[0]
	age := s.now.Sub(h.Since)
	if age < longHold {
		return ""
	}
	records := "landfast_store_commit_seconds is high the disk of the catalog"
	if s.server.Shared {
		records = `landfast_postgres_round_trip_seconds{kind="apply"} is high PostgreSQL: its disk, or a synchronous standby that does not answer (SELECT * FROM pg_stat_replication)`
	}
	return fmt.Sprintf("%s (request %s) has it for %v: something that it does is slow: if %s, otherwise the place of the warehouse's files, or a very large metadata file",
		h.Owner.Op, h.Owner.RequestID, roughly(age), records)
}

// conflicts are graver than waits: work was thrown away. One instance alone has them only between requests that
// do not queue for the same key; those of several have no queue in common.
func conflicts(s situation) string {
	if s.hot.Conflicts < busyConflicts {
		return ""
	}
	text := fmt.Sprintf("%d batches of the last minute lost against another change here, and were decided again: ", s.hot.Conflicts)
	switch {
	case !s.server.Shared:
		return text + "what writes here does not queue for it; landfast_conflicts_total says which operations"
	case s.Key.Level == key.TableName || s.Key.Level == key.Pointer:
		return text + "its writers queue, but in each instance for itself, and those of several instances meet in PostgreSQL; send the writers of this table to one instance"
	}
	return text + "what writes here does not queue for it, or goes to several instances, each with a queue of its own; landfast_conflicts_total says which operations"
}

func namespaceDrop(s situation) string {
	if s.Key.Level != key.Namespace || s.has("drop-namespace") == 0 {
		return ""
	}
	if busy := tablesIn(s.Key, s.all); busy > 0 {
		return fmt.Sprintf("it is being dropped while %d of its table names are in use: the drop is refused as long as one table is there, and what creates one meanwhile may be told that the namespace is gone; stop its writers first", busy)
	}
	if s.queue > 0 {
		return "it is being dropped: those who wait will be told that it does not exist; drop a namespace once"
	}
	return ""
}

func transactions(s situation) string {
	if s.Key.Level != key.TableName || s.queue == 0 || s.has("commit-transaction") == 0 {
		return ""
	}
	return "transactions over several tables meet here: each is granted all of its tables at once, and one that waits for another table holds up those behind it here; let transactions name fewer tables, or the same ones"
}

func oneName(s situation) string {
	if n := s.has("create-table") + s.has("create-view") + s.has("register-table") + s.has("register-view"); s.Key.Level != key.TableName || s.queue == 0 || n < 2 {
		return ""
	}
	return "several create the same name: one will, and the others are told that it exists; let one client create it"
}

func hotTable(s situation) string {
	if s.Key.Level != key.TableName || s.queue < crowd {
		return ""
	}
	if n := len(s.Holders); n > 1 {
		return fmt.Sprintf("%d wait for one table, while %d commits are landed together: those whose requirements hold are landed with the next batch; fewer and larger commits wait less", s.queue, n)
	}
	return fmt.Sprintf("%d wait for one table: those whose requirements hold are landed together with the next batch; fewer and larger commits wait less", s.queue)
}

func clientLocations(s situation) string {
	if s.Key != key.LocationGuard() || s.queue == 0 {
		return ""
	}
	return "new namespaces, and tables at locations that clients chose, are compared with all others, one after another: leave the location out of creates, so that the server chooses one and nothing waits"
}

// retry sees also those that keep their place at the idempotency key: two requests of one key want the same table, and
// the second waits for that, which comes first in the lock order.
func retry(s situation) string {
	if s.Key.Level != key.Once || len(s.Holders)+len(s.Waiters) < 2 {
		return ""
	}
	return "a request was sent again under its idempotency key before the first was answered: it waits for that answer; the client's timeout is shorter than the server's request_timeout"
}

func structure(s situation) string {
	if s.queue == 0 || s.Key.Level != key.Namespace && s.Key.Level != key.Warehouse {
		return ""
	}
	return fmt.Sprintf("%d changes of the %v itself wait for each other: they are short, and tables are not held up by them; nothing to do unless it stays so", s.queue+1, s.Key.Level)
}

// has counts the holders and waiters with an operation.
func (s situation) has(op string) int {
	is := func(e lock.Entry) bool { return e.Owner.Op == op }
	return count(s.Holders, is) + count(s.Waiters, is)
}

func count(entries []lock.Entry, is func(lock.Entry) bool) int {
	n := 0
	for _, e := range entries {
		if is(e) {
			n++
		}
	}
	return n
}

// tablesIn counts the table names of a namespace that are held.
func tablesIn(namespace key.Key, states []lock.KeyState) int {
	n := 0
	for _, s := range states {
		if parent, ok := namespaceOf(s.Key); ok && parent == Name(namespace) && len(s.Holders) > 0 {
			n++
		}
	}
	return n
}

// namespaceOf names the namespace of a table name.
func namespaceOf(k key.Key) (string, bool) {
	parent, _, ok := strings.Cut(k.Path, "//")
	return key.Namespace.String() + " " + parent, ok && k.Level == key.TableName
}

// bulkCreation speaks of namespaces in which many tables are being created.
func bulkCreation(states []lock.KeyState) []Advice {
	creates := map[string]int{}
	for _, s := range states {
		n, ok := namespaceOf(s.Key)
		if ok && len(s.Holders) > 0 && s.Holders[0].Owner.Op == "create-table" {
			creates[n]++
		}
	}
	var lines []Advice
	for _, n := range slices.Sorted(maps.Keys(creates)) {
		if creates[n] >= bulk {
			lines = append(lines, Advice{n, "bulk-creation", fmt.Sprintf(
				"%d tables are being created here at a time: each waits only for its own name, so locks do not hold them up; their rate is that of the disk or the bucket", creates[n])})
		}
	}
	return lines
}
