package catalog

import (
	"context"
	"errors"
	"maps"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// PropertyLocation is the namespace property that says where the server puts
// tables of the namespace for which the client names no location.
const PropertyLocation = "location"

// CreateNamespace makes a namespace under one that exists, or under the warehouse.
type CreateNamespace struct {
	Request CreateNamespaceRequest `json:"request"`
	Result  NamespaceState         `json:"result"`
}

// CreateNamespaceRequest is the namespace to make.
type CreateNamespaceRequest struct {
	Warehouse  string            `json:"warehouse"`
	Levels     []string          `json:"levels"`
	Properties map[string]string `json:"properties,omitempty"`
}

// NamespaceState is the answer of the operations that return a namespace.
type NamespaceState struct {
	Levels     []string          `json:"levels"`
	Properties map[string]string `json:"properties"`
}

// Plan implements kernel.Operation.
func (op *CreateNamespace) Plan() kernel.Plan {
	return kernel.Plan{
		Op: "create-namespace",
		// It reserves an area, so it also waits its turn at the location index.
		Locks: namespaceLocks(op.Request.Warehouse, op.Request.Levels).With(lock.W(key.LocationGuard())),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Levels),
	}
}

// namespaceLocks makes and drops of one namespace wait for each other.
func namespaceLocks(warehouse string, levels []string) lock.Set {
	if len(levels) == 0 {
		return lock.Set{} // refused by Decide
	}
	return lock.NewSet(lock.W(key.ForNamespace(warehouse, levels)))
}

// Decide implements kernel.Operation.
func (op *CreateNamespace) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = NamespaceState{}
	levels := op.Request.Levels
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	if err := checkNamespace(levels); err != nil {
		return err
	}
	last := len(levels) - 1
	area := childArea(w.Value.Root.URI, levels[0])
	if last == 0 {
		tx.RequireLive(w.Key, w.ID)
	} else {
		parent, err := readNamespace(ctx, tx, (*kernel.Tx).Peek, w, levels[:last])
		if err != nil {
			return err
		}
		tx.RequireLive(parent.Key, parent.ID)
		area = childArea(parent.Value.Area, levels[last])
	}
	k := key.ForNamespace(op.Request.Warehouse, levels)
	there, err := tx.Get(ctx, k)
	if err != nil {
		return err
	}
	if there.Exists() {
		return refuse(ErrAlreadyExists, "Namespace already exists: %s", dotted(levels))
	}
	id := tx.NewID()
	chosen, ok := op.Request.Properties[PropertyLocation]
	if ok {
		if area, _, err = checkLocation(w.Value, "namespace location", chosen); err != nil {
			return err
		}
	}
	err = reserve(ctx, tx, w.Value, area)
	if !ok && errors.Is(err, ErrInvalid) {
		// A table lies where the server would put this namespace's tables. The client
		// did not choose that place, so the server chooses another.
		area += "-" + id + "-ns"
		err = reserve(ctx, tx, w.Value, area)
	}
	if err != nil {
		return err
	}
	tx.Create(k, id, encode(namespaceRecord{
		Levels: levels, Properties: op.Request.Properties, WarehouseID: w.ID, Area: area, CreatedAtMillis: tx.Now().UnixMilli(),
	}))
	op.Result = NamespaceState{Levels: levels, Properties: maps.Clone(op.Request.Properties)}
	return nil
}
