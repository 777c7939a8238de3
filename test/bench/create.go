package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
)

func createSection() section {
	sec := section{
		title: "Creating",
		about: "Namespaces in one namespace, and tables in one namespace. The floor writes, fsyncs and renames a file: for a namespace one of\n" +
			"the size of the answer, for a table one of the size of its metadata. The clients do not decode.",
	}
	for _, n := range clientCounts {
		sec.contest(fmt.Sprintf("namespace/create/clients=%d", n), func(ctx context.Context, _ *site, c *catalog) (*side, error) {
			return prepareNamespaces(ctx, c, n)
		})
	}
	for _, n := range clientCounts {
		sec.contest(fmt.Sprintf("table/create/clients=%d", n), func(ctx context.Context, _ *site, c *catalog) (*side, error) {
			return prepareTables(ctx, c, n)
		})
	}
	return sec
}

// creator posts bodies that create things of new names, and remembers which were
// acknowledged. It may be used by several workers at once.
type creator struct {
	path string
	body func(name string) []byte

	names atomic.Int64
	mu    sync.Mutex
	acked []string
}

func (k *creator) next() string { return fmt.Sprintf("c%07d", k.names.Add(1)) }

func (k *creator) work(c *client) worker {
	return func(statuses map[int]int) (bool, error) {
		name := k.next()
		status, _, err := c.exchange(request(http.MethodPost, k.path, k.body(name)))
		if err != nil {
			return false, err
		}
		statuses[status]++
		if !succeeded(status) {
			return false, nil
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.acked = append(k.acked, name)
		return true, nil
	}
}

// side is a side that creates things, which list lists.
func (k *creator) side(ctx context.Context, c *catalog, n int, list string, size func(answer []byte) int) (*side, error) {
	first := k.next()
	answered, _, err := c.call(ctx, http.MethodPost, k.path, k.body(first))
	if err != nil {
		return nil, err
	}
	k.acked = append(k.acked, first)
	x := &side{bytes: size(answered)}
	conns := c.connect(x, n)
	for _, conn := range conns {
		x.workers = append(x.workers, k.work(conn))
	}
	x.check = func(ctx context.Context) error {
		names, err := c.names(ctx, list)
		if err != nil {
			return err
		}
		for _, name := range k.acked {
			if !names[name] {
				return fmt.Errorf("%s was created and is not in the list of %d", name, len(names))
			}
		}
		return nil
	}
	x.least = &least{clients: n, steps: []exchange{
		{write: true, body: k.body(first), answer: answer{body: answered, files: sizes(1, x.bytes)}},
	}}
	return x, nil
}

// newNamespace makes a namespace of the name of ours and a suffix.
func newNamespace(ctx context.Context, c *catalog, suffix string) (string, error) {
	name := c.namespace + suffix
	_, _, err := c.call(ctx, http.MethodPost, c.path+"/namespaces", fmt.Appendf(nil, `{"namespace":[%q],"properties":{}}`, name))
	return name, err
}

func prepareNamespaces(ctx context.Context, c *catalog, n int) (*side, error) {
	parent, err := newNamespace(ctx, c, fmt.Sprintf("_parent_%d", n))
	if err != nil {
		return nil, err
	}
	k := &creator{path: c.path + "/namespaces", body: func(name string) []byte {
		return fmt.Appendf(nil, `{"namespace":[%q,%q],"properties":{"owner":"bench"}}`, parent, name)
	}}
	return k.side(ctx, c, n, k.path+"?parent="+parent, func(answer []byte) int { return len(answer) })
}

func prepareTables(ctx context.Context, c *catalog, n int) (*side, error) {
	namespace, err := newNamespace(ctx, c, fmt.Sprintf("_tables_%d", n))
	if err != nil {
		return nil, err
	}
	k := &creator{path: c.path + "/namespaces/" + namespace + "/tables", body: creation}
	return k.side(ctx, c, n, k.path, func(answer []byte) int {
		t, err := decodeLoaded(answer)
		if err != nil {
			return len(answer)
		}
		return len(t.Metadata)
	})
}

func raceSection() section {
	sec := section{
		title: "Renaming and dropping the same tables",
		about: "16 clients create, rename and drop tables of the same 8 names, at random; a 404 and a 409 are answers as good as any. At the\n" +
			"end there are as many tables as were created and not dropped. The floor makes one file durable, as for a small table.",
	}
	sec.contest("race/clients=16", func(ctx context.Context, _ *site, c *catalog) (*side, error) {
		return prepareRace(ctx, c, 16, 8)
	})
	return sec
}

// racer creates, renames and drops tables, and counts those that there are more.
// It is used by one goroutine at a time.
type racer struct {
	catalog   *catalog
	namespace string
	names     int
	random    *rand.Rand
	more      int // tables created less those dropped
	unknowns  int // creations and drops answered with a 5xx
}

func (r *racer) work(c *client) worker {
	tables := r.catalog.path + "/namespaces/" + r.namespace + "/tables"
	return func(statuses map[int]int) (bool, error) {
		name := func() string { return fmt.Sprintf("race_%d", r.random.IntN(r.names)) }
		var post []byte
		more := 0
		switch r.random.IntN(4) {
		case 0:
			post, more = request(http.MethodPost, tables, creation(name())), 1
		case 1:
			post, more = request(http.MethodDelete, tables+"/"+name(), nil), -1
		default:
			post = request(http.MethodPost, r.catalog.path+"/tables/rename", fmt.Appendf(nil,
				`{"source":{"namespace":[%q],"name":%q},"destination":{"namespace":[%q],"name":%q}}`, r.namespace, name(), r.namespace, name()))
		}
		status, _, err := c.exchange(post)
		if err != nil {
			return false, err
		}
		statuses[status]++
		switch {
		case succeeded(status):
			r.more += more
		case status >= http.StatusInternalServerError && more != 0:
			r.unknowns++
		}
		return status < http.StatusInternalServerError, nil
	}
}

func prepareRace(ctx context.Context, c *catalog, n, names int) (*side, error) {
	namespace, err := newNamespace(ctx, c, "_race")
	if err != nil {
		return nil, err
	}
	if err := c.ensureTable(ctx, "load_0", 0); err != nil {
		return nil, err
	}
	t, err := c.load(ctx, "load_0")
	if err != nil {
		return nil, err
	}
	x := &side{bytes: len(t.Metadata)}
	conns := c.connect(x, n)
	var racers []*racer
	for i, conn := range conns {
		r := &racer{catalog: c, namespace: namespace, names: names, random: rand.New(rand.NewPCG(1, uint64(i)))}
		racers = append(racers, r)
		x.workers = append(x.workers, r.work(conn))
	}
	x.check = func(ctx context.Context) error {
		list := c.path + "/namespaces/" + namespace + "/tables"
		tables, err := c.names(ctx, list)
		if err != nil {
			return err
		}
		more, unknowns := 0, 0
		for _, r := range racers {
			more += r.more
			unknowns += r.unknowns
		}
		if off := len(tables) - more; off < -unknowns || off > unknowns {
			return fmt.Errorf("%d tables are left, but %d were created and not dropped and the outcome of %d is unknown", len(tables), more, unknowns)
		}
		var errs []error
		for name := range tables {
			_, _, err := c.call(ctx, http.MethodGet, list+"/"+name, nil)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	x.least = &least{clients: n, steps: []exchange{
		{write: true, body: creation("race_0"), answer: answer{body: t.body, files: sizes(1, len(t.Metadata))}},
	}}
	return x, nil
}
