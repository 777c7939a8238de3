package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/store/storetest"
)

// bent is a right store with some of its calls replaced.
type bent struct {
	*mem.Store
	get     func(context.Context, key.Key) (store.Record, error)
	list    func(context.Context, key.Prefix, string, int) ([]store.Record, error)
	apply   func(context.Context, store.Batch) error
	outcome func(context.Context, string) (store.Outcome, error)
}

func (b *bent) Get(ctx context.Context, k key.Key) (store.Record, error) {
	if b.get != nil {
		return b.get(ctx, k)
	}
	return b.Store.Get(ctx, k)
}

func (b *bent) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	if b.list != nil {
		return b.list(ctx, p, after, limit)
	}
	return b.Store.List(ctx, p, after, limit)
}

func (b *bent) Apply(ctx context.Context, batch store.Batch) error {
	if b.apply != nil {
		return b.apply(ctx, batch)
	}
	return b.Store.Apply(ctx, batch)
}

func (b *bent) Outcome(ctx context.Context, batch store.Batch) (store.Outcome, error) {
	if b.outcome != nil {
		return b.outcome(ctx, batch.ID)
	}
	return b.Store.Outcome(ctx, batch)
}

// without applies a valid batch less the conditions that drop picks.
func without(s *bent, drop func(store.Batch, store.Cond) bool) {
	s.apply = func(ctx context.Context, b store.Batch) error {
		if err := b.Validate(); err != nil {
			return err
		}
		all := b
		b.Conds = slices.DeleteFunc(slices.Clone(b.Conds), func(c store.Cond) bool { return drop(all, c) })
		return s.Store.Apply(ctx, b)
	}
}

func isWritten(b store.Batch, k key.Key) bool {
	return slices.ContainsFunc(b.Writes, func(w store.Write) bool { return w.Key == k })
}

// gap is how far apart a planted bug pulls two steps that should be one, so that
// the race is lost every time: by all who begin at once, as long as more than one begins within it in any of many rounds. Where
// it matters who comes first they wait for one another.
const gap = 2 * time.Millisecond

// wait is for what others do in the same round.
func wait(ctx context.Context, done func() bool) {
	for !done() && ctx.Err() == nil {
		time.Sleep(gap / 20)
	}
}

func (b *bent) isEmpty(ctx context.Context, p key.Prefix) bool {
	found, _ := b.Store.List(ctx, p, "", 1)
	return len(found) == 0
}

// planted are mistakes that are easy to make, and the case that finds each.
var planted = []struct {
	bug, foundBy string
	bend         func(s *bent)
}{
	{"Live is not checked", "live", func(s *bent) {
		without(s, func(_ store.Batch, c store.Cond) bool { return c.Kind == store.KindLive })
	}},
	{"Empty is not checked", "empty", func(s *bent) {
		without(s, func(_ store.Batch, c store.Cond) bool { return c.Kind == store.KindEmpty })
	}},
	{"conditions on keys that are only read are not checked", "skew: assert A, write B", func(s *bent) {
		without(s, func(b store.Batch, c store.Cond) bool { return c.Kind == store.KindIs && !isWritten(b, c.Key) })
	}},
	{"the batch's own writes count for Empty", "empty leaves out the batch's own writes", func(s *bent) {
		s.apply = func(ctx context.Context, b store.Batch) error {
			for _, c := range b.Conds {
				if found, _ := s.Store.List(ctx, c.Prefix, "", 1); c.Kind == store.KindEmpty && len(found) > 0 {
					return &store.ConflictError{Conds: []store.Cond{c}}
				}
			}
			return s.Store.Apply(ctx, b)
		}
	}},
	{"emptiness is decided before the write", "skew: create a child, empty the parent", func(s *bent) {
		var looked sync.Map // the parents that were found to be empty
		s.apply = func(ctx context.Context, b store.Batch) error {
			for _, c := range b.Conds {
				switch c.Kind { // every child comes between the look and the write
				case store.KindLive:
					wait(ctx, func() bool { _, ok := looked.Load(c.Key); return ok })
				case store.KindEmpty:
					if !s.isEmpty(ctx, c.Prefix) {
						return &store.ConflictError{Conds: []store.Cond{c}}
					}
					looked.Store(c.Key, true)
					wait(ctx, func() bool { return !s.isEmpty(ctx, c.Prefix) })
				}
			}
			b.Conds = slices.DeleteFunc(slices.Clone(b.Conds), func(c store.Cond) bool { return c.Kind == store.KindEmpty })
			return s.Store.Apply(ctx, b)
		}
	}},
	{"the guard of the locations is not held", "skew: nested locations", func(s *bent) {
		check := (&bent{Store: s.Store}).Apply
		s.apply = func(ctx context.Context, b store.Batch) error {
			conds := slices.Clone(b.Conds)
			for _, c := range conds {
				if c.Kind == store.KindEmpty && !slices.ContainsFunc(b.Writes, func(w store.Write) bool { return w.Delete }) {
					wait(ctx, func() bool { return !s.isEmpty(ctx, c.Prefix) }) // the outer claim comes after an inner one
				}
			}
			for i, c := range conds {
				if c.Key == key.LocationGuard() && c.Kind == store.KindIs && c.Version != store.Absent {
					now, _ := s.Store.Get(ctx, c.Key)
					conds[i].Version = now.Version
				}
			}
			b.Conds = slices.DeleteFunc(conds, func(c store.Cond) bool { return c.Kind == store.KindEmpty })
			return check(ctx, b)
		}
	}},
	{"the last writer wins", "no update is lost", func(s *bent) {
		s.apply = func(ctx context.Context, b store.Batch) error {
			time.Sleep(gap)
			b.Conds = slices.Clone(b.Conds)
			for i, c := range b.Conds {
				if now, _ := s.Store.Get(ctx, c.Key); c.Kind == store.KindIs && c.Version != store.Absent {
					b.Conds[i].Version = now.Version
				}
			}
			return s.Store.Apply(ctx, b)
		}
	}},
	{"who makes a record looks first, and then writes", "a record is made once", func(s *bent) {
		s.apply = func(ctx context.Context, b store.Batch) error {
			for _, c := range b.Conds {
				if now, _ := s.Store.Get(ctx, c.Key); c.Kind == store.KindIs && c.Version == store.Absent && now.Exists() {
					return &store.ConflictError{Conds: []store.Cond{c}}
				}
			}
			time.Sleep(gap)
			b.Conds = slices.Clone(b.Conds)
			for {
				for i, c := range b.Conds {
					now, _ := s.Store.Get(ctx, c.Key)
					b.Conds[i].Version = now.Version
				}
				if err := s.Store.Apply(ctx, b); err == nil {
					return nil
				}
			}
		}
	}},
	{"a version is the hash of its value", "a version never returns", func(s *bent) {
		hash := func(r store.Record) store.Record {
			if r.Exists() {
				r.Version = store.Version(fmt.Sprintf("%x", xxhash.Sum64(append(r.Value, r.ID...))))
			}
			return r
		}
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) {
			r, err := s.Store.Get(ctx, k)
			return hash(r), err
		}
	}},
	{"only the first failed condition is named", "every failed condition is named", func(s *bent) {
		s.apply = func(ctx context.Context, b store.Batch) error {
			err := s.Store.Apply(ctx, b)
			if conflict, ok := errors.AsType[*store.ConflictError](err); ok && len(conflict.Conds) > 1 {
				return &store.ConflictError{Conds: conflict.Conds[:1]}
			}
			return err
		}
	}},
	{"a batch is applied write by write", "all or nothing", func(s *bent) {
		s.apply = func(ctx context.Context, b store.Batch) error {
			if err := b.Validate(); err != nil {
				return err
			}
			for _, w := range b.Writes {
				part := store.Batch{ID: b.ID + w.Key.Path, Writes: []store.Write{w}}
				for _, c := range b.Conds {
					if c.Key == w.Key {
						part.Conds = append(part.Conds, c)
					}
				}
				if err := s.Store.Apply(ctx, part); err != nil {
					return err
				}
			}
			return nil
		}
	}},
	{"a batch that is sent twice conflicts with itself", "an id is applied once", func(s *bent) {
		s.apply = func(ctx context.Context, b store.Batch) error {
			for _, c := range b.Conds {
				if now, _ := s.Store.Get(ctx, c.Key); c.Kind == store.KindIs && c.Version != now.Version {
					return &store.ConflictError{Conds: []store.Cond{c}}
				}
			}
			return s.Store.Apply(ctx, b)
		}
	}},
	{"a batch that is sent twice is applied twice", "an id is applied once", func(s *bent) {
		sent := map[string]int{}
		s.apply = func(ctx context.Context, b store.Batch) error {
			sent[b.ID]++
			b.ID += strings.Repeat("+", sent[b.ID]-1)
			if err := s.Store.Apply(ctx, b); err != nil && sent[b.ID] == 1 {
				return err
			}
			return nil
		}
	}},
	{"invalid batches are swallowed", "invalid batches are refused", func(s *bent) {
		s.apply = func(ctx context.Context, b store.Batch) error {
			if b.Validate() != nil {
				return nil
			}
			return s.Store.Apply(ctx, b)
		}
	}},
	{"a condition is held exclusively", "sharing a condition excludes nobody", func(s *bent) {
		var mu sync.Mutex
		s.apply = func(ctx context.Context, b store.Batch) error {
			if !mu.TryLock() {
				return &store.ConflictError{Conds: b.Conds[:1]}
			}
			defer mu.Unlock()
			time.Sleep(gap)
			return s.Store.Apply(ctx, b)
		}
	}},
	{"the outcome is looked up and not settled", "outcome: never seen", lookOnly},
	{"the outcome is looked up while the batch is in flight", "outcome: in flight", lookOnly},
	{"a refusal is forgotten after its outcome was asked", "outcome: after a conflict", lookOnly},
	{"an applied batch is forgotten", "outcome: applied", func(s *bent) {
		s.outcome = func(context.Context, string) (store.Outcome, error) { return store.NotApplied, nil }
	}},
	{"outcomes die with the process", "outcome: after reopening", func(s *bent) {}},
	{"records die with the process", "records outlive the process", func(s *bent) {}},
	{"a cancelled caller is told that nothing happened", "a cancelled context never lies", func(s *bent) {
		s.apply = func(ctx context.Context, b store.Batch) error {
			err := s.Store.Apply(ctx, b)
			<-ctx.Done() // the caller cancels it in any case
			return errors.Join(err, ctx.Err())
		}
	}},
	{"a cancelled context is not looked at", "a cancelled context never lies", func(s *bent) {
		s.apply = func(_ context.Context, b store.Batch) error { return s.Store.Apply(context.Background(), b) }
	}},
	{"reads come from a cache", "a write is read by everybody", func(s *bent) {
		var seen sync.Map
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) {
			r, err := s.Store.Get(ctx, k)
			old, _ := seen.Swap(k, r)
			if last, ok := old.(store.Record); ok {
				return last, nil
			}
			return r, err
		}
	}},
	{"readers see half a batch", "readers see whole batches in order", func(s *bent) {
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) {
			r, err := s.Store.Get(ctx, k)
			if k.Name() == "a" && len(r.Value) > 0 && string(r.Value) != "0" {
				r.Value = []byte("0")
			}
			return r, err
		}
	}},
	{"a prefix has no end", "a prefix never covers siblings", func(s *bent) {
		s.list = func(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
			return s.Store.List(ctx, key.Prefix{Level: p.Level, Path: strings.TrimRight(p.Path, "/")}, after, limit)
		}
	}},
	{"after is inclusive", "list pages", func(s *bent) {
		s.list = func(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
			return s.Store.List(ctx, p, after[:max(0, len(after)-1)], limit)
		}
	}},
	{"a page may be longer than its limit", "list pages", func(s *bent) {
		s.list = func(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
			return s.Store.List(ctx, p, after, limit+1)
		}
	}},
	{"case is folded", "list", func(s *bent) {
		s.list = func(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
			found, err := s.Store.List(ctx, p, after, limit)
			slices.SortFunc(found, func(a, b store.Record) int {
				return strings.Compare(strings.ToLower(a.Key.Path), strings.ToLower(b.Key.Path))
			})
			return found, err
		}
	}},
	{"levels are mixed up", "get", func(s *bent) {
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) {
			for _, r := range s.Snapshot() {
				if r.Key.Path == k.Path {
					return r, nil
				}
			}
			return s.Store.Get(ctx, k)
		}
	}},
	{"a value is shared with its reader", "the caller owns what it reads", func(s *bent) {
		shared := map[store.Version]store.Record{}
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) {
			r, err := s.Store.Get(ctx, k)
			if _, ok := shared[r.Version]; !ok {
				shared[r.Version] = r
			}
			return shared[r.Version], err
		}
	}},
	{"a value ends at its first NUL", "values come back whole", func(s *bent) {
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) {
			r, err := s.Store.Get(ctx, k)
			r.Value, _, _ = bytes.Cut(r.Value, []byte{0})
			return r, err
		}
	}},
	{"a large value is cut", "large values", func(s *bent) {
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) {
			r, err := s.Store.Get(ctx, k)
			r.Value = r.Value[:min(len(r.Value), 1<<20)]
			return r, err
		}
	}},
	{"a long path is cut", "long paths", func(s *bent) {
		cut := func(k key.Key) key.Key { k.Path = k.Path[:min(len(k.Path), 1<<10)]; return k }
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) { return s.Store.Get(ctx, cut(k)) }
		s.apply = func(ctx context.Context, b store.Batch) error {
			b.Conds, b.Writes = slices.Clone(b.Conds), slices.Clone(b.Writes)
			for i := range b.Conds {
				b.Conds[i].Key = cut(b.Conds[i].Key)
			}
			for i := range b.Writes {
				b.Writes[i].Key = cut(b.Writes[i].Key)
			}
			return s.Store.Apply(ctx, b)
		}
	}},
	{"look-alikes are one", "keys with odd bytes", func(s *bent) {
		s.get = func(ctx context.Context, k key.Key) (store.Record, error) {
			k.Path = strings.ReplaceAll(k.Path, "e\u0301", "é")
			return s.Store.Get(ctx, k)
		}
	}},
	{"the incarnation outlives its record", "create, delete and create again", func(s *bent) {
		without(s, func(_ store.Batch, c store.Cond) bool { return c.Kind == store.KindLive })
	}},
	{"Is holds for whatever is there", "is", func(s *bent) {
		without(s, func(_ store.Batch, c store.Cond) bool { return c.Kind == store.KindIs && c.Version != store.Absent })
	}},
	{"the same batch from two senders is applied twice", "an id is applied once by many at once", func(s *bent) {
		var n sync.Map
		s.apply = func(ctx context.Context, b store.Batch) error {
			if _, again := n.LoadOrStore(b.ID, true); again {
				b.ID += "+"
			}
			return s.Store.Apply(ctx, b)
		}
	}},
}

func lookOnly(s *bent) {
	var applied sync.Map
	s.apply = func(ctx context.Context, b store.Batch) error {
		err := s.Store.Apply(ctx, b)
		if err == nil {
			time.Sleep(gap / 20)
			applied.Store(b.ID, true)
		}
		return err
	}
	s.outcome = func(_ context.Context, id string) (store.Outcome, error) {
		if _, ok := applied.Load(id); ok {
			return store.Applied, nil
		}
		return store.NotApplied, nil
	}
}

// plantedVariable tells a child process of the test binary which bug to run with.
const plantedVariable = "STORETEST_PLANTED"

// The suite fails, in the case that is meant to, on every planted bug; each runs
// in a process of its own, whose failure is the success.
func TestPlantedBugsAreFound(t *testing.T) {
	if bug, ok := os.LookupEnv(plantedVariable); ok {
		runPlanted(t, bug)
		return
	}
	for _, p := range planted {
		t.Run(p.bug, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(p.foundBy, " ", "_")
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestPlantedBugsAreFound$/^"+name+"$")
			child.Env = append(os.Environ(), plantedVariable+"="+p.bug)
			out, err := child.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 ||
				!bytes.Contains(out, []byte("--- FAIL: TestPlantedBugsAreFound/"+name)) {
				t.Errorf("the case %q did not find it: %v\n%s", p.foundBy, err, out)
			}
		})
	}
}

func runPlanted(t *testing.T, bug string) {
	for _, p := range planted {
		if p.bug != bug {
			continue
		}
		storetest.Run(t, func(*testing.T) storetest.Env {
			s := &bent{Store: mem.New()}
			p.bend(s)
			return storetest.Env{Store: s, Reopen: func() store.Atomic {
				if p.foundBy == "outcome: after reopening" {
					lookOnly(s)
					return s
				}
				return mem.New()
			}}
		})
		return
	}
	t.Fatalf("no bug is called %q", bug)
}
