package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/tablemeta"
)

func tablemetaSection() section {
	sec := section{
		title: "One commit in tablemeta",
		about: "From the bytes of one metadata file to those of the next: parse, check requirements, add a snapshot and move `main`, write.\n" +
			"No server and no disk; against encoding/json's Valid and one copy of the same bytes.",
		columns: []string{"bytes", "p50", "p99", "allocations", "floor p50", "ratio", "target, met?"},
	}
	for _, n := range []int{1, 100, 1000, 10_000} {
		sec.rows = append(sec.rows, row{
			name: fmt.Sprintf("tablemeta/snapshots=%d", n),
			run: func(ctx context.Context, s *site) (result, error) {
				return single(tablemetaRow(ctx, n, s.options.duration()))
			},
		})
	}
	return sec
}

func tablemetaRow(ctx context.Context, n int, d time.Duration) (line, error) {
	doc := document(n)
	reqs, updates, err := appendCommit(n)
	if err != nil {
		return line{}, err
	}
	now := time.UnixMilli(benchStart + int64(n+2)*1000)
	commit := func() error { return commitDocument(doc, n, reqs, updates, now) }
	floor := step(func() error {
		if !json.Valid(doc) || len(bytes.Clone(doc)) == 0 {
			return errors.New("the document is not JSON")
		}
		return nil
	})
	c, err := compare(ctx, []worker{step(commit)}, []worker{floor}, d)
	if err != nil {
		return line{}, err
	}
	allocations := testing.AllocsPerRun(10, func() { err = commit() })
	if err != nil {
		return line{}, err
	}
	p50 := c.ours.quantile(0.5)
	target := "none"
	switch n {
	case 1000:
		target = against(p50, 3*time.Millisecond, "3 ms") + ", " + against(int(allocations), 300, "300 allocations")
	case 10_000:
		target = against(p50, 30*time.Millisecond, "30 ms")
	}
	return line{cells: []string{
		count(len(doc)), short(p50), short(c.ours.quantile(0.99)), count(allocations),
		short(c.floor.quantile(0.5)), ratio(c.ours.rate(), c.floor.rate()), target,
	}}, nil
}

// appendCommit is what a client sends that appends one snapshot to document(n).
func appendCommit(n int) (reqs []tablemeta.Requirement, updates []tablemeta.Update, err error) {
	err = errors.Join(
		json.Unmarshal(fmt.Appendf(nil, `[{"type":"assert-table-uuid","uuid":%q},`+
			`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}]`, benchTableUUID, snapshotID(n-1)), &reqs),
		json.Unmarshal(fmt.Appendf(nil, `[{"action":"add-snapshot","snapshot":%s},`+
			`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`,
			snapshotJSON(n, benchStart+int64(n+1)*1000), snapshotID(n)), &updates))
	return reqs, updates, err
}

func commitDocument(doc []byte, n int, reqs []tablemeta.Requirement, updates []tablemeta.Update, now time.Time) error {
	base, err := tablemeta.Parse(doc)
	if err != nil {
		return err
	}
	if err := tablemeta.Check(base, reqs); err != nil {
		return err
	}
	m, _, err := tablemeta.Commit(tablemeta.Change{
		Base: base, BaseFile: "file:///lake/sales/orders/metadata/00100-7d3a5f0e.metadata.json", Updates: updates, Now: now,
	})
	if err != nil {
		return err
	}
	if got := m.SnapshotCount(); got != n+1 {
		return fmt.Errorf("%d snapshots after the commit, want %d", got, n+1)
	}
	return nil
}
