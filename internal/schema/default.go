package schema

import (
	"encoding/hex"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/rawjson"
)

// Default is a default value of a field. The zero Default is null, which is what
// a field has that says nothing.
type Default struct {
	// json is the value in the specification's single-value form; nil for null.
	json []byte
	// canonical is equal for equal values of one type, however they are written.
	canonical string
}

// IsNull reports whether there is no default.
func (d Default) IsNull() bool { return d.json == nil }

func (d Default) same(o Default) bool {
	return d.IsNull() == o.IsNull() && d.canonical == o.canonical
}

// text is the value for messages, strings without quotes.
func (d Default) text() string {
	if s, ok := rawjson.String(d.json); ok {
		return s
	}
	return string(d.json)
}

// parseDefault reads a default of type t, which must be validated JSON. Numbers
// and strings stay as they are written, so that nothing is lost; only a float
// without a fraction gets one, because the reference implementation refuses an
// integer there, and a Z becomes the offset that the specification asks for.
func parseDefault(t Type, value []byte) (Default, *Error) {
	if value == nil || rawjson.IsNull(value) {
		return Default{}, nil
	}
	refuse := func(why string) (Default, *Error) {
		return Default{}, invalid("%s is not a default value of type %s: %s", excerpt(value), excerpt(t.String()), why)
	}
	l, ok := t.(leaf)
	if !ok {
		if _, ok := t.(*structType); ok && isEmptyObject(value) {
			return Default{json: []byte("{}"), canonical: "{}"}, nil
		}
		return refuse("must be null, or {} for a struct")
	}
	canonical, why := canonicalDefault(l, value)
	if why != "" {
		return refuse(why)
	}
	return Default{json: writtenDefault(l, value), canonical: canonical}, nil
}

func isEmptyObject(value []byte) bool {
	for range rawjson.Members(value) {
		return false
	}
	return value[0] == '{'
}

// writtenDefault is a valid value in the form in which it is kept. It copies.
func writtenDefault(l leaf, value []byte) []byte {
	text := string(value)
	switch l.kind {
	case kindFloat, kindDouble:
		if !strings.ContainsAny(text, ".eE") {
			text += ".0"
		}
	case kindTimestamptz, kindTimestamptzNs:
		if before, found := strings.CutSuffix(text, `Z"`); found {
			text = before + `+00:00"`
		}
	}
	return []byte(text)
}

// canonicalDefault returns why the value does not fit the type, or "".
func canonicalDefault(l leaf, value []byte) (canonical, why string) {
	switch l.kind {
	case kindBoolean:
		canonical, why = string(value), "expected true or false"
		if canonical == "true" || canonical == "false" {
			why = ""
		}
		return canonical, why
	case kindInt, kindLong:
		n, ok := rawjson.Int64(value)
		if !ok || l.kind == kindInt && n != int64(int32(n)) {
			return "", "expected an integer that fits the type"
		}
		return strconv.FormatInt(n, 10), ""
	case kindFloat:
		return canonicalFloat(value, 32)
	case kindDouble:
		return canonicalFloat(value, 64)
	case kindVariant, kindUnknown, kindGeometry, kindGeography:
		return "", "must be null"
	}
	text, ok := rawjson.String(value)
	if !ok {
		return "", "expected a string"
	}
	switch l.kind {
	case kindString:
		return text, ""
	case kindDecimal:
		return canonicalDecimal(l, text)
	case kindUUID:
		if !uuidPattern.MatchString(text) {
			return "", "expected a UUID of 36 characters"
		}
		return strings.ToLower(text), ""
	case kindFixed, kindBinary:
		raw, err := hex.DecodeString(text)
		if err != nil {
			return "", "expected hexadecimal digits, two for each byte"
		}
		if l.kind == kindFixed && len(raw) != l.length {
			return "", "the length is " + strconv.Itoa(len(raw))
		}
		return string(raw), ""
	default:
		return canonicalTime(l.kind, text)
	}
}

func canonicalFloat(value []byte, bits int) (canonical, why string) {
	if c := value[0]; c != '-' && (c < '0' || c > '9') {
		return "", "expected a number"
	}
	f, err := strconv.ParseFloat(string(value), bits)
	if err != nil {
		return "", "the number is out of range"
	}
	// Zero and minus zero are different defaults.
	return strconv.FormatUint(math.Float64bits(f), 16), ""
}

var (
	uuidPattern    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	decimalLiteral = regexp.MustCompile(`^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,9}))?$`)
)

// canonicalDecimal checks that the scale is the type's, as in 14.20 for two
// digits: the specification lets the digits that are written decide the scale.
func canonicalDecimal(l leaf, text string) (canonical, why string) {
	m := decimalLiteral.FindStringSubmatch(text)
	if m == nil || m[2]+m[3] == "" {
		return "", "expected a decimal number"
	}
	exponent := 0
	if m[4] != "" {
		exponent, _ = strconv.Atoi(m[4]) // at most nine digits
	}
	if len(m[3])-exponent != l.scale {
		return "", "the scale does not match"
	}
	digits := strings.TrimLeft(m[2]+m[3], "0")
	if len(digits) > l.precision {
		return "", "the precision is exceeded"
	}
	if m[1] == "-" && digits != "" {
		return "-" + digits, ""
	}
	return digits, ""
}

const (
	datePart = `\d{4}-\d{2}-\d{2}`
	timePart = `\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?`
	nanoPart = `\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?`
	utcPart  = `(Z|\+00:00)`
)

// timeForms are the texts that are accepted: ISO-8601, in UTC where the type has
// a zone, without digits that the type cannot hold.
var timeForms = map[kind]struct {
	pattern *regexp.Regexp
	example string
}{
	kindDate:          {regexp.MustCompile(`^` + datePart + `$`), "2017-11-16"},
	kindTime:          {regexp.MustCompile(`^` + timePart + `$`), "22:31:08.123456"},
	kindTimestamp:     {regexp.MustCompile(`^` + datePart + `T` + timePart + `$`), "2017-11-16T22:31:08.123456"},
	kindTimestamptz:   {regexp.MustCompile(`^` + datePart + `T` + timePart + utcPart + `$`), "2017-11-16T22:31:08.123456+00:00"},
	kindTimestampNs:   {regexp.MustCompile(`^` + datePart + `T` + nanoPart + `$`), "2017-11-16T22:31:08.123456789"},
	kindTimestamptzNs: {regexp.MustCompile(`^` + datePart + `T` + nanoPart + utcPart + `$`), "2017-11-16T22:31:08.123456789+00:00"},
}

// A timestamp in nanoseconds holds 64 bits around 1970.
var (
	firstNano = time.Unix(0, math.MinInt64)
	lastNano  = time.Unix(0, math.MaxInt64)
)

func canonicalTime(k kind, text string) (canonical, why string) {
	form := timeForms[k]
	refusal := "expected a text like " + form.example
	if form.pattern == nil || !form.pattern.MatchString(text) {
		return "", refusal
	}
	// The pattern leaves only the ranges to check. One layout serves all types
	// once the parts that they leave out are filled in.
	text = strings.TrimSuffix(strings.TrimSuffix(text, "Z"), "+00:00")
	switch k {
	case kindDate:
		text += "T00:00"
	case kindTime:
		text = "1970-01-01T" + text
	}
	if strings.Count(text, ":") == 1 {
		text += ":00"
	}
	t, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		return "", refusal
	}
	if (k == kindTimestampNs || k == kindTimestamptzNs) && (t.Before(firstNano) || t.After(lastNano)) {
		return "", "the time does not fit 64 bits of nanoseconds"
	}
	return t.Format(time.RFC3339Nano), ""
}
