// Package journal makes metadata files durable in groups, with one fsync of the
// store for file and pointer.
//
// A file that rides is written without any sync, and its bytes go into the very
// batch that names it: when the batch is durable, so is the file, for [Journal.Recover]
// can write it anew from the record. Once a second [Journal.Run] makes all such
// files durable by one call, and only then removes their records.
//
// A file's life: Admit and Create before the batch, Write as a part of it, and
// Applied or Drop after it. What happens to it when
//
//   - the power is lost: Recover, which runs before anything is served, rewrites
//     every file that has a record, whatever is there. Without a record a file is
//     durable, or no batch names it.
//   - the files cannot be made durable: the kernel may have given up what it held in
//     memory, so a second try proves nothing. Each file that was made since the last
//     success is written anew from its record, and the record stays until that is durable.
//   - nobody knows whether its batch was applied: a look through all records, once a
//     minute and before a purge, finds the record if there is one, and rewrites its files.
//   - it is deleted while it rides: Recover would make it again. So who deletes asks [Journal.Settled] first.
//   - its volume is not mounted when Recover runs: the root lacks the warehouse's
//     marker, the record stays, and is tried again.
//   - Recover cannot write it: that is tried again, for seconds by Recover and then by Run.
//     Until it works the file may be missing or short, and whoever needs it is refused.
//
// The journal believes that all records are its own: one process uses the store.
package journal
