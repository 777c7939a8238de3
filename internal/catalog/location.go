package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

// No live table's location is equal to, above or below another's. This is why:
//
//  1. Every location that the server chooses is <area>/<name>-<uuid>, where the
//     uuid is the id of the table's pointer, fresh for each table, and the area
//     belongs to the namespace. Two of them never meet.
//  2. An area is reserved in the location index when its namespace is made, and
//     stays for ever: tables stay in it when they are renamed to elsewhere. A claim
//     cannot be equal to or above an area, nor an area equal to or below a claim: what
//     the server chooses under an area is never at or below a claim that was there
//     first, nor is a later claim above it.
//  3. A claim or an area below another area could still meet <area>/<name>-<uuid>.
//     It then spells out the uuid, which names the one pointer to compare with; a
//     pointer made later has another.
//  4. Two claims, and a claim and an area, are compared in batches that all
//     write the guard record of the index: they are serial.
//
// While a purged table's files are being deleted, its list of dying files stands
// for it: nobody comes to lie where they lie, and nobody registers one of them.

// guardID is the incarnation of the guard, for ever.
const guardID = "guard"

// serverLocation is the location of a new table for which the client chose none.
func serverLocation(area, name, pointerID string) string {
	return area + "/" + blob.Sanitize(name) + "-" + pointerID
}

// childArea is the area of a namespace that names no location of its own.
func childArea(parentArea, level string) string {
	return parentArea + "/" + blob.Sanitize(level)
}

// checkLocation refuses a location that a client chose outside of the
// warehouse's roots. It returns it as it is stored (as sent, without one trailing
// slash) and as the index compares it.
func checkLocation(w Warehouse, what, location string) (stored, canonical string, err error) {
	canonical, err = w.Scope().Canonical(location)
	if err != nil {
		return "", "", fromLocation(what, err)
	}
	return strings.TrimSuffix(location, "/"), canonical, nil
}

// openIndex reads the guard and stages its write, which makes this decision
// serial with every other that changes the index. What is read afterwards is as
// the last of them left it.
func openIndex(ctx context.Context, tx *kernel.Tx) error {
	guard, err := tx.Get(ctx, key.LocationGuard())
	if err != nil {
		return err
	}
	if !guard.Exists() {
		return fmt.Errorf("catalog: the guard of the location index is missing")
	}
	tx.Put(guard.Key, guardID, encode(struct{}{}))
	return nil
}

// claim stages the claim of a table on a location that a client chose.
// released is the table's claim that the same decision gives up, if any.
func claim(ctx context.Context, tx *kernel.Tx, w Warehouse, canonical, pointerID, released string) error {
	if err := openIndex(ctx, tx); err != nil {
		return err
	}
	if err := checkAbove(ctx, tx, canonical, pointerID); err != nil {
		return err
	}
	own := []key.Key{key.ForLocation(canonical)}
	if released != "" {
		own = append(own, key.ForLocation(released))
	}
	inTheWay, err := tx.RequireEmpty(ctx, key.LocationGuard(), key.LocationsWithin(canonical), own...)
	if err != nil {
		return err
	}
	if inTheWay.Exists() {
		other, err := decode[placeRecord](inTheWay)
		if err != nil {
			return err
		}
		return overlap(ctx, tx, canonical, other)
	}
	tx.Create(key.ForLocation(canonical), pointerID, encode(placeRecord{Warehouses: []string{w.Name}, Pointer: pointerID}))
	return nil
}

// checkAbove refuses a place at or below the location of a table other than the
// one with pointerID. The index must be open.
func checkAbove(ctx context.Context, tx *kernel.Tx, canonical, pointerID string) error {
	for _, above := range append(blob.Ancestors(canonical), canonical) {
		other, err := read[placeRecord](ctx, tx.Peek, key.ForLocation(above))
		if err != nil {
			return err
		}
		if other.Exists() && other.Value.Pointer != pointerID {
			return overlap(ctx, tx, canonical, other.Value)
		}
		if err := checkServerLocation(ctx, tx, above, canonical, pointerID); err != nil {
			return err
		}
	}
	return nil
}

// checkServerLocation refuses a place at or below the location `above` if that
// is one the server chose for a table, which shows by the uuid it ends with.
func checkServerLocation(ctx context.Context, tx *kernel.Tx, above, canonical, pointerID string) error {
	slash := strings.LastIndexByte(above, '/')
	if len(above)-slash-1 <= 36 {
		return nil
	}
	id := above[len(above)-36:]
	if uuid.Validate(id) != nil || id == pointerID {
		return nil
	}
	area, err := read[placeRecord](ctx, tx.Peek, key.ForArea(above[:slash]))
	if err != nil || !area.Exists() {
		return err
	}
	for _, warehouse := range area.Value.Warehouses {
		p, err := read[pointerRecord](ctx, tx.Peek, key.ForPointer(warehouse, id))
		if err != nil {
			return err
		}
		dying, err := tx.Peek(ctx, key.ForDying(warehouse, id))
		if err != nil {
			return err
		}
		if p.Exists() && p.Value.Claim == "" || dying.Exists() {
			return overlap(ctx, tx, canonical, placeRecord{Warehouses: []string{warehouse}, Pointer: id})
		}
	}
	return nil
}

// overlap says what is in the way: an area, a live table, or one that is being purged.
func overlap(ctx context.Context, tx *kernel.Tx, location string, other placeRecord) error {
	warehouses := strings.Join(other.Warehouses, ", ")
	if other.Pointer == "" {
		return refuse(ErrInvalid, "Location %s overlaps the locations of the tables of a namespace in warehouse %s: choose one that is neither above nor below it, or none at all",
			location, warehouses)
	}
	for _, warehouse := range other.Warehouses {
		dying, err := tx.Peek(ctx, key.ForDying(warehouse, other.Pointer))
		if err != nil {
			return err
		}
		if dying.Exists() {
			return refuse(ErrInvalid, "Location %s is that of a table which is being purged: try again once its files are deleted", location)
		}
	}
	return refuse(ErrInvalid, "Location %s overlaps the location of another table in warehouse %s: choose one that is neither above nor below it, or none at all",
		location, warehouses)
}

// release stages the end of a table's claim.
func release(ctx context.Context, tx *kernel.Tx, canonical, pointerID string) error {
	c, err := tx.Get(ctx, key.ForLocation(canonical))
	if err != nil {
		return err
	}
	if c.ID != pointerID {
		return fmt.Errorf("catalog: the claim on %s is not that of table pointer %s", canonical, pointerID)
	}
	tx.Delete(c.Key)
	return nil
}

// reserve stages the reservation of an area, unless it is reserved already.
func reserve(ctx context.Context, tx *kernel.Tx, w Warehouse, spelled string) error {
	if w.OverlapAllowed {
		return nil
	}
	_, area, err := checkLocation(w, "namespace location", spelled)
	if err != nil {
		return err
	}
	k := key.ForArea(area)
	there, err := read[placeRecord](ctx, tx.Peek, k)
	if err != nil || slices.Contains(there.Value.Warehouses, w.Name) {
		return err // reservations are never taken back, so a look without a condition is enough
	}
	if err := openIndex(ctx, tx); err != nil {
		return err
	}
	if err := checkAbove(ctx, tx, area, ""); err != nil {
		return err
	}
	there, err = read[placeRecord](ctx, tx.Get, k)
	if err != nil {
		return err
	}
	id := there.ID
	if !there.Exists() {
		id = tx.NewID()
	}
	owners := append(slices.Clone(there.Value.Warehouses), w.Name)
	slices.Sort(owners)
	tx.Put(k, id, encode(placeRecord{Warehouses: owners}))
	return nil
}
