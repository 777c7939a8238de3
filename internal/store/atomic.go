package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/key"
)

// Atomic reads settled records and applies batches. It is safe for concurrent
// use. Its suite is storetest.Run.
type Atomic interface {
	// Get reads one settled record, never a write that could still be undone.
	// A missing record has the version Absent; that is no error. The caller owns
	// the value. An error means the store could not be read: ErrUnavailable that it cannot
	// be reached now. So it is with List.
	Get(ctx context.Context, k key.Key) (Record, error)

	// List reads settled records under p in key order: those after the path
	// `after` (exclusive; empty: from the start), at most limit of them (at least
	// 1). It is no snapshot and is for people, emptiness hints and cleanup: no
	// write may be decided from it alone.
	List(ctx context.Context, p key.Prefix, after string, limit int) ([]Record, error)

	// Apply applies the batch if all its conditions hold. nil: it is durable, and
	// every later Get sees it. *ConflictError, *BlockedError, ErrFull, ErrUnavailable,
	// ErrUnstorable: nothing was applied. ErrOutcomeUnknown: it may have been; ask Outcome. Any other error
	// (including ctx done before the batch was sent): nothing was applied.
	// Once sent, a batch runs to the store's own limit whatever becomes of ctx. What a store may
	// wait for before that ends where [WaitUntil] says.
	// A batch id that was applied before is not applied again and gives nil, as long as
	// the store remembers it; one that Outcome declared impossible gives a *ConflictError
	// without conditions. One that met a conflict is not remembered: whoever sends it again
	// may have it applied.
	Apply(ctx context.Context, b Batch) error

	// Outcome says whether a batch, given as it was given to Apply, was applied. The
	// answer is final: NotApplied means that no batch with its id ever can be from now
	// on. An error (ErrOutcomeUnknown when the store's memory no longer covers the id)
	// means that nothing is known; it is worth asking again after ErrUnavailable.
	Outcome(ctx context.Context, b Batch) (Outcome, error)
}

// Outcome of a batch.
type Outcome uint8

// The outcomes. The zero value is neither.
const (
	Applied    Outcome = 1
	NotApplied Outcome = 2
)

func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case NotApplied:
		return "not applied"
	}
	return "unknown"
}

// Errors of an Atomic.
var (
	// ErrOutcomeUnknown: the batch may or may not have been applied.
	ErrOutcomeUnknown = errors.New("store: outcome unknown")
	// ErrFull: the store has no room (a full disk, a quota); nothing was applied.
	ErrFull = errors.New("store: no space left")
	// ErrUnavailable: the store cannot be reached now; nothing was applied, or read.
	// It is worth trying again.
	ErrUnavailable = errors.New("store: not available")
	// ErrUnstorable: a key or a value is longer than this store can hold, or no text that
	// it can; nothing was applied, and never will be. The error says which, and the limit.
	ErrUnstorable = errors.New("store: cannot be stored")
	// ErrClosed: the store was closed; nothing was applied.
	ErrClosed = errors.New("store: closed")
)

// ConflictError reports the conditions that did not hold; nothing was applied.
type ConflictError struct {
	Conds []Cond
}

func (e *ConflictError) Error() string {
	if len(e.Conds) == 0 {
		return "store: conflict: the batch was declared not applied"
	}
	var s []string
	for _, c := range e.Conds {
		s = append(s, c.String())
	}
	return "store: conflict: " + strings.Join(s, ", ")
}

// BlockedError reports that another batch's pending change stands in the way;
// nothing was applied. It is worth trying again after Until.
type BlockedError struct {
	By    string // the id of the batch in the way, or what else is, in words
	Until time.Time
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("store: blocked by %s", e.By)
}
