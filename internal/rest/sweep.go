package rest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/duty"
	"github.com/landfast/landfast/internal/reclaim"
)

// sweepMargin is what a sweep leaves of the request's time for its answer: no more
// than this, and no more than a tenth.
const sweepMargin = 2 * time.Second

type sweepBody struct {
	// Complete tells whether the whole warehouse was looked at: not, if that took longer
	// than a request may, or a fault came between, which is in the server's log. The server's own sweep, once a day, has no such bound.
	Complete bool `json:"complete"`
	DryRun   bool `json:"dry-run"`
	// Tables counts what was looked at, views included; Skipped is how many of them could not be judged.
	Tables  int `json:"tables"`
	Skipped int `json:"skipped"`
	// Orphans and Leftovers count files: metadata files that nothing reaches, and what interrupted writes left.
	Orphans   int `json:"orphans"`
	Leftovers int `json:"leftovers"`
	// Files are the first of them.
	Files []string `json:"files"`
}

func (c *call) sweepWarehouse() error {
	dryRun, err := c.flag("dryRun")
	if err != nil {
		return c.afterExistence(err)
	}
	if err := c.mustExist(); err != nil {
		return err
	}
	ctx := c.owned(c.ctx, "sweep")
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-min(sweepMargin, time.Until(deadline)/10)))
		defer cancel()
	}
	report, err := c.h.opt.Reclaimer.Sweep(ctx, c.path.warehouse, dryRun)
	if errors.Is(err, blob.ErrMarkMissing) {
		return refuse(catalog.ErrWarehouseUnavailable, "Warehouse %s is not available: %v", c.path.warehouse, err)
	}
	late := errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil
	if changed := !dryRun && report.Orphans+report.Leftovers > 0; err != nil && !late {
		switch {
		case changed:
		case errors.Is(err, reclaim.ErrSweeping):
			return c.refuseSweep("This instance is at a sweep already, of this or another warehouse")
		case errors.Is(err, reclaim.ErrSweptElsewhere):
			return c.refuseSweep(fmt.Sprintf("Another instance sweeps warehouse %s, or was at it when it died, a moment ago", c.path.warehouse))
		default:
			return err
		}
		// It has done something, which a refusal would deny.
		c.h.opt.Log.WarnContext(c.ctx, "a sweep did not come to its end", "warehouse", c.path.warehouse, "error", err)
	}
	return c.ok(sweepBody{
		Complete: err == nil, DryRun: dryRun, Tables: report.Tables, Skipped: report.Skipped,
		Orphans: report.Orphans, Leftovers: report.Leftovers, Files: report.Files,
	})
}

// refuseSweep answers that another sweep is in the way. It says so beside the table of errors, because that would have a
// client come again in a second, and a sweep is there for longer.
func (c *call) refuseSweep(why string) error {
	message := why + "; try again in a minute, or later if it is the daily sweep, which may take long"
	c.w.Header().Set("Retry-After", strconv.Itoa(int(duty.Lifetime.Seconds())))
	c.send(tooMany.status, errorBody{errorModel{Message: message, Type: tooMany.kind, Code: tooMany.status}})
	return nil
}
