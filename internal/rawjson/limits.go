package rawjson

import "fmt"

// The readers of what is stored have limits of their own. Those of Jackson, which
// Iceberg's reference implementation reads with, are 1,000 levels of a document,
// 1,000 characters of a number, 50,000 of a name and 20 million of a string. A
// value that is to become part of a document may have half of the levels. Text is
// measured in bytes as it is written, which is never less than in characters.
const (
	nestingMax = 500
	numberMax  = 1000
	nameMax    = 50_000
	stringMax  = 20_000_000
)

// CheckLimits reports what in a validated value common readers of JSON refuse:
// deep nesting, long numbers, names and strings. It reads the value once.
func CheckLimits(value []byte) error {
	s := scanner{data: value}
	depth := 0
	refuse := func(at int, what string, most int) error {
		return &Error{
			Offset: int64(at),
			Reason: fmt.Sprintf("%s at byte %d exceeds %d, the most that common readers take", what, at, most),
		}
	}
	for {
		s.space()
		if s.pos >= len(s.data) {
			return nil
		}
		start := s.pos
		switch s.data[start] {
		case '{', '[':
			if depth++; depth > nestingMax {
				return refuse(start, "the depth of nesting", nestingMax)
			}
			s.pos++
		case '}', ']':
			depth--
			s.pos++
		case ',', ':':
			s.pos++
		default:
			size := len(s.value())
			text := s.data[start] == '"'
			s.space()
			switch named := s.pos < len(s.data) && s.data[s.pos] == ':'; {
			case !text && size > numberMax:
				return refuse(start, "the length of a number", numberMax)
			case text && named && size-2 > nameMax:
				return refuse(start, "the length of a name", nameMax)
			case text && size-2 > stringMax:
				return refuse(start, "the length of a string", stringMax)
			}
		}
	}
}
