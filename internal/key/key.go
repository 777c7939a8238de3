package key

import (
	"cmp"
	"fmt"
	"strings"
)

// Level is the first part of the lock order: what is coarser comes first.
// The numbers are stored; they never change meaning.
type Level uint8

// The levels, coarse to fine.
const (
	Catalog   Level = 1 // the one record of the catalog itself: its schema version
	Warehouse Level = 2
	Namespace Level = 3
	TableName Level = 4  // a name in a namespace; tables and views share it
	Pointer   Level = 5  // what a name is bound to: kind, location, metadata location
	Dying     Level = 6  // files that a durable batch has given up
	Location  Level = 7  // the location index
	Once      Level = 8  // requests that bore an idempotency key
	Unsynced  Level = 9  // bytes of files that the loss of power could still take
	Duty      Level = 10 // work that one instance does at a time
)

var levelNames = map[Level]string{
	Catalog: "catalog", Warehouse: "warehouse", Namespace: "namespace", TableName: "table-name",
	Pointer: "pointer", Dying: "dying", Location: "location",
	Once: "once", Unsynced: "unsynced", Duty: "duty",
}

func (l Level) String() string {
	if n, ok := levelNames[l]; ok {
		return n
	}
	return fmt.Sprintf("level-%d", uint8(l))
}

// Key names one record.
type Key struct {
	Level Level  `json:"level"`
	Path  string `json:"path"`
}

func (k Key) String() string { return k.Level.String() + " " + k.Path }

// Compare orders keys by level, then by the bytes of the path: the lock order.
func Compare(a, b Key) int {
	if c := cmp.Compare(a.Level, b.Level); c != 0 {
		return c
	}
	return strings.Compare(a.Path, b.Path)
}

// Prefix covers every key of one level whose path begins with Path.
type Prefix struct {
	Level Level  `json:"level"`
	Path  string `json:"path"`
}

func (p Prefix) String() string { return p.Level.String() + " " + p.Path + "*" }

// Covers reports whether k lies under p.
func (p Prefix) Covers(k Key) bool {
	return k.Level == p.Level && strings.HasPrefix(k.Path, p.Path)
}

// ForCatalog is the record of the catalog itself.
func ForCatalog() Key { return Key{Catalog, "catalog"} }

// ForWarehouse is the record of a warehouse.
func ForWarehouse(warehouse string) Key {
	return Key{Warehouse, child(nil, warehouse)}
}

// Warehouses covers every warehouse.
func Warehouses() Prefix { return Prefix{Warehouse, separator} }

// ForNamespace is the record of the namespace with these levels, at least one.
func ForNamespace(warehouse string, levels []string) Key {
	if len(levels) == 0 {
		panic("key: a namespace has at least one level")
	}
	last := len(levels) - 1
	return Key{Namespace, child(parent(warehouse, levels[:last]), levels[last])}
}

// NamespacesIn covers the namespaces directly under parent; with no levels,
// those directly under the warehouse.
func NamespacesIn(warehouse string, levels []string) Prefix {
	return Prefix{Namespace, child(parent(warehouse, levels), "")}
}

// ForTableName is the record of a name, of a table or a view, in a namespace.
func ForTableName(warehouse string, levels []string, name string) Key {
	return Key{TableName, child(parent(warehouse, levels), name)}
}

// TableNamesIn covers the names of tables and views directly in a namespace.
func TableNamesIn(warehouse string, levels []string) Prefix {
	return Prefix{TableName, child(parent(warehouse, levels), "")}
}

// ForPointer is the pointer with this id, which is unique in the catalog.
func ForPointer(warehouse, id string) Key {
	return Key{Pointer, child([]string{warehouse}, id)}
}

// PointersIn covers the pointers of a warehouse.
func PointersIn(warehouse string) Prefix {
	return Prefix{Pointer, child([]string{warehouse}, "")}
}

// ForDying is the list of files that the batch or drop with this id gave up.
func ForDying(warehouse, id string) Key {
	return Key{Dying, child([]string{warehouse}, id)}
}

// DyingIn covers the lists of dying files of a warehouse.
func DyingIn(warehouse string) Prefix {
	return Prefix{Dying, child([]string{warehouse}, "")}
}

// ForDyingFile is the mark of one file of a list of dying files, whatever the
// warehouse. No warehouse's name is empty, so it is in no DyingIn.
func ForDyingFile(location string) Key {
	return Key{Dying, child(nil, location)}
}

// DyingFile covers the mark of one file (and of those whose location only begins so).
func DyingFile(location string) Prefix {
	return Prefix{Dying, ForDyingFile(location).Path}
}

// ForOnce is the request with this idempotency key; with no warehouse, one that
// manages warehouses.
func ForOnce(warehouse, idempotencyKey string) Key {
	return Key{Once, child([]string{warehouse}, idempotencyKey)}
}

// Onces covers every request that bore an idempotency key.
func Onces() Prefix { return Prefix{Level: Once} }

// ForUnsynced holds the files that ride in the batch with this id.
func ForUnsynced(batch string) Key { return Key{Unsynced, child(nil, batch)} }

// Unsynceds covers every record of files that ride.
func Unsynceds() Prefix { return Prefix{Unsynced, separator} }

// ForDuty is who does a piece of work.
func ForDuty(work string) Key { return Key{Duty, child(nil, work)} }

// Duties covers all work that is being done, and when what comes again was last done.
func Duties() Prefix { return Prefix{Duty, separator} }

// LocationGuard is the record that every batch writes which adds to the
// location index: it makes such batches serial, in every store.
func LocationGuard() Key { return Key{Location, "guard"} }

// ForLocation is the claim on one normalised location, whose last byte is not a slash.
func ForLocation(location string) Key { return Key{Location, separator + location + "/"} }

// ForArea is the reservation of a normalised location as a parent of locations
// that the server chooses. It lies under the prefix of its own location and of
// every location above it.
func ForArea(location string) Key { return Key{Location, separator + location + "/" + separator} }

// LocationsWithin covers the claims and areas at a normalised location and below.
func LocationsWithin(location string) Prefix { return Prefix{Location, ForLocation(location).Path} }

// separator sets a name off from the path of its parent. An escaped component
// holds no slash and is never empty, so it occurs once in a path.
const separator = "//"

// child is the path of a name under a parent; with an empty name, the prefix of all of them.
func child(parent []string, name string) string {
	size := len(separator) + len(name)
	for _, c := range parent {
		size += len(c) + len("/")
	}
	var b strings.Builder
	b.Grow(size) // enough where nothing is escaped, as almost always
	for i, c := range parent {
		if i > 0 {
			b.WriteByte('/')
		}
		escape(&b, c)
	}
	b.WriteString(separator)
	escape(&b, name)
	return b.String()
}

func parent(warehouse string, levels []string) []string {
	p := make([]string, 0, 1+len(levels))
	return append(append(p, warehouse), levels...)
}

// escape writes a component with `/`, `%`, control characters and bytes that
// are not UTF-8 as %XX, so that paths are text every store can hold.
func escape(b *strings.Builder, component string) {
	if isPlain(component) {
		b.WriteString(component)
		return
	}
	const hex = "0123456789ABCDEF"
	if plain(component) {
		b.WriteString(component)
		return
	}
	for i, r := range component {
		switch {
		case r == '\uFFFD' && !strings.HasPrefix(component[i:], "\uFFFD"),
			r == '/', r == '%', r < 0x20, r == 0x7f:
			c := component[i]
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteRune(r)
		}
	}
}

// isPlain tells that escape would change nothing; false says nothing.
func isPlain(component string) bool {
	for i := range len(component) {
		if c := component[i]; c < 0x20 || c >= 0x7f || c == '/' || c == '%' {
			return false
		}
	}
	return true
}

// plain tells whether a component is ASCII without anything to escape.
func plain(component string) bool {
	for i := range len(component) {
		if c := component[i]; c < 0x20 || c >= 0x7f || c == '/' || c == '%' {
			return false
		}
	}
	return true
}

// Name gives back the name that a key of a namespace, a table name, a warehouse
// or a pointer ends with.
func (k Key) Name() string {
	_, name, ok := strings.Cut(k.Path, separator)
	if !ok {
		return k.Path
	}
	return unescape(name)
}

func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			b.WriteByte(fromHex(s[i+1])<<4 | fromHex(s[i+2]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func fromHex(c byte) byte {
	if c >= 'A' {
		return c - 'A' + 10
	}
	return c - '0'
}

// Route says where an operation runs when instances share the work: every
// operation of one warehouse and namespace has the same route. Empty runs anywhere.
type Route string

// RouteOf is the route of the operations on a namespace.
func RouteOf(warehouse string, levels []string) Route {
	return Route(child(parent(warehouse, levels), ""))
}
