package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// FindExpired finds idempotency keys whose lifetime is over.
type FindExpired struct {
	Request FindExpiredRequest `json:"request"`
	Result  FindExpiredResult  `json:"result"`
}

// FindExpiredRequest asks for a page of all keys.
type FindExpiredRequest struct {
	Page Page `json:"page,omitzero"`
}

// FindExpiredResult is those keys of the page that have expired.
type FindExpiredResult struct {
	Keys      []key.Key `json:"keys,omitempty"`
	NextToken string    `json:"next-token,omitempty"` // empty: there are no more
}

// Plan implements kernel.Operation.
func (op *FindExpired) Plan() kernel.Plan { return kernel.Plan{Op: "find-expired"} }

// Decide implements kernel.Operation.
func (op *FindExpired) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = FindExpiredResult{}
	records, next, err := listPage(ctx, tx, key.Onces(), op.Request.Page)
	if err != nil {
		return err
	}
	for _, r := range records {
		value, err := decode[onceRecord](r)
		if err != nil {
			return err
		}
		if tx.Now().UnixMilli() >= value.ExpiresAtMillis {
			op.Result.Keys = append(op.Result.Keys, r.Key)
		}
	}
	op.Result.NextToken = next
	return nil
}

// ForgetExpired forgets idempotency keys whose lifetime is over; others stay.
type ForgetExpired struct {
	Request ForgetExpiredRequest `json:"request"`
	Result  struct{}             `json:"result"`
}

// ForgetExpiredRequest names the keys.
type ForgetExpiredRequest struct {
	Keys []key.Key `json:"keys"`
}

// Plan implements kernel.Operation.
func (op *ForgetExpired) Plan() kernel.Plan { return kernel.Plan{Op: "forget-expired"} }

// Decide implements kernel.Operation.
func (op *ForgetExpired) Decide(ctx context.Context, tx *kernel.Tx) error {
	for _, k := range op.Request.Keys {
		if k.Level != key.Once {
			return errors.New("catalog: not an idempotency key: " + k.String())
		}
		there, err := read[onceRecord](ctx, tx, (*kernel.Tx).Peek, k)
		if err != nil {
			return err
		}
		if there.Exists() && tx.Now().UnixMilli() >= there.Value.ExpiresAtMillis {
			if err := tx.Keep(there.Record); err != nil {
				return err
			}
			tx.Delete(k)
		}
	}
	return nil
}

// expiredPage is how many keys ForgetAllExpired looks at, and forgets, at a time.
const expiredPage = 500

// ForgetAllExpired forgets every idempotency key whose lifetime is over.
func ForgetAllExpired(ctx context.Context, run kernel.Runner) error {
	page := Page{Size: expiredPage}
	for {
		find := &FindExpired{Request: FindExpiredRequest{Page: page}}
		if err := run.Do(ctx, find); err != nil {
			return fmt.Errorf("find expired idempotency keys: %w", err)
		}
		if keys := find.Result.Keys; len(keys) > 0 {
			if err := run.Do(ctx, &ForgetExpired{Request: ForgetExpiredRequest{Keys: keys}}); err != nil {
				return fmt.Errorf("forget expired idempotency keys: %w", err)
			}
		}
		if page.Token = find.Result.NextToken; page.Token == "" {
			return nil
		}
	}
}
