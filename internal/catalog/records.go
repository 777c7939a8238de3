package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/landfast/landfast/internal/blob"
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

// owns tells whether a normalised location is in the pointer's places.
func (p pointerRecord) owns(w Warehouse, canonical string) bool {
	return slices.ContainsFunc(p.places(w), func(place string) bool { return blob.Within(canonical, place) })
}

// title is the kind at the beginning of a sentence.
func (k Kind) title() string {
	if k == KindView {
		return "View"
	}
	return "Table"
}

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

// nameRecord is the value of the record of a table's or view's name. Its incarnation is the pointer's id.
type nameRecord struct {
	Kind Kind `json:"kind"`
}

// The values of names as encode makes them.
var (
	tableName = encode(nameRecord{KindTable})
	viewName  = encode(nameRecord{KindView})
)

// boundKind is what a name is bound to. Lists ask for it of each name: almost none needs decoding.
func boundKind(name store.Record) (Kind, error) {
	switch {
	case bytes.Equal(name.Value, tableName):
		return KindTable, nil
	case bytes.Equal(name.Value, viewName):
		return KindView, nil
	}
	n, err := decode[nameRecord](name)
	return n.Kind, err
}

// pointerRecord is the value of a pointer. Its incarnation is its own id.
type pointerRecord struct {
	Kind             Kind   `json:"kind"`
	Ident            Ident  `json:"ident"`
	WarehouseID      string `json:"warehouse-id"`
	NamespaceID      string `json:"namespace-id"`
	Location         string `json:"location"`
	MetadataLocation string `json:"metadata-location"`
	// Claim is the normalised location in the location index; empty when the warehouse
	// opted out.
	Claim string `json:"claim,omitempty"`
	// Kept are further claims, which last as long as the pointer: where it lay before
	// its location was changed, for files of it are there still.
	Kept []string `json:"kept,omitempty"`
	// Registered says that the history of its metadata began elsewhere: what it names
	// may be named by others, too.
	Registered bool `json:"registered,omitempty"`
	// Binding is drawn when a table is registered over the one that is there, whose file may have had the
	// same location. Empty: that of the pointer's id.
	Binding string `json:"binding,omitempty"`
}

// claims are the pointer's records in the location index.
func (p pointerRecord) claims() []string {
	if p.Claim == "" {
		return p.Kept
	}
	return append([]string{p.Claim}, p.Kept...)
}

// places are the normalised locations that are the pointer's alone: no other
// pointer comes to lie there, or to name a file there, while this one lives. There are
// none where locations may overlap.
func (p pointerRecord) places(w Warehouse) []string {
	if w.OverlapAllowed {
		return nil
	}
	return p.claims()
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

// put stages the write of a record, and remembers what it says.
func put[T any](tx *kernel.Tx, k key.Key, id string, v T) {
	value := encode(v)
	tx.Put(k, id, value)
	tx.Made(k, &v, decodedBytes*len(value))
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

// reader is (*kernel.Tx).Get or (*kernel.Tx).Peek.
type reader func(*kernel.Tx, context.Context, key.Key) (store.Record, error)

// read reads a record, which may be absent. Its value is shared with others who read the
// same version: maps and slices in it must not be changed.
func read[T any](ctx context.Context, tx *kernel.Tx, get reader, k key.Key) (found[T], error) {
	r, err := get(tx, ctx, k)
	if err != nil || !r.Exists() {
		return found[T]{Record: r}, err
	}
	v, err := kernel.Memo(tx, kernel.MemoOf(r), func() (*T, int, error) {
		v, err := decode[T](r)
		return &v, decodedBytes * len(r.Value), err
	})
	if err != nil {
		return found[T]{Record: r}, err
	}
	return found[T]{r, *v}, nil
}

// decodedBytes is about how many bytes of memory a decoded value takes for each byte of it:
// strings, their headers, and maps.
const decodedBytes = 3

// readWarehouse finds a warehouse, or refuses.
func readWarehouse(ctx context.Context, tx *kernel.Tx, get reader, name string) (found[Warehouse], error) {
	if err := checkWarehouseName(name); err != nil {
		return found[Warehouse]{}, noSuchWarehouse(name)
	}
	w, err := read[Warehouse](ctx, tx, get, key.ForWarehouse(name))
	if err == nil && !w.Exists() {
		err = noSuchWarehouse(name)
	}
	return w, err
}

// readNamespace finds a namespace, or refuses. It lies in this incarnation of the
// warehouse, whose record therefore needs no condition.
func readNamespace(ctx context.Context, tx *kernel.Tx, get reader, w found[Warehouse], levels []string) (found[namespaceRecord], error) {
	if err := checkNamespace(levels); err != nil {
		return found[namespaceRecord]{}, err
	}
	n, err := read[namespaceRecord](ctx, tx, get, key.ForNamespace(w.Value.Name, levels))
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

// readPointer finds the pointer that a name of this kind is bound to, with a
// condition on the pointer alone: the name only leads to it, and the pointer tells
// the warehouse. It refuses a name that is free or bound to the other kind.
func readPointer(ctx context.Context, tx *kernel.Tx, w found[Warehouse], kind Kind, t Ident) (found[pointerRecord], error) {
	if err := checkIdent(kind, t); err != nil {
		return found[pointerRecord]{}, err
	}
	name, err := tx.Peek(ctx, key.ForTableName(w.Value.Name, t.Namespace, t.Name))
	if err != nil {
		return found[pointerRecord]{}, err
	}
	if !name.Exists() {
		return found[pointerRecord]{}, noSuch(kind, t)
	}
	bound, err := boundKind(name)
	if err != nil {
		return found[pointerRecord]{}, err
	}
	if bound != kind {
		return found[pointerRecord]{}, noSuch(kind, t)
	}
	p, err := read[pointerRecord](ctx, tx, (*kernel.Tx).Peek, key.ForPointer(w.Value.Name, name.ID))
	if err != nil {
		return p, err
	}
	if !p.Exists() || !p.Value.Ident.equal(t) || p.Value.WarehouseID != w.ID {
		return p, kernel.ErrAgain // dropped or renamed between the two reads
	}
	return p, tx.Keep(p.Record)
}

// findAhead reads in one round trip what leads to pointers, and the pointers that it led to the last time.
func findAhead(ctx context.Context, tx *kernel.Tx, warehouse string, of ...Ident) {
	if !tx.Far() || !isWarehouseName(warehouse) {
		return
	}
	keys := []key.Key{key.ForWarehouse(warehouse)}
	for _, t := range of {
		if checkIdent(KindTable, t) != nil {
			return
		}
		name := key.ForTableName(warehouse, t.Namespace, t.Name)
		keys = append(keys, name)
		if id := tx.LastID(name); id != "" {
			keys = append(keys, key.ForPointer(warehouse, id))
		}
	}
	tx.Ahead(ctx, keys...)
}

// newAhead reads in one round trip what decides whether a name can be bound.
func newAhead(ctx context.Context, tx *kernel.Tx, warehouse string, t Ident) {
	if !tx.Far() || !isWarehouseName(warehouse) || checkIdent(KindTable, t) != nil {
		return
	}
	tx.Ahead(ctx, key.ForWarehouse(warehouse), key.ForNamespace(warehouse, t.Namespace), key.ForTableName(warehouse, t.Namespace, t.Name))
}

// namespaceAhead reads in one round trip a namespace and its warehouse.
func namespaceAhead(ctx context.Context, tx *kernel.Tx, warehouse string, levels []string) {
	if !tx.Far() || !isWarehouseName(warehouse) || checkNamespace(levels) != nil {
		return
	}
	tx.Ahead(ctx, key.ForWarehouse(warehouse), key.ForNamespace(warehouse, levels))
}

// find reads the warehouse and the pointer that a request names.
func find(ctx context.Context, tx *kernel.Tx, warehouse string, kind Kind, t Ident) (found[Warehouse], found[pointerRecord], error) {
	findAhead(ctx, tx, warehouse, t)
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, warehouse)
	if err != nil {
		return w, found[pointerRecord]{}, err
	}
	p, err := readPointer(ctx, tx, w, kind, t)
	return w, p, err
}

// nameTaken refuses to make something of one kind under a name that is bound to
// something already, in the reference's words.
func nameTaken(wanted, there Kind, t Ident) *Error {
	switch {
	case wanted != there:
		return refuse(ErrAlreadyExists, "%s with same name already exists: %s", there.title(), t)
	case there == KindView:
		return refuse(ErrAlreadyExists, "View already exists: %s", t)
	}
	return refuse(errTableExists, "Table already exists: %s", t)
}
