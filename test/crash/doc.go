// Package crash kills a real server in the middle of its writers and proves that
// what comes back is what was acknowledged. It holds tests only: `make faults`
// runs many rounds of it, and the ordinary tests run a few.
//
// # Nouns
//
// A round starts `landfast serve` on the data directory of the round before, lets
// sixteen writers loose on it over HTTP, sends SIGKILL at a random moment after at
// least two hundred acknowledged writes, starts it again and checks.
//
// The history is every operation that a writer sent: what it was to change, when
// it was sent and answered on one logical clock, and whether the answer was done,
// refused or unknown. Every operation carries a token that nothing else carries,
// and leaves it in what it changes. A request carries one operation; one of
// transactions/commit carries one for each table.
//
// A replay repeats requests that bore an Idempotency-Key, under it, after the
// restart: all whose answer did not come, and some that were acknowledged. A sweep
// of the warehouse runs beside it.
//
// The observation is what the server and the file system show after the restart:
// listings, loads, and the metadata files themselves, read without the server.
//
// The checker is a function of a history and an observation. It walks each table
// from its pointer back to its first metadata file and wants every difference
// between two neighbours explained, wholly and exactly, by operations that could
// have succeeded.
//
// # Promise
//
// A round passes only if every acknowledged operation is there or was replaced by
// a later one, in an order that respects which was answered before which was sent;
// every unknown one is wholly there or wholly absent, and stays so in later rounds;
// no refused one is there; what was read or was a reason for a refusal before the
// crash is still true after it; every file that a pointer or a metadata log names
// is there and right; listings agree with loads; purged files go away, data files
// too, and nobody else's do; a transaction is in all of its tables or in none, for
// every read; what fell off a log with delete-after-commit stays for the time of
// grace and goes after it; a replay is answered as the request was, and nothing
// happens twice; a sweep gives up nothing that a table has.
// TestCheckerSees feeds the checker one corrupted observation of each sort.
//
// # Caveats
//
// It is the process that dies, not the machine: what the operating system had
// accepted survives here even if it was never synced. That the data reaches the
// disk rests on the stores' own tests. Writers stop at their first unknown answer
// of a round, so one writer has at most one unknown operation in each.
package crash
