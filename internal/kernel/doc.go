// Package kernel runs operations: it is the one place that knows how a decision
// becomes a durable change.
//
// An [Operation] is a value: a request, a result, a [Plan] and a Decide that
// reads through a [Tx] and stages writes and files. [Kernel.Do] queues it by its
// plan, lets it decide on plain reads, uploads its files, and applies one batch
// whose conditions are everything the decision rested on. A conflict means that
// something else came first: the operation decides again, within the deadline
// of its request. A batch in whose way others' locks stand is sent again as it is, after a wait
// that holds nothing of the store.
//
// What is promised: an operation that returns nil is durable; one that returns
// an error is not applied and never will be, unless the error is
// [store.ErrOutcomeUnknown]. Locks only order the waiters: everything here is
// also right with a queue that lets everyone in at once.
//
// Operations on one table that wait behind each other are decided one after the other and
// land in one batch: see group. To each of them it is as if it had been alone, but for the
// time; to the store and to the disk they are one.
//
// The queue of a table name is lock/local's queue for its key, and who holds it gathers those behind it:
// there is no second line to stand in.
package kernel
