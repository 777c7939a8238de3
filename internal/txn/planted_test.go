//go:build planted

package txn

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/landfast/landfast/internal/planted"
)

// The model sees every mistake of this package but one, which takes two requests that are late and a
// pause: that one a story tells.
func TestModelSeesPlantedBugs(t *testing.T) {
	for _, bug := range []planted.Bug{
		planted.PendingIsOldValue, planted.PendingIsRead, planted.ParentUnread, planted.LostReplyIsFailure,
		planted.OwnWriteIsConflict, planted.ConditionWithoutIntent, planted.EmptyWithoutSeal, planted.CommitBeforeIntents,
		planted.BlindClear, planted.AbortedWithoutSwap, planted.VersionOfRollForward,
		planted.OutcomeNotFinal, planted.LiteralProtocol,
	} {
		t.Run(string(bug), func(t *testing.T) {
			defer planted.Make(bug)()
			const most = 20_000
			for seed := range uint64(most) {
				if r := runModel(t, seed, nil); len(r.problems) > 0 {
					t.Logf("seen after %d seeds: %.150s", seed+1, r.problems[0])
					return
				}
			}
			t.Errorf("not seen in %d seeds", most)
		})
	}
}

// Everything that was under way arrives after a batch was answered as refused.
const lateStory = `apply t0: A=0 B=0
t1: A=1 B=1
t1 put B
t1 delay commit
wait 10s
apply t2: A=2
t1 rest
t1 copy tx/t1
t1 deliver
outcome t1`

func TestStorySeesAbortedDeletedAtOnce(t *testing.T) {
	for _, c := range []struct {
		bug  planted.Bug
		want string
	}{
		{"", "not applied\n"},
		{planted.AbortedDeletedAtOnce, "applied\n"},
	} {
		undo := planted.Make(c.bug)
		synctest.Test(t, func(t *testing.T) {
			if got := tell(t, lateStory); !strings.HasSuffix(got, "outcome t1\n  "+c.want) {
				t.Errorf("%q: the outcome should be %s%s", c.bug, c.want, got)
			}
		})
		undo()
	}
}
