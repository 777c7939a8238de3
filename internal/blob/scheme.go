package blob

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Backend keeps the files of one scheme, and decides about its roots.
type Backend interface {
	Store
	Roots
}

// ByScheme is the Backend of several schemes: each location and each root is for the
// backend of its scheme, `file` or `s3`, which is also that of s3a and s3n. A scheme
// that has none is refused with a *LocationError. It must not change while it is used.
//
// As a Deferrer it defers where the backend does; elsewhere CreateDeferred is Create.
type ByScheme map[string]Backend

var (
	_ Backend  = ByScheme(nil)
	_ Deferrer = ByScheme(nil)
	_ Prober   = ByScheme(nil)
)

// of finds the backend of a location.
func (b ByScheme) of(location string) (Backend, error) {
	normal, err := NormalizeFile(location) // what else is wrong with it is for the backend to say
	if err != nil {
		return nil, err
	}
	scheme, _, _ := strings.Cut(normal, ":")
	if backend, ok := b[scheme]; ok {
		return backend, nil
	}
	return nil, &LocationError{Location: location, Problem: "this server keeps no files under scheme " + scheme, Remedy: "choose a location of another scheme"}
}

// Read implements [Store].
func (b ByScheme) Read(ctx context.Context, scope Scope, location string, limit int64) ([]byte, error) {
	backend, err := b.of(location)
	if err != nil {
		return nil, err
	}
	return backend.Read(ctx, scope, location, limit)
}

// Create implements [Store].
func (b ByScheme) Create(ctx context.Context, scope Scope, location string, data []byte) error {
	backend, err := b.of(location)
	if err != nil {
		return err
	}
	return backend.Create(ctx, scope, location, data)
}

// Delete implements [Store].
func (b ByScheme) Delete(ctx context.Context, scope Scope, location string) error {
	backend, err := b.of(location)
	if err != nil {
		return err
	}
	return backend.Delete(ctx, scope, location)
}

// Exists implements [Store].
func (b ByScheme) Exists(ctx context.Context, scope Scope, location string) (bool, error) {
	backend, err := b.of(location)
	if err != nil {
		return false, err
	}
	return backend.Exists(ctx, scope, location)
}

// List implements [Store].
func (b ByScheme) List(ctx context.Context, scope Scope, location string, yield func(Entry) error) error {
	backend, err := b.of(location)
	if err != nil {
		return err
	}
	return backend.List(ctx, scope, location, yield)
}

// Resolve implements [Roots].
func (b ByScheme) Resolve(ctx context.Context, uri string, s3 S3Options) (Root, error) {
	backend, err := b.of(uri)
	if err != nil {
		return Root{}, err
	}
	return backend.Resolve(ctx, uri, s3)
}

// Mark implements [Roots].
func (b ByScheme) Mark(ctx context.Context, root Root, id string) error {
	backend, err := b.of(root.URI)
	if err != nil {
		return err
	}
	return backend.Mark(ctx, root, id)
}

// CheckMark implements [Roots].
func (b ByScheme) CheckMark(ctx context.Context, root Root, id string) error {
	backend, err := b.of(root.URI)
	if err != nil {
		return err
	}
	return backend.CheckMark(ctx, root, id)
}

// Gone implements [Prober].
func (b ByScheme) Gone(scope Scope, location string) bool {
	backend, err := b.of(location)
	if err != nil {
		return false
	}
	p, ok := backend.(Prober)
	return ok && p.Gone(scope, location)
}

// Defers implements [Deferrer].
func (b ByScheme) Defers(scope Scope, location string) bool {
	backend, err := b.of(location)
	if err != nil {
		return false
	}
	d, ok := backend.(Deferrer)
	return ok && d.Defers(scope, location)
}

// CreateDeferred implements [Deferrer].
func (b ByScheme) CreateDeferred(ctx context.Context, scope Scope, location string, data []byte) error {
	backend, err := b.of(location)
	if err != nil {
		return err
	}
	if d, ok := backend.(Deferrer); ok {
		return d.CreateDeferred(ctx, scope, location, data)
	}
	return backend.Create(ctx, scope, location, data)
}

// Sync implements [Deferrer]. Every backend is asked, whatever the others say, and an error of one is that of all. The caller
// then rewrites files of the others too, which costs time on a broken disk and is never wrong; telling whose files are
// lost would be a wider interface for a server that has one backend that defers. A backend that ctx cut off has lost nothing, so
// its error does not hide that of one that has.
func (b ByScheme) Sync(ctx context.Context) error {
	var lost []error
	var cut error
	for _, backend := range b {
		d, ok := backend.(Deferrer)
		if !ok {
			continue
		}
		switch err := d.Sync(ctx); {
		case err != nil && errors.Is(err, ctx.Err()):
			cut = err
		case err != nil:
			lost = append(lost, err)
		}
	}
	if len(lost) > 0 {
		return errors.Join(lost...)
	}
	return cut
}

// Rewrite implements [Deferrer].
func (b ByScheme) Rewrite(ctx context.Context, scope Scope, location string, data []byte) error {
	backend, err := b.of(location)
	if err != nil {
		return err
	}
	if d, ok := backend.(Deferrer); ok {
		return d.Rewrite(ctx, scope, location, data)
	}
	return fmt.Errorf("rewrite %s: its files are never deferred", location)
}
