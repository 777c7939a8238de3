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
	"github.com/landfast/landfast/internal/store"
)

// No live table's location is equal to, above or below another's. A view is as good as
// a table here. This is why:
//
//  1. Every location that the server chooses is <area>/<name>-<uuid>, where the
//     uuid is the id of the table's pointer, fresh for each table, and the area
//     belongs to the namespace. Two of them never meet. The batch that makes the
//     table also makes its claim, without writing the guard.
//  2. An area is reserved in the location index when its namespace is made, and
//     stays for ever: tables stay in it when they are renamed to elsewhere. A claim
//     cannot be equal to or above an area, nor an area equal to or below a claim: what
//     the server chooses under an area is never at or below a claim that was there
//     first, nor is a later claim above it.
//  3. Who sees the directory of a table that is being made could want it before the
//     batch is applied. A claim that is equal to it is the same record: one of the two
//     batches fails. What would lie below a directory that is named like this, in an
//     area, is refused whether or not a table is there.
//  4. Two claims, and a claim and an area, are compared in batches that all
//     write the guard record of the index: they are serial.
//
// A table whose location is changed keeps where it lay: its files are there. While
// a purged table's files are being deleted, its list of dying files stands for it:
// nobody comes to lie where they lie, and nobody registers one of them.

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

// claim stages the claim of a pointer on a normalised location. own are the claims
// that it has already, which are not in its way.
func claim(ctx context.Context, tx *kernel.Tx, w Warehouse, canonical, pointerID string, own []string) error {
	if err := openIndex(ctx, tx); err != nil {
		return err
	}
	if err := checkAbove(ctx, tx, canonical, pointerID); err != nil {
		return err
	}
	if err := checkNames(ctx, tx, blob.Ancestors(canonical), pointerID); err != nil {
		return err
	}
	if err := checkStaged(tx, w, canonical, pointerID); err != nil {
		return err
	}
	mine := []key.Key{key.ForLocation(canonical)}
	for _, c := range own {
		if !blob.Within(c, canonical) {
			continue
		}
		k := key.ForLocation(c)
		if slices.ContainsFunc(tx.Writes(), func(w store.Write) bool { return w.Key == k }) {
			continue // made by this decision
		}
		// The condition that nothing is below spares what the batch itself writes.
		there, err := tx.Peek(ctx, k)
		if err != nil {
			return err
		}
		if there.ID != pointerID {
			return kernel.ErrAgain // dropped since the pointer was read
		}
		if err := tx.Keep(there); err != nil {
			return err
		}
		tx.Put(there.Key, there.ID, there.Value)
		mine = append(mine, there.Key)
	}
	inTheWay, err := tx.RequireEmpty(ctx, key.LocationGuard(), key.LocationsWithin(canonical), mine...)
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

// claimFresh stages the claim on a location that the server chose. Nothing can lie above
// or below it (see 1 and 3 at the top), so the guard is not written, and creates do not wait
// for each other.
func claimFresh(tx *kernel.Tx, w Warehouse, location, pointerID string) (canonical string, err error) {
	if canonical, err = w.Scope().Canonical(location); err != nil {
		return "", err
	}
	tx.RequireLive(key.LocationGuard(), guardID)
	tx.Create(key.ForLocation(canonical), pointerID, encode(placeRecord{Warehouses: []string{w.Name}, Pointer: pointerID}))
	return canonical, nil
}

// checkStaged refuses a place that meets one which the same decision claims for
// another pointer: the store does not show it yet.
func checkStaged(tx *kernel.Tx, w Warehouse, canonical, pointerID string) error {
	wanted := key.ForLocation(canonical)
	for _, write := range tx.Writes() {
		if write.Key.Level != key.Location || write.Delete || write.ID == pointerID || write.ID == guardID {
			continue
		}
		if strings.HasPrefix(wanted.Path, write.Key.Path) || strings.HasPrefix(write.Key.Path, wanted.Path) {
			return refuse(errOverlap, "Location %s overlaps the location of another table in warehouse %s, which the same request makes: choose one that is neither above nor below it",
				canonical, w.Name)
		}
	}
	return nil
}

// keptMax is how many places one pointer may keep beside its location.
const keptMax = 100

// move stages the change of a pointer's location to one that the client chose.
// Where it lay before stays its own: its files are there.
func move(ctx context.Context, tx *kernel.Tx, w Warehouse, p found[pointerRecord], next *pointerRecord, location string) error {
	_, canonical, err := checkLocation(w, string(next.Kind)+" location", location)
	if err != nil {
		return err
	}
	next.Location = location
	if w.OverlapAllowed || p.Value.Claim == canonical {
		return nil
	}
	next.Claim, next.Kept = canonical, append(slices.Clone(p.Value.Kept), p.Value.Claim)
	if i := slices.Index(next.Kept, canonical); i >= 0 {
		next.Kept = slices.Delete(next.Kept, i, i+1) // it comes back
		return nil
	}
	if len(next.Kept) > keptMax {
		return refuse(ErrInvalid, "The location has been changed %d times, and files may be at each of them: rewrite the %s under a new name", keptMax, next.Kind)
	}
	return claim(ctx, tx, w, canonical, p.ID, next.Kept)
}

// metadataPlace is the directory that a table's metadata files are written to, if
// it lies outside of the table's places and nothing there, above or below, belongs to
// another pointer: empty otherwise. Of a table that was registered it is empty, too: a
// copy of its metadata may be another table, with the same directory and manifests.
func metadataPlace(ctx context.Context, tx *kernel.Tx, w Warehouse, p found[pointerRecord]) (string, error) {
	if p.Value.Registered {
		return "", nil
	}
	canonical, err := w.Scope().Canonical(p.Value.MetadataLocation)
	if err != nil {
		return "", nil // not ours to open
	}
	directory := canonical[:strings.LastIndexByte(canonical, '/')]
	if p.Value.owns(w, directory) {
		return "", nil
	}
	owner, err := ownerOf(ctx, tx, directory, p.ID)
	if err != nil || owner != (placeOwner{}) {
		return "", err
	}
	below, err := tx.Look(ctx, key.LocationsWithin(directory), "", 1)
	if err != nil || len(below) > 0 {
		return "", err
	}
	return directory, nil
}

// checkAbove refuses a place at or below the location of a table other than the
// one with pointerID. The index must be open.
func checkAbove(ctx context.Context, tx *kernel.Tx, canonical, pointerID string) error {
	owner, err := ownerOf(ctx, tx, canonical, pointerID)
	if err != nil || owner == (placeOwner{}) {
		return err
	}
	return overlap(ctx, tx, canonical, placeRecord{Warehouses: []string{owner.warehouse}, Pointer: owner.pointer})
}

// placeOwner is the table or view, alive or being purged, that a place belongs to.
type placeOwner struct{ warehouse, pointer string }

// ownerOf finds the owner of a normalised location, if it is another than the
// pointer `except`. The zero owner is nobody.
func ownerOf(ctx context.Context, tx *kernel.Tx, canonical, except string) (placeOwner, error) {
	line := append(blob.Ancestors(canonical), canonical)
	if tx.Far() { // after the guard was read, where it matters
		keys := make([]key.Key, len(line))
		for i, above := range line {
			keys[i] = key.ForLocation(above)
		}
		tx.Ahead(ctx, keys...)
	}
	for _, above := range line {
		other, err := read[placeRecord](ctx, tx, (*kernel.Tx).Peek, key.ForLocation(above))
		if err != nil {
			return placeOwner{}, err
		}
		if other.Exists() && other.Value.Pointer != except {
			return placeOwner{other.Value.Warehouses[0], other.Value.Pointer}, nil
		}
	}
	return placeOwner{}, nil
}

// checkNames refuses a place among those above which is named as the server names the
// directories of tables, in an area, and is not the pointer's own: a table may be on its
// way to it.
func checkNames(ctx context.Context, tx *kernel.Tx, places []string, except string) error {
	for _, above := range places {
		slash := strings.LastIndexByte(above, '/')
		if len(above)-slash-1 <= 36 || uuid.Validate(above[len(above)-36:]) != nil {
			continue
		}
		area, err := tx.Peek(ctx, key.ForArea(above[:slash]))
		if err != nil {
			return err
		}
		there, err := tx.Peek(ctx, key.ForLocation(above))
		if err != nil {
			return err
		}
		if area.Exists() && (there.ID != except || except == "") {
			return refuse(errOverlap, "Location %s is named as the server names the locations of tables: choose one that is neither equal to it nor below it, or none at all", above)
		}
	}
	return nil
}

// overlap says what is in the way: an area, a live table, or one that is being purged.
func overlap(ctx context.Context, tx *kernel.Tx, location string, other placeRecord) error {
	warehouses := strings.Join(other.Warehouses, ", ")
	if other.Pointer == "" {
		return refuse(errOverlap, "Location %s overlaps the locations of the tables of a namespace in warehouse %s: choose one that is neither above nor below it, or none at all",
			location, warehouses)
	}
	for _, warehouse := range other.Warehouses {
		dying, err := tx.Peek(ctx, key.ForDying(warehouse, other.Pointer))
		if err != nil {
			return err
		}
		if dying.Exists() {
			return refuse(errOverlap, "Location %s is that of a table which is being purged: try again once its files are deleted", location)
		}
	}
	return refuse(errOverlap, "Location %s overlaps the location of another table in warehouse %s: choose one that is neither above nor below it, or none at all",
		location, warehouses)
}

// release stages the end of a pointer's claims.
func release(ctx context.Context, tx *kernel.Tx, claims []string, pointerID string) error {
	for _, canonical := range claims {
		c, err := tx.Get(ctx, key.ForLocation(canonical))
		if err != nil {
			return err
		}
		if c.ID != pointerID {
			return fmt.Errorf("catalog: the claim on %s is not that of pointer %s", canonical, pointerID)
		}
		tx.Delete(c.Key)
	}
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
	there, err := read[placeRecord](ctx, tx, (*kernel.Tx).Peek, k)
	if err != nil || slices.Contains(there.Value.Warehouses, w.Name) {
		return err // reservations are never taken back, so a look without a condition is enough
	}
	if err := openIndex(ctx, tx); err != nil {
		return err
	}
	if err := checkAbove(ctx, tx, area, ""); err != nil {
		return err
	}
	if err := checkNames(ctx, tx, append(blob.Ancestors(area), area), ""); err != nil {
		return err
	}
	there, err = read[placeRecord](ctx, tx, (*kernel.Tx).Get, k)
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
