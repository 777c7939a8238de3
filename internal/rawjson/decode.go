package rawjson

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw is a JSON value that is carried as it was written.
type Raw = stdjson.RawMessage

var writeOptions = json.JoinOptions(json.Deterministic(true), jsontext.EscapeForHTML(false))

// Unmarshal decodes the one JSON value in data into v, a non-nil pointer.
// Members that v has no field for are ignored; a member that is absent or null
// leaves the zero value, so a field whose absence matters is a pointer or a
// [Raw]. Errors are [*Error]; v may then be half filled.
func Unmarshal(data []byte, v any) error {
	// The library's defaults are part of what strict means here: they refuse
	// duplicate names, invalid UTF-8 and nesting deeper than 10,000 levels, and
	// match names case by case.
	if err := json.Unmarshal(data, v); err != nil {
		return describe(err)
	}
	return nil
}

// Marshal writes v as compact JSON. Members of maps are sorted by name, so that
// equal values give equal bytes.
func Marshal(v any) ([]byte, error) {
	return json.Marshal(v, writeOptions)
}

// Normalize is a copy of the strictly valid JSON value in data without white
// space between tokens and with strings in their shortest form. Numbers keep
// their digits, members their order. Encoders rewrite the values that they embed
// in about this way; what was normalized before comes through them unchanged, or
// is the same again when it is normalized behind them.
func Normalize(data []byte) ([]byte, error) {
	if err := Validate(data); err != nil {
		return nil, err // It knows the place better than the formatter.
	}
	out, err := jsontext.AppendFormat(make([]byte, 0, len(data)), data)
	if err != nil {
		return nil, describe(err)
	}
	return out, nil
}
