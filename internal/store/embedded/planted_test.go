//go:build planted

package embedded_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/landfast/landfast/internal/planted"
)

// What the tests of this package see, run in a process that makes the mistake.
func TestPlanted(t *testing.T) {
	for bug, by := range map[planted.Bug]string{
		planted.CacheBeforeCommit: "TestReadBesideCommit",
		planted.CacheStaleFill:    "TestSlowRead",
	} {
		t.Run(string(bug), func(t *testing.T) {
			tests := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+by+"$")
			tests.Env = append(os.Environ(), planted.Variable+"="+string(bug))
			if out, err := tests.CombinedOutput(); err == nil {
				t.Errorf("%s did not see it:\n%s", by, out)
			}
		})
	}
}
