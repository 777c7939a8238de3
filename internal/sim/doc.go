// Package sim runs a whole catalog in a world where everything goes wrong, and any run
// again from its seed.
//
// # The world
//
// Several nodes, each a process with a kernel, a lock table and a reclaimer of its own,
// share one store of records and one of files. Clients call them. The kernel, the catalog's
// operations, package reclaim, the locks and (over a bucket) package txn are the real ones;
// the store and the files are fakes, and time is that of a synctest bubble. Requests are
// delayed, and so overtake each other; they fail before anything happened, or after; the answer
// is lost; they take effect later, or twice. A node dies before or after any write and comes back
// empty, freezes, or has a clock that is hours off and jumps.
//
// # One seed, one trace
//
// Whatever is drawn at random comes from a stream of its own, named by the seed, who acts,
// which of its operations and which call: so it does not matter who asks first. Each
// fake sleeps before it touches anything shared, and no two sleeps end at the same instant:
// so never more than one goroutine is about to touch it. No mutex is held across a sleep. What
// wakes at one instant all the same is counted: see [Result.Ties].
//
// # Running it
//
//	go test ./internal/sim -run TestSim -v -args -seeds 1000 -from 1 -variant both -summary summary.md
//
// runs seeds on all processors; -variant is transactional, bucket or both, and -trace prints what
// happens in each.
//
// # A failure
//
// What clients did is a history, judged together with what is left in the end by package
// check. [Shrink] runs the seed of a failure again with fewer operations and fewer faults, as
// long as it still fails; [Result.Transcript] is what then happened, one event a line.
package sim
