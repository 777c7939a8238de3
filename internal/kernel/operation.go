package kernel

import (
	"context"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
)

// Operation is one action of the catalog as a value: what it asks and what it
// answers, both encodable as JSON, so that it can be shipped, logged, replayed
// and compared.
type Operation interface {
	// Plan is pure: it depends on the request alone and does no I/O.
	Plan() Plan

	// Decide reads through tx, stages writes and files, and sets the result. It
	// may run many times, so it has no other effect and sets the result afresh on
	// each run; time, ids and file names come from tx alone. ErrAgain asks for
	// another run; any other error refuses the operation: nothing is applied.
	Decide(ctx context.Context, tx *Tx) error
}

// Plan says what an operation needs before it decides.
type Plan struct {
	// Op is the operation's name in logs, metrics and encodings: one word per
	// operation, for ever.
	Op string
	// Locks names keys of warehouses, namespaces and table names, and the guard of the
	// location index. It orders the waiters and protects nothing: a read, and a write
	// outside the set, is protected by its conditions. Empty: the operation does not queue.
	Locks lock.Set
	// Combine is a key in Locks at whose queue the operation may be decided together with its
	// neighbours, and land in one batch with them: for what reads and changes one table or view that is there
	// already. The zero key: it lands alone.
	Combine key.Key
	// Patience is the class that says how long it waits in the queue, within the request's deadline.
	Patience lock.Class
	// Route says which operations belong on one instance when several share the work.
	Route key.Route
}

// Latest is an operation that answers with the state of what it changed.
type Latest interface {
	Operation
	// ShowLatest replaces the answer by the state that last left behind: an operation with the same Plan.Combine
	// that was decided later and landed in the same batch. Who is told of the newest state makes the next change on it.
	ShowLatest(last Operation)
}

// Runner runs operations. *Kernel is one.
type Runner interface {
	// Do runs op to its end and is done with it when it returns: the result is in op.
	// It blocks no longer than ctx, but for a batch that was sent: that ends within
	// the limits of its own. Errors: what Decide refused with,
	// ErrContended, ErrOverloaded, ErrUpload, store.ErrOutcomeUnknown, the cause of ctx
	// where the client left, or a fault of the store or of the files. Only with
	// store.ErrOutcomeUnknown may anything have been applied.
	Do(ctx context.Context, op Operation) error
}
