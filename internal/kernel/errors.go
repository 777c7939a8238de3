package kernel

import "errors"

// ErrAgain is returned by a Decide whose reads contradict each other, because
// something changed between them: it is run again. Do never returns it.
var ErrAgain = errors.New("kernel: decide again")

// Errors of Do, beside those that Decide refused with. In each case nothing was applied.
var (
	// ErrContended: the tries or the time of the request were spent on conflicts
	// or in a queue. It is worth trying again.
	ErrContended = errors.New("kernel: contended")
	// ErrOverloaded: a queue is full, or the server is draining.
	ErrOverloaded = errors.New("kernel: overloaded")
	// ErrUpload: a file could not be written.
	ErrUpload = errors.New("kernel: file not written")
)
