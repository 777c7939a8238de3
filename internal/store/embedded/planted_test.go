//go:build planted

package embedded_test

import (
	"testing"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/planted/plantedtest"
)

// What the tests of this package see.
func TestPlanted(t *testing.T) {
	plantedtest.Seen(t, map[planted.Bug]string{
		planted.CacheBeforeCommit: "TestReadBesideCommit",
		planted.CacheStaleFill:    "TestSlowRead",
	})
}
