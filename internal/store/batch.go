package store

import (
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/key"
)

// Version identifies one write of one record: it is the id of the batch that
// wrote it. It never repeats, even for an equal value.
type Version string

// Absent is the version of a record that does not exist.
const Absent Version = ""

// Record is one settled record.
type Record struct {
	Key     key.Key `json:"key"`
	Version Version `json:"version"` // Absent: ID and Value are empty
	// ID names the incarnation. Every write of a living record repeats it;
	// a record that was deleted and made again has another.
	ID    string `json:"id,omitempty"`
	Value []byte `json:"value,omitempty"`
}

// Exists reports whether there is a record.
func (r Record) Exists() bool { return r.Version != Absent }

// CondKind is the kind of a condition.
type CondKind string

// The three kinds of condition.
const (
	KindIs    CondKind = "is"
	KindLive  CondKind = "live"
	KindEmpty CondKind = "empty"
)

// Cond is a condition of a batch. Use [Is], [Live] or [Empty] to make one.
type Cond struct {
	Kind    CondKind   `json:"kind"`
	Key     key.Key    `json:"key"` // for Empty: the guard
	Version Version    `json:"version,omitempty"`
	ID      string     `json:"id,omitempty"`
	Prefix  key.Prefix `json:"prefix,omitzero"`
}

// Is holds while the record has this version. Absent is allowed only on a key
// that the batch writes: no store can lock what is not there.
func Is(k key.Key, v Version) Cond { return Cond{Kind: KindIs, Key: k, Version: v} }

// Live holds while this incarnation of the record exists; its value may have
// changed. Whoever adds a child carries it for the parent.
func Live(k key.Key, id string) Cond { return Cond{Kind: KindLive, Key: k, ID: id} }

// Empty holds while no record lies under the prefix, apart from what this batch
// itself writes. It is allowed only in a batch that also writes the guard, and
// every batch that adds under the prefix must carry Live of the guard or write
// it: together that excludes write skew.
func Empty(guard key.Key, p key.Prefix) Cond { return Cond{Kind: KindEmpty, Key: guard, Prefix: p} }

func (c Cond) String() string {
	switch c.Kind {
	case KindIs:
		if c.Version == Absent {
			return fmt.Sprintf("is(%v, absent)", c.Key)
		}
		return fmt.Sprintf("is(%v, %s)", c.Key, c.Version)
	case KindLive:
		return fmt.Sprintf("live(%v, %s)", c.Key, c.ID)
	case KindEmpty:
		return fmt.Sprintf("empty(%v) guarded by %v", c.Prefix, c.Key)
	}
	return fmt.Sprintf("%s(%v)", c.Kind, c.Key)
}

// Write replaces or deletes one record.
type Write struct {
	Key    key.Key `json:"key"`
	ID     string  `json:"id,omitempty"` // the incarnation; empty when deleting
	Value  []byte  `json:"value,omitempty"`
	Delete bool    `json:"delete,omitempty"`
}

func (w Write) String() string {
	if w.Delete {
		return fmt.Sprintf("delete %v", w.Key)
	}
	return fmt.Sprintf("put %v id=%s", w.Key, w.ID)
}

// OpRecord names one operation that was decided in a batch.
type OpRecord struct {
	ID   string `json:"id"`   // unique to this run of the operation
	Name string `json:"name"` // as in its plan
}

// Batch is the unit of change: if every condition holds every write is applied,
// otherwise none is. It is plain data, and is never changed once made: the same
// value is applied, logged, sent to peers and recorded by the simulator.
type Batch struct {
	// ID is a UUIDv7, unique to this attempt; it becomes the version of what is written.
	ID     string     `json:"id"`
	Conds  []Cond     `json:"conds"`
	Writes []Write    `json:"writes"`
	Ops    []OpRecord `json:"ops,omitempty"`
}

// ErrInvalidBatch is wrapped by what Validate returns: a bug in the caller.
var ErrInvalidBatch = errors.New("store: invalid batch")

// Validate refuses every batch that some store could not apply atomically.
// Beyond the rules of [Is], [Live] and [Empty]: every written key is written
// once and carries an Is condition, so that no write is blind.
func (b Batch) Validate() error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidBatch, fmt.Sprintf(format, args...))
	}
	if b.ID == "" {
		return invalid("no id")
	}
	if len(b.Writes) == 0 {
		return invalid("no writes")
	}
	written := make(map[key.Key]bool, len(b.Writes))
	for _, w := range b.Writes {
		if written[w.Key] {
			return invalid("%v is written twice", w.Key)
		}
		written[w.Key] = true
		if w.Delete && (w.ID != "" || w.Value != nil) {
			return invalid("deleting %v carries a value", w.Key)
		}
		if !w.Delete && w.ID == "" {
			return invalid("%v is written without an incarnation", w.Key)
		}
	}
	isOf := make(map[key.Key]bool, len(b.Conds))
	for _, c := range b.Conds {
		switch c.Kind {
		case KindIs:
			if isOf[c.Key] {
				return invalid("%v has two versions", c.Key)
			}
			isOf[c.Key] = true
			if c.Version == Absent && !written[c.Key] {
				return invalid("%v must be absent but is not written", c.Key)
			}
		case KindLive:
			if c.ID == "" {
				return invalid("live(%v) names no incarnation", c.Key)
			}
		case KindEmpty:
			if !written[c.Key] {
				return invalid("empty(%v) without writing its guard %v", c.Prefix, c.Key)
			}
			if c.Prefix.Path == "" {
				return invalid("empty of a whole level")
			}
		default:
			return invalid("unknown condition %q", c.Kind)
		}
	}
	for _, w := range b.Writes {
		if !isOf[w.Key] {
			return invalid("%v is written without a condition on its version", w.Key)
		}
	}
	return nil
}
