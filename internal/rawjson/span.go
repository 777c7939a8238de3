package rawjson

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one member of an object.
type Member struct {
	// Name is unescaped.
	Name string
	// Value is the span of the value, without white space around it.
	Value []byte
	// Offset is where Value starts in the text that was cut.
	Offset int
}

// Span is a half-open range of bytes of the array or object that it belongs to. It
// stays right when that is copied elsewhere as a whole.
type Span struct{ Start, End int }

// Validate reports whether data is one strictly valid JSON value.
func Validate(data []byte) error {
	dec := newDecoder(data)
	if err := dec.SkipValue(); err != nil {
		return describe(err)
	}
	return atEnd(dec)
}

// Object cuts data, which must be one JSON object, into its members in order.
// What is nested in them is validated and left alone.
func Object(data []byte) ([]Member, error) {
	dec := newDecoder(data)
	if kind := dec.PeekKind(); kind != '{' {
		return nil, wrongKind(dec, "expected an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, describe(err)
	}
	var (
		members []Member
		// All names share one string, made when the last one is known.
		names []byte
		ends  []int
	)
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			return nil, describe(err)
		}
		names, err = jsontext.AppendUnquote(names, name)
		if err != nil {
			return nil, describe(err)
		}
		ends = append(ends, len(names))

		value, err := dec.ReadValue()
		if err != nil {
			return nil, describe(err)
		}
		// The decoder's slice is valid until its next call only; the same bytes
		// of data are ours for ever.
		end := int(dec.InputOffset())
		start := end - len(value)
		members = append(members, Member{Value: data[start:end:end], Offset: start})
	}
	if _, err := dec.ReadToken(); err != nil { // the closing brace
		return nil, describe(err)
	}
	if err := atEnd(dec); err != nil {
		return nil, err
	}
	all := string(names)
	start := 0
	for i, end := range ends {
		members[i].Name = all[start:end]
		start = end
	}
	return members, nil
}

// newDecoder reads data in place: the library does not copy out of a
// bytes.Buffer.
func newDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data))
}

func wrongKind(dec *jsontext.Decoder, reason string) error {
	// A syntax error tells more than the wrong kind does.
	offset := dec.InputOffset()
	if err := dec.SkipValue(); err != nil {
		return describe(err)
	}
	return &Error{Offset: offset, Reason: reason}
}

func atEnd(dec *jsontext.Decoder) error {
	switch _, err := dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return &Error{Offset: dec.InputOffset(), Reason: "more text follows the end of the value", Syntax: true}
	default:
		e := describe(err)
		e.Reason = "more text follows the end of the value: " + e.Reason
		return e
	}
}
