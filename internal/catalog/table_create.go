package catalog

import (
	"context"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/tablemeta"
)

// CreateTable makes a table, or, staged, says what it would be: nothing is then
// written and nothing remembered, and the client creates it by a commit.
type CreateTable struct {
	Request CreateTableRequest `json:"request"`
	Result  TableState         `json:"result"`
}

// CreateTableRequest is the table to make. Schema, PartitionSpec and WriteOrder are JSON.
type CreateTableRequest struct {
	Warehouse     string            `json:"warehouse"`
	Table         Ident             `json:"table"`
	Location      string            `json:"location,omitempty"` // empty: the server chooses
	Schema        []byte            `json:"schema"`
	PartitionSpec []byte            `json:"partition-spec,omitempty"`
	WriteOrder    []byte            `json:"write-order,omitempty"`
	Properties    map[string]string `json:"properties,omitempty"`
	Stage         bool              `json:"stage,omitempty"`
}

// Plan implements kernel.Operation.
func (op *CreateTable) Plan() kernel.Plan {
	locks := tableLocks(op.Request.Warehouse, op.Request.Table)
	if op.Request.Location != "" && !op.Request.Stage {
		locks = locks.With(lock.W(key.LocationGuard()))
	}
	return kernel.Plan{
		Op:    "create-table",
		Locks: locks,
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Table.Namespace),
	}
}

// tableLocks makes the changes of one table's name wait for each other. A table
// whose namespace is being dropped does not wait: its condition on the namespace
// decides.
func tableLocks(warehouse string, tables ...Ident) lock.Set {
	var items []lock.Item
	for _, t := range tables {
		items = append(items, lock.W(key.ForTableName(warehouse, t.Namespace, t.Name)))
	}
	return lock.NewSet(items...)
}

// Decide implements kernel.Operation.
func (op *CreateTable) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = TableState{}
	req := &op.Request
	newAhead(ctx, tx, req.Warehouse, req.Table)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, req.Warehouse)
	if err != nil {
		return err
	}
	n, err := newName(ctx, tx, w, KindTable, req.Table)
	if err != nil {
		return err
	}
	if err := checkMounted(ctx, tx, w.Value); err != nil {
		return err
	}
	id := tx.NewID()
	location, canonical := serverLocation(n.Value.Area, req.Table.Name, id), ""
	if req.Location != "" {
		if location, canonical, err = checkLocation(w.Value, "table location", req.Location); err != nil {
			return err
		}
	}
	m, err := tablemeta.New(tablemeta.NewTable{
		UUID: id, Location: location, Schema: req.Schema, PartitionSpec: req.PartitionSpec,
		WriteOrder: req.WriteOrder, Properties: req.Properties, Now: tx.Now(),
	})
	if err != nil {
		return fromMetadata(err)
	}
	if req.Stage {
		op.Result = TableState{Metadata: m.JSON(), Root: w.Value.Root.Public()}
		return nil
	}
	file, err := writeTable(tx, w.Value, m, metadataFile{binding: id})
	if err != nil {
		return err
	}
	if err := bind(ctx, tx, w.Value, n, id, KindTable, req.Table, m, file.location, canonical, false); err != nil {
		return err
	}
	op.Result = tableState(w.Value, file, m, SnapshotsAll)
	return nil
}

// newName refuses a name that is taken or whose namespace does not exist, and
// adds the conditions that both stay as they are.
func newName(ctx context.Context, tx *kernel.Tx, w found[Warehouse], kind Kind, t Ident) (found[namespaceRecord], error) {
	if err := checkIdent(kind, t); err != nil {
		return found[namespaceRecord]{}, err
	}
	n, err := readNamespace(ctx, tx, (*kernel.Tx).Peek, w, t.Namespace)
	if err != nil {
		return n, err
	}
	tx.RequireLive(n.Key, n.ID)
	there, err := read[nameRecord](ctx, tx, (*kernel.Tx).Get, key.ForTableName(w.Value.Name, t.Namespace, t.Name))
	if err != nil {
		return n, err
	}
	if there.Exists() {
		return n, nameTaken(kind, there.Value.Kind, t)
	}
	return n, nil
}

// bind stages the records of something new whose metadata d is in the file: its
// name, its pointer and its claims. canonical is the location that the client
// chose, normalised; empty where the server chose it.
func bind(ctx context.Context, tx *kernel.Tx, w Warehouse, n found[namespaceRecord], id string, kind Kind, t Ident, d document, file, canonical string, registered bool) error {
	p := pointerRecord{
		Kind: kind, Ident: t, WarehouseID: w.ID, NamespaceID: n.ID,
		Location: d.Location(), MetadataLocation: file, Registered: registered,
	}
	var err error
	switch {
	case w.OverlapAllowed:
	case canonical != "":
		p.Claim, err = canonical, claim(ctx, tx, w, canonical, id, nil)
	default:
		p.Claim, err = claimFresh(tx, w, d.Location(), id)
	}
	if err != nil {
		return err
	}
	tx.Create(key.ForTableName(w.Name, t.Namespace, t.Name), id, encode(nameRecord{Kind: kind}))
	tx.Create(key.ForPointer(w.Name, id), id, encode(p))
	return nil
}
