package txn

import (
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/landfast/landfast/internal/key"
)

// Layout maps records to the objects they lie in. It is pure, and never changes for
// a store that has records.
type Layout interface {
	// Page is the name of the object that holds the record.
	Page(k key.Key) string
	// Pages are the names of the objects that can hold records under p. Where they
	// are not finitely many, it gives what their names begin with instead; below such a
	// prefix the order of names is the order of keys, and Empty cannot be asked.
	Pages(p key.Prefix) (names []string, below string, err error)
	// Children are the prefixes that k guards: a record under them is written only in a batch with
	// Live of k, or one that writes k. Deleting k seals them.
	Children(k key.Key) []key.Prefix
	// Birth reports that the record lies alone in its page and has a fresh name, which
	// nobody asks for before another record leads there.
	Birth(k key.Key) bool
}

// Packed lays records out as a bucket wants them: few objects, each of records that are
// read and changed together; names of tables by hash over sixteen pages of their
// namespace; each pointer on its own.
//
//	warehouses                     all warehouses
//	w/{w}/namespaces               all namespaces of a warehouse
//	w/{w}/names/{ns}/{00..15}      names in a namespace
//	w/{w}/dying                    what is given up in a warehouse
//	pointers/{w}/{id}              one pointer
//	dying-files/{00..15}           marks of dying files
//	locations/guard                the guard of the location index
//	locations/{00..15}             claims and areas
//	once/{00..15}                  idempotency keys
//	duties/{00..15}                work that one instance does at a time
//	catalog                        the catalog's own record
type Packed struct{}

var _ Layout = Packed{}

// shards is how many pages a set without bound is spread over.
const shards = 16

// Page implements Layout.
func (Packed) Page(k key.Key) string {
	dir, name := cut(k.Path)
	switch k.Level {
	case key.Catalog:
		return "catalog"
	case key.Warehouse:
		return "warehouses"
	case key.Namespace:
		return "w/" + first(dir) + "/namespaces"
	case key.TableName:
		return shard("w/"+first(dir)+"/names/"+rest(dir), name)
	case key.Pointer:
		return "pointers/" + dir + "/" + name
	case key.Dying:
		if dir != "" {
			return "w/" + dir + "/dying"
		}
		return shard("dying-files", name)
	case key.Location:
		if k == key.LocationGuard() {
			return "locations/guard"
		}
		return shard("locations", name)
	case key.Once:
		return shard("once", k.Path)
	case key.Duty:
		return shard("duties", k.Path)
	}
	panic(fmt.Sprintf("txn: no page for %v", k))
}

// Pages implements Layout.
func (p Packed) Pages(of key.Prefix) (names []string, below string, err error) {
	dir, name := cut(of.Path)
	switch of.Level {
	case key.Catalog, key.Warehouse:
		return []string{p.Page(key.Key{Level: of.Level, Path: of.Path})}, "", nil
	case key.Location:
		return append(allShards("locations"), "locations/guard"), "", nil
	case key.Once:
		return allShards("once"), "", nil
	case key.Duty:
		return allShards("duties"), "", nil
	}
	if !strings.Contains(of.Path, "//") {
		return nil, "", fmt.Errorf("txn: %v is no set of records that lie together", of)
	}
	switch {
	case of.Level == key.Namespace, of.Level == key.Dying && dir != "":
		return []string{p.Page(key.Key{Level: of.Level, Path: of.Path})}, "", nil
	case of.Level == key.TableName:
		return allShards("w/" + first(dir) + "/names/" + rest(dir)), "", nil
	case of.Level == key.Dying:
		return allShards("dying-files"), "", nil
	case of.Level == key.Pointer:
		return nil, "pointers/" + dir + "/" + name, nil
	}
	return nil, "", fmt.Errorf("txn: no pages for %v", of)
}

// Children implements Layout.
func (Packed) Children(k key.Key) []key.Prefix {
	dir, name := cut(k.Path)
	switch {
	case k.Level == key.Warehouse:
		return []key.Prefix{{Level: key.Namespace, Path: name + "//"}, {Level: key.Dying, Path: name + "//"}}
	case k.Level == key.Namespace:
		own := dir + "/" + name + "//"
		return []key.Prefix{{Level: key.Namespace, Path: own}, {Level: key.TableName, Path: own}}
	case k == key.LocationGuard():
		return []key.Prefix{{Level: key.Location, Path: "//"}, {Level: key.Dying, Path: "//"}}
	}
	return nil
}

// Birth implements Layout.
func (Packed) Birth(k key.Key) bool { return k.Level == key.Pointer }

// cut splits a path into that of the parent and the name.
func cut(path string) (dir, name string) {
	dir, name, _ = strings.Cut(path, "//")
	return dir, name
}

func first(dir string) string {
	w, _, _ := strings.Cut(dir, "/")
	return w
}

func rest(dir string) string {
	_, ns, _ := strings.Cut(dir, "/")
	return ns
}

func shard(set, name string) string {
	return fmt.Sprintf("%s/%02d", set, xxhash.Sum64String(name)%shards)
}

func allShards(set string) []string {
	names := make([]string, shards)
	for i := range names {
		names[i] = fmt.Sprintf("%s/%02d", set, i)
	}
	return names
}
