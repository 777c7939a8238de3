// Package local is the lock table of one process, and with it the queue in which
// every operation of the kernel waits its turn.
//
// A [Table] keeps one queue for each key that is held or awaited. A request
// enters the queues of all its keys in one step, so that any two requests stand
// in the same order wherever they meet. It is granted as soon as nothing
// incompatible stands before it in any of its queues, whether granted or still
// waiting, and stays in them until it is released. Three promises follow:
//
//   - No deadlock: a request only ever waits for earlier ones, and the earliest
//     of all waits for nobody.
//   - No starvation: nobody overtakes. A reader that comes after a waiting writer
//     waits behind it; a writer waits for the readers before it, not those after.
//   - A set is granted whole, at one moment; nothing is held while it waits.
//
// The price is that a request which waits for one of its keys also holds up those
// behind it at its others. Waits are bounded, and so are the queues.
//
// Caveats: tokens rise for the life of the table, which is that of the process,
// so they do not fence across a restart. A grant cannot be lost here: only
// Release ends it, and no hold ever sees [lock.ErrLost].
//
// # Gathering
//
// What waits in a queue directly behind the request that holds it, and waits for nothing else, can be
// gathered: it is granted beside its leader, which does the work of all. The queue is in order of
// arrival, so nobody is overtaken: the first that may not be gathered, because it wants another key too,
// ends the group and is next.
package local
