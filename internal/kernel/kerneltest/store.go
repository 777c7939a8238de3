package kerneltest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// Fault is how one Apply goes wrong. The zero value is no fault.
type Fault struct {
	// Err is what Apply answers instead of the truth; nil: the truth.
	Err error
	// Applied says that the batch was tried before Err was answered, as when only the
	// reply was lost. Otherwise the store never saw it.
	Applied bool
}

// Store is any store with hooks, whose records a test can show. It is safe for
// concurrent use.
type Store struct {
	store.Atomic
	// Fault is asked once for each valid Apply, before the batch is tried; nil: no faults. It
	// runs on the caller's goroutine with no lock held, so it may use the store itself to let
	// another writer in first. Set it while nobody uses the store.
	Fault func(store.Batch) Fault
	// OutcomeFault is asked before each Outcome; an error is the answer, and the store does not
	// hear of the question. Otherwise as Fault.
	OutcomeFault func(batchID string) error

	mu   sync.Mutex
	keys map[key.Key]bool // that some batch wanted to write
}

// NewStore puts hooks on an empty store.
func NewStore(s store.Atomic) *Store { return &Store{Atomic: s, keys: map[key.Key]bool{}} }

// Apply is that of [store.Atomic].
func (s *Store) Apply(ctx context.Context, b store.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	var fault Fault
	if s.Fault != nil {
		fault = s.Fault(b)
	}
	if fault.Err != nil && !fault.Applied {
		return fault.Err
	}
	s.mu.Lock()
	for _, w := range b.Writes {
		s.keys[w.Key] = true
	}
	s.mu.Unlock()
	err := s.Atomic.Apply(ctx, b)
	if fault.Err != nil {
		return fault.Err
	}
	return err
}

// Outcome is that of [store.Atomic].
func (s *Store) Outcome(ctx context.Context, b store.Batch) (store.Outcome, error) {
	if s.OutcomeFault != nil {
		if err := s.OutcomeFault(b.ID); err != nil {
			return 0, err
		}
	}
	return s.Atomic.Outcome(ctx, b)
}

// Snapshot is every record, in key order, once nobody writes any more. It panics when the
// store cannot be read.
func (s *Store) Snapshot() []store.Record {
	s.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(s.keys), key.Compare)
	s.mu.Unlock()
	all := []store.Record{}
	for _, k := range keys {
		r, err := s.Get(context.Background(), k)
		if err != nil {
			panic(fmt.Sprintf("kerneltest: %v: %v", k, err))
		}
		if r.Exists() {
			all = append(all, r)
		}
	}
	return all
}

// String shows every record in key order, one a line, for transcripts.
func (s *Store) String() string {
	var b strings.Builder
	for _, r := range s.Snapshot() {
		fmt.Fprintf(&b, "%v version=%s id=%s %s\n", r.Key, r.Version, r.ID, r.Value)
	}
	return b.String()
}
