package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func commitSection() section {
	sec := section{
		title: "Committing to a table",
		about: "`set-properties` on small metadata, one previous version kept; the clients decode the answers. Distinct: each client has its\n" +
			"own table. Hot: all share one. Growing: all add snapshots to one table, of which none is removed; the answers, which grow\n" +
			"with it, are not decoded. The floor writes, fsyncs and renames a file of the same size and answers with the same bytes.\n" +
			"The line `" + limitName + "` is no catalog: batches such as a commit's are applied to the PostgreSQL of the first catalog that has one,\n" +
			"each applier replacing a pointer of its own, without HTTP, decisions or metadata files: what PostgreSQL can do at most.",
	}
	for _, kind := range []string{"distinct", "hot"} {
		for _, n := range clientCounts {
			r := contest{name: hotRow(kind, n), prepare: func(ctx context.Context, s *site, c *catalog) (*side, error) {
				return prepareCommits(ctx, c, kind, n)
			}}
			if kind == "distinct" && slices.Contains(limitAppliers, n) {
				r.limit = func(ctx context.Context, s *site) (*side, error) { return prepareLimit(ctx, s, n) }
			}
			sec.add(r)
		}
	}
	for _, n := range clientCounts {
		sec.contest(fmt.Sprintf("commit/growing/clients=%d", n), func(ctx context.Context, s *site, c *catalog) (*side, error) {
			return prepareGrowth(ctx, c, n)
		})
	}
	return sec
}

func transactionSection() section {
	sec := section{
		title: "Committing to several tables at once",
		about: "`set-properties` on small metadata of several tables in one transaction. Own: each client has two tables of its own.\n" +
			"Shared: all change the same four tables. The floor writes, fsyncs and renames as many files, one after another.",
	}
	for _, n := range clientCounts {
		sec.contest(fmt.Sprintf("transaction/own/clients=%d", n), func(ctx context.Context, s *site, c *catalog) (*side, error) {
			return prepareTransactions(ctx, c, n, 2, false)
		})
	}
	for _, n := range clientCounts {
		sec.contest(fmt.Sprintf("transaction/shared/clients=%d", n), func(ctx context.Context, s *site, c *catalog) (*side, error) {
			return prepareTransactions(ctx, c, n, 4, true)
		})
	}
	return sec
}

// tableAnswer is what clients that commit decode of an answer, a catalog's and the
// floor's alike.
type tableAnswer struct {
	MetadataLocation string         `json:"metadata-location"`
	Metadata         map[string]any `json:"metadata"`
}

func decodeTable(body []byte) (a tableAnswer, err error) {
	err = json.Unmarshal(body, &a)
	return a, err
}

// readTable is decodeTable for the floor.
func readTable(body []byte) error {
	_, err := decodeTable(body)
	return err
}

// writer commits rising values to one property of one table, or of several at
// once, and remembers what was acknowledged. It is used by one goroutine at a time.
type writer struct {
	tables   []string
	property string

	attempt      int64 // the value last sent
	acknowledged int64 // the value last answered with success
	inDoubt      bool  // a later one was answered with a 5xx: it may be there

	acks, unknowns int // commits answered with success, and with a 5xx

	request []byte
	digits  [][]byte // of the value, wherever request has it
}

// valueDigits keeps every request, and so every metadata file, equally large.
const valueDigits = 12

func newWriter(c *catalog, property string, tables ...string) *writer {
	w := &writer{tables: tables, property: property}
	zeros := strings.Repeat("0", valueDigits)
	update := fmt.Sprintf(`"requirements":[],"updates":[{"action":"set-properties","updates":{%q:"%s"}}]`, property, zeros)
	path, body := "", ""
	if len(tables) == 1 {
		path, body = c.tablePath(tables[0]), "{"+update+"}"
	} else {
		var changes []string
		for _, table := range tables {
			changes = append(changes, fmt.Sprintf(`{"identifier":{"namespace":[%q],"name":%q},%s}`, c.namespace, table, update))
		}
		path, body = c.path+"/transactions/commit", `{"table-changes":[`+strings.Join(changes, ",")+`]}`
	}
	w.request = request(http.MethodPost, path, []byte(body))
	for rest := w.request; ; {
		at := bytes.Index(rest, []byte(`"`+zeros+`"`))
		if at < 0 {
			return w
		}
		rest = rest[at+1:]
		w.digits = append(w.digits, rest[:valueDigits])
	}
}

// next makes the request one that commits the next value.
func (w *writer) next() (value string) {
	w.attempt++
	value = fmt.Sprintf("%0*d", valueDigits, w.attempt)
	for _, digits := range w.digits {
		copy(digits, value)
	}
	return value
}

// commit sends the next value.
func (w *writer) commit(c *client) (int, error) {
	value := w.next()
	status, body, err := c.fetch(w.request)
	switch {
	case err != nil:
	case succeeded(status):
		w.acknowledged, w.inDoubt = w.attempt, false
		w.acks++
		if len(w.tables) == 1 {
			err = w.examine(body, value)
		}
	case status >= http.StatusInternalServerError:
		w.inDoubt = true
		w.unknowns++
	}
	return status, err
}

// examine decodes the answer to a commit, which must show what was committed.
func (w *writer) examine(body []byte, value string) error {
	a, err := decodeTable(body)
	if err != nil {
		return err
	}
	properties, _ := a.Metadata["properties"].(map[string]any)
	if got := properties[w.property]; got != value {
		return fmt.Errorf("a commit of %s = %s to table %s was answered with %v", w.property, value, w.tables[0], got)
	}
	return nil
}

// work is the writer as a worker.
func (w *writer) work(c *client) worker {
	return func(statuses map[int]int) (bool, error) {
		status, err := w.commit(c)
		statuses[status]++
		return err == nil && succeeded(status), err
	}
}

// writers are those of a side, and what is needed to look for what they wrote.
type writers struct {
	catalog *catalog
	list    []*writer
	tables  []string       // all that they write to
	before  map[string]int // the version of each table before they began
	dirs    []string       // of their metadata files; nil if they are not on this machine
	first   loaded         // one of the tables, in the size that it keeps
	counted bool           // the names of metadata files count the versions
}

// prepareWriters makes the tables of writers, and brings their metadata to the size
// that it keeps.
func prepareWriters(ctx context.Context, c *catalog, list []*writer) (*writers, error) {
	ws := &writers{catalog: c, list: list, before: map[string]int{}}
	local := true
	for _, w := range list {
		for _, table := range w.tables {
			if _, ok := ws.before[table]; ok {
				continue
			}
			if err := c.ensureTable(ctx, table, 0); err != nil {
				return nil, err
			}
			t, err := c.load(ctx, table)
			if err != nil {
				return nil, err
			}
			if ws.before[table], err = t.version(); err != nil && !errors.Is(err, errNoVersion) {
				return nil, err
			}
			ws.tables = append(ws.tables, table)
			dir, ok := t.directory()
			ws.dirs = append(ws.dirs, dir)
			local = local && ok
		}
	}
	if !local {
		ws.dirs = nil
	}
	conn := newClient(c.address)
	defer conn.hangUp()
	for range 2 {
		for _, w := range list {
			status, err := w.commit(conn)
			if err == nil && !succeeded(status) {
				err = fmt.Errorf("status %d to the first commits: %.200s", status, conn.body)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	var err error
	if ws.first, err = c.load(ctx, ws.tables[0]); err != nil {
		return nil, err
	}
	version, err := ws.first.version()
	ws.counted = err == nil && version > ws.before[ws.tables[0]] || !c.foreign
	return ws, nil
}

// acks counts the commits that were acknowledged.
func (ws *writers) acks() (n int) {
	for _, w := range ws.list {
		n += w.acks * len(w.tables)
	}
	return n
}

// workers are the writers, each on its connection.
func (ws *writers) workers(conns []*client) (workers []worker) {
	for i, w := range ws.list {
		workers = append(workers, w.work(conns[i]))
	}
	return workers
}

// side is the side on which the writers are the row's figures.
func (ws *writers) side() *side {
	x := &side{bytes: len(ws.first.Metadata), check: ws.verify, commits: ws.acks}
	if ws.dirs != nil {
		x.files = func() (int, error) { return countMetadataFiles(ws.dirs) }
	}
	x.workers = ws.workers(ws.catalog.connect(x, len(ws.list)))
	x.least = &least{clients: len(ws.list), steps: []exchange{ws.least()}}
	return x
}

// least is what the floor does for one commit.
func (ws *writers) least() exchange {
	w := ws.list[0]
	e := exchange{write: true, body: bodyOf(w.request), answer: answer{files: sizes(len(w.tables), len(ws.first.Metadata))}}
	if len(w.tables) == 1 { // an answer to a transaction is empty
		// The answer to a commit is that to a load without its empty configuration.
		e.answer.body, e.read = ws.first.body, readTable
	}
	return e
}

// verify looks for what was acknowledged: each writer's last value, and as many
// new versions of each table as there were commits.
func (ws *writers) verify(ctx context.Context) error {
	acks, unknowns := map[string]int{}, map[string]int{}
	for _, w := range ws.list {
		for _, table := range w.tables {
			acks[table] += w.acks
			unknowns[table] += w.unknowns
		}
	}
	tables := map[string]loaded{}
	for _, table := range ws.tables {
		t, err := ws.catalog.load(ctx, table)
		if err != nil {
			return err
		}
		tables[table] = t
		if !ws.counted {
			continue
		}
		version, err := t.version()
		if err != nil {
			return err
		}
		if made := version - ws.before[table]; made < acks[table] || made > acks[table]+unknowns[table] {
			return fmt.Errorf("table %s has %d new versions, but %d commits were acknowledged and the outcome of %d is unknown",
				table, made, acks[table], unknowns[table])
		}
	}
	for _, w := range ws.list {
		for i, table := range w.tables {
			value, err := tables[table].property(w.property)
			if err != nil {
				return err
			}
			if last := fmt.Sprintf("%0*d", valueDigits, w.acknowledged); value < last || value > last && !w.inDoubt {
				return fmt.Errorf("table %s has %s = %s, but %s is what was last acknowledged", table, w.property, value, last)
			}
			if first, _ := tables[w.tables[0]].property(w.property); i > 0 && value != first {
				return fmt.Errorf("%s = %s in table %s but %s in %s: half of a transaction", w.property, value, table, first, w.tables[0])
			}
		}
	}
	return nil
}

func prepareCommits(ctx context.Context, c *catalog, kind string, n int) (*side, error) {
	ws, err := prepareWriters(ctx, c, commitWriters(c, "commit", kind, n))
	if err != nil {
		return nil, err
	}
	return ws.side(), nil
}

// commitWriters are n writers on one hot table or on distinct ones.
func commitWriters(c *catalog, prefix, kind string, n int) (list []*writer) {
	for i := range n {
		if kind == "hot" {
			list = append(list, newWriter(c, fmt.Sprintf("value-%02d", i), fmt.Sprintf("%s_hot_%d", prefix, n)))
		} else {
			list = append(list, newWriter(c, "value", fmt.Sprintf("%s_distinct_%d_%02d", prefix, n, i)))
		}
	}
	return list
}

func prepareTransactions(ctx context.Context, c *catalog, n, tables int, shared bool) (*side, error) {
	var list []*writer
	for i := range n {
		var names []string
		for t := range tables {
			if shared {
				names = append(names, fmt.Sprintf("shared_%d_%d", n, t))
			} else {
				names = append(names, fmt.Sprintf("own_%d_%02d_%d", n, i, t))
			}
		}
		property := "value"
		if shared {
			property = fmt.Sprintf("value-%02d", i)
		}
		list = append(list, newWriter(c, property, names...))
	}
	ws, err := prepareWriters(ctx, c, list)
	if err != nil {
		return nil, err
	}
	return ws.side(), nil
}
