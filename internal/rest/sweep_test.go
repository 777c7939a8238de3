package rest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/reclaim"
)

// sweeper is a Reclaimer that sweeps as a test says.
type sweeper func(ctx context.Context, warehouse string, dryRun bool) (reclaim.SweepReport, error)

func (sweeper) Start(string, string) <-chan struct{} { return nil }

func (f sweeper) Sweep(ctx context.Context, warehouse string, dryRun bool) (reclaim.SweepReport, error) {
	return f(ctx, warehouse, dryRun)
}

// TestSweep: a sweep that the time of a request does not suffice for answers with what it has
// found, in time; so does one that fails after it gave files up, while one that fails without is refused.
func TestSweep(t *testing.T) {
	const timeout = 30 * time.Second
	report := reclaim.SweepReport{Tables: 3, Skipped: 1, Orphans: 1, Leftovers: 1, Files: []string{"file:///w/a", "file:///w/b"}}
	const rest = `"tables":3,"skipped":1,"orphans":1,"leftovers":1,"files":["file:///w/a","file:///w/b"]}`
	for name, c := range map[string]struct {
		query  string
		err    error
		hangs  bool
		status int
		want   string
		// message is how a refusal begins that is told to try again in a minute.
		message string
	}{
		"in earnest":  {status: 200, want: `{"complete":true,"dry-run":false,` + rest},
		"dry run":     {query: "?dryRun=True", status: 200, want: `{"complete":true,"dry-run":true,` + rest},
		"takes long":  {hangs: true, status: 200, want: `{"complete":false,"dry-run":false,` + rest},
		"not mounted": {err: fmt.Errorf("%w: file:///w", blob.ErrMarkMissing), status: 422, want: "WarehouseUnavailableException"},
		"broken":      {query: "?dryRun=true", err: errors.New("broken"), status: 500, want: "InternalServerError"},
		"one is on":   {err: reclaim.ErrSweeping, status: 429, want: "TooManyRequestsException", message: "This instance is at a sweep already"},
		"elsewhere":   {err: fmt.Errorf("w: %w", reclaim.ErrSweptElsewhere), status: 429, want: "TooManyRequestsException", message: "Another instance sweeps warehouse w"},
		"taken over":  {err: reclaim.ErrSweptElsewhere, status: 200, want: `{"complete":false,"dry-run":false,` + rest},
		"half done":   {err: errors.New("broken"), status: 200, want: `{"complete":false,"dry-run":false,` + rest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(func(context.Context, kernel.Operation) error { return nil }, timeout, &syncBuffer{})
				h.opt.Reclaimer = sweeper(func(ctx context.Context, warehouse string, dryRun bool) (reclaim.SweepReport, error) {
					if warehouse != "w" || dryRun != (c.query != "") {
						t.Errorf("swept %s, dry run: %v", warehouse, dryRun)
					}
					if c.hangs {
						<-ctx.Done()
						return report, ctx.Err()
					}
					if c.message != "" {
						return reclaim.SweepReport{}, c.err
					}
					return report, c.err
				})
				began := time.Now()
				w, _ := serve(h, "POST", "/management/v1/warehouses/w/sweep"+c.query, "")
				if took := time.Since(began); took >= timeout {
					t.Errorf("it took %v", took)
				}
				if c.status == 200 {
					if diff := cmp.Diff(c.want, w.Body.String()); diff != "" || w.Code != 200 {
						t.Errorf("%d (-want +got):\n%s", w.Code, diff)
					}
					return
				}
				checkRefusal(t, reply{w.Result(), w.Body.String()}, c.status, c.want, c.message)
				if again := w.Header().Get("Retry-After"); again != "60" && c.message != "" {
					t.Errorf("Retry-After: %q", again)
				}
			})
		})
	}
}
