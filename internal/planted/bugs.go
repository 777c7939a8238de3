package planted

// Mistakes of package kernel: rules 1, 2, 4 and 7 of the architecture.
const (
	OnlyWritesConditioned Bug = "kernel: what was read and is not written is no condition"
	LiveDropped           Bug = "kernel: a parent is looked at and not conditioned"
	EmptyByList           Bug = "kernel: emptiness is decided from a list"
	AnswerUnsettled       Bug = "kernel: an answer from several records is not looked at twice"
	FilesAfterBatch       Bug = "kernel: files are written after the batch that names them"
	UnknownIsConflict     Bug = "kernel: an unknown outcome is taken for a conflict, and decided again"
	UnknownIsCleanedUp    Bug = "kernel: the files of an unknown outcome are deleted"
	BlockedIsDecidedAgain Bug = "kernel: a blocked batch is decided again, and its files are written again"
)

// Mistakes about files that ride in their batch, in packages kernel and journal.
const (
	FilesDoNotRide     Bug = "kernel: the bytes of small files do not ride"
	RecordsBeforeFiles Bug = "journal: records go before the files are durable"
)

// Mistakes of combining, in package kernel: rule 6 of the architecture.
const (
	NeighboursUnseen        Bug = "kernel: an operation of a batch is decided on the state before its neighbours"
	NeighboursUnconditioned Bug = "kernel: only the first operation of a batch conditions it"
	NeighboursOfFailedLand  Bug = "kernel: what was decided on a state whose file could not be written lands all the same"
	RefusedBeforeDurable    Bug = "kernel: a refusal because of a neighbour is answered before that one is durable"
	CancelEndsBatch         Bug = "kernel: a client that leaves ends the batch that was sent"
	UnknownToLeaderOnly     Bug = "kernel: of a batch with an unknown outcome only the leader is told so"
)

// Mistakes of the catalog and of table metadata.
const (
	DyingIsRegistered Bug = "catalog: a file that is being deleted can be registered"
	KeyForgotten      Bug = "catalog: an idempotency key is not recorded with its change"
	TimeRunsBack      Bug = "tablemeta: last-updated-ms follows the clock"
)

// Mistakes of package reclaim: rule 8.
const (
	PurgedByPrefix  Bug = "reclaim: a purge deletes whatever lies below the table's location"
	DyingEndedFirst Bug = "reclaim: a list of dying files is ended before the files are deleted"
)

// Mistakes of the stores.
const (
	ConditionSkipped   Bug = "mem: the version of a record is not compared"
	VersionRestarts    Bug = "mem: versions count up, and restart after a deletion"
	AnswerBeforeCommit Bug = "embedded: a batch is answered before it is durable"
	CacheBeforeCommit  Bug = "embedded: the cache shows a batch before it is durable"
	CacheStaleFill     Bug = "embedded: a slow read leaves an old value in the cache"
)

// Mistakes of package postgres. Those in SQL are made by its tests, in their databases.
const (
	EmptyBeforeLocks   Bug = "postgres: conditions are read by a statement that began before the locks were there"
	LiveUnlocked       Bug = "postgres: the row that Live names is not locked"
	OutcomeByLook      Bug = "postgres: Outcome looks for the id, and does not make it impossible"
	CreationUnchecked  Bug = "postgres: rows affected are not counted: of two who make a record both succeed"
	ForgottenUnchecked Bug = "postgres: a batch whose id is forgotten is applied"
	LocksAsAsked       Bug = "postgres: rows are locked in the order of the request"
	OutcomeUnsynced    Bug = "postgres: who finds that a batch is applied does not wait for the standbys that it needs"
	BatchCanceled      Bug = "postgres: a batch is canceled when its answer takes too long"
	CrowdUncounted     Bug = "postgres: batches that were given up and still wait in PostgreSQL are not counted"
	LossIsRefusal      Bug = "postgres: an answer that did not come is taken for a refusal"
	FatalIsRefusal     Bug = "postgres: a backend that was ended is taken for one that has refused"
)

// Mistakes of package txn: rules 5 and 7.
const (
	PendingIsOldValue      Bug = "txn: a condition takes another's pending intent for its old value"
	PendingIsRead          Bug = "txn: a reader takes a pending intent for the value"
	ParentUnread           Bug = "txn: Live of a parent is not looked at"
	LostReplyIsFailure     Bug = "txn: a lost reply is taken for a failure"
	OwnWriteIsConflict     Bug = "txn: a swap that was sent twice conflicts with itself"
	ConditionWithoutIntent Bug = "txn: what is only conditioned gets no intent"
	EmptyWithoutSeal       Bug = "txn: emptiness is looked at and not sealed"
	CommitBeforeIntents    Bug = "txn: the commit point comes before the intents"
	BlindClear             Bug = "txn: intents are cleared without looking whose they are"
	AbortedWithoutSwap     Bug = "txn: recovery takes a batch whose lease is over for aborted, and does not swap its record"
	AbortedDeletedAtOnce   Bug = "txn: the record of an aborted batch is deleted at once"
	VersionOfRollForward   Bug = "txn: the version changes at roll-forward"
	OutcomeNotFinal        Bug = "txn: Outcome says not applied without making it impossible"
	LiteralProtocol        Bug = "txn: page after page is written, and undone after a conflict"
)
