// Package crash lets everything go wrong for real servers in the middle of their writers,
// and proves that what is there afterwards is what was acknowledged. It holds tests only:
// `make faults` plays many rounds, and the ordinary tests play every fault once.
//
// # Nouns
//
// A configuration is a way to run the server: how many processes, with which flags, on
// what state, and what they must stand. There are two, and the rounds know nothing of them but
// this value: embedded is one process with a directory of its own; postgres is three on one
// PostgreSQL, with a directory for files, and the writers are spread over them.
//
// A drill is ten or fifteen rounds on one state, from an empty catalog on. Drills take turns in the
// variants of their configuration. Every other one of embedded has its
// state on a volume, a file system of its own in memory, which can be full or read-only;
// for that the tests run themselves again in a mount namespace. In one of three of postgres
// the servers have two connections each, in another PgBouncer stands before the database. Two
// drills run side by side.
//
// A round lets sixteen writers loose over HTTP. After at least two hundred acknowledged
// writes a fault strikes, the writers go on under it, it is healed, and at least twenty
// more writes must be acknowledged. When nothing is under way any more, everything is
// checked.
//
// A fault is something that goes wrong once: a process is killed, or killed again and
// again while it starts, or frozen; requests or answers are dropped, cut and delayed; the
// disk is full, or read-only; the clock jumps; sessions of the database are terminated, what is
// said to it is cut, or its answer lost, PostgreSQL itself is killed; or two of these at once. And somebody else
// locks rows and forgets them. The types that implement it say what each does.
//
// The ground is what servers stand on beside a directory: a PostgreSQL of the drill's own, which each of
// them reaches by a wire that loses and delays what is said, or nothing.
//
// The proxy stands between the writers and a server and passes on bytes, or not. It also
// knows when nothing is under way any more.
//
// The history is every operation that a writer sent: what it was to change, when
// it was sent and answered on one logical clock, and whether the answer was done,
// refused or unknown. Every operation carries a token that nothing else carries,
// and leaves it in what it changes. A request carries one operation; one of
// transactions/commit carries one for each table.
//
// A repetition sends a request again under its Idempotency-Key: some of those whose
// answer did not come at once, by the writer; all others after the round, each twice at
// the same time, by two servers where there are several, with some that were acknowledged. A sweep of the warehouse runs beside it.
//
// The observation is what the servers and the file system show after the round:
// listings, loads, and the metadata files themselves, read without the server. All servers
// must show the same.
//
// The checker is a function of a history and an observation. It walks each table
// from its pointer back to its first metadata file and wants every difference
// between two neighbours explained, wholly and exactly, by operations that could
// have succeeded. At the end of a drill, the judge of the simulator looks for one order
// of all of its operations.
//
// # Promise
//
// A round passes only if every acknowledged operation is there or was replaced by
// a later one, in an order that respects which was answered before which was sent;
// every unknown one is wholly there or wholly absent, and stays so in later rounds;
// no refused one is there, whether the reason was the catalog or the disk; what was read
// or was a reason for a refusal is true; every file that a pointer or a metadata log names
// is there and right, with times that every reader accepts; listings agree with loads;
// purged files go away, data files too, and nobody else's do, and what a purge has left whose server
// died is taken over by another; a transaction is in all of
// its tables or in none, for every read; what fell off a log with delete-after-commit
// stays for the time of grace and goes after it; a repetition is answered as the request
// was, and nothing happens twice; a sweep gives up nothing that a table has. Only a fault
// that can cause it excuses that an answer does not come, or that a server is busy. While the rows of
// some tables are locked, who wants another is answered as quickly as before, and every server is ready.
// TestCheckerSees and TestOrder feed the checkers one corrupted observation of each sort.
//
// # Caveats
//
// It is the process that dies, not the machine: what the operating system had
// accepted survives here even if it was never synced. That the data reaches the
// disk rests on the stores' own tests.
//
// The server is the real one but for time.Now, which a build for these tests lets run
// ahead (see clock). Files keep the machine's time, as those of a remote store do. In
// a drill whose clock has jumped nothing is concluded from how long files stay.
//
// Full and read-only disks are had on Linux only, and need user namespaces or root: where
// neither is given the tests fail. Windows has no frozen processes and no clock.
//
// A purge that was cut short has an owner for a minute more, and is looked for every ten. The drill does not wait: in
// the end it starts a server whose clock is ahead.
//
// The judge gives up on some drills, whose number is printed: too much is possible there.
package crash
