package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

func appendSection() section {
	sec := section{
		title: "Appending to one table",
		about: fmt.Sprintf("Each client loads the table, adds a snapshot on the condition that `main` has not moved, removes the oldest so that %d are\n", snapshotsKept) +
			"kept, and begins again at once after a 409: `rate` and the quantiles are those of appends that got through, `answers` those of\n" +
			"their commits. Clients look for ids in the answers instead of decoding them. The floor answers one load and one commit.",
	}
	for _, n := range clientCounts {
		sec.contest(fmt.Sprintf("append/clients=%d", n), func(ctx context.Context, s *site, c *catalog) (*side, error) {
			return prepareAppends(ctx, c, n)
		})
	}
	return sec
}

// snapshotsKept is how many snapshots a table keeps to which is appended.
const snapshotsKept = 100

// tableState is what a client that appends looks for in a table.
type tableState struct {
	current   int64 // snapshot of main
	oldest    int64 // the first of the list of snapshots
	sequence  int64
	snapshots int
}

// findState looks for the state in an answer. Decoding a hundred snapshots would
// cost the clients, which share the machine, more than it costs the servers.
func findState(body []byte) (t tableState, err error) {
	_, list, _ := bytes.Cut(body, []byte(`"snapshots"`))
	var errs [3]error
	t.current, errs[0] = findNumber(body, "current-snapshot-id")
	t.sequence, errs[1] = findNumber(body, "last-sequence-number")
	t.oldest, errs[2] = findNumber(list, "snapshot-id")
	t.snapshots = bytes.Count(list, []byte(`"manifest-list"`))
	return t, errors.Join(errs[:]...)
}

// readState is findState for the floor.
func readState(body []byte) error {
	_, err := findState(body)
	return err
}

// findNumber is the number behind the first member of a name.
func findNumber(body []byte, name string) (int64, error) {
	_, rest, ok := bytes.Cut(body, []byte(`"`+name+`"`))
	rest = bytes.TrimLeft(rest, " :\n")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	if !ok || end == 0 {
		return 0, fmt.Errorf("the answer has no number %q: %.100q", name, body)
	}
	return strconv.ParseInt(string(rest[:end]), 10, 64)
}

// newSnapshot is a snapshot as snapshotJSON makes them, with an id of its own.
func newSnapshot(id, parent, sequence int64) string {
	behind := ""
	if parent != 0 {
		behind = fmt.Sprintf(`"parent-snapshot-id":%d,`, parent)
	}
	return fmt.Sprintf(`{"sequence-number":%d,"snapshot-id":%d,%s"timestamp-ms":%d,%s}`, sequence, id, behind, time.Now().UnixMilli(), snapshotRest(id))
}

// appender appends to one table. It is used by one goroutine at a time.
type appender struct {
	load     []byte
	path     string
	next     int64 // id of the next snapshot
	acked    []int64
	unknowns []int64 // of unknown outcome
}

// idsOfOne keeps the ids of appenders apart.
const idsOfOne = 1 << 32

func newAppender(c *catalog, table string, i int) *appender {
	return &appender{load: request(http.MethodGet, c.tablePath(table), nil), path: c.tablePath(table), next: int64(i+1) * idsOfOne}
}

// work is the appender as a worker, which tries until it gets through or something
// else than a conflict comes back.
func (a *appender) work(ctx context.Context, c *client) worker {
	return func(statuses map[int]int) (bool, error) {
		for {
			status, body, err := c.fetch(a.load)
			if err != nil {
				return false, err
			}
			if !succeeded(status) {
				statuses[status]++
				return false, nil
			}
			t, err := findState(body)
			if err != nil {
				return false, err
			}
			id := a.next
			a.next++
			status, body, err = c.fetch(request(http.MethodPost, a.path, a.commit(t, id)))
			if err != nil {
				return false, err
			}
			statuses[status]++
			switch {
			case succeeded(status):
				a.acked = append(a.acked, id)
				return true, readState(body)
			case status >= http.StatusInternalServerError:
				a.unknowns = append(a.unknowns, id)
				return false, nil
			case status != http.StatusConflict:
				return false, fmt.Errorf("an append was answered with status %d: %.200s", status, body)
			case ctx.Err() != nil:
				return false, ctx.Err()
			}
		}
	}
}

// commit is the body of a commit that appends a snapshot to a table in a state.
func (a *appender) commit(t tableState, id int64) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}],"updates":[`+
		`{"action":"add-snapshot","snapshot":%s},`+
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`,
		t.current, newSnapshot(id, t.current, t.sequence+1), id)
	if t.snapshots >= snapshotsKept {
		fmt.Fprintf(&b, `,{"action":"remove-snapshots","snapshot-ids":[%d]}`, t.oldest)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func prepareAppends(ctx context.Context, c *catalog, n int) (*side, error) {
	table := fmt.Sprintf("appended_%d", n)
	if err := c.ensureTable(ctx, table, snapshotsKept); err != nil {
		return nil, err
	}
	t, err := c.load(ctx, table)
	if err != nil {
		return nil, err
	}
	began, err := findState(t.body)
	if err != nil {
		return nil, err
	}
	x := &side{bytes: len(t.Metadata)}
	conns := c.connect(x, n)
	var list []*appender
	for i, conn := range conns {
		a := newAppender(c, table, i)
		list = append(list, a)
		x.workers = append(x.workers, a.work(ctx, conn))
	}
	x.commits = func() (n int) {
		for _, a := range list {
			n += len(a.acked)
		}
		return n
	}
	if dir, ok := t.directory(); ok {
		x.files = func() (int, error) { return countMetadataFiles([]string{dir}) }
	}
	x.check = func(ctx context.Context) error { return verifyAppends(ctx, c, table, began.sequence, list) }
	x.least = &least{clients: n, steps: []exchange{
		{answer: answer{body: t.body}, read: readState},
		{answer: answer{body: t.body, files: sizes(1, len(t.Metadata))}, write: true, body: list[0].commit(began, 1), read: readState},
	}}
	return x, nil
}

// verifyAppends looks for what was acknowledged: as many sequence numbers as there
// were appends, each snapshot that is left is one that was sent and the parent of the next, and
// only as many as are to be kept.
func verifyAppends(ctx context.Context, c *catalog, table string, before int64, list []*appender) error {
	sent, acks, unknowns := map[int64]bool{}, 0, 0
	for _, a := range list {
		for _, id := range append(a.acked, a.unknowns...) {
			sent[id] = true
		}
		acks += len(a.acked)
		unknowns += len(a.unknowns)
	}
	t, err := c.load(ctx, table)
	if err != nil {
		return err
	}
	var m struct {
		Sequence  int64 `json:"last-sequence-number"`
		Current   int64 `json:"current-snapshot-id"`
		Snapshots []struct {
			ID       int64 `json:"snapshot-id"`
			Parent   int64 `json:"parent-snapshot-id"`
			Sequence int64 `json:"sequence-number"`
		}
	}
	if err := json.Unmarshal(t.Metadata, &m); err != nil {
		return err
	}
	if made := int(m.Sequence - before); made < acks || made > acks+unknowns {
		return fmt.Errorf("table %s has %d new sequence numbers, but %d appends were acknowledged and the outcome of %d is unknown", table, made, acks, unknowns)
	}
	if len(m.Snapshots) > snapshotsKept {
		return fmt.Errorf("table %s has %d snapshots, but each append left at most %d", table, len(m.Snapshots), snapshotsKept)
	}
	last := int64(0)
	for i, snapshot := range m.Snapshots {
		if i > 0 && snapshot.Parent != last {
			return fmt.Errorf("snapshot %d of table %s has the parent %d, want %d", snapshot.ID, table, snapshot.Parent, last)
		}
		if last = snapshot.ID; snapshot.Sequence > before && !sent[last] {
			return fmt.Errorf("table %s has the snapshot %d, which nobody was told of", table, last)
		}
	}
	if m.Current != last {
		return fmt.Errorf("main of table %s is at %d, but the last snapshot is %d", table, m.Current, last)
	}
	return nil
}

// prepareGrowth makes n clients that add snapshots to one table and remove none.
func prepareGrowth(ctx context.Context, c *catalog, n int) (*side, error) {
	table := fmt.Sprintf("growing_%d", n)
	if err := c.ensureTable(ctx, table, 0); err != nil {
		return nil, err
	}
	t, err := c.load(ctx, table)
	if err != nil {
		return nil, err
	}
	x := &side{}
	conns := c.connect(x, n)
	// add is a snapshot without a parent, which needs no sequence number of its own.
	add := func(id int64) []byte {
		return fmt.Appendf(nil, `{"requirements":[],"updates":[{"action":"add-snapshot","snapshot":%s}]}`, newSnapshot(id, 0, 0))
	}
	var mu sync.Mutex
	acked, unknown := map[int64]bool{}, map[int64]bool{}
	for i, conn := range conns {
		next := int64(i+1) * idsOfOne
		x.workers = append(x.workers, func(statuses map[int]int) (bool, error) {
			id := next
			next++
			status, _, err := conn.exchange(request(http.MethodPost, c.tablePath(table), add(id)))
			if err != nil {
				return false, err
			}
			statuses[status]++
			mu.Lock()
			defer mu.Unlock()
			switch {
			case succeeded(status):
				acked[id] = true
			case status >= http.StatusInternalServerError:
				unknown[id] = true
			}
			return succeeded(status), nil
		})
	}
	x.commits = func() int { return len(acked) }
	if dir, ok := t.directory(); ok {
		x.files = func() (int, error) { return countMetadataFiles([]string{dir}) }
	}
	x.check = func(ctx context.Context) error {
		t, err := c.load(ctx, table)
		if err != nil {
			return err
		}
		x.bytes = len(t.Metadata)
		return verifyGrowth(t.Metadata, acked, unknown)
	}
	x.least = &least{
		clients: n,
		steps:   []exchange{{answer: answer{body: t.body, files: sizes(1, len(t.Metadata))}, write: true, body: add(1)}},
		refresh: func(ctx context.Context) (answer, error) {
			t, err := c.load(ctx, table)
			return answer{body: t.body, files: sizes(1, len(t.Metadata))}, err
		},
	}
	return x, nil
}

// verifyGrowth looks for every snapshot that was acknowledged, and for others.
func verifyGrowth(metadata []byte, acked, unknown map[int64]bool) error {
	var m struct {
		Snapshots []struct {
			ID int64 `json:"snapshot-id"`
		}
	}
	if err := json.Unmarshal(metadata, &m); err != nil {
		return err
	}
	found := 0
	for _, snapshot := range m.Snapshots {
		switch {
		case acked[snapshot.ID]:
			found++
		case !unknown[snapshot.ID]:
			return fmt.Errorf("the table has the snapshot %d, which nobody was told of", snapshot.ID)
		}
	}
	if found != len(acked) {
		return fmt.Errorf("the table has %d of %d snapshots that were acknowledged", found, len(acked))
	}
	return nil
}
