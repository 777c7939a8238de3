// Package exhaust runs small worlds to their end: all interleavings of two or three short
// operations over the real kernel, the real catalog and the real txn, with a crash at
// every place, a lost reply at every place, and time passing between any two steps. It
// holds tests only.
//
// # Nouns
//
// An actor is a client with an instance of its own, and carries out one operation after
// the other. An access is one thing it does to what all share: a request to the store,
// or a file made or read. A schedule says which access comes next, each time; a
// world is actors, and how often they may crash, lose a reply, or be overtaken by time.
//
// # How
//
// An actor is a function of the answers it got: ids, times and pauses are its own. So
// its code runs once for each sequence of answers, and what it asks for next is
// remembered: a tree for each actor. What is searched are then plain values: the
// contents of the store, a place in each tree, and what may still go wrong. Equal values have
// equal futures and are visited once; how many schedules lead through them is counted.
//
// Code that is run again must ask for the same, or the search stops: an actor that reads a clock or
// a map in its random order is found at once.
//
// # What may go wrong
//
// An actor crashes, after any of its writes or before the first. A put is answered "unknown",
// and arrives at once, later, or never. A put is answered, and a copy of it arrives later; or the copy
// arrives at once, and its failure is what is answered. Every lease runs out, at any
// moment; then, and at any other time, who seemed dead may go on. A read fails. Each happens as
// often as the budget of a round says.
//
// At every end what is left over is looked at, recovered, looked at again, and inspected record by
// record; what is still on its way then arrives, and all that is done once more. What clients were told, and
// what was seen afterwards, must have an explanation: one order in which a catalog that does one
// thing at a time would have said just that. Recovery that ran must find nothing to do, and nothing may be left.
//
// # What is left out
//
// An access that meets nothing that another actor could still do is not interleaved: it
// is done at once. What another could do is learnt: a search that finds an access that it had not
// reckoned with is repeated with it, until one finds none.
//
// A crash elsewhere differs in nothing that others, or recovery, could see: reads leave no trace.
//
// What an actor read is taken to be forgotten when it begins an operation, or decides one again:
// package kernel says that a decision starts from nothing, but for how often locks were in its way. A test compares.
//
// Two that conflict could do so for ever. An operation that has decided as often as its round says
// gives up; how many ends that concerns is counted.
//
// The age of an object counts where a lease is told by it: in status records, and in pages that were born.
// Time passes for all of them at once.
//
// The clients' calls are as short as the schedule allows: they begin with the first access that
// could meet another's. The order in real time is then the strictest, and so is the judge.
package exhaust
