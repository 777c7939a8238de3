//go:build planted

package mem_test

import (
	"testing"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/planted/plantedtest"
)

// What storetest sees.
func TestPlanted(t *testing.T) {
	plantedtest.Seen(t, map[planted.Bug]string{
		planted.VersionRestarts:  "TestStore/a_version_never_returns",
		planted.ConditionSkipped: "TestStore/is",
	})
}
