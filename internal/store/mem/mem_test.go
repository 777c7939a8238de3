package mem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Env { return storetest.Env{Store: mem.New()} })
}

func create(id, name string) store.Batch {
	k := key.ForPointer("w", name)
	return store.Batch{ID: id, Conds: []store.Cond{store.Is(k, store.Absent)}, Writes: []store.Write{{Key: k, ID: "i", Value: []byte(name)}}}
}

// A fault is answered as it was asked for, and Outcome tells what is behind it.
func TestFaults(t *testing.T) {
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		fault   mem.Fault
		want    error
		outcome store.Outcome
	}{
		"none":                   {mem.Fault{}, nil, store.Applied},
		"refused":                {mem.Fault{Err: store.ErrFull}, store.ErrFull, store.NotApplied},
		"unknown, applied":       {mem.Fault{Err: store.ErrOutcomeUnknown, Applied: true}, store.ErrOutcomeUnknown, store.Applied},
		"unknown, not applied":   {mem.Fault{Err: store.ErrOutcomeUnknown}, store.ErrOutcomeUnknown, store.NotApplied},
		"applied, without fault": {mem.Fault{Applied: true}, nil, store.Applied},
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.New()
			var asked []string
			s.Fault = func(b store.Batch) mem.Fault { asked = append(asked, b.ID); return c.fault }
			if err := s.Apply(t.Context(), create("1", "a")); !errors.Is(err, c.want) {
				t.Errorf("apply: %v, want %v", err, c.want)
			}
			s.OutcomeFault = func(string) error { return lost }
			if o, err := s.Outcome(t.Context(), store.Batch{ID: "1"}); !errors.Is(err, lost) || o != 0 {
				t.Errorf("outcome with a fault: %v, %v", o, err)
			}
			s.OutcomeFault = nil
			if o, err := s.Outcome(t.Context(), store.Batch{ID: "1"}); err != nil || o != c.outcome {
				t.Errorf("outcome: %v, %v, want %v", o, err, c.outcome)
			}
			if diff := cmp.Diff([]string{"1"}, asked); diff != "" {
				t.Errorf("faults were asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// The hook may use the store, which lets a test put another writer first.
func TestFaultLetsAnotherIn(t *testing.T) {
	s := mem.New()
	s.Fault = func(b store.Batch) mem.Fault {
		if b.ID == "slow" {
			if err := s.Apply(context.Background(), create("quick", "a")); err != nil {
				t.Error(err)
			}
		}
		return mem.Fault{}
	}
	err := s.Apply(t.Context(), create("slow", "a"))
	if _, ok := errors.AsType[*store.ConflictError](err); !ok {
		t.Errorf("got %v, want a conflict", err)
	}
}

// A dump shows every record in key order, and a snapshot is its reader's own.
func TestDump(t *testing.T) {
	s := mem.New()
	for _, b := range []store.Batch{create("2", "b"), create("1", "a")} {
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	copy(s.Snapshot()[0].Value, "X")
	const want = "pointer w//a version=1 id=i a\npointer w//b version=2 id=i b\n"
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
