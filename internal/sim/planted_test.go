//go:build planted

package sim

import (
	"flag"
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/planted"
)

var plantedMax = flag.Uint64("planted-seeds", 1000, "in how many seeds each planted mistake must be found")

// plantedHere are the mistakes that random runs see, each on the variant where it can be made. The
// others need several rare things at once, or harm nothing that a client can see: they are for
// exhaustive search and for the tests of the package that they are in.
var plantedHere = []struct {
	bug planted.Bug
	on  Variant
}{
	{planted.LiveDropped, Transactional},
	{planted.EmptyByList, Transactional},
	{planted.FilesAfterBatch, Transactional},
	{planted.UnknownIsConflict, Transactional},
	{planted.UnknownIsCleanedUp, Transactional},
	{planted.FilesDoNotRide, Transactional},
	{planted.RecordsBeforeFiles, Transactional},
	{planted.NeighboursUnseen, Transactional},
	{planted.NeighboursUnconditioned, Transactional},
	{planted.NeighboursOfFailedLand, Transactional},
	{planted.RefusedBeforeDurable, Transactional},
	{planted.UnknownToLeaderOnly, Transactional},
	{planted.DyingIsRegistered, Transactional},
	{planted.DyingEndedFirst, Transactional},
	{planted.KeyForgotten, Transactional},
	{planted.TimeRunsBack, Transactional},
	{planted.ConditionSkipped, Transactional},
	{planted.PendingIsOldValue, Bucket},
	{planted.PendingIsRead, Bucket},
	{planted.ParentUnread, Bucket},
	{planted.LostReplyIsFailure, Bucket},
	{planted.OwnWriteIsConflict, Bucket},
	{planted.EmptyWithoutSeal, Bucket},
	{planted.CommitBeforeIntents, Bucket},
	{planted.BlindClear, Bucket},
	{planted.AbortedWithoutSwap, Bucket},
	{planted.LiteralProtocol, Bucket},
}

// Each mistake is seen within so many seeds. How many it took is logged.
func TestPlanted(t *testing.T) {
	for _, p := range plantedHere {
		t.Run(string(p.bug), func(t *testing.T) {
			defer planted.Make(p.bug)()
			for seed := uint64(1); seed <= *plantedMax; seed++ {
				if r := run(t, seedOf(seed, p.on)); len(r.Problems) > 0 {
					t.Logf("seen in seed %d of %s: %s", seed, p.on, firstLine(r.Problems[0]))
					return
				}
			}
			t.Errorf("not seen in %d seeds of %s", *plantedMax, p.on)
		})
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
