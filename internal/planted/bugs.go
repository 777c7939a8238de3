package planted

// Mistakes of package txn.
const (
	PendingIsOldValue      Bug = "txn: a condition takes another's pending intent for its old value"
	ParentUnread           Bug = "txn: Live of a parent is not looked at"
	LostReplyIsFailure     Bug = "txn: a lost reply is taken for a failure"
	ConditionWithoutIntent Bug = "txn: what is only conditioned gets no intent"
	EmptyWithoutSeal       Bug = "txn: emptiness is looked at and not sealed"
	CommitBeforeIntents    Bug = "txn: the commit point comes before the intents"
	AbortedDeletedAtOnce   Bug = "txn: the record of an aborted batch is deleted at once"
	OutcomeNotFinal        Bug = "txn: Outcome says not applied without making it impossible"
)
