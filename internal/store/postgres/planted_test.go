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
		planted.EmptyBeforeLocks:   "TestBesideACommit/a_drop_beside_a_creation",
		planted.LiveUnlocked:       "TestBesideACommit/a_drop_beside_a_creation",
		planted.OutcomeByLook:      "TestStore/own/outcome:_never_seen",
		planted.CreationUnchecked:  "TestBesideACommit/a_creation_beside_a_creation",
		planted.ForgottenUnchecked: "TestForgetting",
		planted.LocksAsAsked:       "TestLocksAreOrdered",
		planted.OutcomeUnsynced:    "TestStandbyHangs",
		planted.BatchCanceled:      "TestStandbyHangs",
		planted.CrowdUncounted:     "TestStandbyHangs",
		planted.LossIsRefusal:      "TestLostOnTheWay",
		planted.FatalIsRefusal:     "TestBackendEnded",
	})
}
