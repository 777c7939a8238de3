// Package key names the records of the catalog and gives them one total order.
//
// A [Key] is a [Level] and a path. Keys are ordered by level, then by the bytes
// of the path; that order is the lock order of the whole system, for every mode.
// A [Prefix] covers the keys directly under one parent and nothing else: the
// prefix of namespace `a` covers neither `ab` nor what lies under `a.b`.
//
// Paths are text a person can read (`main/sales/eu//orders`). Components are
// escaped, so that any byte string may be a name and no two different names
// give the same path.
//
// The package is pure: it does no I/O and holds no state.
package key
