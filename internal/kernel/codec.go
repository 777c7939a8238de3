package kernel

import (
	"encoding/json"
	"fmt"
)

// Registry makes an empty operation for each name in a Plan: what decodes them.
type Registry map[string]func() Operation

// Wrapper is an operation that wraps another. It is counted and logged as that
// one, by its Plan, and encoded under a name of its own.
type Wrapper interface {
	Operation
	EncodedAs() string
}

func nameOf(op Operation) string {
	if w, ok := op.(Wrapper); ok {
		return w.EncodedAs()
	}
	return op.Plan().Op
}

// encoded is an operation on the wire and in a log.
type encoded struct {
	Op    string          `json:"op"`
	Value json.RawMessage `json:"value"`
}

// Encode gives an operation, request and result, as JSON.
func Encode(op Operation) ([]byte, error) {
	value, err := json.Marshal(op)
	if err != nil {
		return nil, fmt.Errorf("kernel: encode %s: %w", nameOf(op), err)
	}
	return json.Marshal(encoded{Op: nameOf(op), Value: value})
}

// Decode reads back what Encode gave. An operation that the registry does not
// know is an error.
func (r Registry) Decode(data []byte) (Operation, error) {
	var e encoded
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("kernel: decode operation: %w", err)
	}
	make, ok := r[e.Op]
	if !ok {
		return nil, fmt.Errorf("kernel: unknown operation %q", e.Op)
	}
	op := make()
	if err := json.Unmarshal(e.Value, op); err != nil {
		return nil, fmt.Errorf("kernel: decode %s: %w", e.Op, err)
	}
	return op, nil
}
