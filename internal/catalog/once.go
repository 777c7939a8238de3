package catalog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/tablemeta"
)

// Once runs a mutation that bears an idempotency key: the first time it runs, and
// leaves a record in the batch that makes the change; within the key's lifetime every
// further time gives the first result again. Only successes are remembered: a
// refusal has changed nothing, and is decided again. A duplicate in flight queues for
// the key, and then finds the record.
type Once struct {
	Request OnceRequest
	Inner   Mutation

	replayed bool // the result is that of the first time
}

// OnceRequest names the request that is made once.
type OnceRequest struct {
	// Warehouse and Key are the scope: a key means nothing elsewhere.
	Warehouse string `json:"warehouse"`
	Key       string `json:"key"`
	// Hash is of all that the client sent: another request under the same key is refused.
	Hash []byte `json:"hash"`
	// Lifetime is how long the key is remembered, > 0.
	Lifetime time.Duration `json:"lifetime-ns"`
}

// Mutation is an operation that changes something and may be wrapped in Once.
type Mutation interface {
	kernel.Operation
	// result points to the operation's result.
	result() any
}

func (op *CreateWarehouse) result() any           { return &op.Result }
func (op *SetWarehouseS3) result() any            { return &op.Result }
func (op *DeleteWarehouse) result() any           { return &op.Result }
func (op *CreateNamespace) result() any           { return &op.Result }
func (op *UpdateNamespaceProperties) result() any { return &op.Result }
func (op *DropNamespace) result() any             { return &op.Result }
func (op *CreateTable) result() any               { return &op.Result }
func (op *CommitTable) result() any               { return &op.Result }
func (op *CommitTransaction) result() any         { return &op.Result }
func (op *RegisterTable) result() any             { return &op.Result }
func (op *UnregisterTable) result() any           { return &op.Result }
func (op *DropTable) result() any                 { return &op.Result }
func (op *RenameTable) result() any               { return &op.Result }
func (op *CreateView) result() any                { return &op.Result }
func (op *ReplaceView) result() any               { return &op.Result }
func (op *RegisterView) result() any              { return &op.Result }
func (op *DropView) result() any                  { return &op.Result }
func (op *RenameView) result() any                { return &op.Result }

// onceRecord is the value of the record that a request leaves.
type onceRecord struct {
	Op              string          `json:"op"`
	Hash            []byte          `json:"hash"`
	ExpiresAtMillis int64           `json:"expires-at-ms"`
	Result          json.RawMessage `json:"result"` // without metadata
	// Metadata of the result, compressed, if it is small. Otherwise the file that the
	// result names is read again.
	Metadata []byte `json:"metadata,omitempty"`
}

// onceMetadataMax is the size, in bytes, to which the compressed metadata of a result is
// kept in its record. Tables that are being tried out, and purged, have less; those that
// are committed to all day have more, and their file stays.
const onceMetadataMax = 1536

// EncodedAs implements kernel.Wrapper.
func (op *Once) EncodedAs() string { return "once" }

// Plan implements kernel.Operation: it is that of the mutation, which also queues for the key.
func (op *Once) Plan() kernel.Plan {
	plan := op.Inner.Plan()
	plan.Locks = plan.Locks.With(lock.W(key.ForOnce(op.Request.Warehouse, op.Request.Key)))
	return plan
}

// ShowLatest implements kernel.Latest. A later time the key gives the first result all the same.
func (op *Once) ShowLatest(last kernel.Operation) {
	if inner, ok := op.Inner.(kernel.Latest); ok && !op.replayed {
		inner.ShowLatest(last)
	}
}

// unwrapped is the mutation in a Once, and any other operation itself.
func unwrapped(op kernel.Operation) kernel.Operation {
	if once, ok := op.(*Once); ok {
		return once.Inner
	}
	return op
}

// Decide implements kernel.Operation.
func (op *Once) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.replayed = false
	if planted.Is(planted.KeyForgotten) {
		return op.Inner.Decide(ctx, tx)
	}
	record, err := read[onceRecord](ctx, tx, (*kernel.Tx).Get, key.ForOnce(op.Request.Warehouse, op.Request.Key))
	if err != nil {
		return err
	}
	if record.Exists() && tx.Now().UnixMilli() < record.Value.ExpiresAtMillis {
		if !bytes.Equal(record.Value.Hash, op.Request.Hash) {
			return refuse(ErrUnprocessable, "Idempotency-Key %s was used for another request (%s): use a new key for each request",
				op.Request.Key, record.Value.Op)
		}
		op.replayed = true
		return op.replay(ctx, tx, record.Value)
	}
	if err := op.Inner.Decide(ctx, tx); err != nil {
		return err
	}
	value, err := op.remember(tx.Now().Add(op.Request.Lifetime))
	if err != nil {
		return err
	}
	id := record.ID // of a record that has expired
	if !record.Exists() {
		id = tx.NewID()
	}
	tx.Put(record.Key, id, encode(value))
	return nil
}

// remember is the record for the result that the mutation has now.
func (op *Once) remember(expires time.Time) (onceRecord, error) {
	r := onceRecord{Op: op.Inner.Plan().Op, Hash: op.Request.Hash, ExpiresAtMillis: expires.UnixMilli()}
	kept := op.Inner.result()
	switch result := kept.(type) {
	case *TableState:
		bare := *result
		bare.Metadata = nil
		kept, r.Metadata = &bare, compress(result.Metadata)
	case *ViewState:
		bare := *result
		bare.Metadata = nil
		kept, r.Metadata = &bare, compress(result.Metadata)
	case *Warehouse:
		bare := *result
		bare.Root = bare.Root.Public()
		bare.Allowed = slices.Clone(bare.Allowed)
		for i := range bare.Allowed {
			bare.Allowed[i] = bare.Allowed[i].Public()
		}
		kept = &bare
	}
	var err error
	r.Result, err = json.Marshal(kept)
	return r, err
}

// replay gives the mutation the result that it had.
func (op *Once) replay(ctx context.Context, tx *kernel.Tx, r onceRecord) error {
	reflect.ValueOf(op.Inner.result()).Elem().SetZero() // of an earlier decision
	if err := json.Unmarshal(r.Result, op.Inner.result()); err != nil {
		return fmt.Errorf("catalog: the record of idempotency key %s is damaged: %w", op.Request.Key, err)
	}
	var err error
	switch result := op.Inner.result().(type) {
	case *TableState:
		result.Metadata, err = op.metadata(ctx, tx, r.Metadata, result.MetadataLocation)
	case *ViewState:
		result.Metadata, err = op.metadata(ctx, tx, r.Metadata, result.MetadataLocation)
	}
	return err
}

// metadata is that of a result: as it was kept, or as the file holds it.
func (op *Once) metadata(ctx context.Context, tx *kernel.Tx, kept []byte, location string) ([]byte, error) {
	if len(kept) > 0 {
		return decompress(kept)
	}
	w, err := readWarehouse(ctx, tx, (*kernel.Tx).Peek, op.Request.Warehouse)
	if err != nil {
		return nil, err
	}
	data, err := tx.ReadFile(ctx, w.Value.Scope(), location, metadataBytesMax)
	if err == nil {
		data, err = tablemeta.Decode(data, metadataBytesMax)
	}
	if err != nil {
		return nil, refuse(ErrMissingFile, "The request with Idempotency-Key %s has succeeded before, but the metadata file that it wrote, %s, has been deleted since", op.Request.Key, location)
	}
	return data, nil
}

// compressors are kept, because a new one costs a megabyte.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("catalog: " + err.Error()) // the level is one that there is
	}
	return w
}}

// compress gives metadata compressed, or nothing where that is larger than onceMetadataMax.
func compress(data []byte) []byte {
	if len(data) > 16*onceMetadataMax {
		return nil // JSON does not shrink that much
	}
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(data) // to memory
	_ = w.Close()
	if out.Len() > onceMetadataMax {
		return nil
	}
	return out.Bytes()
}

func decompress(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("catalog: the metadata of a request that was made once: %w", err)
	}
	return io.ReadAll(r)
}

// encodedOnce is Once as JSON. The mutation is encoded as by itself.
type encodedOnce struct {
	Request OnceRequest     `json:"request"`
	Inner   json.RawMessage `json:"inner"`
}

// MarshalJSON implements json.Marshaler.
func (op *Once) MarshalJSON() ([]byte, error) {
	inner, err := kernel.Encode(op.Inner)
	if err != nil {
		return nil, err
	}
	return json.Marshal(encodedOnce{op.Request, inner})
}

// UnmarshalJSON implements json.Unmarshaler.
func (op *Once) UnmarshalJSON(data []byte) error {
	var e encodedOnce
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	inner, err := Operations.Decode(e.Inner)
	if err != nil {
		return err
	}
	mutation, ok := inner.(Mutation)
	if !ok {
		return fmt.Errorf("catalog: %s is no mutation", inner.Plan().Op)
	}
	op.Request, op.Inner = e.Request, mutation
	return nil
}
