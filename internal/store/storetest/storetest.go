package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// Env is what one case runs on.
type Env struct {
	// Store is empty and used by nobody else.
	Store store.Atomic
	// Reopen shuts the store down in good order and gives back the same state
	// in a new one; nil when the state dies with the store.
	Reopen func() store.Atomic
}

// caseTimeout bounds every call of a case: a store that never answers fails.
const caseTimeout = 5 * time.Minute

var cases = []struct {
	name string
	run  func(h *harness)
}{
	{"get", testGet},
	{"list", testList},
	{"list pages", testListPages},
	{"a prefix never covers siblings", testListSiblings},
	{"the caller owns what it reads", testOwnership},
	{"values come back whole", testValues},
	{"large values", testLargeValues},
	{"keys with odd bytes", testOddKeys},
	{"long paths", testLongPaths},

	{"is", testIs},
	{"live", testLive},
	{"empty", testEmpty},
	{"empty leaves out the batch's own writes", testEmptyOwnWrites},
	{"create, delete and create again", testIncarnations},
	{"a version never returns", testABA},
	{"every failed condition is named", testConflictNamesAll},
	{"all or nothing", testAllOrNothing},
	{"an id is applied once", testSameID},
	{"an id is applied once by many at once", testSameIDConcurrent},
	{"invalid batches are refused", testInvalid},

	{"skew: assert A, write B", testSkewAssertWrite},
	{"skew: create a child, empty the parent", testSkewCreateDrop},
	{"skew: nested locations", testSkewLocations},
	{"sharing a condition excludes nobody", testSharedCondition},
	{"no update is lost", testLostUpdates},
	{"a record is made once", testMadeOnce},
	{"a write is read by everybody", testReadYourWrites},
	{"readers see whole batches in order", testReadersOrder},

	{"outcome: applied", testOutcomeApplied},
	{"outcome: never seen", testOutcomeNeverSeen},
	{"outcome: after a conflict", testOutcomeAfterConflict},
	{"outcome: in flight", testOutcomeInFlight},
	{"outcome: after reopening", testOutcomeReopen},
	{"records outlive the process", testReopen},
	{"a cancelled context never lies", testCancel},
}

// Run runs the whole suite, each case on an Env of its own.
func Run(t *testing.T, open func(t *testing.T) Env) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), caseTimeout)
			defer cancel()
			c.run(&harness{T: t, ctx: ctx, env: open(t)})
		})
	}
}

// harness is one case under way.
type harness struct {
	*testing.T
	ctx context.Context
	env Env
}

// newID is a fresh id for a batch or an incarnation.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// batch is a fresh batch.
func batch(conds []store.Cond, writes ...store.Write) store.Batch {
	return store.Batch{ID: newID(), Conds: conds, Writes: writes}
}

func conds(c ...store.Cond) []store.Cond { return c }

func put(k key.Key, id, value string) store.Write {
	return store.Write{Key: k, ID: id, Value: []byte(value)}
}

func del(k key.Key) store.Write { return store.Write{Key: k, Delete: true} }

func pointer(id string) key.Key { return key.ForPointer("w", id) }

// apply sends a batch, again while another is in its way.
func (h *harness) apply(b store.Batch) error {
	for {
		err := h.env.Store.Apply(h.ctx, b)
		blocked, ok := errors.AsType[*store.BlockedError](err)
		if !ok {
			return err
		}
		select {
		case <-time.After(time.Until(blocked.Until)):
		case <-h.ctx.Done():
			return fmt.Errorf("still blocked when the case's time was up: %w", err)
		}
	}
}

// mustApply gives the version that the batch wrote.
func (h *harness) mustApply(b store.Batch) store.Version {
	h.Helper()
	if err := h.apply(b); err != nil {
		h.Fatalf("apply %v: %v", b, err)
	}
	return store.Version(b.ID)
}

// create writes a record that is absent.
func (h *harness) create(k key.Key, id, value string, more ...store.Cond) store.Version {
	h.Helper()
	return h.mustApply(batch(append(more, store.Is(k, store.Absent)), put(k, id, value)))
}

// mustConflict wants exactly these conditions named, in any order.
func (h *harness) mustConflict(b store.Batch, want ...store.Cond) {
	h.Helper()
	err := h.apply(b)
	conflict, ok := errors.AsType[*store.ConflictError](err)
	if !ok {
		h.Fatalf("apply %v: got %v, want a conflict on %v", b, err, want)
	}
	byText := cmpopts.SortSlices(func(a, b store.Cond) bool { return a.String() < b.String() })
	if diff := cmp.Diff(want, conflict.Conds, byText, cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("apply %v: failed conditions (-want +got):\n%s", b, diff)
	}
}

func (h *harness) get(k key.Key) store.Record {
	h.Helper()
	r, err := h.env.Store.Get(h.ctx, k)
	if err != nil {
		h.Fatalf("get %v: %v", k, err)
	}
	return r
}

// mustBe wants this record to be there, with this version, id and value.
func (h *harness) mustBe(k key.Key, v store.Version, id, value string) {
	h.Helper()
	want := store.Record{Key: k, Version: v, ID: id, Value: []byte(value)}
	if diff := diffRecords(want, h.get(k)); diff != "" {
		h.Fatalf("get %v (-want +got):\n%s", k, diff)
	}
}

func (h *harness) mustBeAbsent(k key.Key) {
	h.Helper()
	h.mustBe(k, store.Absent, "", "")
}

func (h *harness) list(p key.Prefix, after string, limit int) []store.Record {
	h.Helper()
	rs, err := h.env.Store.List(h.ctx, p, after, limit)
	if err != nil {
		h.Fatalf("list %v after %q: %v", p, after, err)
	}
	return rs
}

// mustList wants the whole prefix to hold exactly these keys, in this order.
func (h *harness) mustList(p key.Prefix, want ...key.Key) {
	h.Helper()
	if diff := cmp.Diff(want, keysOf(h.list(p, "", 1000)), cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("list %v (-want +got):\n%s", p, diff)
	}
}

func (h *harness) outcome(b store.Batch) store.Outcome {
	h.Helper()
	o, err := h.env.Store.Outcome(h.ctx, b)
	if err != nil {
		h.Fatalf("outcome of %s: %v", b.ID, err)
	}
	return o
}

func (h *harness) mustOutcome(b store.Batch, want store.Outcome) {
	h.Helper()
	if got := h.outcome(b); got != want {
		h.Fatalf("outcome of %s: got %v, want %v", b.ID, got, want)
	}
}

// diffRecords does not print values that are too long to read.
func diffRecords(want, got store.Record) string {
	const readable = 4 << 10
	if len(want.Value)+len(got.Value) > 2*readable {
		if !bytes.Equal(want.Value, got.Value) {
			return fmt.Sprintf("values of %d and %d bytes differ", len(want.Value), len(got.Value))
		}
		want.Value, got.Value = nil, nil
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

func keysOf(rs []store.Record) []key.Key {
	keys := make([]key.Key, 0, len(rs))
	for _, r := range rs {
		keys = append(keys, r.Key)
	}
	return keys
}

// race runs all functions at once and returns when all have.
func race(fns ...func()) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for _, fn := range fns {
		wg.Go(func() {
			<-start
			fn()
		})
	}
	close(start)
	wg.Wait()
}
