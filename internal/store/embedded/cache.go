package embedded

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// content is what is known of one key: its record, or (the zero value) that there is
// none. The value is a string so that nobody can change what is shared.
type content struct {
	version store.Version
	id      string
	value   string
}

func (c content) record(k key.Key) store.Record {
	if c.version == store.Absent {
		return store.Record{Key: k}
	}
	return store.Record{Key: k, Version: c.version, ID: c.id, Value: []byte(c.value)}
}

// cache keeps what was last read or written, within a bound; a nil one keeps nothing.
// Readers look into it and offer what they found in the file; the writer tells it of
// each group that it is about to commit (begin), has committed (publish), or cannot
// tell (doubt).
//
// All that a group changes is seen at one moment, when it lands: what one read has
// given, no later read of any key takes back, and what a batch wrote is read by all who
// ask after its answer. That rests on this:
//
//   - A group is announced before its COMMIT starts and is in flight until all of it has
//     moved into the shards, after which the next may be announced.
//   - A reader offers what it found only if nothing moved into its shard since it looked
//     (the generation). So it saw all groups before the one in flight, and what it found
//     is what the cache would have said, unless the group in flight writes that key.
//   - If it does and the reader found what the group writes, then the COMMIT is done: SQLite
//     shows it to readers only after the fsync. The reader lets the group land, a moment
//     before the writer does. If it found another version, that is the one before: it may
//     be given away, for the group has not landed, but is not left here.
//     What is not there has no version to tell by: the reader looks again.
//   - A list that shows what the group in flight writes lets it land too. So does one that
//     lacks what the group deletes, if that is still known here.
type cache struct {
	seed   maphash.Seed
	flight atomic.Pointer[flight] // nil between groups
	shards [cacheShards]shard
}

const (
	cacheShards = 64
	// cacheOverhead is about what an entry costs beside its text, in bytes.
	cacheOverhead = 250
	// cacheLargest is the largest value that is kept. A larger one is read once, or costs
	// its reader more than the query.
	cacheLargest = 16 << 10
)

// flight is a group from before its COMMIT until it is in the shards.
type flight struct {
	changes map[key.Key]content // as the group leaves them; never changed once announced
	landed  atomic.Bool         // the COMMIT is durable, and readers see it
	doubt   bool                // nothing is certain: the cache is neither asked nor told
}

// shard holds the keys of one hash, the one that was used last in front.
type shard struct {
	mu         sync.Mutex
	generation uint64 // counts what was moved here
	entries    map[key.Key]*entry
	first      entry // the ring's end: its next was used last, its previous is the next to go
	size, most int   // bytes
}

type entry struct {
	key            key.Key
	content        content
	previous, next *entry
}

func (e *entry) weight() int {
	return len(e.key.Path) + len(e.content.version) + len(e.content.id) + len(e.content.value) + cacheOverhead
}

// newCache is a cache of about this many bytes; none if there is no room at all.
func newCache(bytes int) *cache {
	if bytes <= 0 {
		return nil
	}
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		s := &c.shards[i]
		s.most = bytes / cacheShards
		s.empty()
	}
	return c
}

func (c *cache) shard(k key.Key) *shard {
	return &c.shards[(maphash.String(c.seed, k.Path)+uint64(k.Level))%cacheShards]
}

// look gives what is known of k. If that is nothing, the generation goes with the offer
// of what the file says.
func (c *cache) look(k key.Key) (known content, ok bool, generation uint64) {
	if c == nil {
		return content{}, false, 0
	}
	f := c.flight.Load()
	if f != nil && f.landed.Load() {
		if now, ok := f.changes[k]; ok {
			return now, true, 0
		}
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[k]; ok && (f == nil || !f.doubt) {
		s.touch(e)
		return e.content, true, 0
	}
	return content{}, false, s.generation
}

// offer takes what a read found after a look of this generation. If it gives false the
// reader must look again.
func (c *cache) offer(k key.Key, found content, generation uint64) bool {
	if c == nil {
		return true
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if planted.Is(planted.CacheStaleFill) {
		s.put(k, found)
		return true
	}
	if s.generation != generation {
		return false
	}
	if f := c.flight.Load(); f != nil {
		if f.doubt {
			return true
		}
		if next, ok := f.changes[k]; ok {
			if found.version != next.version {
				return !f.landed.Load()
			}
			if found.version == store.Absent {
				return false
			}
			f.landed.Store(true)
			return true
		}
	}
	s.put(k, found)
	return true
}

// listed is told of every list that was read of the file: the records of p from this
// path on, up to the last one if it is full. Where it shows the group in flight, the group
// lands: else what is known here would take back what the list has shown.
func (c *cache) listed(p key.Prefix, from string, found []store.Record, full bool) {
	if c == nil {
		return
	}
	f := c.flight.Load()
	if f == nil || f.doubt || f.landed.Load() {
		return
	}
	for k, now := range f.changes {
		if k.Level != p.Level || k.Path < from || !strings.HasPrefix(k.Path, p.Path) {
			continue
		}
		i, there := slices.BinarySearchFunc(found, k.Path, func(r store.Record, path string) int { return strings.Compare(r.Key.Path, path) })
		seen := there && found[i].Version == now.version
		if !there && now.version == store.Absent && (i < len(found) || !full) {
			seen = c.has(k)
		}
		if seen {
			f.landed.Store(true)
			return
		}
	}
}

// has tells whether a record is known here, whatever the group in flight does to it.
func (c *cache) has(k key.Key) bool {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[k]
	return ok && e.content.version != store.Absent
}

// begin announces the changes of a group before its COMMIT starts. Where those before
// it are in doubt it goes unannounced.
func (c *cache) begin(changes map[key.Key]content) {
	if c == nil {
		return
	}
	if f := c.flight.Load(); f == nil || !f.doubt {
		f = &flight{changes: changes}
		f.landed.Store(planted.Is(planted.CacheBeforeCommit))
		c.flight.Store(f)
	}
}

// publish says that the COMMIT of the group is durable; whoever waits for it is answered
// afterwards. A COMMIT that wrote records also settles those before it that were in
// doubt.
func (c *cache) publish(changes map[key.Key]content) {
	if c == nil {
		return
	}
	f := c.flight.Load()
	if f.doubt && len(changes) == 0 {
		return
	}
	f.landed.Store(true)
	for k, now := range changes {
		s := c.shard(k)
		s.mu.Lock()
		s.generation++
		s.put(k, now)
		s.mu.Unlock()
	}
	c.flight.Store(nil)
}

// doubt says that a COMMIT failed, or that others have written in the file: all is
// forgotten, and every read is one of the file until the next COMMIT that succeeds.
func (c *cache) doubt() {
	if c == nil {
		return
	}
	c.flight.Store(&flight{doubt: true})
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.generation++
		s.empty()
		s.mu.Unlock()
	}
}

func (s *shard) empty() {
	s.size = 0
	s.entries = map[key.Key]*entry{}
	s.first.previous, s.first.next = &s.first, &s.first
}

// put replaces what is known of k, and drops what was not used for longest to make room.
func (s *shard) put(k key.Key, now content) {
	if e, ok := s.entries[k]; ok {
		s.drop(e)
	}
	e := &entry{key: k, content: now}
	if len(now.value) > cacheLargest || e.weight() > s.most {
		return
	}
	s.entries[k] = e
	s.size += e.weight()
	s.front(e)
	for s.size > s.most {
		s.drop(s.first.previous)
	}
}

func (s *shard) drop(e *entry) {
	delete(s.entries, e.key)
	e.previous.next, e.next.previous = e.next, e.previous
	s.size -= e.weight()
}

func (s *shard) touch(e *entry) {
	e.previous.next, e.next.previous = e.next, e.previous
	s.front(e)
}

func (s *shard) front(e *entry) {
	e.previous, e.next = &s.first, s.first.next
	e.previous.next, e.next.previous = e, e
}
