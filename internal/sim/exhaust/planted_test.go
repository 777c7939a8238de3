//go:build planted

package exhaust

import (
	"testing"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// Every mistake that changes what an interleaving leads to is found in a world of two or three operations.
func TestPlanted(t *testing.T) {
	quiet, lost, copied := budget{}, budget{Crashes: 1, Lost: 1}, budget{Copies: 1}
	over, unread := budget{Crashes: 1, Ages: 1}, budget{Lost: 1, Fails: 1}
	for _, c := range []struct {
		bug    planted.Bug
		store  func(*env) store.Atomic
		world  string
		faults budget
	}{
		{planted.OnlyWritesConditioned, overBatches, "write a if b is as it was x write b if a is as it was", quiet},
		{planted.LiveDropped, overBatches, "create x drop namespace", quiet},
		{planted.EmptyByList, overBatches, "create x drop namespace", quiet},
		{planted.AnswerUnsettled, overBatches, "rename x the same rename", quiet},
		{planted.FilesAfterBatch, overBatches, "commit x commit", quiet},
		{planted.UnknownIsConflict, overBatches, "create x create", lost},
		{planted.PendingIsOldValue, overObjects, "commit x transaction", quiet},
		{planted.PendingIsRead, overObjects, "transaction x load x load", quiet},
		{planted.ParentUnread, overObjects, "create x drop namespace", quiet},
		{planted.LostReplyIsFailure, overObjects, "commit x commit", unread},
		{planted.OwnWriteIsConflict, overObjects, "commit x commit", copied},
		{planted.ConditionWithoutIntent, overObjects, "write a if b is as it was x write b if a is as it was", quiet},
		{planted.EmptyWithoutSeal, overObjects, "create x drop namespace", quiet},
		{planted.CommitBeforeIntents, overObjects, "commit x transaction", quiet},
		{planted.BlindClear, overObjects, "rename x rename to one name", quiet},
		{planted.AbortedWithoutSwap, overObjects, "drop x commit", over},
		{planted.OutcomeNotFinal, overObjects, "first commit x first commit x load", budget{Lost: 1, Fails: 2}},
		{planted.LiteralProtocol, overObjects, "commit x transaction", quiet},
	} {
		t.Run(string(c.bug), func(t *testing.T) {
			defer planted.Make(c.bug)()
			w := worldOf(t, c.world)
			w.store, w.rounds = c.store, []round{{c.faults, 3}}
			sizes, wrong := w.explore(t)
			if wrong == "" {
				t.Fatalf("%s (faults: %v) does not find it", c.world, c.faults)
			}
			t.Logf("found by %s (faults: %v) after %d states and %d ends\n%s", c.world, c.faults, sizes[0].states, sizes[0].ends, wrong)
		})
	}
}
