package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

var lostScope = blob.Scope{{URI: "file:///w", Dir: "/w"}}

// Lost is told of the files of every decision that certainly was not applied, and of
// no other: a file that may be named stays.
func TestLost(t *testing.T) {
	fault := errors.New("broken")
	for name, c := range map[string]struct {
		faults []mem.Fault // of one Apply after the other
		want   []string
		err    error
	}{
		"applied":                     {nil, nil, nil},
		"a conflict, then applied":    {[]mem.Fault{{Err: &store.ConflictError{}}}, []string{"f1"}, nil},
		"a fault of the store":        {[]mem.Fault{{Err: fault}}, []string{"f1"}, fault},
		"unknown, and was applied":    {[]mem.Fault{{Err: store.ErrOutcomeUnknown, Applied: true}}, nil, nil},
		"unknown, and was not":        {[]mem.Fault{{Err: store.ErrOutcomeUnknown}}, []string{"f1"}, nil},
		"two conflicts, then applied": {[]mem.Fault{{Err: &store.ConflictError{}}, {Err: &store.ConflictError{}}}, []string{"f1", "f2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			db := mem.New()
			applies := 0
			db.Fault = func(store.Batch) mem.Fault {
				applies++
				if applies <= len(c.faults) {
					return c.faults[applies-1]
				}
				return mem.Fault{}
			}
			var lost []string
			k := newKernel(kernel.Options{Store: db, Lost: func(files []kernel.File) {
				for _, f := range files {
					lost = append(lost, strings.TrimPrefix(f.Location, "file:///w/"))
				}
			}})
			decisions := 0
			err := k.Do(t.Context(), &op{decide: func(_ context.Context, tx *kernel.Tx) error {
				decisions++
				tx.File(kernel.File{Scope: lostScope, Location: fmt.Sprintf("file:///w/f%d", decisions)})
				tx.Create(tableA, "a", nil)
				return nil
			}})
			if !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, lost); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	t.Run("unknown for good", func(t *testing.T) {
		k := newKernel(kernel.Options{Store: deaf{mem.New()}, Lost: func(files []kernel.File) { t.Errorf("lost: %v", files) }})
		err := k.Do(t.Context(), &op{decide: func(_ context.Context, tx *kernel.Tx) error {
			tx.File(kernel.File{Scope: lostScope, Location: "file:///w/f"})
			tx.Create(tableA, "a", nil)
			return nil
		}})
		if !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Error(err)
		}
	})
}

// deaf does not know what became of any batch.
type deaf struct{ store.Atomic }

func (deaf) Apply(context.Context, store.Batch) error { return store.ErrOutcomeUnknown }

func (deaf) Outcome(context.Context, store.Batch) (store.Outcome, error) {
	return 0, errors.New("no answer")
}
