package sim

import (
	"context"
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

// forgetful does not compare the versions of pointers: of two commits that were decided
// from the same state, both are applied.
type forgetful struct{ store.Atomic }

func (f forgetful) Apply(ctx context.Context, b store.Batch) error {
	conds := make([]store.Cond, len(b.Conds))
	for i, c := range b.Conds {
		if c.Kind == store.KindIs && c.Key.Level == key.Pointer {
			there, err := f.Atomic.Get(ctx, c.Key)
			if err != nil {
				return err
			}
			c.Version = there.Version
		}
		conds[i] = c
	}
	b.Conds = conds
	return f.Atomic.Apply(ctx, b)
}

// A store that loses updates is found out, its seed and transcript are printed, and what is
// left of the transcript in the end is short enough to be read.
func TestBrokenStoreIsFound(t *testing.T) {
	for seed := range uint64(50) {
		cfg := seedOf(1+seed, Transactional)
		cfg.Records = func() store.Atomic { return forgetful{mem.New()} }
		r := run(t, cfg)
		if len(r.Problems) == 0 {
			continue
		}
		text := report(t, r)
		head, shrunk, ok := strings.Cut(text, "\nSHRUNK to ")
		if !ok || !strings.HasPrefix(head, "SEED ") || !strings.Contains(head, "TRANSCRIPT") {
			t.Errorf("the report has other parts:\n%s", text)
		}
		if lines, whole := strings.Count(shrunk, "\n"), strings.Count(head, "\n"); lines > whole/3 || strings.Contains(head, "another trace") {
			t.Errorf("of %d lines %d are left", whole, lines)
		}
		return
	}
	t.Fatal("in 50 seeds nobody has noticed that updates are lost")
}
