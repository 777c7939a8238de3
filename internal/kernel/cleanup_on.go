//go:build planted

package kernel

import (
	"context"

	"github.com/landfast/landfast/internal/blob"
)

// cleanUp deletes files of a batch that may have been applied: a mistake, made on purpose.
func cleanUp(ctx context.Context, files Files, staged []File) {
	ctx = context.WithoutCancel(ctx)
	deleter, ok := files.(interface {
		Delete(ctx context.Context, scope blob.Scope, location string) error
	})
	if !ok {
		return
	}
	for _, f := range staged {
		_ = deleter.Delete(ctx, f.Scope, f.Location)
	}
}
