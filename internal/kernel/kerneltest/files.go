package kerneltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/kernel"
)

// Files keeps files in memory, and knows which of them the loss of power would take. The zero value is empty
// and ready; it is safe for concurrent use. Every root bears every mark.
type Files struct {
	// FailCreate is asked before a file is made; an error is the answer. May be nil.
	FailCreate func(location string) error
	// FailMark is the answer of CheckMark. Nil: the root is the right one.
	FailMark error

	mu     sync.Mutex
	files  map[string][]byte // by the location as given
	unsafe map[string]bool   // what the loss of power would take
	outage error             // the answer to everything while there is no power
}

var (
	_ kernel.Files  = (*Files)(nil)
	_ journal.Files = (*Files)(nil)
)

var errNoPower = errors.New("kerneltest: no power")

// Read implements blob.Store.
func (f *Files) Read(_ context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	if _, _, err := scope.Locate(location); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.files[location]
	switch {
	case f.outage != nil:
		return nil, f.outage
	case !ok:
		return nil, fmt.Errorf("%w: %s", blob.ErrNotFound, location)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("%w: %s", blob.ErrTooLarge, location)
	}
	return bytes.Clone(data), nil
}

// Exists implements blob.Store.
func (f *Files) Exists(_ context.Context, scope blob.Scope, location string) (bool, error) {
	if _, _, err := scope.Locate(location); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.files[location]
	return ok, f.outage
}

// Create implements blob.Store.
func (f *Files) Create(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	return f.create(ctx, scope, location, data, false)
}

// CreateDeferred implements blob.Deferrer.
func (f *Files) CreateDeferred(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	return f.create(ctx, scope, location, data, true)
}

func (f *Files) create(ctx context.Context, scope blob.Scope, location string, data []byte, deferred bool) error {
	if _, _, err := scope.Locate(location); err != nil {
		return err
	}
	if f.FailCreate != nil {
		if err := f.FailCreate(location); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.files[location]; ok {
		return fmt.Errorf("%w: %s", blob.ErrExists, location)
	}
	return f.put(location, data, deferred)
}

// put is called under the mutex.
func (f *Files) put(location string, data []byte, deferred bool) error {
	if f.outage != nil {
		return f.outage
	}
	if f.files == nil {
		f.files, f.unsafe = map[string][]byte{}, map[string]bool{}
	}
	f.files[location] = bytes.Clone(data)
	delete(f.unsafe, location)
	if deferred {
		f.unsafe[location] = true
	}
	return nil
}

// Defers implements blob.Deferrer.
func (f *Files) Defers(blob.Scope, string) bool { return true }

// Sync implements blob.Deferrer.
func (f *Files) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outage == nil {
		clear(f.unsafe)
	}
	return f.outage
}

// Rewrite implements blob.Deferrer.
func (f *Files) Rewrite(_ context.Context, scope blob.Scope, location string, data []byte) error {
	if _, _, err := scope.Locate(location); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.put(location, data, false)
}

// Durable tells whether there is a file that the loss of power would leave whole.
func (f *Files) Durable(location string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.files[location]
	return ok && !f.unsafe[location]
}

// PowerOff takes what is not durable: in the order of their locations, every other of such files whole, and half of the
// others. From here on nothing works until PowerOn.
func (f *Files) PowerOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outage = errNoPower
	for i, location := range slices.Sorted(maps.Keys(f.unsafe)) {
		if data, ok := f.files[location]; ok && i%2 == 1 {
			f.files[location] = data[:len(data)/2]
		} else {
			delete(f.files, location)
		}
	}
	clear(f.unsafe)
}

// PowerOn lets everything work again.
func (f *Files) PowerOn() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outage = nil
}

// Delete implements blob.Store.
func (f *Files) Delete(_ context.Context, _ blob.Scope, location string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outage == nil {
		delete(f.files, location)
		delete(f.unsafe, location)
	}
	return f.outage
}

// Replace puts other bytes where a file is, as a fault would.
func (f *Files) Replace(location string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[location] = data
}

// CheckMark implements blob.Roots.
func (f *Files) CheckMark(context.Context, blob.Root, string) error { return f.FailMark }

// Locations are those of the files there are, sorted.
func (f *Files) Locations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.files))
}
