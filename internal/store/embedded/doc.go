// Package embedded is a [store.Atomic] in one SQLite file, for one process.
//
// One writer goroutine owns the only connection that writes. It takes the
// batches that wait, checks and writes them one after another in a single
// transaction, makes all of them durable with one COMMIT, and only then answers:
// that is group commit, and it is why no batch's conditions can be outrun. A
// batch that fails its conditions writes nothing and is no trouble to its
// neighbours; a batch in a group sees what its predecessors in the group wrote.
//
// A COMMIT that fails leaves the outcome open. The writer then reads the batch
// ids again on a fresh connection, one batch at a time, before anybody is
// answered. After a failed fsync even that cannot be trusted, and the process
// is stopped: see [Options.Fatal].
//
// The table `applied` remembers each batch id in the batch's own transaction.
// Outcome goes through the writer and, when the id is unknown, writes it there as
// void, which makes the answer final. Ids are forgotten in their own order (they
// begin with their time), and the greatest forgotten id is kept, so that the
// store knows what it does not know. Whoever makes ids is told of it: see [Options.Forgot].
//
// Reads of one key are answered from memory where the store knows the record, or knows
// that there is none: from what was read and written last, within Options.CacheBytes.
// The writer checks conditions by it too. It is told of a group when its COMMIT is
// durable and before anybody is answered, and forgets all when a COMMIT fails. Other
// reads, and every list, use a few read-only connections and see the last COMMIT. What a
// list has shown, no later read takes back.
//
// The file is in WAL mode with synchronous=FULL. A goroutine with a connection of its own
// copies the log into the file, so that the writer need not, or only what little is
// left. A person can read the file with the sqlite3 tool:
//
//	sqlite3 -readonly catalog.db "SELECT level, path, value FROM records"
//
// Caveats: the directory must be on a local disk (SQLite's log is shared memory).
// A second process may open the file, as a backup does; its batches are as safe,
// but the two wait for each other's transactions, without a queue, after five seconds
// in vain a batch is refused, and what one has written the other may read only after
// its own next batch. Within one process a file is opened once at a time. Ids that a
// wrong clock dated in the future are remembered until that future is past.
package embedded
