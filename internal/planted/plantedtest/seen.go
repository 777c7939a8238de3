//go:build planted

package plantedtest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/planted"
)

// Seen runs, for each mistake, the test of this binary that is about it, in a process that makes the mistake: that very
// test must fail. Tests are named as go test prints them, subtests behind a slash.
func Seen(t *testing.T, by map[planted.Bug]string) {
	for bug, test := range by {
		t.Run(string(bug), func(t *testing.T) {
			run := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+strings.ReplaceAll(test, "/", "$/^")+"$")
			run.Env = append(os.Environ(), planted.Variable+"="+string(bug))
			out, err := run.CombinedOutput()
			if err == nil {
				t.Fatalf("%s did not see it:\n%s", test, out)
			}
			if !regexp.MustCompile("--- FAIL: " + regexp.QuoteMeta(test)).Match(out) {
				t.Errorf("it failed in another way:\n%s", out)
			}
		})
	}
}
