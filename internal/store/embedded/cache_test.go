package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// at is a record of this version; without one, that there is none.
func at(version store.Version) content { return content{version: version} }

// leaving are the changes of a group that leaves pointers at these versions.
func leaving(versions map[string]store.Version) map[key.Key]content {
	changes := map[key.Key]content{}
	for name, version := range versions {
		changes[pointer(name)] = at(version)
	}
	return changes
}

// known gives the version that the cache knows, "-" where it knows that there is no
// record, and "?" where it knows nothing.
func (c *cache) known(name string) string {
	now, ok, _ := c.look(pointer(name))
	switch {
	case !ok:
		return "?"
	case now.version == store.Absent:
		return "-"
	}
	return string(now.version)
}

// A read that looked before a group began and offers what it found at each later
// moment, whether the file showed it the group or not.
func TestSlowRead(t *testing.T) {
	for name, c := range map[string]struct {
		steps  string // what the writer does in between
		writes store.Version
		found  store.Version
		taken  bool // else the read looks again
		known  string
	}{
		"alone":                           {"", "2", "1", true, "1"},
		"alone, nothing there":            {"", "2", "", true, "-"},
		"in flight, not seen":             {"begin", "2", "1", true, "?"},
		"in flight, not seen, none there": {"begin", "2", "", true, "?"},
		"in flight, seen":                 {"begin", "2", "2", true, "2"},
		// It may be a deletion that is durable, and may be what was there before.
		"in flight, none there, none written": {"begin", "", "", false, "?"},
		"deletion in flight, not seen":        {"begin", "", "1", true, "?"},
		"published, not seen":                 {"begin publish", "2", "1", false, "2"},
		"published, seen":                     {"begin publish", "2", "2", false, "2"},
		"deletion published, not seen":        {"begin publish", "", "1", false, "-"},
		"in doubt":                            {"begin doubt", "2", "1", false, "?"},
		"in doubt, then published":            {"begin doubt begin publish", "2", "1", false, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := newCache(1 << 20)
			_, _, generation := kept.look(pointer("a"))
			changes := leaving(map[string]store.Version{"a": c.writes})
			for step := range strings.FieldsSeq(c.steps) {
				switch step {
				case "begin":
					kept.begin(changes)
				case "publish":
					kept.publish(changes)
				case "doubt":
					kept.doubt()
				}
			}
			wantEqual(t, "taken", c.taken, kept.offer(pointer("a"), at(c.found), generation))
			wantEqual(t, "known", c.known, kept.known("a"))
		})
	}
}

// A group is seen whole or not at all, also when it is a reader that found it in the
// file first; and whatever is known besides it stays known.
func TestGroupLandsAtOnce(t *testing.T) {
	kept := newCache(1 << 20)
	for _, name := range []string{"a", "b", "z"} {
		_, _, generation := kept.look(pointer(name))
		kept.offer(pointer(name), at("1"), generation)
	}
	known := func() []string { return []string{kept.known("a"), kept.known("b"), kept.known("c"), kept.known("z")} }
	_, _, generation := kept.look(pointer("c"))
	changes := leaving(map[string]store.Version{"a": "2", "b": "", "c": "2"})
	kept.begin(changes)
	wantEqual(t, "in flight", []string{"1", "1", "?", "1"}, known())
	if !kept.offer(pointer("c"), at("2"), generation) {
		t.Error("what is durable may not be given away")
	}
	wantEqual(t, "landed", []string{"2", "-", "2", "1"}, known())
	kept.publish(changes)
	wantEqual(t, "published", []string{"2", "-", "2", "1"}, known())
}

// While a COMMIT is in doubt nothing is known or learnt, and a group that writes no
// record does not end that; one that does leaves what it wrote, and no more.
func TestDoubt(t *testing.T) {
	kept := newCache(1 << 20)
	learn := func(name string, version store.Version) {
		_, _, generation := kept.look(pointer(name))
		if !kept.offer(pointer(name), at(version), generation) {
			t.Error("a read of the file may not be given away")
		}
	}
	learn("a", "1")
	learn("b", "1")
	kept.begin(leaving(map[string]store.Version{"a": "2"}))
	kept.doubt()
	empty := leaving(nil)
	kept.begin(empty)
	kept.publish(empty)
	learn("a", "1")
	wantEqual(t, "in doubt", []string{"?", "?"}, []string{kept.known("a"), kept.known("b")})
	changes := leaving(map[string]store.Version{"c": "3"})
	kept.begin(changes)
	wantEqual(t, "still in doubt", "?", kept.known("c"))
	kept.publish(changes)
	wantEqual(t, "settled", []string{"?", "?", "3"}, []string{kept.known("a"), kept.known("b"), kept.known("c")})
	learn("a", "2")
	wantEqual(t, "learnt", "2", kept.known("a"))
}

// The cache keeps to its bound and drops what was not used for longest; a large value
// is not kept at all, not even the one before it.
func TestCacheBound(t *testing.T) {
	const bytes = cacheShards * 4000
	kept := newCache(bytes)
	tell := func(k key.Key, now content) {
		changes := map[key.Key]content{k: now}
		kept.begin(changes)
		kept.publish(changes)
	}
	tell(pointer("used"), at("1"))
	value := strings.Repeat("x", 100)
	for i := range 10_000 {
		tell(pointer(fmt.Sprint(i)), content{version: "1", id: "i", value: value})
		if kept.known("used") != "1" {
			t.Fatalf("after %d records one that is always in use was dropped", i)
		}
	}
	size, entries := 0, 0
	for i := range kept.shards {
		sum := 0
		for _, e := range kept.shards[i].entries {
			sum += e.weight()
		}
		wantEqual(t, "size of a shard", sum, kept.shards[i].size)
		size, entries = size+sum, entries+len(kept.shards[i].entries)
	}
	if size > bytes || size < bytes/2 {
		t.Errorf("%d entries of %d bytes are kept, want at most %d and not much less", entries, size, bytes)
	}
	tell(pointer("used"), content{version: "2", id: "i", value: strings.Repeat("x", cacheLargest+1)})
	wantEqual(t, "large", "?", kept.known("used"))
}

// A read never shows what is not durable, and one after the answer always does.
func TestReadBesideCommit(t *testing.T) {
	s, gate, committing := holdable(t, Options{})
	apply := func(id string, from store.Version) {
		if err := s.Apply(t.Context(), *writes(id, "a", from).batch); err != nil {
			t.Error(err)
		}
	}
	read := func() store.Version {
		r, err := s.Get(t.Context(), pointer("a"))
		if err != nil {
			t.Error(err)
		}
		return r.Version
	}
	wantEqual(t, "at first", store.Absent, read())
	before := store.Absent
	for i := range 10 {
		id := fmt.Sprint("id ", i)
		gate.Lock()
		var wg sync.WaitGroup
		wg.Go(func() { apply(id, before) })
		<-committing
		wantEqual(t, "not durable", before, read())
		gate.Unlock()
		wg.Wait()
		wantEqual(t, "answered", store.Version(id), read())
		before = store.Version(id)
	}
}

// After a COMMIT that failed, whether it was applied or not, what is read is what is
// there: at once, when its batches were tried again, and when the disk works again.
func TestReadAfterFailedCommit(t *testing.T) {
	for name, is := range map[string]struct{ applied, cut bool }{
		"applied":                         {true, false},
		"not applied":                     {false, false},
		"applied, and no more connection": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWriter(t)
			c, err := dial(w.path, true)
			if err != nil {
				t.Fatal(err)
			}
			s := &Store{queue: newQueue(1), readers: make(chan *conn, 1), cache: w.cache}
			s.readers <- c
			defer c.close()
			read := func(names ...string) (versions []string) {
				for _, n := range names {
					r, err := s.Get(t.Context(), pointer(n))
					if err != nil {
						t.Fatal(err)
					}
					versions = append(versions, string(r.Version))
				}
				return versions
			}
			wantEqual(t, "first", []string{"ok", "ok"}, w.settled(writes("1", "a", store.Absent), writes("2", "b", store.Absent)))
			commit := w.commit
			w.commit = func(c *conn) error {
				if is.applied {
					if err := commit(c); err != nil {
						return err
					}
				}
				wantEqual(t, "the error is not known yet", w.versions(t, "b"), read("b"))
				if is.cut {
					w.dial = func(string, bool) (*conn, error) { return nil, errors.New("injected: no more connections") }
				}
				return sqliteError(sqlite3.SQLITE_IOERR_WRITE)
			}
			w.settled(writes("3", "a", "1"), writes("4", "c", store.Absent))
			wantEqual(t, "failed", w.versions(t, "a", "b", "c"), read("a", "b", "c"))
			w.commit, w.dial = commit, dial
			w.settled(writes("5", "z", store.Absent))
			for range 2 { // from the file, then from the cache
				wantEqual(t, "works again", w.versions(t, "a", "b", "c", "z"), read("a", "b", "c", "z"))
			}
			wantEqual(t, "known again", "2", w.cache.known("b"))
		})
	}
}

// What another process wrote is noticed before a condition is checked, and what this
// one knew is forgotten.
func TestOthersWrite(t *testing.T) {
	w := newTestWriter(t)
	c, err := dial(w.path, false)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newWriter(w.path, w.options, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.conn.close(); err != nil {
			t.Error(err)
		}
	}()
	wantEqual(t, "here", []string{"ok", "ok"}, w.settled(writes("1", "a", store.Absent), writes("2", "b", store.Absent)))
	wantEqual(t, "there", []string{"ok"}, other.settled(writes("3", "a", "1")))
	wantEqual(t, "here", []string{"conflict", "ok", "ok"}, w.settled(writes("4", "a", "1"), writes("5", "c", store.Absent), writes("6", "a", "3")))
	wantEqual(t, "known", []string{"6", "?", "5"}, []string{w.cache.known("a"), w.cache.known("b"), w.cache.known("c")})
	wantEqual(t, "there", []string{"conflict"}, other.settled(writes("7", "a", "3")))
	wantEqual(t, "here", []string{"ok"}, w.settled(writes("8", "a", "6")))
	wantEqual(t, "known", "5", w.cache.known("c"))

	// The connection that would tell is lost.
	if err := w.conn.close(); err != nil {
		t.Fatal(err)
	}
	w.conn = nil
	wantEqual(t, "there", []string{"ok"}, other.settled(writes("9", "a", "8")))
	wantEqual(t, "here", []string{"conflict", "ok"}, w.settled(writes("A", "a", "8"), writes("B", "a", "9")))
}

// Many readers and writers, on a cache that keeps all, one that keeps next to nothing
// and none, with COMMITs that fail now and then. Each writer counts up in a pair of
// records that it always writes together, and deletes both at each fifth count. No
// read, of either, gives a count below one that was answered or read before it began,
// or one that was not sent yet; no list one below what was answered.
func TestReadsInOrder(t *testing.T) {
	for name, bytes := range map[string]int{"all": 0, "next to nothing": cacheShards * 600, "none": -1} {
		t.Run(name, func(t *testing.T) {
			const seed = 20_240_817
			random := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
			s := openStore(t, filepath.Join(t.TempDir(), "catalog.db"), Options{CacheBytes: bytes})
			commit, faults := s.writer.commit, random(0)
			s.writer.commit = func(c *conn) error {
				switch faults.IntN(50) {
				case 0:
					return sqliteError(sqlite3.SQLITE_BUSY)
				case 1:
					return errors.Join(sqliteError(sqlite3.SQLITE_IOERR_WRITE), commit(c))
				}
				return commit(c)
			}
			const writers, readers, counts, deleted = 8, 6, 100, 5
			var pairs [writers]struct{ sent, answered, read atomic.Int64 }
			keyOf := func(pair, half int) key.Key { return pointer(fmt.Sprint(pair, " ", half)) }

			var writing, reading sync.WaitGroup
			for i := range pairs {
				writing.Go(func() {
					version := store.Absent
					for n := int64(1); n <= counts; {
						b := store.Batch{ID: uuid.Must(uuid.NewV7()).String()}
						for half := range 2 {
							w := store.Write{Key: keyOf(i, half), ID: "i", Value: strconv.AppendInt(nil, n, 10)}
							if n%deleted == 0 {
								w = store.Write{Key: w.Key, Delete: true}
							}
							b.Writes = append(b.Writes, w)
							b.Conds = append(b.Conds, store.Is(w.Key, version))
						}
						pairs[i].sent.Store(n)
						err := s.Apply(context.Background(), b)
						if errors.Is(err, store.ErrOutcomeUnknown) {
							var o store.Outcome
							if o, err = s.Outcome(context.Background(), b); o == store.NotApplied {
								continue
							}
						}
						if isPrimary(err, sqlite3.SQLITE_BUSY) {
							continue
						}
						if err != nil {
							t.Error(err)
							return
						}
						pairs[i].answered.Store(n)
						version = store.Version(b.ID)
						if n%deleted == 0 {
							version = store.Absent
						}
						n++
					}
				})
			}
			// countOf is the least count from floor on that a record can be of.
			countOf := func(r store.Record, floor int64) int64 {
				if !r.Exists() {
					return (floor + deleted - 1) / deleted * deleted
				}
				n, err := strconv.ParseInt(string(r.Value), 10, 64)
				if err != nil {
					t.Error(err)
				}
				return n
			}
			done := make(chan struct{})
			for i := range readers {
				random := random(uint64(i) + 1)
				reading.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						pair := random.IntN(writers)
						p, k := &pairs[pair], keyOf(pair, random.IntN(2))
						floor, read := p.answered.Load(), s.list
						isGet := random.IntN(4) > 0
						if isGet {
							floor, read = max(floor, p.read.Load()), s.Get
						}
						r, err := read(context.Background(), k)
						n := countOf(r, floor)
						if err != nil || n < floor || n > p.sent.Load() {
							t.Errorf("%v: read %q of version %q, %v; want %d to %d", k, r.Value, r.Version, err, floor, p.sent.Load())
							return
						}
						for isGet && p.read.Load() < n {
							if before := p.read.Load(); before < n {
								p.read.CompareAndSwap(before, n)
							}
						}
					}
				})
			}
			writing.Wait()
			close(done)
			reading.Wait()
			for i := range pairs {
				wantEqual(t, "count", int64(counts), pairs[i].answered.Load())
			}
		})
	}
}

// list reads one record as List does.
func (s *Store) list(ctx context.Context, k key.Key) (store.Record, error) {
	page, err := s.List(ctx, key.Prefix{Level: k.Level, Path: k.Path}, "", 1)
	if i := slices.IndexFunc(page, func(r store.Record) bool { return r.Key == k }); i >= 0 {
		return page[i], err
	}
	return store.Record{Key: k}, err
}
