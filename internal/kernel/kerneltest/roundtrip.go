package kerneltest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	"github.com/landfast/landfast/internal/kernel"
)

// RoundTrip runs each operation as another node would: it encodes the request,
// decodes it, runs that, and carries the result back encoded. An operation that
// does not survive the journey panics.
type RoundTrip struct {
	Runner   kernel.Runner
	Registry kernel.Registry
}

// Do implements kernel.Runner.
func (r RoundTrip) Do(ctx context.Context, op kernel.Operation) error {
	shipped := r.journey(op)
	err := r.Runner.Do(ctx, shipped)
	back := r.journey(shipped)
	reflect.ValueOf(op).Elem().Set(reflect.ValueOf(back).Elem())
	return err
}

func (r RoundTrip) journey(op kernel.Operation) kernel.Operation {
	data, err := kernel.Encode(op)
	if err != nil {
		panic(err)
	}
	there, err := r.Registry.Decode(data)
	if err != nil {
		panic(err)
	}
	again, err := kernel.Encode(there)
	if err != nil {
		panic(err)
	}
	if !bytes.Equal(data, again) {
		panic(fmt.Sprintf("kerneltest: an operation changed on its journey\n%s\n%s", data, again))
	}
	return there
}
