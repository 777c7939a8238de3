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
	// Elements are the spans of the elements of Value when it is an array and
	// the member came from [Document]; nil otherwise.
	Elements []Span
}

// Span is a half-open range of bytes of the Value that it belongs to. It stays
// right when that value is copied elsewhere as a whole.
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
func Object(data []byte) ([]Member, error) { return cutObject(data, false) }

// Document is Object that also cuts members that are arrays into their
// elements, in the same single pass over data.
func Document(data []byte) ([]Member, error) { return cutObject(data, true) }

// Array cuts data, which must be one JSON array, into its elements in order.
// What is nested in them is validated and left alone.
func Array(data []byte) ([][]byte, error) {
	dec := newDecoder(data)
	if kind := dec.PeekKind(); kind != '[' {
		return nil, wrongKind(dec, "expected an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, describe(err)
	}
	elements := [][]byte{}
	for dec.PeekKind() != ']' {
		value, _, err := cutValue(dec, data)
		if err != nil {
			return nil, describe(err)
		}
		elements = append(elements, value)
	}
	if _, err := dec.ReadToken(); err != nil { // the closing bracket
		return nil, describe(err)
	}
	return elements, atEnd(dec)
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
		return &Error{Offset: dec.InputOffset(), Reason: "more text follows the end of the value"}
	default:
		e := describe(err)
		e.Reason = "more text follows the end of the value: " + e.Reason
		return e
	}
}

func cutObject(data []byte, withElements bool) ([]Member, error) {
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

		var m Member
		if withElements && dec.PeekKind() == '[' {
			m, err = cutArray(dec, data)
		} else {
			m.Value, m.Offset, err = cutValue(dec, data)
		}
		if err != nil {
			return nil, describe(err)
		}
		members = append(members, m)
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

// cutArray reads the array that comes next in dec into a member without a name.
func cutArray(dec *jsontext.Decoder, data []byte) (Member, error) {
	if _, err := dec.ReadToken(); err != nil { // the opening bracket
		return Member{}, err
	}
	start := int(dec.InputOffset()) - 1
	elements := []Span{}
	// The loop also goes on at a syntax error, which reading the value reports.
	for dec.PeekKind() != ']' {
		value, offset, err := cutValue(dec, data)
		if err != nil {
			return Member{}, err
		}
		elements = append(elements, Span{offset - start, offset - start + len(value)})
	}
	if _, err := dec.ReadToken(); err != nil { // the closing bracket
		return Member{}, err
	}
	end := int(dec.InputOffset())
	return Member{Value: data[start:end:end], Offset: start, Elements: elements}, nil
}

func cutValue(dec *jsontext.Decoder, data []byte) (value []byte, offset int, err error) {
	value, err = dec.ReadValue()
	if err != nil {
		return nil, 0, err
	}
	// The decoder's slice is valid until its next call only; the same bytes of
	// data are ours for ever.
	end := int(dec.InputOffset())
	offset = end - len(value)
	return data[offset:end:end], offset, nil
}
