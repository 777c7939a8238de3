package contention

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// Bounds of a Report.
const (
	keysMax     = 100 // keys
	requestsMax = 100 // holders, and waiters, of one key
	hotMax      = 20  // hot keys
	adviceMax   = 20  // lines of advice
)

// Report is who waits for whom at one moment, as JSON shows it. Times are milliseconds
// since 1970, lengths of time milliseconds.
type Report struct {
	AtMillis int64 `json:"at-ms"`
	// Held and Awaited count the keys that are held and those at which somebody waits, Waiting the requests that do.
	Held    int `json:"held"`
	Awaited int `json:"awaited"`
	Waiting int `json:"waiting"`
	// Keys are those with most waiters first. Beyond the first 100 they are only counted.
	Keys        []Key `json:"keys"`
	KeysLeftOut int   `json:"keys-left-out"`
	// Hot are the keys of the last minute, the hottest first; at most 20.
	Hot    []Hottest `json:"hot"`
	Advice []Advice  `json:"advice"`
	// Database is who waits for rows beyond this process; absent: no other process can be in the way.
	Database *Database `json:"database,omitempty"`
}

// Key is one key that is held or awaited.
type Key struct {
	Key string `json:"key"`
	// QueueLength is how many it holds up.
	QueueLength int `json:"queue-length"`
	// Holders and Waiters are in order of arrival. Beyond the first 100 of each they are only counted.
	Holders        []Request `json:"holders"`
	Waiters        []Request `json:"waiters"`
	HoldersLeftOut int       `json:"holders-left-out"`
	WaitersLeftOut int       `json:"waiters-left-out"`
}

// Request is one that holds a key or waits there.
type Request struct {
	Operation string `json:"operation"`
	RequestID string `json:"request-id"`
	Client    string `json:"client"`
	Mode      string `json:"mode"` // shared or exclusive
	// SinceMillis is when a holder was granted, or a waiter came; ForMillis how long ago that is.
	SinceMillis int64 `json:"since-ms"`
	ForMillis   int64 `json:"for-ms"`
	// Batch is the request whose batch a holder is in: commits that wait behind one another are landed
	// together. Empty: it is alone.
	Batch string `json:"batch,omitempty"`
	// WaitsFor is what holds a waiter up. Its key is another one where the request only keeps its place here.
	WaitsFor *Blocker `json:"waits-for,omitempty"`
}

// Blocker is the request at the front of a queue.
type Blocker struct {
	Key       string `json:"key"`
	Operation string `json:"operation"`
	RequestID string `json:"request-id"`
}

// Hottest is a [HotKey] as JSON shows it.
type Hottest struct {
	Key          string `json:"key"`
	Waits        int    `json:"waits"`
	WaitedMillis int64  `json:"waited-ms"`
	Conflicts    int    `json:"conflicts"`
	Missing      int    `json:"missing"`
}

// Advice is a line for a person. Its pattern is a word of docs/contention.md.
type Advice struct {
	Key     string `json:"key"`
	Pattern string `json:"pattern"`
	Text    string `json:"text"`
}

// Server is what advice must know of the server whose lock table is looked at.
type Server struct {
	QueueMax int // how many requests a key holds up at most
	// Shared says that the records are in PostgreSQL, where other instances may write, too. None sees the queues of another.
	Shared bool
}

// Look makes a report of the lock table's state at now and of the last minute's hot keys. It is a pure function
// and keeps nothing of its arguments.
func Look(states []lock.KeyState, hot []HotKey, server Server, now time.Time) Report {
	r := Report{AtMillis: now.UnixMilli()}
	fronts := make(map[key.Key]lock.Entry, len(states))
	for _, s := range states {
		r.Held += min(len(s.Holders), 1)
		r.Awaited += min(queueLength(s), 1)
		if len(s.Holders) > 0 {
			fronts[s.Key] = s.Holders[0]
		} else {
			fronts[s.Key] = s.Waiters[0]
		}
		// A request counts at the first key that holds it up, so once.
		for _, w := range s.Waiters {
			if w.WaitsAt == s.Key {
				r.Waiting++
			}
		}
	}
	worst := slices.Clone(states)
	slices.SortStableFunc(worst, func(a, b lock.KeyState) int {
		return cmp.Or(queueLength(b)-queueLength(a), since(a).Compare(since(b)))
	})
	for _, s := range worst[:min(len(worst), keysMax)] {
		r.Keys = append(r.Keys, show(s, fronts, now))
	}
	r.KeysLeftOut = len(states) - len(r.Keys)
	for _, h := range hot[:min(len(hot), hotMax)] {
		r.Hot = append(r.Hot, Hottest{Name(h.Key), h.Waits, h.Waited.Milliseconds(), h.Conflicts, h.Missing})
	}
	r.Advice = advise(worst, hot, server, now)
	return r
}

// queueLength is how many the key holds up: not those that only keep their place.
func queueLength(s lock.KeyState) int {
	n := 0
	for _, w := range s.Waiters {
		if !w.Elsewhere {
			n++
		}
	}
	return n
}

// since is when the oldest at a key came or was granted.
func since(s lock.KeyState) time.Time {
	if len(s.Holders) > 0 {
		return s.Holders[0].Since
	}
	return s.Waiters[0].Since
}

func show(s lock.KeyState, fronts map[key.Key]lock.Entry, now time.Time) Key {
	k := Key{Key: Name(s.Key), QueueLength: queueLength(s)}
	for _, e := range s.Holders[:min(len(s.Holders), requestsMax)] {
		k.Holders = append(k.Holders, showRequest(e, now))
	}
	for _, e := range s.Waiters[:min(len(s.Waiters), requestsMax)] {
		w := showRequest(e, now)
		front := fronts[e.WaitsAt]
		w.WaitsFor = &Blocker{Name(e.WaitsAt), front.Owner.Op, front.Owner.RequestID}
		k.Waiters = append(k.Waiters, w)
	}
	k.HoldersLeftOut, k.WaitersLeftOut = len(s.Holders)-len(k.Holders), len(s.Waiters)-len(k.Waiters)
	return k
}

func showRequest(e lock.Entry, now time.Time) Request {
	mode := "shared"
	if e.Mode == lock.Exclusive {
		mode = "exclusive"
	}
	return Request{
		Operation: e.Owner.Op, RequestID: e.Owner.RequestID, Client: e.Owner.Client, Mode: mode,
		SinceMillis: e.Since.UnixMilli(), ForMillis: max(now.Sub(e.Since).Milliseconds(), 0), Batch: e.Batch,
	}
}

// Name is a key in the words of a person: "table main/sales/orders". A table name is that of
// a view, too. Slashes and control characters within names stay escaped.
func Name(k key.Key) string {
	path := strings.TrimPrefix(strings.Replace(k.Path, "//", "/", 1), "/")
	switch k.Level {
	case key.TableName:
		return "table " + path
	case key.Once:
		return "idempotency key " + path
	case key.Location:
		if k == key.LocationGuard() {
			return "location index"
		}
	}
	return k.Level.String() + " " + path
}
