package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// UpdateNamespaceProperties sets and removes properties of a namespace.
type UpdateNamespaceProperties struct {
	Request UpdateNamespacePropertiesRequest `json:"request"`
	Result  UpdateNamespacePropertiesResult  `json:"result"`
}

// UpdateNamespacePropertiesRequest is what to change. No key is in both.
type UpdateNamespacePropertiesRequest struct {
	Warehouse string            `json:"warehouse"`
	Levels    []string          `json:"levels"`
	Removals  []string          `json:"removals,omitempty"`
	Updates   map[string]string `json:"updates,omitempty"`
}

// UpdateNamespacePropertiesResult lists keys, each sorted.
type UpdateNamespacePropertiesResult struct {
	Updated []string `json:"updated"`
	Removed []string `json:"removed"`
	Missing []string `json:"missing"` // to be removed, but not there
}

// Plan implements kernel.Operation.
func (op *UpdateNamespaceProperties) Plan() kernel.Plan {
	return kernel.Plan{
		Op:    "update-namespace-properties",
		Locks: namespaceLocks(op.Request.Warehouse, op.Request.Levels),
		Route: key.RouteOf(op.Request.Warehouse, op.Request.Levels),
	}
}

// Decide implements kernel.Operation.
func (op *UpdateNamespaceProperties) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = UpdateNamespacePropertiesResult{}
	namespaceAhead(ctx, tx, op.Request.Warehouse, op.Request.Levels)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return err
	}
	n, err := readNamespace(ctx, tx, (*kernel.Tx).Get, w, op.Request.Levels)
	if err != nil {
		return err
	}
	var both []string
	for _, k := range op.Request.Removals {
		if _, ok := op.Request.Updates[k]; ok {
			both = append(both, k)
		}
	}
	if len(both) > 0 {
		return refuse(ErrUnprocessable, "Invalid request: these keys are both removed and updated: %s", strings.Join(both, ", "))
	}

	now := n.Value
	now.Properties = maps.Clone(now.Properties)
	if now.Properties == nil {
		now.Properties = map[string]string{}
	}
	removals := slices.Compact(slices.Sorted(slices.Values(op.Request.Removals)))
	for _, k := range removals {
		if _, ok := now.Properties[k]; ok {
			delete(now.Properties, k)
			op.Result.Removed = append(op.Result.Removed, k)
		} else {
			op.Result.Missing = append(op.Result.Missing, k)
		}
	}
	maps.Copy(now.Properties, op.Request.Updates)
	op.Result.Updated = slices.Sorted(maps.Keys(op.Request.Updates))
	if maps.Equal(now.Properties, n.Value.Properties) {
		return nil
	}
	// A location that is removed leaves the area as it is: tables already lie there.
	if chosen, ok := op.Request.Updates[PropertyLocation]; ok {
		if now.Area, _, err = checkLocation(w.Value, "namespace location", chosen); err != nil {
			return err
		}
		if err := reserve(ctx, tx, w.Value, now.Area); err != nil {
			return err
		}
	}
	tx.Put(n.Key, n.ID, encode(now))
	return nil
}
