package tablemeta

import (
	"errors"
	"fmt"
	"strings"
)

// ErrTooLarge says that a metadata file is larger than the limit it was to be
// read with, after decompression.
var ErrTooLarge = errors.New("tablemeta: metadata file is too large")

// InvalidError refuses what can never be right, whatever the state of the table
// becomes: metadata that is broken, a request that contradicts itself or the
// rules of the format. Sending the same again does not help.
type InvalidError struct {
	// Message is for the client: what is wrong, and where.
	Message string
	// Err is the error that a lower package found, or nil.
	Err error
}

func (e *InvalidError) Error() string { return e.Message }

func (e *InvalidError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) *InvalidError {
	return &InvalidError{Message: fmt.Sprintf(format, args...)}
}

// invalidBecause reports an error of a lower package in its own words, which
// are written for the client too.
func invalidBecause(err error) *InvalidError {
	return &InvalidError{Message: err.Error(), Err: err}
}

// RequirementError says that the table is not in the state that the commit was
// made for. The client may refresh, make the commit anew and try again.
type RequirementError struct {
	// Message starts with "Requirement failed: ".
	Message string
}

func (e *RequirementError) Error() string { return e.Message }

func requirementFailed(format string, args ...any) *RequirementError {
	return &RequirementError{Message: "Requirement failed: " + fmt.Sprintf(format, args...)}
}

// StaleError says that an update carries a value that another commit overtook:
// a sequence number or a first row id. The server cannot repair that, the
// client can, as after a [RequirementError].
type StaleError struct {
	// Message starts with "Validation failed, please retry: ".
	Message string
}

func (e *StaleError) Error() string { return e.Message }

func stale(format string, args ...any) *StaleError {
	return &StaleError{Message: "Validation failed, please retry: " + fmt.Sprintf(format, args...)}
}

// quoteMax bounds what a message repeats of a value that somebody sent.
const quoteMax = 200

// excerpt is the start of a value, for a message.
func excerpt[T ~string | ~[]byte](value T) string {
	if len(value) <= quoteMax {
		return strings.ToValidUTF8(string(value), "\uFFFD")
	}
	return strings.ToValidUTF8(string(value[:quoteMax]), "") + "..."
}
