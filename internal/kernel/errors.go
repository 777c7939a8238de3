package kernel

import (
	"errors"
	"fmt"
)

// ErrAgain is returned by a Decide whose reads contradict each other, because
// something changed between them: it is run again. Do never returns it.
var ErrAgain = errors.New("kernel: decide again")

// Errors of Do, beside those that Decide refused with. In each case nothing was applied.
var (
	// ErrContended: the tries or the time of the request were spent on conflicts
	// or in a queue. It is worth trying again.
	ErrContended = errors.New("kernel: contended")
	// ErrBlocked is ErrContended: others had locked what the batch needed for longer than
	// Options.BlockedLimit, or more often than BlockedRetries.
	ErrBlocked = fmt.Errorf("%w: blocked", ErrContended)
	// ErrOverloaded: a queue is full, or the server is draining.
	ErrOverloaded = errors.New("kernel: overloaded")
	// ErrUpload: a file could not be written.
	ErrUpload = errors.New("kernel: file not written")
)
