package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withServer{m}) }

func TestKernel(t *testing.T) {
	kerneltest.Run(t, func(*testing.T) kerneltest.Env {
		return kerneltest.Env{Store: mem.New(), Queue: local.New(local.Options{})}
	})
}

func TestKernelOnObjects(t *testing.T) {
	kerneltest.Run(t, func(*testing.T) kerneltest.Env {
		s := txn.New(txn.Options{Objects: mem.NewObjects(), Layout: txn.Packed{}})
		return kerneltest.Env{Store: s, Queue: local.New(local.Options{})}
	})
}

func TestKernelOnEmbedded(t *testing.T) { kerneltest.Run(t, onEmbedded) }

func TestKernelRiding(t *testing.T) {
	kerneltest.RunRiding(t, func(*testing.T) kerneltest.Env {
		return kerneltest.Env{Store: mem.New(), Queue: local.New(local.Options{})}
	})
}

func TestKernelRidingOnEmbedded(t *testing.T) { kerneltest.RunRiding(t, onEmbedded) }

func onEmbedded(t *testing.T) kerneltest.Env {
	s, err := embedded.Open(t.Context(), filepath.Join(t.TempDir(), "catalog.db"), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return kerneltest.Env{Store: s, Queue: local.New(local.Options{})}
}

// op is an operation made of functions, which cannot travel.
type op struct {
	Locks  lock.Set `json:"-"`
	decide func(context.Context, *kernel.Tx) error
}

func (o *op) Plan() kernel.Plan { return kernel.Plan{Op: "test", Locks: o.Locks} }

func (o *op) Decide(ctx context.Context, tx *kernel.Tx) error { return o.decide(ctx, tx) }

func newKernel(opt kernel.Options) *kernel.Kernel {
	if opt.Store == nil {
		opt.Store = mem.New()
	}
	if opt.Queue == nil {
		opt.Queue = local.New(local.Options{})
	}
	opt.Files = &kerneltest.Files{}
	return kernel.New(opt)
}

var tableA, tableB = key.ForTableName("w", []string{"n"}, "a"), key.ForTableName("w", []string{"n"}, "b")

// A queue says who may not wait, who waited too long and who found it full; each
// is an error a client can act on, and nothing was decided.
func TestQueueErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := local.New(local.Options{MaxWaitersPerKey: 1})
		k := newKernel(kernel.Options{Queue: queue})
		held, err := queue.Acquire(t.Context(), lock.NewSet(lock.W(tableA)), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release()
		never := func(context.Context, *kernel.Tx) error {
			t.Error("decided")
			return nil
		}
		locks := lock.NewSet(lock.W(tableA))
		if err := k.Do(t.Context(), &op{Locks: locks, decide: never}); !errors.Is(err, kernel.ErrContended) || !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("waited: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.Do(ctx, &op{Locks: locks, decide: never}); !errors.Is(err, kernel.ErrContended) {
			t.Errorf("deadline: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Do(ctx, &op{Locks: locks, decide: never}) }()
		synctest.Wait()
		if err := k.Do(t.Context(), &op{Locks: locks, decide: never}); !errors.Is(err, kernel.ErrOverloaded) {
			t.Errorf("full: %v", err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, kernel.ErrContended) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// Who waits too long teaches those of its class to wait longer; whose own time was up first teaches nothing.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := local.New(local.Options{})
		var learned []time.Duration
		k := newKernel(kernel.Options{Queue: queue, Patience: func(c lock.Class, from, to time.Duration) {
			if c != lock.Tables {
				t.Errorf("class %v", c)
			}
			learned = append(learned, from, to)
		}})
		locks := lock.NewSet(lock.W(tableA))
		held, err := queue.Acquire(t.Context(), locks, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release()
		wait := func(limit time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err := k.Do(ctx, &op{Locks: locks})
			if !errors.Is(err, kernel.ErrContended) {
				t.Fatal(err)
			}
		}
		for range 20 {
			wait(29 * time.Second)
		}
		for range 15 {
			wait(time.Minute)
		}
		if len(learned) > 0 {
			t.Errorf("learned %v from less than 16 waits", learned)
		}
		wait(time.Minute)
		if diff := cmp.Diff([]time.Duration{30 * time.Second, 37500 * time.Millisecond}, learned); diff != "" {
			t.Errorf("learned (-want +got)\n%s", diff)
		}
	})
}

// A second locker, as between processes, is taken after the queue and given back
// before it.
func TestLocker(t *testing.T) {
	var steps []string
	k := newKernel(kernel.Options{
		Queue:  recorder{"queue", &steps, local.New(local.Options{})},
		Locker: recorder{"locker", &steps, local.New(local.Options{})},
	})
	err := k.Do(t.Context(), &op{Locks: lock.NewSet(lock.W(tableA)), decide: func(context.Context, *kernel.Tx) error {
		steps = append(steps, "decide")
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(steps, " "), "+queue +locker decide -locker -queue"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type recorder struct {
	name  string
	steps *[]string
	lock.Locker
}

func (r recorder) Acquire(ctx context.Context, s lock.Set, w time.Duration) (lock.Hold, error) {
	*r.steps = append(*r.steps, "+"+r.name)
	h, err := r.Locker.Acquire(ctx, s, w)
	return recordedHold{h, r}, err
}

type recordedHold struct {
	lock.Hold
	r recorder
}

func (h recordedHold) Release() {
	*h.r.steps = append(*h.r.steps, "-"+h.r.name)
	h.Hold.Release()
}

// A refusal that rests on a read which has changed meanwhile is no refusal: it is decided again.
func TestRefusalRestsOnSettledReads(t *testing.T) {
	s := mem.New()
	write := func(v string, cond store.Version) store.Version {
		b := store.Batch{
			ID: "batch-" + v, Conds: []store.Cond{store.Is(tableA, cond)},
			Writes: []store.Write{{Key: tableA, ID: "a", Value: []byte(v)}},
		}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return store.Version(b.ID)
	}
	v1 := write("1", store.Absent)
	k := newKernel(kernel.Options{Store: s})
	runs := 0
	err := k.Do(t.Context(), &op{decide: func(ctx context.Context, tx *kernel.Tx) error {
		r, err := tx.Get(ctx, tableA)
		if err != nil {
			return err
		}
		if runs++; runs == 1 {
			write("2", v1)
		}
		return fmt.Errorf("refused at %s", r.Value)
	}})
	if runs != 2 || err == nil || err.Error() != "refused at 2" {
		t.Errorf("got %v after %d runs", err, runs)
	}
}

// What a Decide must not do panics, with a message that names the operation.
func TestMisuse(t *testing.T) {
	n := 0
	for name, decide := range map[string]func(context.Context, *kernel.Tx) error{
		"blind write": func(_ context.Context, tx *kernel.Tx) error {
			tx.Put(tableA, "a", nil)
			return nil
		},
		"listed and writes": func(ctx context.Context, tx *kernel.Tx) error {
			if _, err := tx.List(ctx, key.TableNamesIn("w", []string{"n"}), "", 1); err != nil {
				return err
			}
			tx.Create(tableA, "a", nil)
			return nil
		},
		"must be absent but is not written": func(ctx context.Context, tx *kernel.Tx) error {
			if _, err := tx.Get(ctx, tableB); err != nil {
				return err
			}
			tx.Create(tableA, "a", nil)
			return nil
		},
		"without writing its guard": func(ctx context.Context, tx *kernel.Tx) error {
			_, err := tx.RequireEmpty(ctx, tableB, key.TableNamesIn("w", []string{"n"}))
			tx.Create(tableA, "a", nil)
			return err
		},
		"changes its incarnation": func(_ context.Context, tx *kernel.Tx) error {
			tx.Keep(store.Record{Key: tableA, Version: "v", ID: "a"})
			tx.Put(tableA, "b", nil)
			return nil
		},
		"impure": func(_ context.Context, tx *kernel.Tx) error {
			n++
			tx.Create(tableA, "a", []byte(fmt.Sprint(n)))
			return nil
		},
		"took more ids": func(_ context.Context, tx *kernel.Tx) error {
			for n++; n%2 == 0; n++ {
				tx.NewID()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			n = 0
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), name) && !strings.Contains(fmt.Sprint(r), "impure") {
					t.Errorf("got %v", r)
				}
			}()
			k := newKernel(kernel.Options{CheckPurity: true})
			err := k.Do(t.Context(), &op{decide: decide})
			t.Errorf("ended with %v", err)
		})
	}
}

// Time is whole milliseconds in UTC, as Iceberg writes it, and the same throughout one decision.
func TestNow(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_999_999, time.FixedZone("x", 3600))
	k := newKernel(kernel.Options{Now: func() time.Time { return at }})
	err := k.Do(t.Context(), &op{decide: func(_ context.Context, tx *kernel.Tx) error {
		if want := time.Date(2026, 1, 2, 2, 4, 5, 678_000_000, time.UTC); tx.Now() != want {
			t.Errorf("got %v", tx.Now())
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}
