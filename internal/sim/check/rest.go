package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/sim/history"
	"github.com/landfast/landfast/internal/store"
)

// Rest is a catalog in which nothing runs any more, for [AtRest].
type Rest struct {
	Records []store.Record
	// Exists tells whether a file is there.
	Exists func(location string) bool
	// Reclaimed says that everything that was dying has been deleted.
	Reclaimed bool
	// Leftovers are what the store itself has left behind: pending, sealed or reserved.
	Leftovers []string
}

// AtRest says what does not fit in the records of a catalog at rest, if anything:
//
//   - names and pointers are bound to each other, and so are claims and pointers;
//   - pointers and namespaces lie in namespaces and warehouses that are there, the same that
//     they were made in;
//   - the files of pointers are there, and not dying;
//   - no location is equal to another, or above it, where the warehouse does not allow it;
//   - nothing is dying once all was reclaimed, and every mark of a dying file has its list;
//   - the store has left nothing behind.
func AtRest(r Rest) []string {
	c := &rest{Rest: r, at: map[key.Key]store.Record{}, values: map[key.Key]*value{}}
	for _, l := range r.Leftovers {
		c.problem("left behind: %s", l)
	}
	for _, record := range r.Records {
		if _, twice := c.at[record.Key]; twice {
			c.problem("%v is there twice", record.Key)
		}
		c.at[record.Key] = record
		v := &value{}
		if err := json.Unmarshal(record.Value, v); err != nil {
			c.problem("%v is damaged: %v", record.Key, err)
		} else if record.Key.Level == key.Pointer && len(v.Ident.Namespace) == 0 || record.Key.Level == key.Namespace && len(v.Levels) == 0 {
			c.problem("%v is damaged: it names no namespace", record.Key)
		}
		c.values[record.Key] = v
		if record.ID == "" || !record.Exists() {
			c.problem("%v has no version or no incarnation", record.Key)
		}
	}
	if len(c.wrong) == len(r.Leftovers) { // otherwise what follows would stumble
		for _, record := range r.Records {
			c.record(record, c.values[record.Key])
		}
		c.places()
	}
	slices.Sort(c.wrong)
	return c.wrong
}

// Pointers are the tables and views of a catalog, and the metadata files that are dying in
// it, for [Files].
func Pointers(records []store.Record) (pointers []Pointer, dying []string) {
	for _, r := range records {
		var v value
		if json.Unmarshal(r.Value, &v) != nil {
			continue // AtRest says so
		}
		switch r.Key.Level {
		case key.Pointer:
			pointers = append(pointers, Pointer{
				Name: history.Name{Warehouse: warehouseOfKey(r.Key), Namespace: strings.Join(v.Ident.Namespace, "."), Name: v.Ident.Name},
				View: v.Kind == "view", File: v.MetadataLocation, Registered: v.Registered,
			})
		case key.Dying:
			dying = append(dying, v.Files...)
			if v.Metadata != "" {
				dying = append(dying, v.Metadata)
			}
		}
	}
	return pointers, dying
}

type rest struct {
	Rest
	at     map[key.Key]store.Record
	values map[key.Key]*value
	wrong  []string
}

// value is all that records hold which is looked at; each holds some of it.
type value struct {
	// Of a warehouse.
	Root           blob.Root   `json:"root"`
	Allowed        []blob.Root `json:"allowed"`
	OverlapAllowed bool        `json:"overlap-allowed"`
	// Of a namespace.
	Levels []string `json:"levels"`
	// Of a namespace or a pointer.
	WarehouseID string `json:"warehouse-id"`
	// Of a name or a pointer.
	Kind string `json:"kind"`
	// Of a pointer.
	Ident struct {
		Namespace []string `json:"namespace"`
		Name      string   `json:"name"`
	} `json:"ident"`
	NamespaceID      string   `json:"namespace-id"`
	Location         string   `json:"location"`
	MetadataLocation string   `json:"metadata-location"`
	Claim            string   `json:"claim"`
	Kept             []string `json:"kept"`
	Registered       bool     `json:"registered"`
	// Of a list of dying files.
	Metadata string   `json:"metadata"`
	Places   []string `json:"places"`
	Claims   []string `json:"claims"`
	Files    []string `json:"files"`
	Marks    []string `json:"marks"`
	// Of a claim or an area.
	Warehouses []string `json:"warehouses"`
	Pointer    string   `json:"pointer"`
}

func (v *value) scope() blob.Scope { return append(blob.Scope{v.Root}, v.Allowed...) }

func (c *rest) problem(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// warehouseOfKey is the warehouse that a key of a namespace, name, pointer or dying list is of.
func warehouseOfKey(k key.Key) string {
	w, _, _ := strings.Cut(k.Path, "/")
	return w
}

// warehouse is the one that a record is of, or nil, which is a problem.
func (c *rest) warehouse(k key.Key) *value {
	w := c.values[key.ForWarehouse(warehouseOfKey(k))]
	if w == nil {
		c.problem("%v is in a warehouse that is gone", k)
	}
	return w
}

func (c *rest) record(r store.Record, v *value) {
	switch r.Key.Level {
	case key.Namespace:
		c.inside(r.Key, v)
		if above := v.Levels[:len(v.Levels)-1]; len(above) > 0 && !c.at[key.ForNamespace(warehouseOfKey(r.Key), above)].Exists() {
			c.problem("%v has no parent", r.Key)
		}
	case key.TableName:
		c.warehouse(r.Key)
		p, ok := c.values[key.ForPointer(warehouseOfKey(r.Key), r.ID)]
		switch {
		case !ok:
			c.problem("%v has no pointer", r.Key)
		case key.ForTableName(warehouseOfKey(r.Key), p.Ident.Namespace, p.Ident.Name) != r.Key:
			c.problem("%v leads to a pointer that bears another name, %s", r.Key, p.Ident.Name)
		case p.Kind != v.Kind:
			c.problem("%v is that of a %s, and leads to a %s", r.Key, v.Kind, p.Kind)
		}
	case key.Pointer:
		c.pointer(r, v)
	case key.Dying:
		c.dying(r, v)
	case key.Location:
		c.claim(r, v)
	}
}

// inside wants the warehouse of a record to be the one in which it was made.
func (c *rest) inside(k key.Key, v *value) {
	if c.warehouse(k) != nil && c.at[key.ForWarehouse(warehouseOfKey(k))].ID != v.WarehouseID {
		c.problem("%v was made in another warehouse of that name", k)
	}
}

func (c *rest) pointer(r store.Record, v *value) {
	warehouse := warehouseOfKey(r.Key)
	c.inside(r.Key, v)
	if c.at[key.ForTableName(warehouse, v.Ident.Namespace, v.Ident.Name)].ID != r.ID {
		c.problem("%v does not have the name %v that it bears", r.Key, v.Ident)
	}
	if n := c.at[key.ForNamespace(warehouse, v.Ident.Namespace)]; n.ID != v.NamespaceID {
		c.problem("%v is in a namespace that is gone", r.Key)
	}
	if !c.Exists(v.MetadataLocation) {
		c.problem("%v (%v) names a file that is gone: %s", r.Key, v.Ident, v.MetadataLocation)
	}
	for _, claim := range v.claims() {
		if c.at[key.ForLocation(claim)].ID != r.ID {
			c.problem("%v lies at %s, which it does not claim", r.Key, claim)
		}
	}
	w := c.values[key.ForWarehouse(warehouse)]
	if w == nil {
		return
	}
	canonical, err := w.scope().Canonical(v.Location)
	switch {
	case err != nil:
		c.problem("%v: %v", r.Key, err)
	case v.Claim == "" && !w.OverlapAllowed:
		c.problem("%v claims no location", r.Key)
	case v.Claim != "" && v.Claim != canonical:
		c.problem("%v is at %s, but claims %s", r.Key, canonical, v.Claim)
	}
}

// claims are those of a pointer.
func (v *value) claims() []string {
	if v.Claim == "" {
		return v.Kept
	}
	return append([]string{v.Claim}, v.Kept...)
}

func (c *rest) dying(r store.Record, v *value) {
	if r.Key.Path != "" && strings.HasPrefix(r.Key.Path, "//") { // the mark of one file
		list := slices.ContainsFunc(c.Records, func(o store.Record) bool {
			return o.Key.Level == key.Dying && o.ID == r.ID && slices.ContainsFunc(c.values[o.Key].Marks, func(f string) bool { return key.ForDyingFile(f) == r.Key })
		})
		if !list {
			c.problem("%v marks a file for a list that is gone", r.Key)
		}
		return
	}
	if c.Reclaimed {
		c.problem("%v is left", r.Key)
	}
	c.warehouse(r.Key)
	for _, claim := range v.Claims {
		if c.at[key.ForLocation(claim)].ID != r.ID {
			c.problem("%v does not claim %s any more", r.Key, claim)
		}
	}
	for _, f := range v.Marks {
		if c.at[key.ForDyingFile(f)].ID != r.ID {
			c.problem("%v does not mark %s any more", r.Key, f)
		}
	}
	for _, o := range c.Records {
		if p := c.values[o.Key]; o.Key.Level == key.Pointer && (p.MetadataLocation == v.Metadata || slices.Contains(v.Files, p.MetadataLocation)) {
			c.problem("%v names a file that is dying: %s", o.Key, p.MetadataLocation)
		}
	}
}

// claim wants a claim to be that of a pointer, or of one that is being purged.
func (c *rest) claim(r store.Record, v *value) {
	if v.Pointer == "" {
		return // an area, or the guard
	}
	if r.ID != v.Pointer {
		c.problem("%v is claimed by %s, and is %s", r.Key, v.Pointer, r.ID)
	}
	for _, w := range v.Warehouses {
		holder := c.values[key.ForPointer(w, v.Pointer)]
		claims := []string(nil)
		if holder != nil {
			claims = holder.claims()
		} else if holder = c.values[key.ForDying(w, v.Pointer)]; holder != nil {
			claims = holder.Claims
		}
		if slices.ContainsFunc(claims, func(claim string) bool { return key.ForLocation(claim) == r.Key }) {
			return
		}
	}
	c.problem("%v is claimed by nobody", r.Key)
}

// places wants locations not to meet.
func (c *rest) places() {
	type place struct {
		at   string
		of   key.Key
		open bool // its warehouse lets others lie there
	}
	var all []place
	for _, r := range c.Records {
		v := c.values[r.Key]
		w := c.values[key.ForWarehouse(warehouseOfKey(r.Key))]
		if r.Key.Level != key.Pointer || w == nil {
			continue
		}
		if canonical, err := w.scope().Canonical(v.Location); err == nil {
			all = append(all, place{canonical, r.Key, w.OverlapAllowed})
		}
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.at+"/", b.at+"/") })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !blob.Within(b.at, a.at) {
				break // what lies in a comes right behind it
			}
			if !a.open || !b.open {
				c.problem("locations meet: %s of %v and %s of %v", a.at, a.of, b.at, b.of)
			}
		}
	}
}
