package local_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/locktest"
)

// A fault wraps a right Locker so that one promise is broken.
type fault func(inner lock.Locker) acquire

type acquire func(context.Context, lock.Set, time.Duration) (lock.Hold, error)

func (a acquire) Acquire(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
	return a(ctx, set, wait)
}

// faults are the planted bugs, each with the test of the suite that must find it.
var faults = map[string]struct {
	plant   fault
	foundBy string
}{
	"says-yes": {func(lock.Locker) acquire { return locktest.Yes{}.Acquire }, "Stress/seed=1"},
	"writers-share": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			return inner.Acquire(ctx, withMode(set, lock.Shared), wait)
		}
	}, "Modes"},
	"readers-exclude": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			return inner.Acquire(ctx, withMode(set, lock.Exclusive), wait)
		}
	}, "Modes"},
	"forgets-a-key": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			return inner.Acquire(ctx, lock.NewSet(set.Items()[:min(1, set.Len())]...), wait)
		}
	}, "WholeSetOrNothing"},
	// Whoever comes first takes it: nobody queues.
	"barging":                 {barging, "OrderOfArrival"},
	"barging-starves-writers": {barging, "WriterDoesNotStarve"},
	"barging-model":           {barging, "Model/seed=1"},
	"key-by-key-in-any-order": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			var held holds
			items := set.Items()
			for _, i := range rand.Perm(len(items)) {
				h, err := inner.Acquire(ctx, lock.NewSet(items[i]), wait)
				if err != nil {
					held.Release()
					return nil, err
				}
				held = append(held, h)
				time.Sleep(time.Millisecond)
			}
			if len(held) == 0 {
				return inner.Acquire(ctx, set, wait)
			}
			return held, nil
		}
	}, "Stress/seed=1"},
	"cancelled-waiter-stays": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			type result struct {
				hold lock.Hold
				err  error
			}
			granted := make(chan result, 1)
			go func() {
				h, err := inner.Acquire(context.WithoutCancel(ctx), set, wait)
				granted <- result{h, err}
			}()
			select {
			case r := <-granted:
				return r.hold, r.err
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}, "Cancel"},
	"cause-is-lost": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			h, err := inner.Acquire(ctx, set, wait)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return h, err
		}
	}, "DoneContext"},
	"waits-for-ever": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			return inner.Acquire(ctx, set, max(wait, time.Hour))
		}
	}, "WaitIsBounded"},
	"zero-wait-waits": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			return inner.Acquire(ctx, set, max(wait, time.Minute))
		}
	}, "ZeroWait"},
	"second-release-releases-the-next": {func(inner lock.Locker) acquire {
		var last lock.Hold
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			h, err := inner.Acquire(ctx, set, wait)
			if err == nil {
				last = h
			}
			return faultyHold{Hold: h, release: func() { h.Release(); last.Release() }}, err
		}
	}, "ReleaseIsIdempotent"},
	"context-outlives-the-hold": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			h, err := inner.Acquire(ctx, set, wait)
			return faultyHold{Hold: h, ctx: ctx}, err
		}
	}, "HoldContext"},
	"token-stands-still": {func(inner lock.Locker) acquire {
		return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
			h, err := inner.Acquire(ctx, set, wait)
			return faultyHold{Hold: h, token: 1}, err
		}
	}, "TokensRise"},
}

func barging(inner lock.Locker) acquire {
	return func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
		for began := time.Now(); ; {
			h, err := inner.Acquire(ctx, set, 0)
			if err == nil || ctx.Err() != nil || wait == 0 {
				return h, err
			}
			if time.Since(began) > wait {
				return nil, lock.ErrTimeout
			}
			time.Sleep(time.Duration(1+rand.IntN(5)) * time.Millisecond)
		}
	}
}

// The suite is a test too: each planted bug makes the test named for it fail.
func TestSuiteCatchesFaults(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := "^TestLocker$/^" + strings.ReplaceAll(f.foundBy, "/", "$/^") + "$"
			run := exec.CommandContext(t.Context(), self, "-test.run="+test, "-test.timeout=60s")
			run.Env = append(os.Environ(), "LANDFAST_TEST_FAULT="+name)
			out, err := run.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestLocker/"+f.foundBy) {
				t.Errorf("%s does not find it: %v\n%s", f.foundBy, err, out)
			}
		})
	}
}

func withFault(t *testing.T, inner lock.Locker, name string) lock.Locker {
	if name == "" {
		return inner
	}
	f, ok := faults[name]
	if !ok {
		t.Fatalf("no fault %q", name)
	}
	return f.plant(inner)
}

func withMode(set lock.Set, m lock.Mode) lock.Set {
	var items []lock.Item
	for _, i := range set.Items() {
		items = append(items, lock.Item{Key: i.Key, Mode: m})
	}
	return lock.NewSet(items...)
}

// faultyHold replaces what is set.
type faultyHold struct {
	lock.Hold
	release func()
	ctx     context.Context
	token   lock.Token
}

func (h faultyHold) Release() {
	if h.release != nil {
		h.release()
		return
	}
	h.Hold.Release()
}

func (h faultyHold) Context() context.Context {
	if h.ctx != nil {
		return h.ctx
	}
	return h.Hold.Context()
}

func (h faultyHold) Token(k key.Key) lock.Token {
	if h.token != 0 {
		return h.token
	}
	return h.Hold.Token(k)
}

// unfenced is inner without its tokens.
func unfenced(inner lock.Locker) lock.Locker {
	return acquire(func(ctx context.Context, set lock.Set, wait time.Duration) (lock.Hold, error) {
		h, err := inner.Acquire(ctx, set, wait)
		if err != nil {
			return nil, err
		}
		return unfencedHold{h}, nil
	})
}

type unfencedHold struct{ lock.Hold }

func (unfencedHold) Token(key.Key) lock.Token { return 0 }

// holds are several grants as if they were one.
type holds []lock.Hold

func (h holds) Context() context.Context { return h[0].Context() }

func (h holds) Token(k key.Key) lock.Token {
	var token lock.Token
	for _, each := range h {
		token = max(token, each.Token(k))
	}
	return token
}

func (h holds) Release() {
	for _, each := range h {
		each.Release()
	}
}
