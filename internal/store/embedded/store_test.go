package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

func TestMain(m *testing.M) {
	if path, ok := crashTarget(); ok {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

func openStore(t *testing.T, path string, options Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// holdable is a store whose COMMITs wait while the gate is held.
func holdable(t *testing.T, options Options) (s *Store, gate *sync.Mutex, committing chan struct{}) {
	t.Helper()
	s = openStore(t, filepath.Join(t.TempDir(), "catalog.db"), options)
	gate, committing = new(sync.Mutex), make(chan struct{}, 100)
	commit := s.writer.commit
	s.writer.commit = func(c *conn) error {
		committing <- struct{}{}
		gate.Lock()
		defer gate.Unlock()
		return commit(c)
	}
	return s, gate, committing
}

func (s *Store) inLine() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.mu.line)
}

// until waits for a condition that another goroutine is about to bring about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func newBatch(name string) store.Batch {
	id := uuid.Must(uuid.NewV7()).String()
	return *writes(id, name, store.Absent).batch
}

// exists is asked even when the test's context is done.
func (s *Store) exists(t *testing.T, name string) bool {
	t.Helper()
	r, err := s.Get(context.Background(), pointer(name))
	if err != nil {
		t.Fatal(err)
	}
	return r.Exists()
}

// An Apply whose batch is on its way ends after its own limit, with the outcome
// unknown; Outcome waits as long as its own context, and then knows.
func TestApplyTimeout(t *testing.T) {
	s, gate, _ := holdable(t, Options{ApplyTimeout: time.Millisecond})
	gate.Lock()
	b := newBatch("a")
	if err := s.Apply(t.Context(), b); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("apply: %v, want ErrOutcomeUnknown", err)
	}
	hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if o, err := s.Outcome(hurried, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hurried outcome: %v, %v", o, err)
	}
	gate.Unlock()
	if o, err := s.Outcome(t.Context(), b); o != store.Applied || err != nil {
		t.Errorf("outcome: %v, %v", o, err)
	}
	if !s.exists(t, "a") {
		t.Error("the record is missing")
	}
}

// A batch in line runs although its caller gave up, and Apply still tells how it
// went; one that found no room is not sent, and the caller's context ends its wait.
func TestContextEndsOnlyTheWaitForRoom(t *testing.T) {
	s, gate, committing := holdable(t, Options{Queue: 1})
	gate.Lock()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Apply(t.Context(), newBatch("first")); err != nil {
			t.Error(err)
		}
	})
	<-committing
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		if err := s.Apply(ctx, newBatch("in line")); err != nil {
			t.Errorf("a batch in line when its context ended: %v", err)
		}
	})
	until(t, "the second batch is in line", func() bool { return s.inLine() == 1 })
	outside := make(chan error, 1)
	wg.Go(func() { outside <- s.Apply(ctx, newBatch("outside")) })
	cancel()
	if err := <-outside; !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("a batch that waited for room: %v", err)
	}
	gate.Unlock()
	wg.Wait()
	if !s.exists(t, "first") || !s.exists(t, "in line") || s.exists(t, "outside") {
		t.Error("what is there is not what was told")
	}
}

// Batches that come in while a COMMIT runs share the next one, up to the limits
// of count and of bytes; a batch above the limit has one for itself.
func TestGroupLimits(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		sizes   []int
		want    []int
	}{
		"all":       {Options{}, []int{1, 1, 1, 1, 1}, []int{1, 5}},
		"by count":  {Options{GroupBatches: 2}, []int{1, 1, 1, 1, 1}, []int{1, 2, 2, 1}},
		"by bytes":  {Options{GroupBytes: 100}, []int{50, 50, 1, 1, 99}, []int{1, 2, 2, 1}},
		"too large": {Options{GroupBytes: 100}, []int{50, 500, 500, 1, 1}, []int{1, 1, 1, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var sizes []int // the writer's, until Close
			c.options.Observe = func(size int, _ time.Duration) { sizes = append(sizes, size) }
			s, gate, committing := holdable(t, c.options)
			gate.Lock()
			var wg sync.WaitGroup
			apply := func(name string, size int) {
				b := newBatch(name)
				b.Writes[0].Value = make([]byte, size)
				wg.Go(func() {
					if err := s.Apply(t.Context(), b); err != nil {
						t.Error(err)
					}
				})
			}
			apply("first", 1)
			<-committing
			for i, size := range c.sizes {
				apply(fmt.Sprint(i), size)
				until(t, "the batch is in line", func() bool { return s.inLine() == i+1 })
			}
			gate.Unlock()
			wg.Wait()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "groups", c.want, sizes)
		})
	}
}

// Close answers what is in line, truly; later calls, and calls that race with it,
// are told so and change nothing.
func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	s := openStore(t, path, Options{Queue: 4, Readers: 2})
	var applied sync.Map
	var wg sync.WaitGroup
	enough := make(chan struct{}, 1000)
	for i := range 16 {
		wg.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d", i, n)
				if err := s.Apply(t.Context(), newBatch(name)); err != nil {
					if !errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrOutcomeUnknown) {
						t.Errorf("apply: %v", err)
					}
					applied.Store(name, false)
					return
				}
				applied.Store(name, true)
				if _, err := s.Get(t.Context(), pointer(name)); err != nil && !errors.Is(err, store.ErrClosed) {
					t.Errorf("get: %v", err)
				}
				select {
				case enough <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 50 {
		<-enough
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	_, getErr := s.Get(t.Context(), pointer("a"))
	_, listErr := s.List(t.Context(), key.DyingIn("w"), "", 1)
	_, outcomeErr := s.Outcome(t.Context(), store.Batch{ID: "1"})
	for _, err := range []error{getErr, listErr, outcomeErr, s.Apply(t.Context(), newBatch("late")), s.Backup(t.Context(), path+".copy")} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
	if copies, err := filepath.Glob(path + ".copy*"); err != nil || len(copies) > 0 {
		t.Errorf("a refused backup left %v, %v", copies, err)
	}

	s = openStore(t, path, Options{})
	applied.Range(func(name, was any) bool {
		if s.exists(t, name.(string)) != was {
			t.Errorf("%v: acknowledged: %v, there: %v", name, was, !was.(bool))
		}
		return true
	})
}
