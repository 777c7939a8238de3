// Package lock defines what a lock is here: a [Set] of keys, each shared or
// exclusive, that a [Locker] grants whole or not at all.
//
// Locks buy progress, never correctness: every write is conditional in the
// store's atomic step, and the whole test suite also passes with a Locker that
// always says yes. A lock only orders the waiters, so that they do not waste
// work on decisions that will be stale.
//
// The lock order is that of package key, and a Set is always sorted: a caller
// cannot choose another order.
package lock
