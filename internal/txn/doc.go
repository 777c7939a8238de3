// Package txn makes a [store.Atomic] of a store that can change one object at a time.
//
// # Nouns
//
// A page is one object: records that lie together, as a [Layout] says, each with its
// settled value and the intents of batches under way. An intent says what a batch will
// write to the record, or which condition it holds on it. A seal is an intent on a whole
// prefix of a page: that nothing is added below it. A status record is the one object in
// which a batch of several pages is PENDING, COMMITTED or ABORTED.
//
// # Protocol
//
// A batch that touches one page is one compare-and-swap of it. A batch of several:
//
//	1  read every page and look: a condition that fails refuses, another's pending intent blocks
//	2  create the status record, PENDING
//	3  page by page, in the order of names: put intents on what the batch writes or conditions, and seals
//	4  swap the status record from PENDING to COMMITTED: the commit point, the only one
//	5  page by page: make the intents settled values; then delete the status record
//
// Before 4 anybody may abort it, by swapping the record to ABORTED, once its lease is over; after 4
// nobody can, and whoever meets an intent carries it out. Nothing applied is ever undone.
//
//   - Readers take nothing and wait for nothing: they read the page, then the status record of the
//     intents in it: COMMITTED gives the new value, anything else the old one, if the page is the
//     newest then. In that order, the value they give was the record's at one moment of the read.
//   - Writers take another's pending intent for busy, never for its old value: both could
//     be right when they look, and only one of them in the end. Intents of conditions
//     share a record, those of writes do not.
//   - Who recovers: whoever meets a leftover (only what it needs), and Recover (everything).
//   - Each attempt has an id of its own. An intent that its status record does not vouch for
//     (there is none, or it is that of other writes) is void.
//
// # Conditions without intents
//
// Live of a parent, in a batch that adds below it, costs one read: whoever deletes a parent
// seals every page that its children may lie in (see [Layout.Children]), so a writer that reads
// the child's page, then the parent, then swaps the child's page cannot miss it.
//
// A birth is a record under a fresh name that nobody looks for before another record
// leads there. Its page is made first, with an intent whose fate is decided in the page that leads to
// it (its home): so creating something and naming it is one swap of one page that others use too.
// A home remembers a batch for as long as births of it are not settled.
//
// # The simpler ideas that fail
//
// Writing page after page under a lock and undoing it after a failure: others have
// built on what is undone, or the undoer dies. Locking only what is written, and looking at
// the rest once more before the commit point: between that look and the commit others
// see what it was decided from change, and then it happens. Deleting an aborted status record at once:
// a copy of its creation that arrives late revives it, with the same tag.
//
// # Cost
//
// In requests to the store, without conflicts: Get of a settled record 1, of one with a pending
// intent 3; a batch in one page 2 (read, swap) and 1 for each parent; b births cost 3b more, and the parents
// once more; a batch of n pages n reads (fresh ones need none), 2 for each parent, and 2n+3 writes.
//
// # Limits
//
// A page remembers its last 256 batches. A batch id that is sent to Apply again after that may be applied
// again, and its outcome is unknown: whoever sends a batch asks soon, and never sends it twice.
package txn
