// Package store holds the vocabulary in which every change of the catalog is
// written, and the contract of the stores that apply it.
//
// A [Record] is a small value under a key, with a [Version] that never repeats
// and the id of its incarnation. A [Batch] is the unit of change: conditions
// and writes, applied as one or not at all. An [Atomic] store reads settled
// records and applies batches; the suite in storetest says, by running, what
// that means.
//
// The vocabulary is small on purpose: three conditions that PostgreSQL, SQLite
// and a bucket of objects can all check in the same atomic step as the write.
// [Batch.Validate] refuses every other shape, so that a batch which works
// in one store works in all.
package store
