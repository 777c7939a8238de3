package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
)

func storeSection() section {
	sec := section{
		title: "Durable batches in the embedded store",
		about: "Each applier replaces its own pointer, on the condition that it is as it left it; against one goroutine that appends as\n" +
			"many bytes to a file and fsyncs. `group` is how many batches shared a COMMIT on average.",
		columns: []string{"rate/s", "p50", "p99", "group", "floor/s", "floor p50", "floor p99", "ratio"},
	}
	for _, n := range []int{1, 16, 64} {
		sec.rows = append(sec.rows, row{
			name: fmt.Sprintf("store/appliers=%d", n),
			run: func(ctx context.Context, s *site) (result, error) {
				return single(storeRow(ctx, s, n))
			},
		})
	}
	return sec
}

// pointerValue is about as long as the record of a table's pointer.
var pointerValue = []byte(`{"kind":"table","location":"` + strings.Repeat("x", 370) + `"}`)

// applier replaces one record again and again.
type applier struct {
	key     key.Key
	id      string // of its incarnation
	value   []byte
	file    []byte        // the part of value that is another with each batch, as the name of a metadata file is; nil: none
	ops     bool          // its batches name an operation, as the kernel's do
	version store.Version // the batch last acknowledged
}

func (a *applier) apply(ctx context.Context, s store.Atomic) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	b := store.Batch{
		ID:     id.String(),
		Conds:  []store.Cond{store.Is(a.key, a.version)},
		Writes: []store.Write{{Key: a.key, ID: a.id, Value: a.value}},
	}
	copy(a.file, b.ID)
	if a.ops {
		b.Ops = []store.OpRecord{{ID: uuid.NewString(), Name: "commit-table"}}
	}
	if err := s.Apply(ctx, b); err != nil {
		return err
	}
	a.version = store.Version(b.ID)
	return nil
}

// verify looks for the batch that was acknowledged last.
func (a *applier) verify(ctx context.Context, s store.Atomic) error {
	r, err := s.Get(ctx, a.key)
	if err == nil && r.Version != a.version {
		err = fmt.Errorf("%v has version %s, but %s was acknowledged last", a.key, r.Version, a.version)
	}
	return err
}

func storeRow(ctx context.Context, s *site, n int) (l line, err error) {
	path, err := s.path(fmt.Sprintf("store-%d.db", n))
	if err != nil {
		return line{}, err
	}
	var groups, batches atomic.Int64
	db, err := embedded.Open(ctx, path, embedded.Options{Observe: func(size int, _ time.Duration) {
		groups.Add(1)
		batches.Add(int64(size))
	}})
	if err != nil {
		return line{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	file, err := os.Create(path + ".floor")
	if err != nil {
		return line{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	appliers := make([]applier, n)
	var ours []worker
	for i := range appliers {
		a := &appliers[i]
		*a = applier{key: key.ForPointer("main", fmt.Sprintf("pointer-%02d", i)), id: "incarnation", value: pointerValue}
		ours = append(ours, step(func() error { return a.apply(ctx, db) }))
	}
	floor := step(func() error {
		if _, err := file.Write(pointerValue); err != nil {
			return err
		}
		return file.Sync()
	})
	c, err := compare(ctx, ours, []worker{floor}, s.options.duration())
	if err != nil {
		return line{}, err
	}
	for _, a := range appliers {
		if err := a.verify(ctx, db); err != nil {
			return line{}, err
		}
	}
	return line{cells: []string{
		count(c.ours.rate()), short(c.ours.quantile(0.5)), short(c.ours.quantile(0.99)),
		fmt.Sprintf("%.1f", float64(batches.Load())/float64(groups.Load())),
		count(c.floor.rate()), short(c.floor.quantile(0.5)), short(c.floor.quantile(0.99)),
		ratio(c.ours.rate(), c.floor.rate()),
	}}, nil
}
