package lock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/key"
)

// Mode is how a key is locked.
type Mode uint8

// The modes. Exclusive excludes every other grant of the key, Shared only exclusive ones.
const (
	Shared    Mode = 1
	Exclusive Mode = 2
)

func (m Mode) String() string {
	switch m {
	case Shared:
		return "R"
	case Exclusive:
		return "W"
	}
	return "?"
}

// Item is one key of a Set.
type Item struct {
	Key  key.Key `json:"key"`
	Mode Mode    `json:"mode"`
}

// R is key k, shared.
func R(k key.Key) Item { return Item{k, Shared} }

// W is key k, exclusive.
func W(k key.Key) Item { return Item{k, Exclusive} }

// Set is what is locked together. The zero value is empty; [NewSet] makes others.
type Set struct {
	items []Item // sorted in lock order; each key once
}

// NewSet sorts the items into lock order and merges those of one key; Exclusive wins.
func NewSet(items ...Item) Set {
	s := slices.Clone(items)
	slices.SortFunc(s, func(a, b Item) int {
		if c := key.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		return int(b.Mode) - int(a.Mode)
	})
	return Set{slices.CompactFunc(s, func(a, b Item) bool { return a.Key == b.Key })}
}

// Items are the keys in lock order. The caller must not change them.
func (s Set) Items() []Item { return s.items }

// Len is the number of keys.
func (s Set) Len() int { return len(s.items) }

// With is the set with further items merged in.
func (s Set) With(items ...Item) Set {
	return NewSet(append(slices.Clone(s.items), items...)...)
}

func (s Set) String() string {
	var parts []string
	for _, i := range s.items {
		parts = append(parts, i.Mode.String()+" "+i.Key.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Locker grants a whole Set or nothing. It is safe for concurrent use. Its suite is locktest.Run.
type Locker interface {
	// Acquire blocks until every key is granted, at most wait (zero: not at all),
	// and never longer than ctx. The errors are ErrBusy (wait is zero and a key is
	// taken or awaited), ErrTimeout (wait passed), ErrQueueFull, ErrClosed, or the
	// cause of ctx; they may be wrapped, and nothing is then held. An empty set is
	// granted at once. The caller must Release the hold. A Locker is not
	// re-entrant: who asks again for what it holds waits for itself.
	Acquire(ctx context.Context, set Set, wait time.Duration) (Hold, error)
}

// Gatherer is a Locker whose holders can take those who wait right behind them into
// their own grant, to do the work of all in one go.
type Gatherer interface {
	Locker
	// Join is Acquire for one who may be gathered, as member, which is not nil. With gathered it
	// has been, and the member handed to the holder in front: it holds the set, but what it wanted done that one
	// does. It is then gathered even if ctx has ended meanwhile.
	Join(ctx context.Context, set Set, wait time.Duration, member any) (h Hold, gathered bool, err error)
	// Gather grants, to at most so many who wait at k directly behind h, what they wait for, and gives
	// their members in order of arrival. It stops at the first who was not
	// acquired with Join, or who waits for anybody else than h and those it has gathered: nobody is
	// overtaken. h must hold k exclusively, and does not release before it is done
	// with them; each of them releases its own hold.
	Gather(h Hold, k key.Key, most int) []any
}

// Hold is a granted Set.
type Hold interface {
	// Context is derived from the one given to Acquire, whose end ends it too but
	// gives no key back. It is done with cause ErrLost as soon as the grant can no
	// longer be trusted, and with cause ErrReleased once Release is called, before
	// anyone else is granted a key.
	Context() context.Context
	// Token rises with each exclusive grant of k, for ever; it is zero where this
	// Locker cannot fence, or k is not in the set. That of a shared grant is not
	// below the exclusive ones before it, and below those after it.
	Token(k key.Key) Token
	// Release gives every key back. It is idempotent and does not block.
	Release()
}

// Token is a fencing token.
type Token uint64

// Errors of Acquire, and (ErrLost, ErrReleased) causes of a hold's context.
var (
	// ErrBusy: the caller would not wait, and a key was taken.
	ErrBusy = errors.New("lock: busy")
	// ErrTimeout: the wait passed before every key was granted.
	ErrTimeout = errors.New("lock: timed out")
	// ErrQueueFull: as many wait for a key as are allowed to.
	ErrQueueFull = errors.New("lock: queue full")
	// ErrClosed: the locker grants nothing any more, because its server stops.
	ErrClosed = errors.New("lock: closed")
	// ErrLost: the grant can no longer be trusted.
	ErrLost = errors.New("lock: lost")
	// ErrReleased: the hold was given back, and work under its context with it.
	ErrReleased = errors.New("lock: released")
)
