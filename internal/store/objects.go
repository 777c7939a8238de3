package store

import (
	"context"
	"errors"
	"time"
)

// Objects holds named objects that can be changed one at a time by
// compare-and-swap: what a bucket can do. Package txn makes an [Atomic] of it. It is
// safe for concurrent use, and reads see every write that was answered before they
// began, lists included. Its suite is storetest.RunObjects.
type Objects interface {
	// Get reads an object as it is now. A missing one has the tag NoTag; that is no
	// error. The caller must not change Data.
	Get(ctx context.Context, name string) (Object, error)

	// Put replaces the object if its tag is still match (NoTag: if there is none)
	// and gives the new tag. ErrMismatch: the object has another tag. What gave it that
	// tag may be this very call, when a layer below sent the bytes twice: whoever must
	// know reads the object. ErrOutcomeUnknown: it may have been replaced, or may yet be,
	// for as long as its tag is match. Any other error: it was not and will not be.
	Put(ctx context.Context, name string, match Tag, data []byte) (Tag, error)

	// List gives the names that begin with prefix and come after `after` (exclusive;
	// empty: from the start), at most limit of them (at least 1), in the order of bytes.
	List(ctx context.Context, prefix, after string, limit int) ([]string, error)

	// Delete removes an object, whatever its tag, or finds that there is none. There is
	// no conditional delete: use it only where the name will never be used again.
	Delete(ctx context.Context, name string) error
}

// Object is one object as it was read.
type Object struct {
	Name string
	Tag  Tag // NoTag: there is no such object, and Data is empty
	Data []byte
	// Age is the time since the object was last replaced, by the store's own clock. It is
	// the only clock that all who share the store agree on.
	Age time.Duration
}

// Exists reports whether there is an object.
func (o Object) Exists() bool { return o.Tag != NoTag }

// Tag names one content of one object. It may return when the content does, so a
// writer that must tell two writes apart writes different bytes.
type Tag string

// NoTag is the tag of an object that does not exist.
const NoTag Tag = ""

// ErrMismatch is Put's answer when the object does not have the tag that was asked for.
var ErrMismatch = errors.New("store: object has another tag")
