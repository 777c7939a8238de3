// Package postgres is a [store.Atomic] in a PostgreSQL database that any number of
// processes share.
//
// # A batch
//
// A batch is one call of the function landfast.apply_1, and that call is one SQL
// transaction: it locks the rows of the batch in the order of their keys, reads what
// the conditions rest on, remembers the batch's id, writes, and commits, in one round
// trip. So no row stays locked while anything waits for a network or a client: a
// process that freezes, or is cut off, holds nothing.
//
// Rows are locked one by one, and those of a level in one mode. Live takes
// FOR KEY SHARE, which only a change of incarnation excludes: tables are made while the
// properties of their namespace change. A version that is only compared takes FOR
// SHARE, a write that keeps the incarnation FOR NO KEY UPDATE, and a guard, a deletion
// or a new incarnation FOR UPDATE; the strongest of them holds for the whole level. A row
// that is not there cannot be locked: that a record is made once rests on the primary key.
//
// # Waiting
//
// A row that another transaction has locked is looked at for 1 ms, and then waited for on
// the connection for a short slice of time, all rows of a batch together. At most half of the connections are in such
// slices, and who gets none in that time waits no longer; all other waiting is in memory. After
// a slice in vain Apply gives a *store.BlockedError, and whoever called it tries again.
//
// A call waits for a connection as long as its context lasts and Options.Patience: so it
// outlasts a PostgreSQL that restarts. Then it gives store.ErrUnavailable. What was sent is
// waited for at most Options.ApplyTimeout, whatever becomes of the context.
//
// What may be asked twice is asked again, on another connection, after a tenth of that. A batch that has no
// answer by then leaves the pool with its connection, and until one is committed the others go one at a time, and none
// while half as many as the pool has connections are under way in PostgreSQL without an answer: a server that answers reads and
// commits nothing does not get all its connections filled with batches.
//
// # Synchronous standbys
//
// A COMMIT that waits for a standby is done, and is let go when its backend is canceled or terminated: then
// everybody sees what a failover would lose. So no batch is ever canceled, and whoever finds that a batch is
// applied, which it may have been let go, writes himself and waits for his own COMMIT.
//
// # Errors
//
// An ERROR of the server means that the batch was undone. Everything else that ends a
// call which was sent leaves its outcome unknown: a lost connection, and FATAL, too, because a
// backend can be ended after its COMMIT and before its last word. A read is asked again on
// another connection.
//
// Outcome inserts the batch's id as void where it is not there: PostgreSQL lets the
// insertion wait for a transaction with the same id that is still running, so the answer is
// final. Ids are forgotten in their own order, by the database's clock, and the greatest
// forgotten one is kept. It is read after the id was inserted or not found: the insertion waits for
// whoever is forgetting the same id, so nothing that was void is ever applied.
//
// # Reads
//
// Reads take no locks. Those that wait at the same moment share a round trip.
//
// # Settings
//
// A role or a database may have settings of its own. Isolation is READ COMMITTED, or a batch is
// refused; synchronous_commit is on at COMMIT; the planner finds each row by its whole key, also with a
// plan that was made while the table was empty. Behind PgBouncer nothing is kept in a
// session, so the isolation must be the role's: Open says so.
package postgres
