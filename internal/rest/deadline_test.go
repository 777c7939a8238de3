package rest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

func newRequestContext(parent context.Context, timeout time.Duration) *requestContext {
	return &requestContext{Context: parent, id: "id", deadline: time.Now().Add(timeout)}
}

// TestRequestContext: it ends like one of context.WithDeadline, for all who wait for it or ask.
func TestRequestContext(t *testing.T) {
	type key struct{}
	isDone := func(ctx context.Context) bool {
		select {
		case <-ctx.Done():
			return true
		default:
			return false
		}
	}
	ends := map[string]struct {
		end  func(cancel context.CancelFunc, c *requestContext)
		want error
	}{
		"deadline": {func(context.CancelFunc, *requestContext) { time.Sleep(time.Minute) }, context.DeadlineExceeded},
		"client":   {func(cancel context.CancelFunc, _ *requestContext) { cancel() }, context.Canceled},
		"end":      {func(_ context.CancelFunc, c *requestContext) { c.end() }, context.Canceled},
	}
	for name, tc := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, 1))
				defer cancel()
				waited, asked := newRequestContext(parent, time.Minute), newRequestContext(parent, time.Minute)
				defer waited.end()
				defer asked.end()
				goroutines := runtime.NumGoroutine()
				child, cancelChild := context.WithCancel(WithRequestID(waited, "child"))
				defer cancelChild()
				if n := runtime.NumGoroutine(); n > goroutines {
					t.Errorf("a context that is made from it has %d goroutines", n-goroutines)
				}
				after := make(chan struct{})
				defer context.AfterFunc(waited, func() { close(after) })()
				if waited.Err() != nil || asked.Err() != nil || isDone(waited) || isDone(child) {
					t.Error("it has ended before its end")
				}
				if d, ok := asked.Deadline(); !ok || time.Until(d) != time.Minute {
					t.Errorf("the deadline is %v", d)
				}
				if RequestID(waited) != "id" || RequestID(child) != "child" || child.Value(key{}) != 1 || asked.Value(key{}) != 1 {
					t.Errorf("values: %q %q %v %v", RequestID(waited), RequestID(child), child.Value(key{}), asked.Value(key{}))
				}
				for range askedMax {
					_ = asked.Err()
				}
				tc.end(cancel, waited)
				if name == "end" {
					asked.end()
				}
				synctest.Wait()
				<-after
				for _, c := range []context.Context{waited, asked, child} {
					if !errors.Is(c.Err(), tc.want) || !isDone(c) {
						t.Errorf("its error is %v, want %v; done: %v", c.Err(), tc.want, isDone(c))
					}
				}
			})
		})
	}
	if id := RequestID(t.Context()); id != "" {
		t.Errorf("a context of no request has the id %q", id)
	}
}

// TestNewRequestID: ids are random UUIDs.
func TestNewRequestID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewRequestID()
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Version() != 4 || parsed.Variant() != uuid.RFC4122 || seen[id] || !IsRequestID(id) {
			t.Fatalf("%s: %v", id, err)
		}
		seen[id] = true
	}
}
