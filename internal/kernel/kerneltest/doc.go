// Package kerneltest says, by running, what a kernel on some store and some
// queue promises.
//
// [Run] is the suite. It runs operations of its own (counters, transfers,
// parents and children) on what a constructor gives, once with the given queue
// and once with a queue that lets everyone in at once: what then fails rested on
// a lock. [RoundTrip] is a Runner that sends every operation through its
// encoding before and after it runs; tests of operations use it in place of
// the kernel. [Files] keeps files in memory, and can be told to fail. [Store] puts the same
// abilities on any store, and [RunOnObjects] and [RunOnPostgres] run a package's tests again on
// other stores.
package kerneltest
