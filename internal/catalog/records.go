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
	// Area is the parent of the locations that the server chooses for tables here:
	// normalised, reserved in the location index.
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
	NamespaceID      string `json:"namespace-id"`
	Location         string `json:"location"`
	MetadataLocation string `json:"metadata-location"`
	// Claim is the normalised location in the location index; empty when the
	// server chose the location, or the warehouse opted out.
	Claim string `json:"claim,omitempty"`
}

// claimRecord is the value of a claim or an area in the location index.
type claimRecord struct {
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

// readNamespace finds a namespace, or refuses.
func readNamespace(ctx context.Context, get reader, warehouse string, levels []string) (found[namespaceRecord], error) {
	if err := checkNamespace(levels); err != nil {
		return found[namespaceRecord]{}, err
	}
	n, err := read[namespaceRecord](ctx, get, key.ForNamespace(warehouse, levels))
	if err == nil && !n.Exists() {
		err = noSuchNamespace(levels)
	}
	return n, err
}

// resolveTriesMax bounds how often a name is looked up again because what it was
// bound to has just been dropped or renamed.
const resolveTriesMax = 16

// readTable finds the pointer that a table's name is bound to, with a condition
// on the pointer alone: the name only leads to it. It refuses a name that is
// free or bound to a view.
func readTable(ctx context.Context, tx *kernel.Tx, warehouse string, t Ident) (found[pointerRecord], error) {
	if err := checkIdent(t); err != nil {
		return found[pointerRecord]{}, err
	}
	for range resolveTriesMax {
		name, err := read[nameRecord](ctx, tx.Peek, key.ForTableName(warehouse, t.Namespace, t.Name))
		if err != nil {
			return found[pointerRecord]{}, err
		}
		if !name.Exists() || name.Value.Kind != KindTable {
			return found[pointerRecord]{}, noSuchTable(t)
		}
		p, err := read[pointerRecord](ctx, tx.Peek, key.ForPointer(warehouse, name.ID))
		if err != nil {
			return p, err
		}
		if !p.Exists() || !p.Value.Ident.equal(t) {
			continue // dropped or renamed between the two reads: the name has changed, too
		}
		tx.Keep(p.Record)
		return p, nil
	}
	return found[pointerRecord]{}, kernel.ErrContended
}

// nameTaken refuses a name that is bound already, in the reference's words.
func nameTaken(kind Kind, t Ident) *Error {
	if kind == KindView {
		return refuse(ErrAlreadyExists, "View with same name already exists: %s", t)
	}
	return refuse(ErrAlreadyExists, "Table already exists: %s", t)
}
