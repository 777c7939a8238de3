package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
)

// limitName is how the side is called that drives PostgreSQL without a catalog.
const limitName = "postgresql"

// limitAppliers is how many apply batches at once. One alone is not the limit of anything.
var limitAppliers = []int{16, 64}

// prepareLimit makes the side that applies to the first of the PostgreSQL servers what commits to distinct tables apply to it: n batches at a
// time, each of which replaces a pointer of its own. Everybody has a connection, for three instances have more of them than one.
//
// The records lie in the catalog's own table, below a warehouse that it does not have, and are as large as its own: the
// first of its pointers is copied. Each batch names another metadata file, for PostgreSQL logs of a row what has changed.
func prepareLimit(ctx context.Context, s *site, n int) (*side, error) {
	db, err := postgres.Open(ctx, postgres.Options{URL: s.clusters[0].URL("postgres"), Connections: n, Name: "limit"})
	if err != nil {
		return nil, err
	}
	x := &side{name: limitName, release: func() { _ = db.Close() }}
	pointers, err := db.List(ctx, key.PointersIn("main"), "", 1)
	if err == nil && len(pointers) == 0 {
		err = errors.New("the catalog has no pointer to copy")
	}
	if err != nil {
		x.close()
		return nil, err
	}
	x.bytes = len(pointers[0].Value)
	unique := bytes.Index(pointers[0].Value, []byte(metadataSuffix)) - len(uuid.UUID{}.String())
	if unique < 0 {
		x.close()
		return nil, fmt.Errorf("the catalog's pointer names no metadata file: %s", pointers[0].Value)
	}
	appliers := make([]applier, n)
	for i := range appliers {
		a := &appliers[i]
		*a = applier{key: key.ForPointer("none", uuid.NewString()), id: pointers[0].ID, value: bytes.Clone(pointers[0].Value), ops: true}
		a.file = a.value[unique:][:len(uuid.UUID{}.String())]
		x.workers = append(x.workers, step(func() error { return a.settle(ctx, db) }))
	}
	x.check = func(ctx context.Context) error {
		for i := range appliers {
			if err := appliers[i].verify(ctx, db); err != nil {
				return err
			}
		}
		return nil
	}
	return x, nil
}

// settle applies, and waits as the kernel does where something is locked: nobody else has the record, but the table grows under a lock.
func (a *applier) settle(ctx context.Context, s store.Atomic) error {
	for {
		err := a.apply(ctx, s)
		blocked, ok := errors.AsType[*store.BlockedError](err)
		if !ok {
			return err
		}
		select {
		case <-time.After(time.Until(blocked.Until)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// postgresLimit is the most batches that PostgreSQL applied in a second, and by how many at once.
func (rs results) postgresLimit() (rate float64, appliers int, known bool) {
	for _, n := range limitAppliers {
		if f, ok := rs.find(hotRow("distinct", n), limitName); ok && f.rate > rate {
			rate, appliers, known = f.rate, n, true
		}
	}
	return rate, appliers, known
}

// limitFigures are what the document says about the limit.
type limitFigures struct {
	Rate     string // of batches in a second
	Appliers int
	Each     string // the rates by how many apply
	Near     []nearFigures
}

// nearFigures are how near one catalog comes.
type nearFigures struct {
	What, Rate, Share string
}

// limit is nil where the limit was not measured.
func (rs results) limit() *limitFigures {
	rate, appliers, known := rs.postgresLimit()
	if !known {
		return nil
	}
	l := &limitFigures{Rate: count(rate), Appliers: appliers}
	for _, n := range limitAppliers {
		if f, ok := rs.find(hotRow("distinct", n), limitName); ok {
			if l.Each != "" {
				l.Each += ", "
			}
			l.Each += fmt.Sprintf("%s/s with %d", count(f.rate), n)
		}
	}
	for _, c := range []struct{ name, what string }{{onPostgres, "one instance"}, {threeOnPostgres, "three instances"}} {
		for _, n := range limitAppliers {
			if f, ok := rs.find(hotRow("distinct", n), c.name); ok {
				l.Near = append(l.Near, nearFigures{fmt.Sprintf("%s with %s", c.what, clientsText(n)), count(f.rate), ratio(f.rate, rate)})
			}
		}
	}
	return l
}
