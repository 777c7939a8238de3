//go:build planted

package kernel_test

import (
	"testing"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/planted/plantedtest"
)

// What kerneltest sees of the mistakes of combining, of waiting, and of files that ride: each is seen by the case that is about it.
func TestPlanted(t *testing.T) {
	plantedtest.Seen(t, map[planted.Bug]string{
		planted.NeighboursUnseen:        "TestKernel/queue/what_waited_for_one_record_lands_in_one_batch",
		planted.NeighboursUnconditioned: "TestKernel/queue/a_condition_of_any_operation_of_a_batch_is_one_of_the_batch",
		planted.NeighboursOfFailedLand:  "TestKernel/queue/a_failed_upload_fails_alone",
		planted.RefusedBeforeDurable:    "TestKernel/queue/a_refusal_because_of_a_neighbour_whose_batch_failed_is_decided_again",
		planted.CancelEndsBatch:         "TestKernel/queue/clients_that_leave_during_Apply_do_not_reach_the_store",
		planted.UnknownToLeaderOnly:     "TestKernel/queue/an_unknown_outcome_is_told_to_all,_and_asked_once",
		planted.BlockedIsDecidedAgain:   "TestKernel/queue/a_blocked_batch_is_sent_again_as_it_is",
		planted.FilesDoNotRide:          "TestKernelRiding/queue/a_file_that_rides_survives_with_its_batch",
	})
}
