package schema

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
)

// Type is the type of a field: a primitive, variant, a struct, a list or a map.
// String is its canonical name, for nested types one that shows what is inside.
type Type interface {
	fmt.Stringer
	sealed()
}

// kind names a type that has no fields inside.
type kind string

const (
	kindBoolean       kind = "boolean"
	kindInt           kind = "int"
	kindLong          kind = "long"
	kindFloat         kind = "float"
	kindDouble        kind = "double"
	kindDecimal       kind = "decimal"
	kindDate          kind = "date"
	kindTime          kind = "time"
	kindTimestamp     kind = "timestamp"
	kindTimestamptz   kind = "timestamptz"
	kindTimestampNs   kind = "timestamp_ns"
	kindTimestamptzNs kind = "timestamptz_ns"
	kindString        kind = "string"
	kindUUID          kind = "uuid"
	kindFixed         kind = "fixed"
	kindBinary        kind = "binary"
	kindUnknown       kind = "unknown"
	kindVariant       kind = "variant"
	kindGeometry      kind = "geometry"
	kindGeography     kind = "geography"
)

// plainKinds are the types whose name is all there is to them.
var plainKinds = map[string]kind{
	"boolean": kindBoolean, "int": kindInt, "long": kindLong, "float": kindFloat, "double": kindDouble,
	"date": kindDate, "time": kindTime, "timestamp": kindTimestamp, "timestamptz": kindTimestamptz,
	"timestamp_ns": kindTimestampNs, "timestamptz_ns": kindTimestamptzNs, "string": kindString,
	"uuid": kindUUID, "binary": kindBinary, "unknown": kindUnknown, "variant": kindVariant,
}

// sinceFormat holds the first format version of the types that are younger than
// the format.
var sinceFormat = map[kind]int{
	kindTimestampNs: 3, kindTimestamptzNs: 3, kindVariant: 3, kindUnknown: 3, kindGeometry: 3, kindGeography: 3,
}

const (
	defaultCRS       = "OGC:CRS84"
	defaultAlgorithm = "spherical"
	precisionMax     = 38
)

// leaf is a type that has no fields inside: a primitive or variant.
type leaf struct {
	kind             kind
	precision, scale int    // of a decimal
	length           int    // of a fixed
	crs              string // of geometry and geography; case as written
	algorithm        string // of geography; lower case, not without crs
	// crs and algorithm are empty where nothing was written, which means the default.
	// Readers do not agree that both are the same, so that each is given back.
}

type structType struct {
	fields []Field
	// extra are the members of the JSON object that this package does not know.
	extra []rawjson.Member
}

// listType has one field, named element.
type listType struct {
	element Field
	extra   []rawjson.Member
}

// mapType has two fields, named key, which is required, and value.
type mapType struct {
	key, value Field
	extra      []rawjson.Member
}

func (leaf) sealed()        {}
func (*structType) sealed() {}
func (*listType) sealed()   {}
func (*mapType) sealed()    {}

func (t leaf) String() string {
	switch t.kind {
	case kindDecimal:
		return fmt.Sprintf("decimal(%d, %d)", t.precision, t.scale)
	case kindFixed:
		return fmt.Sprintf("fixed[%d]", t.length)
	case kindGeometry, kindGeography:
		switch {
		case t.algorithm != "":
			return fmt.Sprintf("%s(%s, %s)", t.kind, t.crs, t.algorithm)
		case t.crs != "":
			return fmt.Sprintf("%s(%s)", t.kind, t.crs)
		}
	}
	return string(t.kind)
}

// same reports whether two types mean the same, however they are written.
func (t leaf) same(o leaf) bool {
	t.crs, o.crs = cmp.Or(t.crs, defaultCRS), cmp.Or(o.crs, defaultCRS)
	t.algorithm, o.algorithm = cmp.Or(t.algorithm, defaultAlgorithm), cmp.Or(o.algorithm, defaultAlgorithm)
	if !strings.EqualFold(t.crs, o.crs) {
		return false
	}
	t.crs = o.crs
	return t == o
}

func (t *structType) String() string { return string(describe(nil, t)) }
func (t *listType) String() string   { return string(describe(nil, t)) }
func (t *mapType) String() string    { return string(describe(nil, t)) }

// describe appends a type as messages show it. It appends to one slice, so that
// a deep type costs no more than a wide one.
func describe(dst []byte, t Type) []byte {
	switch t := t.(type) {
	case *structType:
		dst = append(dst, "struct<"...)
		for i := range t.fields {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = describeField(dst, &t.fields[i])
		}
	case *listType:
		dst = describe(append(dst, "list<"...), t.element.Type)
	case *mapType:
		dst = describe(append(dst, "map<"...), t.key.Type)
		dst = describe(append(dst, ", "...), t.value.Type)
	default:
		return append(dst, t.String()...)
	}
	return append(dst, '>')
}

func describeField(dst []byte, f *Field) []byte {
	need := "optional"
	if f.Required {
		need = "required"
	}
	dst = describe(fmt.Appendf(dst, "%d: %s: %s ", f.ID, f.Name, need), f.Type)
	if f.Doc != nil {
		dst = fmt.Appendf(dst, " (%s)", *f.Doc)
	}
	return dst
}

// primitive reports whether t may be the source of a transform or an identifier.
// Variant is neither primitive nor nested.
func primitive(t Type) (leaf, bool) {
	l, ok := t.(leaf)
	return l, ok && l.kind != kindVariant
}

// The grammar of the reference implementation, which is laxer than Appendix C:
// names in any case, white space around parameters.
var (
	fixedPattern     = regexp.MustCompile(`^fixed\[\s*(\d+)\s*\]$`)
	decimalPattern   = regexp.MustCompile(`^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$`)
	geometryPattern  = regexp.MustCompile(`(?i)^geometry\s*(\(\s*([^)]*?)\s*\))?$`)
	geographyPattern = regexp.MustCompile(`(?i)^geography\s*(\(\s*([^,]*?)\s*(,\s*(\w*)\s*)?\))?$`)
)

// edgeAlgorithms are the values of a geography's second parameter.
var edgeAlgorithms = map[string]bool{
	"spherical": true, "vincenty": true, "thomas": true, "andoyer": true, "karney": true,
}

// parseLeaf reads the name of a type that has no fields inside.
func parseLeaf(name string) (leaf, *Error) {
	lower := strings.ToLower(name)
	if k, ok := plainKinds[lower]; ok {
		return leaf{kind: k}, nil
	}
	if m := geometryPattern.FindStringSubmatch(name); m != nil {
		crs, err := parseCRS(name, m[1], m[2])
		return leaf{kind: kindGeometry, crs: crs}, err
	}
	if m := geographyPattern.FindStringSubmatch(name); m != nil {
		return parseGeography(name, m)
	}
	if m := fixedPattern.FindStringSubmatch(lower); m != nil {
		length, err := strconv.ParseInt(m[1], 10, 32)
		if err != nil {
			return leaf{}, invalid("invalid type %q: the length does not fit 32 bits", excerpt(name))
		}
		return leaf{kind: kindFixed, length: int(length)}, nil
	}
	if m := decimalPattern.FindStringSubmatch(lower); m != nil {
		return parseDecimal(name, m[1], m[2])
	}
	return leaf{}, invalid("unknown type %q", excerpt(name))
}

func parseDecimal(name, precisionText, scaleText string) (leaf, *Error) {
	precision, err := strconv.ParseInt(precisionText, 10, 32)
	if err != nil || precision > precisionMax {
		return leaf{}, invalid("invalid type %q: decimals with a precision above %d are not supported",
			excerpt(name), precisionMax)
	}
	scale, err := strconv.ParseInt(scaleText, 10, 32)
	if err != nil {
		return leaf{}, invalid("invalid type %q: the scale does not fit 32 bits", excerpt(name))
	}
	return leaf{kind: kindDecimal, precision: int(precision), scale: int(scale)}, nil
}

// parseGeography takes the groups of geographyPattern.
func parseGeography(name string, groups []string) (leaf, *Error) {
	crs, err := parseCRS(name, groups[1], groups[2])
	if err != nil {
		return leaf{}, err
	}
	algorithm := ""
	if groups[3] != "" {
		algorithm = strings.ToLower(groups[4])
		if !edgeAlgorithms[algorithm] {
			return leaf{}, invalid("invalid type %q: unknown edge interpolation algorithm %q",
				excerpt(name), excerpt(groups[4]))
		}
	}
	return leaf{kind: kindGeography, crs: crs, algorithm: algorithm}, nil
}

// parseCRS tells a type without parameters from one whose parameter is empty.
func parseCRS(name, parameters, crs string) (string, *Error) {
	switch {
	case parameters == "":
		return "", nil
	case crs == "":
		return "", invalid("invalid type %q: the coordinate reference system is empty", excerpt(name))
	default:
		return crs, nil
	}
}

// sameType compares structure, names, ids, docs and defaults. Members that this
// package does not know are ignored, as they are by the reference implementation.
func sameType(a, b Type) bool {
	switch a := a.(type) {
	case leaf:
		b, ok := b.(leaf)
		return ok && a.same(b)
	case *structType:
		b, ok := b.(*structType)
		if !ok || len(a.fields) != len(b.fields) {
			return false
		}
		for i := range a.fields {
			if !sameField(&a.fields[i], &b.fields[i]) {
				return false
			}
		}
		return true
	case *listType:
		b, ok := b.(*listType)
		return ok && sameField(&a.element, &b.element)
	case *mapType:
		b, ok := b.(*mapType)
		return ok && sameField(&a.key, &b.key) && sameField(&a.value, &b.value)
	default:
		return false
	}
}
