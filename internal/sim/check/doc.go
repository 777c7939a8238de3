// Package check judges what a catalog did: from a history of what its clients were told,
// and from what is there in the end.
//
//   - [Linearizable] wants one order of the operations that explains every answer and every
//     refusal, and in which no operation comes before one that was over when it was sent.
//   - [Lists] wants of every list the names that were there all the while, once, and none
//     that never were.
//   - [TransactionsAtomic] wants of every transaction that who saw it in one table sees it
//     in all. That follows from the first, but is said more clearly.
//   - [Chains] wants every acknowledged commit in the metadata of its table, no refused one,
//     and times that no reader refuses.
//   - [AtRest] wants records that fit each other, once nothing runs any more.
//
// Checkers are functions of plain data. They know nothing of who made it: the simulator, or
// a harness that kills real processes. A checker that finds nothing wrong is worth what it
// has refused, so each rule has a test that breaks it.
package check
