package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// newTestWriter is a writer without its goroutine, so that a test forms the groups.
func newTestWriter(t *testing.T) *writer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "catalog.db")
	if err := create(path); err != nil {
		t.Fatal(err)
	}
	c, err := dial(path, false)
	if err != nil {
		t.Fatal(err)
	}
	options := Options{}.withDefaults()
	if err := prepare(c, options); err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(path, options, c, newCache(options.CacheBytes))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.conn != nil {
			if err := w.conn.close(); err != nil {
				t.Error(err)
			}
		}
	})
	return w
}

func pointer(name string) key.Key { return key.ForPointer("w", name) }

// write requests a batch that takes a pointer from one version to that of its own id.
func writes(id, name string, from store.Version) *request {
	return newRequest(id, &store.Batch{
		ID:     id,
		Conds:  []store.Cond{store.Is(pointer(name), from)},
		Writes: []store.Write{{Key: pointer(name), ID: "i", Value: []byte("by " + id)}},
	})
}

func asks(id string) *request { return newRequest(id, nil) }

// settled runs a group and describes each answer in a word.
func (w *writer) settled(group ...*request) []string {
	w.answerGroup(group, false)
	var words []string
	for _, r := range group {
		words = append(words, describe(r, <-r.answer))
	}
	return words
}

func describe(r *request, answer reply) string {
	_, conflict := errors.AsType[*store.ConflictError](answer.err)
	switch {
	case answer.err == nil && r.batch == nil:
		return answer.outcome.String()
	case answer.err == nil:
		return "ok"
	case errors.Is(answer.err, store.ErrOutcomeUnknown):
		return "unknown"
	case errors.Is(answer.err, store.ErrFull):
		return "full"
	case conflict:
		return "conflict"
	}
	return "failed"
}

// versions reads, on a connection of its own, what is durable.
func (w *writer) versions(t *testing.T, names ...string) []string {
	t.Helper()
	c, err := dial(w.path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var versions []string
	for _, n := range names {
		k, version := pointer(n), ""
		if _, err := c.first("SELECT version FROM records WHERE level = ? AND path = ?", []any{k.Level, k.Path}, &version); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, version)
	}
	return versions
}

func wantEqual[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// group is one of everything: batches that rest on their predecessors, a refused
// one in the middle, one id twice, and outcomes before and behind their batches.
func group() ([]*request, []string) {
	return []*request{
			writes("1", "a", store.Absent),
			writes("2", "a", "1"),          // rests on 1
			writes("3", "a", "1"),          // refused because of 2
			writes("4", "b", store.Absent), // a neighbour
			writes("1", "a", store.Absent), // sent twice
			asks("2"),
			asks("3"), // was refused: now void
			writes("3", "c", store.Absent),
			asks("5"), // never seen: now void
			writes("5", "c", store.Absent),
			writes("6", "a", "2"),
		}, []string{
			"ok", "ok", "conflict", "ok", "ok", "applied", "not applied", "conflict", "not applied", "conflict", "ok",
		}
}

// A group is checked in order against what its predecessors left, has one
// COMMIT, and nobody's refusal touches a neighbour.
func TestGroup(t *testing.T) {
	w := newTestWriter(t)
	commits, observed := 0, 0
	commit := w.commit
	w.commit = func(c *conn) error { commits++; return commit(c) }
	w.options.Observe = func(size int, _ time.Duration) { observed += size }

	requests, want := group()
	wantEqual(t, "answers", want, w.settled(requests...))
	wantEqual(t, "versions", []string{"6", "4", ""}, w.versions(t, "a", "b", "c"))
	wantEqual(t, "commits", 1, commits)
	wantEqual(t, "observed", len(requests), observed)
}

// sqliteError stands for an error of the driver, which has no constructor.
type sqliteError int

func (e sqliteError) Error() string { return fmt.Sprintf("injected: SQLite code %d", int(e)) }
func (e sqliteError) Code() int     { return int(e) }

// Whatever a COMMIT answers, what callers are told is what is there: a failed
// one that was applied is success (and is not applied twice), one that was not is
// tried again, batch by batch, and then told; when even reading fails the answer
// is "unknown", never a guess.
func TestCommitFails(t *testing.T) {
	_, allGood := group()
	everybody := func(word string) []string { return slices.Repeat([]string{word}, len(allGood)) }
	done, nothing := []string{"6", "4", ""}, []string{"", "", ""}

	for name, c := range map[string]struct {
		commit   func(w *writer, n int, commit func() error) error // n counts from 1
		answers  []string
		versions []string
	}{
		"once, not applied": {
			commit: func(_ *writer, n int, commit func() error) error {
				if n == 1 {
					return sqliteError(sqlite3.SQLITE_BUSY)
				}
				return commit()
			},
			answers: allGood, versions: done,
		},
		"once, not applied, by a write error": {
			commit: func(_ *writer, n int, commit func() error) error {
				if n == 1 {
					return sqliteError(sqlite3.SQLITE_IOERR_WRITE)
				}
				return commit()
			},
			answers: allGood, versions: done,
		},
		"once, applied": {
			commit: func(_ *writer, n int, commit func() error) error {
				if err := commit(); err != nil || n > 1 {
					return err
				}
				return sqliteError(sqlite3.SQLITE_IOERR_WRITE)
			},
			answers: allGood, versions: done,
		},
		"always, though applied": {
			commit: func(_ *writer, _ int, commit func() error) error {
				if err := commit(); err != nil {
					return err
				}
				return sqliteError(sqlite3.SQLITE_FULL)
			},
			answers: allGood, versions: done,
		},
		"always, not applied": {
			commit:  func(*writer, int, func() error) error { return sqliteError(sqlite3.SQLITE_BUSY) },
			answers: everybody("failed"), versions: nothing,
		},
		"always, not applied, for want of room": {
			commit:  func(*writer, int, func() error) error { return sqliteError(sqlite3.SQLITE_FULL) },
			answers: everybody("full"), versions: nothing,
		},
		"always, not applied, by write errors that a crash could undo": {
			commit:  func(*writer, int, func() error) error { return sqliteError(sqlite3.SQLITE_IOERR_WRITE) },
			answers: everybody("unknown"), versions: nothing,
		},
		"applied, and the file cannot be opened again": {
			commit: func(w *writer, _ int, commit func() error) error {
				if err := commit(); err != nil {
					return err
				}
				w.dial = func(string, bool) (*conn, error) { return nil, errors.New("injected: no more connections") }
				return sqliteError(sqlite3.SQLITE_IOERR_WRITE)
			},
			answers: everybody("unknown"), versions: done,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWriter(t)
			n, commit := 0, w.commit
			w.commit = func(conn *conn) error {
				n++
				return c.commit(w, n, func() error { return commit(conn) })
			}
			requests, _ := group()
			wantEqual(t, "answers", c.answers, w.settled(requests...))
			wantEqual(t, "versions", c.versions, w.versions(t, "a", "b", "c"))

			// The writer is as good as new.
			w.dial, w.commit = dial, commit
			wantEqual(t, "afterwards", []string{"ok"}, w.settled(writes("7", "z", store.Absent)))
		})
	}
}

// An unknown answer is settled by Outcome, for good, once the disk works again.
func TestUnknownIsSettled(t *testing.T) {
	w := newTestWriter(t)
	commit := w.commit
	w.commit = func(*conn) error { return sqliteError(sqlite3.SQLITE_IOERR_WRITE) }
	wantEqual(t, "answer", []string{"unknown"}, w.settled(writes("1", "a", store.Absent)))
	w.commit = commit
	wantEqual(t, "settled", []string{"not applied", "conflict"}, w.settled(asks("1"), writes("1", "a", store.Absent)))
}

// A failed fsync calls Fatal before anybody is answered; all that was on its way
// is unknown, all that comes later is refused without being tried.
func TestFailedFsyncStops(t *testing.T) {
	for _, code := range []int{sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC} {
		w := newTestWriter(t)
		var fatal []error
		requests, _ := group()
		w.options.Fatal = func(err error) {
			fatal = append(fatal, err)
			for _, r := range requests {
				if len(r.answer) > 0 {
					t.Error("answered before Fatal")
				}
			}
		}
		commits := 0
		w.commit = func(*conn) error { commits++; return sqliteError(code) }
		answers := w.settled(requests...)
		for i, got := range answers {
			if got != "unknown" {
				t.Errorf("request %d: %s, want unknown", i, got)
			}
		}
		if len(fatal) != 1 || codeOf(fatal[0]) != code || !strings.Contains(fatal[0].Error(), w.path) {
			t.Errorf("Fatal was called with %v", fatal)
		}
		wantEqual(t, "later", []string{"failed", "failed"}, w.settled(writes("8", "z", store.Absent), asks("1")))
		wantEqual(t, "commits", 1, commits)
	}
}

// Where there is no room, the batch that wants it fails alone with ErrFull; its
// neighbours in the group are applied, and so is whatever fits afterwards.
func TestFull(t *testing.T) {
	w := newTestWriter(t)
	limit := func(c *conn) *conn {
		var pages int
		if _, err := c.first("PRAGMA max_page_count = 100", nil, &pages); err != nil || pages != 100 {
			t.Fatalf("limit: %d pages, %v", pages, err)
		}
		return c
	}
	limit(w.conn)
	w.dial = func(path string, readOnly bool) (*conn, error) {
		c, err := dial(path, readOnly)
		if err != nil {
			return nil, err
		}
		return limit(c), nil
	}
	big := func(id, name string, from store.Version) *request {
		b := writes(id, name, from).batch
		b.Writes[0].Value = make([]byte, 300<<10)
		// A second write, so that half a batch would show.
		b.Conds = append(b.Conds, store.Is(pointer("with "+name), store.Absent))
		b.Writes = append([]store.Write{{Key: pointer("with " + name), ID: "i"}}, b.Writes...)
		return newRequest(id, b)
	}
	wantEqual(t, "answers", []string{"ok", "ok", "full", "ok", "full"}, w.settled(
		writes("1", "a", store.Absent), big("2", "b", store.Absent), big("3", "c", store.Absent), writes("4", "a", "1"), big("5", "d", store.Absent)))
	wantEqual(t, "versions", []string{"4", "2", "2", "", "", "", ""}, w.versions(t, "a", "b", "with b", "c", "with c", "d", "with d"))

	remove := newRequest("6", &store.Batch{
		ID:     "6",
		Conds:  []store.Cond{store.Is(pointer("b"), "2")},
		Writes: []store.Write{{Key: pointer("b"), Delete: true}},
	})
	wantEqual(t, "after making room", []string{"ok", "ok"}, w.settled(remove, big("3", "c", store.Absent)))
	wantEqual(t, "versions", []string{"", "3"}, w.versions(t, "b", "c"))
}

// Ids are forgotten by their own time and in order; what is forgotten is unknown
// for ever, also to a store opened later, and what is not stays known.
func TestForgetting(t *testing.T) {
	start := time.UnixMilli(1_800_000_000_000)
	now := start
	id := func(at time.Time, n int) string { return fmt.Sprintf("%s-7000-8000-%012d", idFloor(at), n) }
	w := newTestWriter(t)
	w.options.Now = func() time.Time { return now }

	old, oldVoid := id(start, 1), id(start, 2)
	wantEqual(t, "old", []string{"ok", "not applied"}, w.settled(writes(old, "a", store.Absent), asks(oldVoid)))
	now = start.Add(30 * time.Minute)
	recent := id(now, 3)
	wantEqual(t, "recent", []string{"ok", "applied", "not applied"}, w.settled(writes(recent, "b", store.Absent), asks(old), asks(oldVoid)))

	now = start.Add(61 * time.Minute)
	wantEqual(t, "still in this group", []string{"applied"}, w.settled(asks(old)))
	remembered := []string{"unknown", "unknown", "unknown", "unknown", "applied", "not applied"}
	ask := func() []string {
		return w.settled(asks(old), asks(oldVoid), asks(id(start.Add(-time.Hour), 9)), writes(old, "a", store.Absent), asks(recent), asks(id(start, 4)))
	}
	wantEqual(t, "forgotten", remembered, ask())
	if err := w.conn.close(); err != nil {
		t.Fatal(err)
	}
	w.conn = nil
	wantEqual(t, "forgotten, opened again", remembered, ask())
	wantEqual(t, "versions", []string{old, recent}, w.versions(t, "a", "b"))
}

// However many ids have piled up, a group removes only some more than came since
// the last removal; and always more, so that in the end none is left.
func TestPruningIsBounded(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	w := newTestWriter(t)
	w.options.Now = func() time.Time { return now }
	count := func() (n int) {
		if _, err := w.conn.first("SELECT count(*) FROM applied", nil, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	some := func(n int) {
		var requests []*request
		for i := range n {
			requests = append(requests, asks(fmt.Sprintf("%s-%d", idFloor(now), i)))
		}
		w.settled(requests...)
		now = now.Add(pruneInterval)
	}
	some(1000)
	some(1)
	now = now.Add(2 * time.Hour)
	const rounds = 12
	for round := range rounds {
		before := count()
		some(10)
		if gone := before + 10 - count(); gone > 200 {
			t.Fatalf("round %d: %d ids were forgotten at once", round, gone)
		}
	}
	wantEqual(t, "ids left, the recent ones", 10*rounds, count())
}

// A clock that was years ahead has the store forget ids of that time; when it is
// set right and the process starts again, new batches are not taken for old ones.
func TestClockThatWasAhead(t *testing.T) {
	right := time.UnixMilli(1_800_000_000_000)
	now := right.AddDate(5, 0, 0)
	w := newTestWriter(t)
	w.options.Now = func() time.Time { return now }
	wantEqual(t, "ahead", []string{"not applied"}, w.settled(asks(idFloor(now)+"-1")))
	now = now.Add(2 * time.Hour)
	w.settled(asks(idFloor(now) + "-2"))

	now = right
	fresh := func(n int) *request {
		return writes(fmt.Sprintf("%s-%d", idFloor(now), n), fmt.Sprint(n), store.Absent)
	}
	wantEqual(t, "the same process", []string{"unknown"}, w.settled(fresh(3)))
	var said bytes.Buffer
	w.options.Log = slog.New(slog.NewTextHandler(&said, nil))
	if err := prepare(w.conn, w.options); err != nil {
		t.Fatal(err)
	}
	if err := w.adopt(w.conn); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "clock") {
		t.Errorf("the operator is told %q", said.String())
	}
	wantEqual(t, "the next process", []string{"ok"}, w.settled(fresh(4)))
}

// Values and paths are text that the sqlite3 tool and its JSON functions read.
func TestFileIsReadable(t *testing.T) {
	w := newTestWriter(t)
	b := writes("1", "a", store.Absent).batch
	b.Writes[0].Value = []byte(`{"kind":"table"}`)
	b.Ops = []store.OpRecord{{ID: "o", Name: "create-table"}}
	wantEqual(t, "answer", []string{"ok"}, w.settled(newRequest("1", b)))
	var path, kind, op string
	_, err := w.conn.first(`SELECT path, value ->> 'kind', ops -> 0 ->> 'name' FROM records JOIN applied ON version = batch_id
		WHERE typeof(path) = 'text' AND typeof(value) = 'text'`, nil, &path, &kind, &op)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "read", []string{"w//a", "table", "create-table"}, []string{path, kind, op})
}
