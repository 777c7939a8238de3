package exhaust

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/storetest"
	"github.com/landfast/landfast/internal/txn"
)

// served is an env whose accesses are done at once.
func served() *env {
	var mu sync.Mutex
	sp, c := newSpace(false), cells(nil)
	return &env{ask: func(a access) result {
		mu.Lock()
		defer mu.Unlock()
		var ans answer
		ans, c = sp.perform(c, &a)
		return sp.result(&a, ans)
	}}
}

// What the worlds run on are stores as the contracts want them.
func TestStores(t *testing.T) {
	t.Run("batches", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Env { return storetest.Env{Store: overBatches(served())} })
	})
	t.Run("objects", func(t *testing.T) {
		storetest.RunObjects(t, func(*testing.T) store.Objects { return objects{e: served()} })
	})
}

// blindly is package txn over a store whose swaps do not compare.
func blindly(e *env) store.Atomic {
	return txn.New(txn.Options{Objects: objects{e: e, blind: true}, Layout: txn.Packed{}})
}

// uncompared applies batches without looking at the versions of records.
type uncompared struct{ transactional }

func (s uncompared) Apply(ctx context.Context, b store.Batch) error {
	b.Conds = slices.Clone(b.Conds)
	for i, c := range b.Conds {
		if c.Kind != store.KindIs {
			continue
		}
		now, err := s.Get(ctx, c.Key)
		if err != nil {
			return err
		}
		b.Conds[i].Version = now.Version
	}
	return s.transactional.Apply(ctx, b)
}

// literal looks at everything and then writes record after record, each in its own object, with
// a swap. There are no intents.
type literal struct{ objects }

func (l literal) read(ctx context.Context, k key.Key) (store.Record, store.Tag, error) {
	o, err := l.objects.Get(ctx, recordCell(k))
	r := store.Record{Key: k}
	if err == nil && o.Exists() {
		err = json.Unmarshal(o.Data, &r)
	}
	return r, o.Tag, err
}

func (l literal) Get(ctx context.Context, k key.Key) (store.Record, error) {
	r, _, err := l.read(ctx, k)
	return r, err
}

func (l literal) List(ctx context.Context, p key.Prefix, _ string, limit int) (all []store.Record, err error) {
	names, err := l.objects.List(ctx, recordsUnder(p), "", limit)
	for _, name := range names {
		r, err := l.Get(ctx, key.Key{Level: p.Level, Path: strings.SplitN(name, " ", 3)[2]})
		if err != nil {
			return nil, err
		}
		if r.Exists() {
			all = append(all, r)
		}
	}
	return all, err
}

func (l literal) Apply(ctx context.Context, b store.Batch) error {
	tags := map[key.Key]store.Tag{}
	for _, c := range b.Conds {
		r, tag, err := l.read(ctx, c.Key)
		if err != nil {
			return err
		}
		if c.Kind == store.KindIs && r.Version != c.Version || c.Kind == store.KindLive && r.ID != c.ID {
			return &store.ConflictError{Conds: []store.Cond{c}}
		}
		tags[c.Key] = tag
	}
	for _, w := range b.Writes {
		r := store.Record{Key: w.Key}
		if !w.Delete {
			r = store.Record{Key: w.Key, Version: store.Version(b.ID), ID: w.ID, Value: w.Value}
		}
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = l.objects.Put(ctx, recordCell(w.Key), tags[w.Key], data)
		if errors.Is(err, store.ErrMismatch) {
			return &store.ConflictError{}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (literal) Outcome(context.Context, store.Batch) (store.Outcome, error) {
	return 0, store.ErrOutcomeUnknown
}

func worldOf(t *testing.T, name string) world {
	t.Helper()
	i := slices.IndexFunc(worlds, func(w world) bool { return w.name == name })
	if i < 0 {
		t.Fatalf("there is no world %q", name)
	}
	return worlds[i]
}

// A store that breaks its promise is found out, and how is shown.
func TestSees(t *testing.T) {
	for _, c := range []struct {
		name, world string
		store       func(*env) store.Atomic
		faults      budget
		want        []string // in the transcript
	}{
		{"swaps without comparing", "commit x commit", blindly, budget{}, []string{"no order of the operations explains", "put object pointers/"}},
		{"versions are not compared", "commit x commit", func(e *env) store.Atomic { return uncompared{transactional{e}} }, budget{}, []string{"no order of the operations explains", "apply "}},
		{"record after record", "transactions in opposite orders", func(e *env) store.Atomic { return literal{objects{e: e}} }, budget{}, []string{"no order of the operations explains"}},
		{"record after record, and a crash", "rename x commit x load", func(e *env) store.Atomic { return literal{objects{e: e}} }, budget{Crashes: 1}, []string{"CRASHES"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := worldOf(t, c.world)
			w.store, w.rounds = c.store, []round{{c.faults, 2}}
			sizes, wrong := w.explore(t)
			for _, want := range c.want {
				if !strings.Contains(wrong, want) {
					t.Fatalf("the transcript does not say %q:\n%s", want, wrong)
				}
			}
			t.Logf("found after %d states and %d ends\n%s", sizes[0].states, sizes[0].ends, wrong)
		})
	}
}

// What is left out of the search changes no outcome: neither that accesses which disturb nobody are not
// interleaved, nor that an actor which decides again is taken to have forgotten what it read.
func TestNothingIsMissed(t *testing.T) {
	small := world{name: "small", setup: oneTable, actors: []actor{
		does("drop", on(drop, "ns.a")), does("commit", on(commit, "ns.a").by("1")),
	}}
	explore := func(t *testing.T, mindful, unhurried bool) ([]string, counts) {
		w := small
		w.store, w.attempts, w.mindful = overObjects, 2, mindful
		s := newSearch(t, w)
		defer s.stop()
		s.unhurried, s.outcomes = unhurried, map[string]bool{}
		c := s.all(budget{Crashes: 1, Lost: 1})
		if s.failure != "" {
			t.Fatal(s.failure)
		}
		return slices.Sorted(maps.Keys(s.outcomes)), c
	}
	want, size := explore(t, false, false)
	if len(want) < 6 {
		t.Fatalf("there are only %d outcomes", len(want))
	}
	for name, c := range map[string]struct{ mindful, unhurried bool }{
		"everything is interleaved": {false, true}, "nothing is forgotten": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, larger := explore(t, c.mindful, c.unhurried)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if larger.states <= size.states {
				t.Errorf("%d states, and %d with everything left out", larger.states, size.states)
			}
			t.Logf("%d outcomes: %d states, and %d without", len(got), larger.states, size.states)
		})
	}
}

// Code that does something else when it is run again is refused.
func TestRefusesWhatIsNotAFunction(t *testing.T) {
	runs := byte(0)
	sp := newSpace(false)
	tr := newTree(t, sp, "moody", 1, func(ctx context.Context, e *env) {
		runs++
		o := objects{e: e}
		_, _ = o.Get(ctx, "a")
		_, _ = o.Put(ctx, "b", store.NoTag, bytes.Repeat([]byte{runs}, 3))
	})
	defer tr.stop()
	first := tr.next(tr.start(), turn{0, answer{code: absent}})
	tr.next(first, turn{0, answer{code: unknown}})
	defer func() {
		if said, ok := recover().(string); !ok || !strings.Contains(said, "does not depend on its answers alone") {
			t.Errorf("%q", said)
		}
	}()
	tr.next(first, turn{0, answer{code: mismatch}})
}
