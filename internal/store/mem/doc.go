// Package mem is a [store.Atomic] in memory: one map under one mutex, so that
// its answers are right by inspection. Tests of the floors above run on it, and
// it is what cleverer stores are compared with.
//
// A [Store] remembers every batch id for as long as it lives, never blocks for
// longer than its mutex is held, and forgets everything when it is dropped. Its
// hooks make an Apply or an Outcome go wrong in each of the ways that the
// contract allows, so that a caller's unlikely paths can be tested.
package mem
