package kernel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

// lockedStore has its rows locked by others, who change them once meanwhile.
type lockedStore struct {
	store.Atomic
	began          time.Time
	changed, freed time.Duration // after the beginning
	isChanged      bool
}

func (s *lockedStore) Apply(ctx context.Context, b store.Batch) error {
	switch at := time.Since(s.began); {
	case at >= s.freed:
		return s.Atomic.Apply(ctx, b)
	case at >= s.changed && !s.isChanged:
		s.isChanged = true
		return &store.ConflictError{}
	}
	return &store.BlockedError{By: "another", Until: time.Now().Add(time.Second)}
}

// How long, and how often, an operation waits for what others have locked is counted in all: it does not begin anew when the
// operation is decided again, be it after a conflict or because a neighbour's time is spent. Who has waited
// enough is refused alone; those beside it go on, with what is left to them.
func TestBlockedInAll(t *testing.T) {
	const s, ever = time.Second, time.Hour
	for name, tc := range map[string]struct {
		ops            []*slow
		retries        int // beside 30 s; 0: any number
		changed, freed time.Duration
		ended          []time.Duration
		want           []error
		log            string
	}{
		"a conflict in between": {
			[]*slow{{name: "a", limit: 100 * s}}, 0, 29 * s, ever,
			[]time.Duration{30 * s}, []error{kernel.ErrBlocked}, "",
		},
		"the lock is given back at the last moment": {
			[]*slow{{name: "a", limit: 100 * s}}, 0, 29 * s, 30 * s,
			[]time.Duration{30 * s}, []error{nil}, "a",
		},
		"a neighbour's deadline in between": {
			[]*slow{{name: "a", limit: 25 * s}, {name: "b", limit: 100 * s}}, 0, ever, ever,
			[]time.Duration{25 * s, 30 * s}, []error{kernel.ErrContended, kernel.ErrBlocked}, "",
		},
		"a neighbour has time left": {
			[]*slow{{name: "a", limit: 100 * s}, {name: "b", limit: 100 * s, notYet: true}}, 0, 20 * s, 35 * s,
			[]time.Duration{30 * s, 35 * s}, []error{kernel.ErrBlocked, nil}, "b",
		},
		"a neighbour has time left, but not enough": {
			[]*slow{{name: "a", limit: 100 * s}, {name: "b", limit: 100 * s}, {name: "c", limit: 100 * s, notYet: true}}, 0, 20 * s, ever,
			[]time.Duration{30 * s, 30 * s, 50 * s}, []error{kernel.ErrBlocked, kernel.ErrBlocked, kernel.ErrBlocked}, "",
		},
		"attempts": { // one a second; the neighbour makes one more when it is decided again
			[]*slow{{name: "a", limit: 100 * s}, {name: "b", limit: 100 * s, notYet: true}}, 20, 10 * s, ever,
			[]time.Duration{20 * s, 29 * s}, []error{kernel.ErrBlocked, kernel.ErrBlocked}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, queue := &lockedStore{Atomic: mem.New(), began: time.Now(), changed: tc.changed, freed: tc.freed}, local.New(local.Options{})
				k := kernel.New(kernel.Options{
					Store: db, Queue: queue, Files: slowFiles{}, BlockedLimit: 30 * s, BlockedRetries: tc.retries,
					Backoff: func(time.Duration) time.Duration { return 0 },
				})
				errs, ended := doTogether(t, k, queue, tc.ops)
				if diff := cmp.Diff(tc.ended, ended); diff != "" {
					t.Errorf("when they ended (-want +got)\n%s", diff)
				}
				for i, op := range tc.ops {
					if !errors.Is(errs[i], tc.want[i]) {
						t.Errorf("%s: got %v, want %v", op.name, errs[i], tc.want[i])
					}
				}
				r, err := db.Get(t.Context(), tableA)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.log, string(r.Value)); diff != "" {
					t.Errorf("the record (-want +got)\n%s", diff)
				}
			})
		})
	}
}
