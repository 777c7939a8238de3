//go:build !linux

package local

import (
	"context"

	"github.com/landfast/landfast/internal/blob"
)

// deferred is empty where there is no call that makes a whole file system durable and tells of every error:
// files are made durable one by one.
type deferred struct{}

func newDeferred() deferred { return deferred{} }

// Defers implements [blob.Deferrer].
func (s *Store) Defers(blob.Scope, string) bool { return false }

// CreateDeferred implements [blob.Deferrer] by Create.
func (s *Store) CreateDeferred(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	return s.Create(ctx, scope, location, data)
}

// Sync implements [blob.Deferrer].
func (s *Store) Sync(ctx context.Context) error { return ctx.Err() }
