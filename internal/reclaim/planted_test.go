//go:build planted

package reclaim_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/landfast/landfast/internal/planted"
)

// What the tests of this package see, run in a process that makes the mistake.
func TestPlanted(t *testing.T) {
	for bug, by := range map[planted.Bug]string{
		planted.PurgedByPrefix:  "TestRegistered",
		planted.DyingEndedFirst: "TestCrash",
	} {
		t.Run(string(bug), func(t *testing.T) {
			suite := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+by+"$")
			suite.Env = append(os.Environ(), planted.Variable+"="+string(bug))
			if out, err := suite.CombinedOutput(); err == nil {
				t.Errorf("%s did not see it:\n%s", by, out)
			}
		})
	}
}
