package main

import (
	"context"
	"fmt"
	"net/http"
)

func loadSection(o options) section {
	sec := section{
		title: "Loading a table",
		about: "`GET .../tables/T`, against a bare net/http handler that writes the same bytes. Small metadata has no snapshots;\n" +
			"`304` is the small table, which the client names the entity tag of.",
		columns: append([]string{"bytes"}, comparisonColumns...),
	}
	for _, kind := range []struct {
		name      string
		snapshots int
		known     bool
	}{{"small", 0, false}, {"snapshots=1000", 1000, false}, {"304", 0, true}} {
		for _, n := range []int{1, 16} {
			sec.rows = append(sec.rows, row{
				name: fmt.Sprintf("load/%s/clients=%d", kind.name, n),
				run: func(ctx context.Context, s *site) ([]string, error) {
					return loadRow(ctx, s, n, kind.snapshots, kind.known)
				},
			})
		}
	}
	return sec
}

// loadRow loads one table with n clients. known says that they have it already.
func loadRow(ctx context.Context, s *site, n, snapshots int, known bool) ([]string, error) {
	if err := s.serve(ctx); err != nil {
		return nil, err
	}
	table := fmt.Sprintf("load-%d", snapshots)
	if err := s.catalog.ensureTable(ctx, table, snapshots); err != nil {
		return nil, err
	}
	t, err := s.catalog.load(ctx, table)
	if err != nil {
		return nil, err
	}
	if err := s.setFloor(ctx, table, answer{body: t.body}); err != nil {
		return nil, err
	}
	var headers []string
	wantStatus, wantLength := http.StatusOK, len(t.body)
	if known {
		headers = []string{"If-None-Match: " + t.etag}
		wantStatus, wantLength = http.StatusNotModified, 0
	}
	workers := func(address, path string) ([]worker, func(), error) {
		conns, hangUp, err := clients(address, n)
		var list []worker
		for _, c := range conns {
			get := request(http.MethodGet, path, nil, headers...)
			list = append(list, func() (int, error) {
				status, length, err := c.exchange(get)
				if err == nil && (status != wantStatus || length != wantLength) {
					err = fmt.Errorf("GET %s: status %d with %d bytes, want %d with %d", path, status, length, wantStatus, wantLength)
				}
				return status, err
			})
		}
		return list, hangUp, err
	}
	ours, hangUpOurs, err := workers(s.landfast.address, s.catalog.tablePath(table))
	if err != nil {
		return nil, err
	}
	defer hangUpOurs()
	floor, hangUpFloor, err := workers(s.floor.address, "/answer/"+table)
	if err != nil {
		return nil, err
	}
	defer hangUpFloor()
	c, err := compare(ctx, ours, floor, s.options.duration())
	return append([]string{count(wantLength)}, c.cells()...), err
}
