// Package server wires a Landfast instance together, runs it and stops it. It is
// the only package that names concrete modes: the embedded store or PostgreSQL, the
// local lock table, files of this machine or in buckets.
//
// [Run] binds the address first, so that a port in use leaves nothing behind, and
// then starts from the bottom: the data directory and its lock, the store, the
// queue, the kernel, the catalog's first records, the markers of the warehouses'
// roots. Who connects meanwhile waits. It stops from the top: the requests under
// way, during which new ones are refused and /readyz says 503, the listener, the
// background work, the queue, the store, the lock.
//
// With PostgreSQL there is no data directory, and no journal: other instances share the
// records, so that nothing of them may be kept here alone. A report of locks then asks the
// database, too, for a second at most.
//
// The data directory holds
//
//	catalog.db   the records (with catalog.db-wal and -shm while a server runs)
//	LOCK         held by the process that serves it; names that process
//	VERSION      of this layout; written once the catalog's first records are durable
//	warehouses/  the roots of warehouses that were created without a location
//
// What is promised: a directory has one server at a time; a directory of a newer
// layout, and one that has lost its catalog, is refused and not touched; a signal loses no request that ends within
// shutdown_timeout, and no acknowledged change ever.
//
// Caveats: nobody is authenticated, so an address beyond the loopback interface is
// refused by package config unless it was asked for. /healthz, /readyz and
// /metrics answer whoever reaches the address.
package server
