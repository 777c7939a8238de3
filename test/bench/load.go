package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

func readSection() section {
	sec := section{
		title: "Reading",
		about: "The floor writes the same bytes from memory. `config` is `GET /v1/config`, `namespace/load` the namespace, `list` a page of 100\n" +
			"tables. `load` is `GET .../tables/T`: of small metadata without snapshots, with 1,000 snapshots, of the same table with\n" +
			"`snapshots=refs`, and the small table when the client names its entity tag. The clients do not decode.",
	}
	for _, kind := range []struct {
		name    string
		prepare func(ctx context.Context, c *catalog) (get, error)
	}{
		{"config", func(_ context.Context, c *catalog) (get, error) { return get{path: c.config}, nil }},
		{"namespace/load", func(_ context.Context, c *catalog) (get, error) {
			return get{path: c.path + "/namespaces/" + c.namespace}, nil
		}},
		{"load/small", func(ctx context.Context, c *catalog) (get, error) { return loading(ctx, c, 0, "") }},
		{"load/snapshots=1000", func(ctx context.Context, c *catalog) (get, error) { return loading(ctx, c, 1000, "") }},
		{"load/refs", func(ctx context.Context, c *catalog) (get, error) { return loading(ctx, c, 1000, "?snapshots=refs") }},
		{"load/304", knownTable},
		{"list", listing},
	} {
		for _, n := range clientCounts {
			sec.contest(fmt.Sprintf("%s/clients=%d", kind.name, n), func(ctx context.Context, _ *site, c *catalog) (*side, error) {
				g, err := kind.prepare(ctx, c)
				if err != nil {
					return nil, err
				}
				return prepareReads(ctx, c, n, g)
			})
		}
	}
	return sec
}

// get is a request that reads. A catalog of ours must answer it with the same bytes
// each time.
type get struct {
	path string
	etag string // of what the client has already
}

func loading(ctx context.Context, c *catalog, snapshots int, query string) (get, error) {
	table := fmt.Sprintf("load_%d", snapshots)
	return get{path: c.tablePath(table) + query}, c.ensureTable(ctx, table, snapshots)
}

func knownTable(ctx context.Context, c *catalog) (get, error) {
	g, err := loading(ctx, c, 0, "")
	if err != nil {
		return g, err
	}
	t, err := c.load(ctx, "load_0")
	if err == nil && t.etag == "" {
		err = errors.New("a table is answered without an ETag")
	}
	g.etag = t.etag
	return g, err
}

// listed is how many tables the namespace has that is listed.
const listed = 100

func listing(ctx context.Context, c *catalog) (get, error) {
	const suffix = "_listed"
	path := c.path + "/namespaces/" + c.namespace + suffix + "/tables"
	if !c.listed {
		if _, err := newNamespace(ctx, c, suffix); err != nil {
			return get{}, err
		}
		for i := range listed {
			if _, _, err := c.call(ctx, http.MethodPost, path, creation(fmt.Sprintf("listed_%03d", i))); err != nil {
				return get{}, err
			}
		}
		c.listed = true
	}
	return get{path: path + "?pageToken=&pageSize=" + strconv.Itoa(listed)}, nil
}

// exchanges is what answers a get, and what the floor does for it.
func (g get) exchanges(ctx context.Context, c *catalog) ([]byte, exchange, error) {
	if g.etag != "" {
		return request(http.MethodGet, g.path, nil, "If-None-Match: "+g.etag), exchange{known: true}, nil
	}
	body, _, err := c.call(ctx, http.MethodGet, g.path, nil)
	return request(http.MethodGet, g.path, nil), exchange{answer: answer{body: body}}, err
}

func prepareReads(ctx context.Context, c *catalog, n int, list ...get) (*side, error) {
	x := &side{least: &least{clients: n, apart: true}}
	var requests [][]byte
	for _, g := range list {
		r, e, err := g.exchanges(ctx, c)
		if err != nil {
			return x, err
		}
		requests = append(requests, r)
		x.least.steps = append(x.least.steps, e)
		x.bytes = len(e.answer.body)
	}
	conns := c.connect(x, n)
	for i, conn := range conns {
		at := i
		x.workers = append(x.workers, func(statuses map[int]int) (bool, error) {
			at = (at + 1) % len(requests)
			want, wantLength := http.StatusOK, len(x.least.steps[at].answer.body)
			if list[at].etag != "" {
				want = http.StatusNotModified
			}
			status, length, err := conn.exchange(requests[at])
			if err == nil && (status != want || !c.foreign && length != wantLength) {
				err = fmt.Errorf("GET %s: status %d with %d bytes, want %d with %d", list[at].path, status, length, want, wantLength)
			}
			statuses[status]++
			return true, err
		})
	}
	return x, nil
}

func besideSection() section {
	sec := section{
		title: "Readers beside 64 writers",
		about: "16 clients load a table that nobody writes to, the configuration and a page of 100 tables in turns; the figures are theirs.\n" +
			"Beside them nobody writes (idle), 64 clients commit to a table each (distinct), or all to one (hot).",
	}
	for _, kind := range []string{"idle", "distinct", "hot"} {
		sec.contest("readers/"+kind, func(ctx context.Context, s *site, c *catalog) (*side, error) {
			return prepareReaders(ctx, c, kind)
		})
	}
	return sec
}

const (
	readersBeside = 16
	writersBeside = 64
)

func prepareReaders(ctx context.Context, c *catalog, kind string) (*side, error) {
	load, err := loading(ctx, c, 0, "")
	if err != nil {
		return nil, err
	}
	list, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	x, err := prepareReads(ctx, c, readersBeside, load, get{path: c.config}, list)
	if err != nil || kind == "idle" {
		return x, err
	}
	ws, err := prepareWriters(ctx, c, commitWriters(c, "beside", kind, writersBeside))
	if err != nil {
		return x, err
	}
	x.beside = ws.workers(c.connect(x, writersBeside))
	x.check = ws.verify
	x.least.besideClients, x.least.beside = writersBeside, ws.least()
	return x, nil
}
