package catalog

import (
	"context"
	"errors"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

// CommitTable checks requirements against a table and applies updates to it. With
// the requirement assert-create it makes the table that was staged.
type CommitTable struct {
	Request CommitTableRequest `json:"request"`
	Result  TableState         `json:"result"`
}

// CommitTableRequest is the change. Requirements and Updates are JSON arrays,
// read only once the table was found.
type CommitTableRequest struct {
	Warehouse    string `json:"warehouse"`
	Table        Ident  `json:"table"`
	Requirements []byte `json:"requirements"`
	Updates      []byte `json:"updates"`
	// Creates says that assert-create is among the requirements. It only adds to
	// what the commit queues for.
	Creates bool `json:"creates,omitempty"`
}

// Plan implements kernel.Operation.
func (op *CommitTable) Plan() kernel.Plan {
	plan := kernel.Plan{
		Op:      "commit-table",
		Locks:   tableLocks(op.Request.Warehouse, op.Request.Table),
		Combine: key.ForTableName(op.Request.Warehouse, op.Request.Table.Namespace, op.Request.Table.Name),
		Route:   key.RouteOf(op.Request.Warehouse, op.Request.Table.Namespace),
	}
	if op.Request.Creates {
		plan.Locks, plan.Combine = plan.Locks.With(lock.W(key.LocationGuard())), key.Key{}
	}
	return plan
}

// ShowLatest implements kernel.Latest.
func (op *CommitTable) ShowLatest(last kernel.Operation) {
	if last, ok := unwrapped(last).(*CommitTable); ok {
		op.Result = last.Result
	}
}

// Decide implements kernel.Operation.
func (op *CommitTable) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = TableState{}
	req := &op.Request
	findAhead(ctx, tx, req.Warehouse, req.Table)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, req.Warehouse)
	if err != nil {
		return err
	}
	c, err := openChange(ctx, tx, w, req.Table, req.Requirements)
	if err != nil {
		return err
	}
	if err := c.apply(ctx, tx, req.Requirements, req.Updates); err != nil {
		return err
	}
	op.Result, err = c.stage(ctx, tx)
	return err
}

// tableChange is what commits make of one table: it is read once, changed by each
// commit in turn, and staged once.
type tableChange struct {
	w     found[Warehouse]
	table Ident

	pointer found[pointerRecord]   // of a table that exists
	n       found[namespaceRecord] // of a table that is created

	id   string              // of the pointer
	base *tablemeta.Metadata // as the table was; nil where it is created
	now  *tablemeta.Metadata // as the commits so far make it; nil at first where it is created
}

// openChange reads the table that a commit names. A name that is free is
// refused, unless the requirements say that the commit creates the table.
func openChange(ctx context.Context, tx *kernel.Tx, w found[Warehouse], t Ident, requirements []byte) (*tableChange, error) {
	c := &tableChange{w: w, table: t}
	var err error
	c.pointer, err = readPointer(ctx, tx, w, KindTable, t)
	if errors.Is(err, ErrNoSuchTable) && CreatesTable(requirements) {
		c.n, err = newName(ctx, tx, w, KindTable, t)
		if errors.Is(err, errTableExists) {
			return nil, kernel.ErrAgain // it was free a moment ago: now the requirement is what fails
		}
		if err != nil {
			return nil, err
		}
		c.id = tx.NewID()
		return c, checkMounted(ctx, tx, w.Value)
	}
	if err != nil {
		return nil, err
	}
	c.id = c.pointer.ID
	return c, nil
}

// apply changes the table by one commit.
func (c *tableChange) apply(ctx context.Context, tx *kernel.Tx, requirements, updates []byte) error {
	var required []tablemeta.Requirement
	if err := parse("requirements", requirements, &required); err != nil {
		return err
	}
	var changes []tablemeta.Update
	if err := parse("updates", updates, &changes); err != nil {
		return err
	}
	change := tablemeta.Change{Updates: changes, UUID: c.id, Now: tx.Now()}
	if c.pointer.Exists() && c.now == nil {
		file := fileOf(c.pointer)
		m, err := tableMetadata(ctx, tx, c.w.Value, c.table, file)
		if err != nil {
			return err
		}
		c.base, c.now, change.BaseFile = m, m, file.location
	}
	if err := tablemeta.Check(c.now, required); err != nil {
		return fromMetadata(err)
	}
	change.Base = c.now
	next, _, err := tablemeta.Commit(change)
	if err != nil {
		return fromMetadata(err)
	}
	c.now = next
	return nil
}

// stage stages what the commits have made of the table: nothing where they have
// changed nothing.
func (c *tableChange) stage(ctx context.Context, tx *kernel.Tx) (TableState, error) {
	w := c.w.Value
	if c.base == nil {
		_, canonical, err := checkLocation(w, "table location", c.now.Location())
		if err != nil {
			return TableState{}, err
		}
		file, err := writeTable(tx, w, c.now, metadataFile{binding: c.id})
		if err != nil {
			return TableState{}, err
		}
		return tableState(w, file, c.now, SnapshotsAll), bind(ctx, tx, w, c.n, c.id, KindTable, c.table, c.now, file.location, canonical, false)
	}
	p, next := c.pointer, c.pointer.Value
	if c.now == c.base {
		return tableState(w, fileOf(p), c.now, SnapshotsAll), nil
	}
	if c.now.Location() != next.Location {
		if err := move(ctx, tx, w, p, &next, c.now.Location()); err != nil {
			return TableState{}, err
		}
	}
	file, err := writeTable(tx, w, c.now, fileOf(p))
	if err != nil {
		return TableState{}, err
	}
	next.MetadataLocation = file.location
	if err := giveUpDropped(ctx, tx, c.w, p.Value, c.base, c.now); err != nil {
		return TableState{}, err
	}
	put(tx, p.Key, p.ID, next)
	return tableState(w, file, c.now, SnapshotsAll), nil
}

// CreatesTable tells a commit that creates a table, which was staged, from one
// that changes a table, by its requirements.
func CreatesTable(requirements []byte) bool {
	var parsed []tablemeta.Requirement
	err := rawjson.Unmarshal(requirements, &parsed)
	return err == nil && tablemeta.IsCreate(parsed)
}

// parse decodes a part of the request that was not read before the table was found.
func parse(what string, data []byte, v any) error {
	err := rawjson.Unmarshal(data, v)
	var (
		at    *rawjson.Error
		inner *tablemeta.InvalidError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &inner) && errors.As(err, &at):
		return refuse(ErrInvalid, "Malformed request: %s%s: %s", what, at.Pointer, inner.Message)
	}
	return refuse(ErrInvalid, "Malformed request: %s: %v", what, err)
}
