// Package catalog holds the rules of an Iceberg catalog: warehouses, namespaces,
// tables and views, and what may happen to them.
//
// Each operation is a value of its own, in a file of its own: a request, a
// result, a Plan and a Decide. Operations see no lock, no SQL and no file system;
// they read and stage through kernel.Tx and refuse with the errors of this package.
//
// # Records
//
// A name in a namespace is bound to a pointer by two records that every batch
// which changes the binding writes together: the table name (which holds the
// pointer's id) and the pointer (which holds kind, namespace, name, location and
// metadata location). So a pointer that exists and bears the requested name
// proves the binding by itself, and loading or committing a table is conditional
// on that one record.
//
// A namespace carries its parent's incarnation as a condition when it is made
// (Live), a table that of its namespace; who drops a namespace writes it and
// requires its prefix to be empty. Properties may change under both.
//
// # Locations
//
// Every location is claimed in the location index. One that a client chooses is
// compared with all others. One that the server chooses ends in a fresh uuid under an
// area that its namespace reserved, and meets no other anyway: see location.go.
//
// # What is remembered
//
// A version of a record never changes, nor a metadata file while a pointer names it. What was decoded of them is remembered
// (kernel.Memo) and shared by all operations, which must not change it: a load then reads
// three records and no file. What writes looks for the marker of the warehouse's root
// all the same.
package catalog
