package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// changesMax bounds the commits in one transaction: the metadata of all its tables
// is held in memory at once, and all its records change in one batch.
const changesMax = 1000

// CommitTransaction commits to several tables of a warehouse, all or nothing. A table
// that is named twice is changed by both commits, in their order, and gets one
// metadata file.
type CommitTransaction struct {
	Request CommitTransactionRequest `json:"request"`
	Result  struct{}                 `json:"result"`
}

// CommitTransactionRequest is the list of commits, in order.
type CommitTransactionRequest struct {
	Warehouse string        `json:"warehouse"`
	Changes   []TableCommit `json:"changes"`
	// Creates says that a change creates its table. It only adds to what the
	// transaction queues for.
	Creates bool `json:"creates,omitempty"`
}

// TableCommit is one commit. Requirements and Updates are JSON arrays.
type TableCommit struct {
	Table        Ident  `json:"table"`
	Requirements []byte `json:"requirements"`
	Updates      []byte `json:"updates"`
}

// Plan implements kernel.Operation.
func (op *CommitTransaction) Plan() kernel.Plan {
	var tables []Ident
	for _, c := range op.Request.Changes {
		tables = append(tables, c.Table)
	}
	locks := tableLocks(op.Request.Warehouse, tables...)
	if op.Request.Creates {
		locks = locks.With(lock.W(key.LocationGuard()))
	}
	return kernel.Plan{Op: "commit-transaction", Locks: locks, Route: key.RouteOf(op.Request.Warehouse, nil)}
}

// Decide implements kernel.Operation.
func (op *CommitTransaction) Decide(ctx context.Context, tx *kernel.Tx) error {
	var tables []Ident
	for _, c := range op.Request.Changes[:min(len(op.Request.Changes), changesMax)] {
		tables = append(tables, c.Table)
	}
	findAhead(ctx, tx, op.Request.Warehouse, tables...)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	if n := len(op.Request.Changes); n > changesMax {
		return refuse(ErrInvalid, "The transaction has %d table changes; at most %d are allowed", n, changesMax)
	}
	var order []*tableChange
	byName := map[key.Key]*tableChange{}
	for _, commit := range op.Request.Changes {
		if err := checkIdent(KindTable, commit.Table); err != nil {
			return err
		}
		name := key.ForTableName(w.Value.Name, commit.Table.Namespace, commit.Table.Name)
		c, ok := byName[name]
		if !ok {
			if c, err = openChange(ctx, tx, w, commit.Table, commit.Requirements); err != nil {
				return inTransaction(err, commit.Table)
			}
			byName[name] = c
			order = append(order, c)
		}
		if err := c.apply(ctx, tx, commit.Requirements, commit.Updates); err != nil {
			return inTransaction(err, commit.Table)
		}
	}
	for _, c := range order {
		if _, err := c.stage(ctx, tx); err != nil {
			return inTransaction(err, c.table)
		}
	}
	return nil
}

// inTransaction says which table of several a refusal is about.
func inTransaction(err error, t Ident) error {
	var refusal *Error
	if errors.As(err, &refusal) && !errors.Is(err, ErrNoSuchTable) {
		return &Error{refusal.Kind, fmt.Sprintf("%s (in the change of table %s)", refusal.Message, t)}
	}
	return err
}
