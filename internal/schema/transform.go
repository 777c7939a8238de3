package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// transform derives a partition or sort value from a source field.
type transform struct {
	// name is lower case, without the parameter; of an unknown transform it is
	// empty.
	name string
	// text is the canonical spelling, of an unknown transform the one it came in.
	text string
}

const transformVoid = "void"

var widthPattern = regexp.MustCompile(`^(\w+)\[(\d+)\]$`)

// parseTransform knows the transforms of the specification in any case. Others
// are carried: a reader has to ignore them, and a catalog needs no more.
func parseTransform(text string) (transform, *Error) {
	if m := widthPattern.FindStringSubmatch(text); m != nil {
		name := strings.ToLower(m[1])
		if name == "bucket" || name == "truncate" {
			width, err := strconv.ParseInt(m[2], 10, 32)
			if err != nil || width <= 0 {
				return transform{}, invalid("invalid transform %q: the parameter must be above 0 and fit 32 bits", excerpt(text))
			}
			return transform{name: name, text: fmt.Sprintf("%s[%d]", name, width)}, nil
		}
	}
	switch name := strings.ToLower(text); name {
	case "identity", "year", "month", "day", "hour", transformVoid:
		return transform{name: name, text: name}, nil
	default:
		return transform{text: text}, nil
	}
}

// accepts reports whether the transform is defined for a source of type l.
func (t transform) accepts(l leaf) bool {
	switch t.name {
	case "identity":
		return l.kind != kindGeometry && l.kind != kindGeography
	case "bucket":
		switch l.kind {
		case kindInt, kindLong, kindDate, kindTime, kindTimestamp, kindTimestamptz, kindTimestampNs,
			kindTimestamptzNs, kindString, kindBinary, kindFixed, kindDecimal, kindUUID:
			return true
		}
		return false
	case "truncate":
		switch l.kind {
		case kindInt, kindLong, kindString, kindBinary, kindDecimal:
			return true
		}
		return false
	case "year", "month", "day":
		return l.kind == kindDate || isTimestamp(l.kind)
	case "hour":
		return isTimestamp(l.kind)
	default:
		return true
	}
}

func isTimestamp(k kind) bool {
	switch k {
	case kindTimestamp, kindTimestamptz, kindTimestampNs, kindTimestamptzNs:
		return true
	}
	return false
}
