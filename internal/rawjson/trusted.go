package rawjson

import (
	"bytes"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Lookup finds a member of a validated object and stops reading there. It
// reports false if there is no such member or object is not an object.
func Lookup(object []byte, name string) (value []byte, ok bool) {
	s := scanner{data: object}
	if !s.open('{') {
		return nil, false
	}
	for s.more('}') {
		quoted := s.value()
		s.space()
		s.pos++ // the colon
		value := s.value()
		if nameIs(quoted, name) {
			return value, true
		}
	}
	return nil, false
}

// Pick looks several members of a validated object up in one pass: values[i]
// becomes the value of names[i], or nil if there is none. It stops reading when
// it has found all of them, and does not allocate.
func Pick(object []byte, names []string, values [][]byte) {
	clear(values)
	s := scanner{data: object}
	if !s.open('{') {
		return
	}
	missing := len(names)
	for missing > 0 && s.more('}') {
		quoted := s.value()
		s.space()
		s.pos++ // the colon
		value := s.value()
		for i, name := range names {
			if values[i] == nil && nameIs(quoted, name) {
				values[i] = value
				missing--
				break
			}
		}
	}
}

// Members yields the members of a validated object in order; none if object is
// not an object. A name allocates.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for name, span := range MemberSpans(object) {
			if !yield(name, object[span.Start:span.End:span.End]) {
				return
			}
		}
	}
}

// MemberSpans is Members that yields where the values are.
func MemberSpans(object []byte) iter.Seq2[string, Span] {
	return func(yield func(string, Span) bool) {
		s := scanner{data: object}
		if !s.open('{') {
			return
		}
		for s.more('}') {
			name, _ := String(s.value())
			s.space()
			s.pos++ // the colon
			value := s.value()
			if !yield(name, Span{s.pos - len(value), s.pos}) {
				return
			}
		}
	}
}

// Elements yields the elements of a validated array in order; none if array is
// not an array.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for span := range Spans(array) {
			if !yield(array[span.Start:span.End:span.End]) {
				return
			}
		}
	}
}

// Spans is Elements that yields where the elements are.
func Spans(array []byte) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		s := scanner{data: array}
		if !s.open('[') {
			return
		}
		for s.more(']') {
			value := s.value()
			if !yield(Span{s.pos - len(value), s.pos}) {
				return
			}
		}
	}
}

// String decodes a JSON string. It reports false if value is something else.
func String(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}

// Int64 decodes a JSON number that is written as an integer and fits 64 bits.
// It reports false for everything else, 1.0 and 1e3 included: what was written
// as a fraction may have been rounded before.
func Int64(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil && value[0] != '+'
}

// IsNull reports whether value is the literal null.
func IsNull(value []byte) bool { return string(value) == "null" }

func nameIs(quoted []byte, name string) bool {
	if len(quoted) < 2 {
		return false
	}
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == name
	}
	unescaped, _ := String(quoted)
	return unescaped == name
}

// scanner walks over one validated value. On any input it moves forward with
// every value that it returns or stands at the end, so that loops over it end.
type scanner struct {
	data []byte
	pos  int
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *scanner) space() {
	for s.pos < len(s.data) && isSpace(s.data[s.pos]) {
		s.pos++
	}
}

func (s *scanner) open(bracket byte) bool {
	s.space()
	if s.pos >= len(s.data) || s.data[s.pos] != bracket {
		return false
	}
	s.pos++
	return true
}

// more reports whether another value comes before the closing bracket.
func (s *scanner) more(bracket byte) bool {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == ',' {
		s.pos++
		s.space()
	}
	return s.pos < len(s.data) && s.data[s.pos] != bracket
}

// value returns the next value and moves behind it.
func (s *scanner) value() []byte {
	s.space()
	if s.pos >= len(s.data) {
		s.pos = len(s.data)
		return nil
	}
	start := s.pos
	switch s.data[start] {
	case '"':
		s.skipString()
	case '{', '[':
		s.skipNested()
	default:
		s.pos++
		for s.pos < len(s.data) {
			if c := s.data[s.pos]; c == ',' || c == '}' || c == ']' || c == ':' || isSpace(c) {
				break
			}
			s.pos++
		}
	}
	return s.data[start:s.pos:s.pos]
}

// skipString moves from the opening quote to behind the closing one.
func (s *scanner) skipString() {
	for i := s.pos + 1; i < len(s.data); i++ {
		switch s.data[i] {
		case '\\':
			i++
		case '"':
			s.pos = i + 1
			return
		}
	}
	s.pos = len(s.data)
}

// skipNested moves from an opening bracket to behind the one that closes it.
func (s *scanner) skipNested() {
	depth := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.pos++
		if depth == 0 {
			return
		}
	}
}
