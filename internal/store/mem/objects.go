package mem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/store"
)

// Objects is a bucket in memory: compare-and-swap on one object at a time, tags that
// are hashes of the content (so that they return when it does), and no conditional
// delete. It is safe for concurrent use.
type Objects struct {
	// Now is the bucket's own clock, from which ages are told. Default time.Now. Set it
	// before the bucket is shared.
	Now func() time.Time

	mu      sync.Mutex
	objects map[string]object
}

type object struct {
	tag      store.Tag
	data     []byte // never changed once stored
	modified time.Time
}

var _ store.Objects = (*Objects)(nil)

// NewObjects makes an empty bucket.
func NewObjects() *Objects { return &Objects{Now: time.Now, objects: map[string]object{}} }

// Get is that of [store.Objects].
func (o *Objects) Get(ctx context.Context, name string) (store.Object, error) {
	if err := ctx.Err(); err != nil {
		return store.Object{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	there, ok := o.objects[name]
	if !ok {
		return store.Object{Name: name}, nil
	}
	return store.Object{Name: name, Tag: there.tag, Data: there.data, Age: max(0, o.Now().Sub(there.modified))}, nil
}

// Put is that of [store.Objects].
func (o *Objects) Put(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
	if err := ctx.Err(); err != nil {
		return store.NoTag, err
	}
	hash := sha256.Sum256(data)
	tag := store.Tag(hex.EncodeToString(hash[:16]))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.objects[name].tag != match {
		return store.NoTag, store.ErrMismatch
	}
	o.objects[name] = object{tag: tag, data: slices.Clone(data), modified: o.Now()}
	return tag, nil
}

// List is that of [store.Objects].
func (o *Objects) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, fmt.Errorf("mem: list %q: limit %d is below 1", prefix, limit)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(o.objects)) {
		if strings.HasPrefix(name, prefix) && name > after && len(found) < limit {
			found = append(found, name)
		}
	}
	return found, nil
}

// Delete is that of [store.Objects].
func (o *Objects) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.objects, name)
	return nil
}
