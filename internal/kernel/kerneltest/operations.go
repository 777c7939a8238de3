package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

// The operations of the suite. Each is the smallest that shows one property.

var registry = kernel.Registry{
	"add":      func() kernel.Operation { return new(add) },
	"transfer": func() kernel.Operation { return new(transfer) },
	"sum":      func() kernel.Operation { return new(sum) },
	"imitate":  func() kernel.Operation { return new(imitate) },
	"adopt":    func() kernel.Operation { return new(adopt) },
	"disown":   func() kernel.Operation { return new(disown) },
	"note":     func() kernel.Operation { return new(note) },
	"pair":     func() kernel.Operation { return new(pair) },
	"words":    func() kernel.Operation { return new(words) },
}

func counter(name string) key.Key { return key.ForTableName("w", []string{"n"}, name) }

var testScope = blob.Scope{{URI: "file:///kerneltest"}}

func number(r store.Record) int {
	n, _ := strconv.Atoi(string(r.Value))
	return n
}

func put(tx *kernel.Tx, r store.Record, n int) {
	id := r.ID
	if !r.Exists() {
		id = tx.NewID()
	}
	tx.Put(r.Key, id, []byte(strconv.Itoa(n)))
}

// add adds to a counter and writes a file that tells its value.
type add struct {
	Counter string `json:"counter"`
	By      int    `json:"by"`
	File    bool   `json:"file"`
	Also    string `json:"also,omitempty"` // another counter to add to, which the plan does not name
	Result  int    `json:"result"`

	decided func() `json:"-"` // called by each run of Decide; lost on a journey
}

func (op *add) Plan() kernel.Plan {
	return kernel.Plan{Op: "add", Locks: lock.NewSet(lock.W(counter(op.Counter)))}
}

func (op *add) Decide(ctx context.Context, tx *kernel.Tx) error {
	for _, name := range []string{op.Counter, op.Also} {
		if name == "" {
			continue
		}
		r, err := tx.Get(ctx, counter(name))
		if err != nil {
			return err
		}
		op.Result = number(r) + op.By
		put(tx, r, op.Result)
	}
	if op.File {
		tx.File(kernel.File{Warehouse: "w", Scope: testScope, Location: fmt.Sprintf("file:///kerneltest/%s-%s", op.Counter, tx.NewID()), Data: []byte("x")})
	}
	if op.decided != nil {
		op.decided()
	}
	return nil
}

var errPoor = errors.New("too little to transfer")

// transfer moves an amount between two counters, whose sum never changes.
type transfer struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int    `json:"amount"`
}

func (op *transfer) Plan() kernel.Plan {
	return kernel.Plan{Op: "transfer", Locks: lock.NewSet(lock.W(counter(op.From)), lock.W(counter(op.To)))}
}

func (op *transfer) Decide(ctx context.Context, tx *kernel.Tx) error {
	from, err := tx.Get(ctx, counter(op.From))
	if err != nil {
		return err
	}
	to, err := tx.Get(ctx, counter(op.To))
	if err != nil {
		return err
	}
	if number(from) < op.Amount {
		return errPoor
	}
	put(tx, from, number(from)-op.Amount)
	put(tx, to, number(to)+op.Amount)
	return nil
}

// imitate gives a counter the value of another, which it only reads.
type imitate struct {
	Counter string `json:"counter"`
	Of      string `json:"of"`
}

func (op *imitate) Plan() kernel.Plan {
	return kernel.Plan{Op: "imitate", Locks: lock.NewSet(lock.W(counter(op.Counter)))}
}

func (op *imitate) Decide(ctx context.Context, tx *kernel.Tx) error {
	of, err := tx.Get(ctx, counter(op.Of))
	if err != nil {
		return err
	}
	r, err := tx.Get(ctx, counter(op.Counter))
	if err != nil {
		return err
	}
	put(tx, r, number(of))
	return nil
}

// sum reads several counters as they were at one moment, and queues for none.
type sum struct {
	Counters []string `json:"counters"`
	Result   int      `json:"result"`
}

func (op *sum) Plan() kernel.Plan { return kernel.Plan{Op: "sum"} }

func (op *sum) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result = 0
	for _, c := range op.Counters {
		r, err := tx.Get(ctx, counter(c))
		if err != nil {
			return err
		}
		op.Result += number(r)
	}
	return nil
}

var (
	errNoParent = errors.New("no parent")
	errChildren = errors.New("has children")
	errTaken    = errors.New("taken")
)

func parentKey(name string) key.Key { return key.ForNamespace("w", []string{name}) }

// adopt makes a child under a parent, or with no child name, the parent.
type adopt struct {
	Parent string `json:"parent"`
	Child  string `json:"child,omitempty"`
}

func (op *adopt) Plan() kernel.Plan {
	k := parentKey(op.Parent)
	if op.Child != "" {
		k = key.ForTableName("w", []string{op.Parent}, op.Child)
	}
	return kernel.Plan{Op: "adopt", Locks: lock.NewSet(lock.W(k))}
}

func (op *adopt) Decide(ctx context.Context, tx *kernel.Tx) error {
	k := parentKey(op.Parent)
	if op.Child != "" {
		p, err := tx.Peek(ctx, k)
		if err != nil {
			return err
		}
		if !p.Exists() {
			return errNoParent
		}
		tx.RequireLive(p.Key, p.ID)
		k = key.ForTableName("w", []string{op.Parent}, op.Child)
	}
	there, err := tx.Get(ctx, k)
	if err != nil {
		return err
	}
	if there.Exists() {
		return errTaken
	}
	tx.Create(k, tx.NewID(), []byte("1"))
	return nil
}

// disown deletes a parent that has no children.
type disown struct {
	Parent string `json:"parent"`
}

func (op *disown) Plan() kernel.Plan {
	return kernel.Plan{Op: "disown", Locks: lock.NewSet(lock.W(parentKey(op.Parent)))}
}

func (op *disown) Decide(ctx context.Context, tx *kernel.Tx) error {
	p, err := tx.Get(ctx, parentKey(op.Parent))
	if err != nil {
		return err
	}
	if !p.Exists() {
		return errNoParent
	}
	inTheWay, err := tx.RequireEmpty(ctx, p.Key, key.TableNamesIn("w", []string{op.Parent}))
	if err != nil {
		return err
	}
	if inTheWay.Exists() {
		return errChildren
	}
	tx.Delete(p.Key)
	return nil
}
