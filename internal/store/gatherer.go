package store

import (
	"context"

	"github.com/landfast/landfast/internal/key"
)

// Gatherer is an [Atomic] that is far away: it reads several records in the time of one, where reading one after
// another takes a round trip each.
type Gatherer interface {
	// GetAll is Get of each key, in their order. The records need not be of one moment.
	GetAll(ctx context.Context, keys []key.Key) ([]Record, error)
}
