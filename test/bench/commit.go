package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
)

func commitSection(o options) section {
	sec := section{
		title: "Committing to a table",
		about: "`set-properties` on small metadata, one previous version kept, against a bare net/http handler that writes, fsyncs and\n" +
			"renames a file of the same size and answers with the same bytes. Distinct: each client has its own table. Hot: all share one.",
		columns: append([]string{"bytes"}, comparisonColumns...),
	}
	for _, hot := range []bool{false, true} {
		kind := map[bool]string{false: "distinct", true: "hot"}[hot]
		for _, n := range []int{1, 16, 64} {
			sec.rows = append(sec.rows, row{
				name: fmt.Sprintf("commit/%s/clients=%d", kind, n),
				run: func(ctx context.Context, s *site) ([]string, error) {
					return commitRow(ctx, s, n, hot)
				},
			})
		}
	}
	return sec
}

// writer commits rising values to one property of one table, and remembers what
// was acknowledged. It is used by one goroutine at a time.
type writer struct {
	table, property string

	attempt      int64 // the value last sent
	acknowledged int64 // the value last answered with success
	inDoubt      bool  // a later one was answered with a 5xx: it may be there

	acks, unknowns int // commits answered with success, and with a 5xx, in this row

	request []byte
	digits  []byte // of the value, in request
}

// valueDigits keeps every request, and so every metadata file, equally large.
const valueDigits = 12

func newWriter(path, table, property string) *writer {
	zeros := bytes.Repeat([]byte{'0'}, valueDigits)
	body := fmt.Appendf(nil, `{"requirements":[],"updates":[{"action":"set-properties","updates":{%q:"%s"}}]}`, property, zeros)
	w := &writer{table: table, property: property, request: request(http.MethodPost, path, body)}
	at := bytes.LastIndex(w.request, zeros)
	w.digits = w.request[at : at+valueDigits]
	return w
}

// commit sends the next value.
func (w *writer) commit(c *client) (int, error) {
	w.attempt++
	copy(w.digits, fmt.Sprintf("%0*d", valueDigits, w.attempt))
	status, _, err := c.exchange(w.request)
	switch {
	case err != nil:
	case succeeded(status):
		w.acknowledged, w.inDoubt = w.attempt, false
		w.acks++
	case status >= http.StatusInternalServerError:
		w.inDoubt = true
		w.unknowns++
	}
	return status, err
}

// commitRow commits with n clients. hot says that they share one table.
func commitRow(ctx context.Context, s *site, n int, hot bool) ([]string, error) {
	if err := s.serve(ctx); err != nil {
		return nil, err
	}
	writers, before, err := s.prepareWriters(ctx, n, hot)
	if err != nil {
		return nil, err
	}
	conns, hangUpOurs, err := clients(s.landfast.address, n)
	if err != nil {
		return nil, err
	}
	defer hangUpOurs()
	var ours []worker
	for i, w := range writers {
		ours = append(ours, func() (int, error) { return w.commit(conns[i]) })
	}
	// The first commits of a table bring its metadata to the size that it keeps.
	for range 2 {
		for _, work := range ours {
			if _, err := work(); err != nil {
				return nil, err
			}
		}
	}

	t, err := s.catalog.load(ctx, writers[0].table)
	if err != nil {
		return nil, err
	}
	// The answer to a commit is that to a load without its empty configuration.
	if err := s.setFloor(ctx, "commit", answer{body: t.body, fileBytes: len(t.Metadata)}); err != nil {
		return nil, err
	}
	floorConns, hangUpFloor, err := clients(s.floor.address, n)
	if err != nil {
		return nil, err
	}
	defer hangUpFloor()
	var floor []worker
	for i, w := range writers {
		post := request(http.MethodPost, "/write/commit", w.request[bytes.Index(w.request, []byte("{")):])
		floor = append(floor, func() (int, error) {
			status, _, err := floorConns[i].exchange(post)
			if err == nil && !succeeded(status) {
				err = fmt.Errorf("the floor answered with status %d", status)
			}
			return status, err
		})
	}

	c, err := compare(ctx, ours, floor, s.options.duration())
	if err != nil {
		return nil, err
	}
	if err := s.verify(ctx, writers, before); err != nil {
		return nil, err
	}
	return append([]string{count(len(t.Metadata))}, c.cells()...), nil
}

// prepareWriters gives n writers, on one table or on one each, and the versions
// that their tables have before they begin.
func (s *site) prepareWriters(ctx context.Context, n int, hot bool) ([]*writer, map[string]int, error) {
	var writers []*writer
	before := map[string]int{}
	for i := range n {
		table, property := fmt.Sprintf("distinct-%02d", i), "value"
		if hot {
			table, property = "hot", fmt.Sprintf("value-%02d", i)
		}
		if err := s.catalog.ensureTable(ctx, table, 0); err != nil {
			return nil, nil, err
		}
		t, err := s.catalog.load(ctx, table)
		if err != nil {
			return nil, nil, err
		}
		if before[table], err = t.version(); err != nil {
			return nil, nil, err
		}
		// A writer lives on from row to row, so that its values go on rising.
		name := table + "/" + property
		if s.writers[name] == nil {
			s.writers[name] = newWriter(s.catalog.tablePath(table), table, property)
		}
		s.writers[name].acks, s.writers[name].unknowns = 0, 0
		writers = append(writers, s.writers[name])
	}
	return writers, before, nil
}

// verify looks for what was acknowledged: each writer's last value, and as many
// new versions of each table as there were commits.
func (s *site) verify(ctx context.Context, writers []*writer, before map[string]int) error {
	acks, unknowns := map[string]int{}, map[string]int{}
	for _, w := range writers {
		acks[w.table] += w.acks
		unknowns[w.table] += w.unknowns
	}
	for _, w := range writers {
		t, err := s.catalog.load(ctx, w.table)
		if err != nil {
			return err
		}
		value, err := t.property(w.property)
		if err != nil {
			return err
		}
		if last := fmt.Sprintf("%0*d", valueDigits, w.acknowledged); value < last || value > last && !w.inDoubt {
			return fmt.Errorf("table %s has %s = %s, but %s is what was last acknowledged", w.table, w.property, value, last)
		}
		version, err := t.version()
		if err != nil {
			return err
		}
		if made := version - before[w.table]; made < acks[w.table] || made > acks[w.table]+unknowns[w.table] {
			return fmt.Errorf("table %s has %d new versions, but %d commits were acknowledged and the outcome of %d is unknown",
				w.table, made, acks[w.table], unknowns[w.table])
		}
	}
	return nil
}
