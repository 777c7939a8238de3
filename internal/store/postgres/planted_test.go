//go:build planted

package postgres_test

import (
	"testing"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/planted/plantedtest"
)

// What storetest and the tests of this package see.
func TestPlanted(t *testing.T) {
	plantedtest.Seen(t, map[planted.Bug]string{
		planted.EmptyBeforeLocks:   "TestStore/own/skew:_create_a_child,_empty_the_parent",
		planted.LiveUnlocked:       "TestStore/own/skew:_create_a_child,_empty_the_parent",
		planted.OutcomeByLook:      "TestStore/own/outcome:_never_seen",
		planted.CreationUnchecked:  "TestStore/own/a_record_is_made_once",
		planted.ForgottenUnchecked: "TestForgetting",
		planted.LocksAsAsked:       "TestLockOrder",
		planted.OutcomeUnsynced:    "TestStandbyHangs",
		planted.BatchCanceled:      "TestStandbyHangs",
		planted.LossIsRefusal:      "TestLostOnTheWay",
		planted.FatalIsRefusal:     "TestBackendEnded",
	})
}
