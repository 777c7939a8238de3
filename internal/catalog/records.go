package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// Kind says what a name is bound to.
type Kind string

// The kinds.
const (
	KindTable Kind = "table"
	KindView  Kind = "view"
)

// namespaceRecord is the value of a namespace's record. Its incarnation is the namespace's id.
type namespaceRecord struct {
	Levels     []string          `json:"levels"`
	Properties map[string]string `json:"properties,omitempty"`
	// WarehouseID is the incarnation of the warehouse: one that was deleted and made
	// again under its name has other roots.
	WarehouseID string `json:"warehouse-id"`
	// Area is the parent of the locations that the server chooses for tables here, as
	// its client spelled it, and reserved in the location index.
	Area            string `json:"area"`
	CreatedAtMillis int64  `json:"created-at-ms"`
}

// nameRecord is the value of a table name's record. Its incarnation is the pointer's id.
type nameRecord struct {
	Kind Kind `json:"kind"`
}

// pointerRecord is the value of a pointer. Its incarnation is its own id.
type pointerRecord struct {
	Kind             Kind   `json:"kind"`
	Ident            Ident  `json:"ident"`
	WarehouseID      string `json:"warehouse-id"`
	NamespaceID      string `json:"namespace-id"`
	Location         string `json:"location"`
	MetadataLocation string `json:"metadata-location"`
	// Claim is the normalised location in the location index; empty when the
	// server chose the location, or the warehouse opted out.
	Claim string `json:"claim,omitempty"`
}

// placeRecord is the value of a claim or an area in the location index.
type placeRecord struct {
	Warehouses []string `json:"warehouses,omitempty"` // sorted; of a claim, one
	Pointer    string   `json:"pointer,omitempty"`    // empty: an area
}

// schemaRecord is the value of the catalog's own record.
type schemaRecord struct {
	Version         int   `json:"version"`
	CreatedAtMillis int64 `json:"created-at-ms"`
}

// encode gives the value of a record. Records are made of strings, numbers and
// maps of strings: encoding them cannot fail.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("catalog: " + err.Error())
	}
	return data
}

func decode[T any](r store.Record) (T, error) {
	var v T
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return v, fmt.Errorf("catalog: the record %v is damaged: %w", r.Key, err)
	}
	return v, nil
}

// found is a record with its decoded value.
type found[T any] struct {
	store.Record
	Value T
}

// reader is Tx.Get or Tx.Peek.
type reader func(context.Context, key.Key) (store.Record, error)

func read[T any](ctx context.Context, get reader, k key.Key) (found[T], error) {
	r, err := get(ctx, k)
	if err != nil || !r.Exists() {
		return found[T]{Record: r}, err
	}
	v, err := decode[T](r)
	return found[T]{r, v}, err
}

// readWarehouse finds a warehouse, or refuses.
func readWarehouse(ctx context.Context, get reader, name string) (found[Warehouse], error) {
	if err := checkWarehouseName(name); err != nil {
		return found[Warehouse]{}, noSuchWarehouse(name)
	}
	w, err := read[Warehouse](ctx, get, key.ForWarehouse(name))
	if err == nil && !w.Exists() {
		err = noSuchWarehouse(name)
	}
	return w, err
}

// readNamespace finds a namespace, or refuses. It lies in this incarnation of the
// warehouse, whose record therefore needs no condition.
func readNamespace(ctx context.Context, get reader, w found[Warehouse], levels []string) (found[namespaceRecord], error) {
	if err := checkNamespace(levels); err != nil {
		return found[namespaceRecord]{}, err
	}
	n, err := read[namespaceRecord](ctx, get, key.ForNamespace(w.Value.Name, levels))
	switch {
	case err != nil:
		return n, err
	case !n.Exists():
		return n, noSuchNamespace(levels)
	case n.Value.WarehouseID != w.ID:
		return n, kernel.ErrAgain
	}
	return n, nil
}

// readTable finds the pointer that a table's name is bound to, with a condition
// on the pointer alone: the name only leads to it, and the pointer tells the
// warehouse. It refuses a name that is free or bound to a view.
func readTable(ctx context.Context, tx *kernel.Tx, w found[Warehouse], t Ident) (found[pointerRecord], error) {
	if err := checkIdent(t); err != nil {
		return found[pointerRecord]{}, err
	}
	name, err := read[nameRecord](ctx, tx.Peek, key.ForTableName(w.Value.Name, t.Namespace, t.Name))
	if err != nil {
		return found[pointerRecord]{}, err
	}
	if !name.Exists() || name.Value.Kind != KindTable {
		return found[pointerRecord]{}, noSuchTable(t)
	}
	p, err := read[pointerRecord](ctx, tx.Peek, key.ForPointer(w.Value.Name, name.ID))
	if err != nil {
		return p, err
	}
	if !p.Exists() || !p.Value.Ident.equal(t) || p.Value.WarehouseID != w.ID {
		return p, kernel.ErrAgain // dropped or renamed between the two reads
	}
	tx.Keep(p.Record)
	return p, nil
}

// nameTaken refuses a name that is bound already, in the reference's words.
func nameTaken(kind Kind, t Ident) *Error {
	if kind == KindView {
		return refuse(ErrAlreadyExists, "View with same name already exists: %s", t)
	}
	return refuse(errTableExists, "Table already exists: %s", t)
}
