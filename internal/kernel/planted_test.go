//go:build planted

package kernel_test

import (
	"testing"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/planted/plantedtest"
)

// seenBy are the cases of kerneltest that see the mistakes of package kernel, each the case that is about it. None depends on who
// comes first: another comes at the very moment at which it does harm.
var seenBy = map[planted.Bug]string{
	planted.OnlyWritesConditioned:   "what_was_only_read_is_a_condition",
	planted.LiveDropped:             "a_parent_that_goes_before_the_batch_is_missed",
	planted.EmptyByList:             "a_child_that_comes_before_the_batch_is_in_the_way",
	planted.AnswerUnsettled:         "an_answer_held_together_at_one_moment",
	planted.FilesAfterBatch:         "files_are_durable_before_the_batch",
	planted.UnknownIsConflict:       "unknown,_then_applied,_is_done",
	planted.UnknownIsCleanedUp:      "unknown_that_stays_unknown_is_said_to_be",
	planted.BlockedIsDecidedAgain:   "a_blocked_batch_is_sent_again_as_it_is",
	planted.NeighboursUnseen:        "what_waited_for_one_record_lands_in_one_batch",
	planted.NeighboursUnconditioned: "a_condition_of_any_operation_of_a_batch_is_one_of_the_batch",
	planted.NeighboursOfFailedLand:  "a_failed_upload_fails_alone",
	planted.RefusedBeforeDurable:    "a_refusal_because_of_a_neighbour_whose_batch_failed_is_decided_again",
	planted.CancelEndsBatch:         "clients_that_leave_during_Apply_do_not_reach_the_store",
	planted.UnknownToLeaderOnly:     "an_unknown_outcome_is_told_to_all,_and_asked_once",
}

// The mistakes are seen on each kind of store; but no file rides where several processes share the records, so on PostgreSQL
// that one cannot be made.
func TestPlanted(t *testing.T) {
	for _, suite := range []string{"TestKernel", "TestKernelOnPostgres"} {
		t.Run(suite, func(t *testing.T) {
			by := map[planted.Bug]string{}
			for bug, test := range seenBy {
				by[bug] = suite + "/queue/" + test
			}
			if suite == "TestKernelOnPostgres" {
				by[planted.BlockedIsDecidedAgain] = "TestRowLockedFromOutside" // by a lock that is one
			}
			plantedtest.Seen(t, by)
		})
	}
	plantedtest.Seen(t, map[planted.Bug]string{planted.FilesDoNotRide: "TestKernelRiding/queue/a_file_that_rides_survives_with_its_batch"})
}
