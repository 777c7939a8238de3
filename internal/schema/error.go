package schema

import (
	"fmt"
	"strings"
)

// Error is a refusal. The message says what is wrong and where, for the person
// who sent the schema, spec or sort order.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

func invalid(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// quoteMax bounds what a message repeats of a value that somebody sent.
const quoteMax = 200

// excerpt is the start of a value for a message: a type can be megabytes long.
func excerpt[T ~string | ~[]byte](value T) string {
	if len(value) > quoteMax {
		// The cut may go through a character.
		return strings.ToValidUTF8(string(value[:quoteMax]), "") + "..."
	}
	return string(value)
}
