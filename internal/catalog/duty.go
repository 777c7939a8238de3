package catalog

import (
	"context"
	"time"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// A duty is a piece of work that one of several instances does at a time: deleting the files of a
// list, a sweep. Who has taken it renews it while the work goes on; who dies does not, and another
// takes over. Instances tell its end by their own clocks, and nothing here compares those. What is
// guaranteed is a margin: the owner trusts its duty for less than the lifetime in the record, as
// package duty says, so that nobody else has it as long as the clocks of the two differ by less than
// what is between. Where the taker's is ahead by more, two may be at the same work, until the former
// owner's next renewal, which takes nothing back.
//
// Where the owner's clock was ahead the end is far off, and proves nothing: it may have died, or be at work. So an end is
// never taken for too far off; those who live would take such work from each other again and again, and what takes
// long would never be done. Instead others look at the record: one that has stood for a lifetime by the clock of
// who looks on, whatever stands in it, has an owner that has not renewed it, and does not trust it any more.

// dutyRecord is the value of a duty. Its incarnation is its name's, for ever.
type dutyRecord struct {
	Owner       string `json:"owner,omitempty"` // empty: nobody is at it
	UntilMillis int64  `json:"until-ms,omitempty"`
	DoneMillis  int64  `json:"done-ms,omitempty"` // when it was last done; 0: never, or it does not come again
}

// TakeDuties takes duties that nobody has. What the owner has already, it has again from now: it may not have learned that
// it took it. Who is at work on a duty renews it instead.
type TakeDuties struct {
	Request TakeDutiesRequest `json:"request"`
	Result  TakeDutiesResult  `json:"result"`
}

// TakeDutiesRequest names them.
type TakeDutiesRequest struct {
	Names    []string      `json:"names"`
	Owner    string        `json:"owner"`           // who takes them: a fresh id of each process
	Lifetime time.Duration `json:"lifetime"`        // for how long, from now
	Every    time.Duration `json:"every,omitempty"` // one that was done less long ago is not taken
	// Stood are versions of records of others that have stood for a lifetime, by name: they are over, whatever their end is.
	Stood map[string]store.Version `json:"stood,omitempty"`
}

// TakeDutiesResult is those of the names that the owner has now. Nobody else takes them in their lifetime.
type TakeDutiesResult struct {
	Taken []string `json:"taken,omitempty"`
	// Busy are those that others have, and the versions of their records.
	Busy map[string]store.Version `json:"busy,omitempty"`
}

// Plan implements kernel.Operation.
func (op *TakeDuties) Plan() kernel.Plan { return kernel.Plan{Op: "take-duties"} }

// Decide implements kernel.Operation.
func (op *TakeDuties) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = TakeDutiesResult{}
	now := tx.Now()
	for _, name := range op.Request.Names {
		there, err := read[dutyRecord](ctx, tx, (*kernel.Tx).Peek, key.ForDuty(name))
		if err != nil {
			return err
		}
		d := there.Value
		if d.Owner != "" && d.Owner != op.Request.Owner && now.UnixMilli() < d.UntilMillis && op.Request.Stood[name] != there.Version {
			if op.Result.Busy == nil {
				op.Result.Busy = map[string]store.Version{}
			}
			op.Result.Busy[name] = there.Version
			continue
		}
		if d.Owner != op.Request.Owner && op.doneLately(d, now) {
			continue
		}
		d.Owner, d.UntilMillis = op.Request.Owner, now.Add(op.Request.Lifetime).UnixMilli()
		if there.Exists() {
			if err := tx.Keep(there.Record); err != nil {
				return err
			}
			tx.Put(there.Key, there.ID, encode(d))
		} else {
			tx.Create(there.Key, dutyID, encode(d))
		}
		op.Result.Taken = append(op.Result.Taken, name)
	}
	return nil
}

// doneLately tells whether it is too early to do again what comes again. Where it was done at a time that is far ahead the
// clock was wrong, and nobody is to wait until all others get there.
func (op *TakeDuties) doneLately(d dutyRecord, now time.Time) bool {
	if d.DoneMillis == 0 || op.Request.Every == 0 {
		return false
	}
	ago := now.Sub(time.UnixMilli(d.DoneMillis))
	return -op.Request.Lifetime < ago && ago < op.Request.Every
}

// dutyID is the incarnation of every duty.
const dutyID = "duty"

// EndDuties gives duties up. Those that somebody else has taken since are left alone.
type EndDuties struct {
	Request EndDutiesRequest `json:"request"`
	Result  struct{}         `json:"result"`
}

// EndDutiesRequest names them.
type EndDutiesRequest struct {
	Names []string `json:"names"`
	Owner string   `json:"owner"`
	// Recurs remembers that they were done just now: for work that comes again. Without it they are due when they were before.
	Recurs bool `json:"recurs,omitempty"`
}

// Plan implements kernel.Operation.
func (op *EndDuties) Plan() kernel.Plan { return kernel.Plan{Op: "end-duties"} }

// Decide implements kernel.Operation.
func (op *EndDuties) Decide(ctx context.Context, tx *kernel.Tx) error {
	for _, name := range op.Request.Names {
		there, err := read[dutyRecord](ctx, tx, (*kernel.Tx).Peek, key.ForDuty(name))
		if err != nil {
			return err
		}
		if there.Value.Owner != op.Request.Owner {
			continue
		}
		if err := tx.Keep(there.Record); err != nil {
			return err
		}
		done := there.Value.DoneMillis
		if op.Request.Recurs {
			done = tx.Now().UnixMilli()
		}
		if done > 0 {
			tx.Put(there.Key, there.ID, encode(dutyRecord{DoneMillis: done}))
		} else {
			tx.Delete(there.Key)
		}
	}
	return nil
}
