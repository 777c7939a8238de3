package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/reclaim"
)

// files are a store of files behind a network. Every root bears every mark.
type files struct {
	w  *world
	at map[string]file // by the normalised location; guarded by the world's mutex
}

// file is one that is there, or was.
type file struct {
	File
	modified time.Time
	gone     bool // it is not there now
}

// File is a file that was made.
type File struct {
	Data []byte
	// Deleted says that it was deleted. A copy of the request that made it may have brought it
	// back since: nobody may rely on that.
	Deleted bool
}

var (
	_ kernel.Files  = (*files)(nil)
	_ reclaim.Files = (*files)(nil)
)

// errCutOff is the answer to a deletion that may have happened, or may yet.
var errCutOff = errors.New("sim: connection lost")

// Read implements blob.Store.
func (f *files) Read(ctx context.Context, scope blob.Scope, location string, limit int64) (data []byte, err error) {
	place, err := scope.CanonicalFile(location)
	if err != nil {
		return nil, err
	}
	err = callerOf(ctx).read(ctx, "read", place, func() (string, error) {
		there, ok := f.find(place)
		switch {
		case !ok:
			return "not there", fmt.Errorf("%w: %s", blob.ErrNotFound, location)
		case int64(len(there.Data)) > limit:
			return "too large", fmt.Errorf("%w: %s", blob.ErrTooLarge, location)
		}
		data = bytes.Clone(there.Data)
		return "ok", nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (f *files) find(place string) (file, bool) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	there, ok := f.at[place]
	return there, ok && !there.gone
}

// all are the files that were ever made.
func (f *files) all() map[string]File {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	all := make(map[string]File, len(f.at))
	for place, there := range f.at {
		all[place] = there.File
	}
	return all
}

// Exists implements blob.Store.
func (f *files) Exists(ctx context.Context, scope blob.Scope, location string) (ok bool, err error) {
	place, err := scope.Canonical(location)
	if err != nil {
		return false, err
	}
	err = callerOf(ctx).read(ctx, "exists", place, func() (string, error) {
		_, ok = f.find(place)
		return fmt.Sprint(ok), nil
	})
	return ok && err == nil, err
}

// Create implements blob.Store.
func (f *files) Create(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	place, err := scope.Canonical(location)
	if err != nil {
		return err
	}
	c := callerOf(ctx)
	return c.write(ctx, "create", place, blob.ErrUncertain, func(bool) (string, error) {
		now := time.Now()
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		there, ok := f.at[place]
		if ok && !there.gone {
			return "exists", fmt.Errorf("%w: %s", blob.ErrExists, location)
		}
		if ok && !bytes.Equal(there.Data, data) {
			f.w.problems = append(f.w.problems, "two files had the name "+place)
		}
		f.at[place] = file{File: File{Data: data, Deleted: there.Deleted}, modified: now}
		return "ok", nil
	})
}

// Delete implements blob.Store.
func (f *files) Delete(ctx context.Context, scope blob.Scope, location string) error {
	place, err := scope.CanonicalFile(location)
	if err != nil {
		return err
	}
	return callerOf(ctx).write(ctx, "delete", place, errCutOff, func(bool) (string, error) {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		there, ok := f.at[place]
		if !ok || there.gone {
			return "not there", nil
		}
		there.gone, there.Deleted = true, true
		f.at[place] = there
		return "ok", nil
	})
}

// List implements blob.Store.
func (f *files) List(ctx context.Context, scope blob.Scope, location string, yield func(blob.Entry) error) error {
	root, path, err := scope.LocateDir(location)
	if err != nil {
		return err
	}
	dir := strings.TrimSuffix(root.Place()+"/"+path, "/") + "/"
	var entries []blob.Entry
	err = callerOf(ctx).read(ctx, "list files", dir, func() (string, error) {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		for _, place := range slices.Sorted(maps.Keys(f.at)) {
			if there := f.at[place]; strings.HasPrefix(place, dir) && !there.gone {
				entries = append(entries, blob.Entry{Location: place, Size: int64(len(there.Data)), Modified: there.modified})
			}
		}
		return fmt.Sprint(len(entries)), nil
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := yield(e); err != nil {
			return err
		}
	}
	return nil
}

// CheckMark implements blob.Roots.
func (f *files) CheckMark(ctx context.Context, root blob.Root, _ string) error {
	return callerOf(ctx).read(ctx, "mark", root.URI, func() (string, error) { return "ok", nil })
}
