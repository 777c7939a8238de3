package catalog

import (
	"context"
	"time"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// RenewDuties moves on the ends of those duties that their owner still has. Unlike TakeDuties it makes no record and
// takes none over: a duty without a record, or with another's, may have been done and ended meanwhile, and who has
// slept through that must learn of it instead of going on with what it knew before. A record that names the owner has
// named it ever since the owner last took it, though its end may be over: then nobody has come.
type RenewDuties struct {
	Request RenewDutiesRequest `json:"request"`
	Result  RenewDutiesResult  `json:"result"`
}

// RenewDutiesRequest names them.
type RenewDutiesRequest struct {
	Names    []string      `json:"names"`
	Owner    string        `json:"owner"`    // who took them
	Lifetime time.Duration `json:"lifetime"` // for how long, from now
}

// RenewDutiesResult is those of the names that the owner has still. It has lost the others for good.
type RenewDutiesResult struct {
	Renewed []string `json:"renewed,omitempty"`
}

// Plan implements kernel.Operation.
func (op *RenewDuties) Plan() kernel.Plan { return kernel.Plan{Op: "renew-duties"} }

// Decide implements kernel.Operation.
func (op *RenewDuties) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = RenewDutiesResult{}
	for _, name := range op.Request.Names {
		there, err := read[dutyRecord](ctx, tx, (*kernel.Tx).Peek, key.ForDuty(name))
		if err != nil {
			return err
		}
		d := there.Value
		if !there.Exists() || d.Owner != op.Request.Owner {
			continue
		}
		if err := tx.Keep(there.Record); err != nil {
			return err
		}
		d.UntilMillis = tx.Now().Add(op.Request.Lifetime).UnixMilli()
		tx.Put(there.Key, there.ID, encode(d))
		op.Result.Renewed = append(op.Result.Renewed, name)
	}
	return nil
}
