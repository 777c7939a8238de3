//go:build planted

package kernel_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/landfast/landfast/internal/planted"
)

// What kerneltest sees of the mistakes of combining, run in a process that makes the mistake: each is
// seen by the case that is about it.
func TestPlanted(t *testing.T) {
	for bug, by := range map[planted.Bug]string{
		planted.NeighboursUnseen:        "what_waited_for_one_record_lands_in_one_batch",
		planted.NeighboursUnconditioned: "a_condition_of_any_operation_of_a_batch_is_one_of_the_batch",
		planted.NeighboursOfFailedLand:  "a_failed_upload_fails_alone",
		planted.RefusedBeforeDurable:    "a_refusal_because_of_a_neighbour_whose_batch_failed_is_decided_again",
		planted.CancelEndsBatch:         "clients_that_leave_during_Apply_do_not_reach_the_store",
		planted.UnknownToLeaderOnly:     "an_unknown_outcome_is_told_to_all,_and_asked_once",
	} {
		t.Run(string(bug), func(t *testing.T) {
			suite := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKernel$/^queue$/^"+by+"$")
			suite.Env = append(os.Environ(), planted.Variable+"="+string(bug))
			out, err := suite.CombinedOutput()
			if err == nil {
				t.Fatalf("%s did not see it:\n%s", by, out)
			}
			if !regexp.MustCompile("--- FAIL: TestKernel/queue/" + regexp.QuoteMeta(by)).Match(out) {
				t.Errorf("it failed in another way:\n%s", out)
			}
		})
	}
}
