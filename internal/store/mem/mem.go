package mem

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// Fault is how one Apply goes wrong. The zero value is no fault.
type Fault struct {
	// Err is what Apply answers instead of the truth; nil: the truth.
	Err error
	// Applied says that the batch was tried before Err was answered, as when
	// only the reply was lost. Otherwise the store never saw it.
	Applied bool
}

// Store is an empty store when new. It is safe for concurrent use.
type Store struct {
	// Fault is asked once for each valid Apply, before the batch is tried; nil:
	// no faults. It runs on the caller's goroutine with no lock held, so it may
	// wait, or use the store itself to let another writer in first. Set it
	// before the store is shared.
	Fault func(store.Batch) Fault
	// OutcomeFault is asked before each Outcome; an error is the answer, and the
	// id is then neither looked up nor made impossible. Otherwise as Fault.
	OutcomeFault func(batchID string) error

	mu       sync.Mutex
	records  map[key.Key]store.Record
	outcomes map[string]store.Outcome // by batch id; final once there
}

var _ store.Atomic = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	return &Store{records: map[key.Key]store.Record{}, outcomes: map[string]store.Outcome{}}
}

// Get is that of [store.Atomic].
func (s *Store) Get(ctx context.Context, k key.Key) (store.Record, error) {
	if err := ctx.Err(); err != nil {
		return store.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.records[k]; ok {
		return cloned(r), nil
	}
	return store.Record{Key: k}, nil
}

// List is that of [store.Atomic].
func (s *Store) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, fmt.Errorf("mem: list %v: limit %d is below 1", p, limit)
	}
	var found []store.Record
	for _, r := range s.Snapshot() {
		if p.Covers(r.Key) && (after == "" || r.Key.Path > after) && len(found) < limit {
			found = append(found, r)
		}
	}
	return found, nil
}

// Apply is that of [store.Atomic].
func (s *Store) Apply(ctx context.Context, b store.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var fault Fault
	if s.Fault != nil {
		fault = s.Fault(b)
	}
	if fault.Err != nil && !fault.Applied {
		return fault.Err
	}
	err := s.apply(b)
	if fault.Err != nil {
		return fault.Err
	}
	return err
}

func (s *Store) apply(b store.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.outcomes[b.ID] {
	case store.Applied:
		return nil
	case store.NotApplied:
		return &store.ConflictError{}
	}
	var failed []store.Cond
	for _, c := range b.Conds {
		if planted.Is(planted.ConditionSkipped) && c.Kind == store.KindIs && c.Version != store.Absent {
			continue
		}
		if !s.holdsLocked(c, b.Writes) {
			failed = append(failed, c)
		}
	}
	if len(failed) > 0 {
		return &store.ConflictError{Conds: failed}
	}
	for _, w := range b.Writes {
		if w.Delete {
			delete(s.records, w.Key)
			continue
		}
		version := store.Version(b.ID)
		if planted.Is(planted.VersionRestarts) {
			version = store.Version(strings.Repeat("v", 1+len(s.records[w.Key].Version)))
		}
		s.records[w.Key] = store.Record{Key: w.Key, Version: version, ID: w.ID, Value: bytes.Clone(w.Value)}
	}
	s.outcomes[b.ID] = store.Applied
	return nil
}

func (s *Store) holdsLocked(c store.Cond, writes []store.Write) bool {
	switch c.Kind {
	case store.KindIs:
		return s.records[c.Key].Version == c.Version
	case store.KindLive:
		return s.records[c.Key].ID == c.ID
	case store.KindEmpty:
		own := func(k key.Key) bool {
			return slices.ContainsFunc(writes, func(w store.Write) bool { return w.Key == k })
		}
		for k := range s.records {
			if c.Prefix.Covers(k) && !own(k) {
				return false
			}
		}
		return true
	}
	panic(fmt.Sprintf("mem: Validate let a condition of kind %q pass", c.Kind))
}

// Outcome is that of [store.Atomic].
func (s *Store) Outcome(ctx context.Context, b store.Batch) (store.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s.OutcomeFault != nil {
		if err := s.OutcomeFault(b.ID); err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outcomes[b.ID] != store.Applied {
		s.outcomes[b.ID] = store.NotApplied
	}
	return s.outcomes[b.ID], nil
}

// Snapshot is a copy of every record at one moment, in key order.
func (s *Store) Snapshot() []store.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]store.Record, 0, len(s.records))
	for _, k := range slices.SortedFunc(maps.Keys(s.records), key.Compare) {
		all = append(all, cloned(s.records[k]))
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

func cloned(r store.Record) store.Record {
	r.Value = bytes.Clone(r.Value)
	return r
}
