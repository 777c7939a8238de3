package kerneltest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
)

// Files keeps files in memory. The zero value is empty and ready; it is safe for
// concurrent use. Every root bears every mark.
type Files struct {
	// FailCreate is asked before a file is made; an error is the answer. May be nil.
	FailCreate func(location string) error
	// FailMark is the answer of CheckMark. Nil: the root is the right one.
	FailMark error

	mu    sync.Mutex
	files map[string][]byte // by the location as given
}

var _ kernel.Files = (*Files)(nil)

// Read implements blob.Store.
func (f *Files) Read(_ context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	if _, _, err := scope.Locate(location); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.files[location]
	switch {
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
	return ok, nil
}

// Create implements blob.Store.
func (f *Files) Create(ctx context.Context, scope blob.Scope, location string, data []byte) error {
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
	if f.files == nil {
		f.files = map[string][]byte{}
	}
	f.files[location] = bytes.Clone(data)
	return nil
}

// Delete implements blob.Store.
func (f *Files) Delete(_ context.Context, _ blob.Scope, location string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, location)
	return nil
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
