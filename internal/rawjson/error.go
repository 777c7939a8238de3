package rawjson

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error says where a JSON text was refused and why, in words for the person
// who sent it.
type Error struct {
	// Pointer is the JSON pointer (RFC 6901) of the value that was refused;
	// empty for the document itself.
	Pointer string
	// Offset counts bytes from the start of the text. The offending byte is at
	// or shortly after it.
	Offset int64
	// Reason is a sentence without a capital and without a full stop.
	Reason string
	// Err is the error that an UnmarshalJSON method returned, so that callers
	// can find their own types behind the place that it is reported with.
	// It is nil for errors that were found by this package.
	Err error
	// Syntax is true where the text is not JSON. Otherwise it is, but a value in
	// it is not of the type, the range or the size that is wanted.
	Syntax bool
}

// quoteMax bounds, in bytes, what a message repeats of the text: the sender
// chooses the length of names and numbers, and of pointers by nesting.
const quoteMax = 200

func excerpt(text string) string {
	if len(text) <= quoteMax {
		return text
	}
	return strings.ToValidUTF8(text[:quoteMax], "") + "..."
}

func (e *Error) Error() string {
	pointer := excerpt(e.Pointer)
	switch {
	case e.Err != nil && pointer == "":
		return e.Reason
	case e.Err != nil:
		return pointer + ": " + e.Reason
	case !e.Syntax && pointer == "":
		return e.Reason
	case !e.Syntax:
		return "at " + pointer + ": " + e.Reason
	case pointer == "":
		return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
	default:
		return fmt.Sprintf("invalid JSON at %s (byte %d): %s", pointer, e.Offset, e.Reason)
	}
}

func (e *Error) Unwrap() error { return e.Err }

// describe turns what the JSON library reports into an *Error.
func describe(err error) *Error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &semantic):
		return describeSemantic(semantic)
	case errors.As(err, &syntactic):
		return &Error{
			Pointer: string(syntactic.JSONPointer),
			Offset:  syntactic.ByteOffset,
			Reason:  syntacticReason(syntactic.Err, syntactic.JSONPointer),
			Syntax:  true,
		}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Reason: "the text ends before the value does", Syntax: true}
	default:
		return &Error{Reason: err.Error(), Syntax: true}
	}
}

func syntacticReason(err error, at jsontext.Pointer) string {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Sprintf("member %q appears twice in one object", excerpt(at.LastToken()))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the text ends before the value does"
	default:
		return err.Error()
	}
}

func describeSemantic(err *json.SemanticError) *Error {
	e := &Error{Pointer: string(err.JSONPointer), Offset: err.ByteOffset}
	var inner *Error
	switch {
	case errors.As(err.Err, &inner):
		// A method decoded its own part with this package: its place is
		// relative to the value that it was given.
		e.Pointer += inner.Pointer
		e.Offset += inner.Offset
		e.Reason = inner.Reason
		e.Err, e.Syntax = inner.Err, inner.Syntax
	case errors.Is(err.Err, strconv.ErrRange):
		e.Reason = fmt.Sprintf("%s does not fit %s", excerpt(err.JSONValue.String()), typeName(err.GoType))
	case err.Err != nil && !errors.Is(err.Err, strconv.ErrSyntax):
		e.Reason = err.Err.Error()
		e.Err = err.Err
	default:
		e.Reason = fmt.Sprintf("expected %s, found %s", typeName(err.GoType), kindName(err))
	}
	return e
}

func kindName(err *json.SemanticError) string {
	switch err.JSONKind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		if len(err.JSONValue) > 0 {
			return "the number " + excerpt(err.JSONValue.String())
		}
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "something else"
	}
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

func typeName(t reflect.Type) string {
	if t == nil {
		return "another kind of value"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a non-negative integer of %d bits", t.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	default:
		return "another kind of value"
	}
}
