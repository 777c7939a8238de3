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

func storeSection(o options) section {
	sec := section{
		title: "Durable batches in the embedded store",
		about: "Each applier replaces its own pointer, on the condition that it is as it left it; against one goroutine that appends as\n" +
			"many bytes to a file and fsyncs. `group` is how many batches shared a COMMIT on average.",
		columns: []string{"rate/s", "p50", "p99", "group", "floor/s", "floor p50", "floor p99", "ratio"},
	}
	for _, n := range []int{1, 16, 64} {
		sec.rows = append(sec.rows, row{
			name: fmt.Sprintf("store/appliers=%d", n),
			run: func(ctx context.Context, s *site) ([]string, error) {
				return storeRow(ctx, s, n)
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
	version store.Version // the batch last acknowledged
}

func (a *applier) apply(ctx context.Context, s *embedded.Store) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	b := store.Batch{
		ID:     id.String(),
		Conds:  []store.Cond{store.Is(a.key, a.version)},
		Writes: []store.Write{{Key: a.key, ID: "incarnation", Value: pointerValue}},
	}
	if err := s.Apply(ctx, b); err != nil {
		return err
	}
	a.version = store.Version(b.ID)
	return nil
}

func storeRow(ctx context.Context, s *site, n int) (cells []string, err error) {
	path, err := s.path(fmt.Sprintf("store-%d.db", n))
	if err != nil {
		return nil, err
	}
	var groups, batches atomic.Int64
	db, err := embedded.Open(ctx, path, embedded.Options{Observe: func(size int, _ time.Duration) {
		groups.Add(1)
		batches.Add(int64(size))
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	file, err := os.Create(path + ".floor")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	appliers := make([]applier, n)
	var ours []worker
	for i := range appliers {
		a := &appliers[i]
		a.key = key.ForPointer("main", fmt.Sprintf("pointer-%02d", i))
		ours = append(ours, func() (int, error) { return 0, a.apply(ctx, db) })
	}
	floor := func() (int, error) {
		if _, err := file.Write(pointerValue); err != nil {
			return 0, err
		}
		return 0, file.Sync()
	}
	c, err := compare(ctx, ours, []worker{floor}, s.options.duration())
	if err != nil {
		return nil, err
	}
	for _, a := range appliers {
		r, err := db.Get(ctx, a.key)
		if err != nil {
			return nil, err
		}
		if r.Version != a.version {
			return nil, fmt.Errorf("%v has version %s, but %s was acknowledged last", a.key, r.Version, a.version)
		}
	}
	all := c.cells()
	group := fmt.Sprintf("%.1f", float64(batches.Load())/float64(groups.Load()))
	return []string{all[0], all[1], all[2], group, all[3], all[4], all[5], all[6]}, nil
}
