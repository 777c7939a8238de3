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
	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/reclaim"
)

// files are a store of files behind a network. Every root bears every mark.
type files struct {
	w *world
	// Guarded by the world's mutex.
	at             map[string]file // by the normalised location
	deferred, anew int             // files that were made to ride, and written anew
	lost           int             // files of which the loss of power took all, or the end
}

// file is one that is there, or was.
type file struct {
	File
	modified time.Time
	gone     bool // it is not there now
	unsafe   bool // the loss of power takes it
	given    bool // up, after a failed Sync: no other helps
}

// File is a file that was made.
type File struct {
	Data []byte
	// Deleted says that it was deleted. A copy of the request that made it may have brought it
	// back since: nobody may rely on that.
	Deleted bool
	// Lost says that the loss of power took it, and that nobody has written it anew.
	Lost bool
}

var (
	_ kernel.Files  = (*files)(nil)
	_ journal.Files = (*files)(nil)
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
	return f.create(ctx, scope, location, data, false)
}

// CreateDeferred implements blob.Deferrer.
func (f *files) CreateDeferred(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	return f.create(ctx, scope, location, data, true)
}

func (f *files) create(ctx context.Context, scope blob.Scope, location string, data []byte, deferred bool) error {
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
		f.at[place] = file{File: File{Data: data, Deleted: there.Deleted}, modified: now, unsafe: deferred}
		if deferred {
			f.deferred++
		}
		return "ok", nil
	})
}

// Defers implements blob.Deferrer.
func (f *files) Defers(blob.Scope, string) bool { return true }

// Sync implements blob.Deferrer. What it should have made durable and did not is given up.
func (f *files) Sync(ctx context.Context) error {
	f.w.mu.Lock()
	var before []string
	for place, there := range f.at {
		if there.unsafe {
			before = append(before, place)
		}
	}
	f.w.mu.Unlock()
	each := func(do func(there *file)) {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		for _, place := range before {
			there := f.at[place]
			do(&there)
			f.at[place] = there
		}
	}
	c := callerOf(ctx)
	err := c.write(ctx, "sync", "", errCutOff, func(bool) (string, error) {
		each(func(there *file) { there.unsafe = there.unsafe && there.given })
		return fmt.Sprint(len(before)), nil
	})
	if err != nil && ctx.Err() == nil && c.alive() {
		each(func(there *file) { there.given = there.unsafe })
	}
	return err
}

// Rewrite implements blob.Deferrer.
func (f *files) Rewrite(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	place, err := scope.Canonical(location)
	if err != nil {
		return err
	}
	return callerOf(ctx).write(ctx, "rewrite", place, blob.ErrUncertain, func(bool) (string, error) {
		now := time.Now()
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		f.at[place] = file{File: File{Data: data, Deleted: f.at[place].Deleted}, modified: now}
		f.anew++
		return "ok", nil
	})
}

// lose takes the power, and with it of each file that is not durable all, or the end, or nothing. The world's
// mutex is held.
func (f *files) lose() {
	for place, there := range f.at {
		if !there.unsafe {
			continue
		}
		s := streamOf(f.w.cfg.Seed, textHash("power", place))
		switch s.n(3) {
		case 0:
			there.gone, there.Lost = true, true
			f.lost++
		case 1:
			there.Data = there.Data[:s.n(max(1, len(there.Data)))]
			f.lost++
		}
		there.unsafe, there.given = false, false
		f.at[place] = there
	}
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
		there.gone, there.Deleted, there.unsafe = true, true, false
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
