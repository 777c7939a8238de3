package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The rows of things that are many or large that goals are about.
const (
	scaleCreate = "scale/create"
	scalePage   = "scale/page"
	scaleStart  = "scale/start"
)

const (
	scaleData      = "scale" // the data directory of the Landfast of these rows
	fillers        = 64      // connections that make the many
	smallTables    = 10      // in a small namespace
	smallSpaces    = 100     // small namespaces, so that creating leaves them small
	pageOf         = 1000
	snapshotsMany  = 10_000
	columnsMany    = 5000
	metadataLarge  = 64 << 20 // bytes
	snapshotBytes  = 670      // that a snapshot adds to metadata
	othersBeside   = 16       // clients that commit beside one
	scaleStarts    = 3
	tablesMany     = 1_000_000
	namespacesMany = 100_000
)

// scaled is so much of a number as -scale-by says.
func (o options) scaled(n int) int { return max(1, int(float64(n)*o.scaleBy)) }

func scaleSection(o options) section {
	sec := section{
		title: "Many and large things",
		about: fmt.Sprintf("A Landfast of its own, with %s tables in one namespace and %s namespaces, driven by one client where nothing else is said.\n"+
			"`of first` compares the rates of a row's lines. The small namespaces have %d tables; creating goes round %d of them.\n"+
			"RSS is VmRSS.", count(o.scaled(tablesMany)), count(o.scaled(namespacesMany)), smallTables, smallSpaces),
		columns:   slices.Clone(contestColumns),
		sideWidth: 32,
	}
	sec.columns[slices.Index(sec.columns, "of floor")] = "of first"
	k := &scale{options: o}
	for _, r := range []struct {
		name string
		run  func(ctx context.Context, s *site) (result, error)
	}{
		{"scale/fill", k.fillRow},
		{scaleCreate, k.createRow},
		{scalePage, k.pageRow},
		{"scale/load", k.loadRow},
		{"scale/commit", k.commitRow},
		{"scale/namespaces", k.namespacesRow},
		{"scale/large/load", k.largeLoadRow},
		{"scale/large/commit", k.largeCommitRow},
		{"scale/others", k.othersRow},
		{scaleStart, k.startRow},
	} {
		sec.rows = append(sec.rows, row{r.name, r.run})
	}
	return sec
}

// scale is what the rows of this section share: a Landfast with much in it.
type scale struct {
	options options

	process *process
	catalog *catalog
	many    string   // the namespace of many tables
	few     []string // namespaces of few
	filled  []line   // how long making it all took
}

// serve makes sure that there is such a Landfast.
func (k *scale) serve(ctx context.Context, s *site) (err error) {
	if k.process != nil {
		return nil
	}
	if k.process, err = s.start(ctx, scaleData); err != nil {
		return err
	}
	s.packaged = append(s.packaged, k.process)
	if k.catalog, err = newCatalog(ctx, landfast, "http://"+k.process.address, "scale"); err != nil {
		return err
	}
	if err := k.catalog.createNamespace(ctx); err != nil {
		return err
	}
	for i := range smallSpaces {
		name, err := newNamespace(ctx, k.catalog, fmt.Sprintf("_few_%d", i))
		if err != nil {
			return err
		}
		k.few = append(k.few, name)
	}
	if k.many, err = newNamespace(ctx, k.catalog, "_many"); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		n    int
		post func(i int) []byte
	}{
		{fmt.Sprintf("tables in %d", smallSpaces), smallSpaces * smallTables, func(i int) []byte { return k.creation(k.few[i%smallSpaces], fmt.Sprintf("t%07d", i)) }},
		{"tables", k.options.scaled(tablesMany), func(i int) []byte { return k.creation(k.many, fmt.Sprintf("t%07d", i)) }},
		{"namespaces", k.options.scaled(namespacesMany), func(i int) []byte {
			return request(http.MethodPost, k.catalog.path+"/namespaces", fmt.Appendf(nil, `{"namespace":["n%07d"]}`, i))
		}},
	} {
		x := &side{name: count(part.n) + " " + part.name, process: k.process}
		if err := x.fill(ctx, k.catalog.address, part.n, part.post); err != nil {
			return fmt.Errorf("make %s: %w", x.name, err)
		}
		k.filled = append(k.filled, x.line(x.sample.rate()))
	}
	return nil
}

// fill makes n requests with many clients, each of which must succeed.
func (x *side) fill(ctx context.Context, address string, n int, post func(i int) []byte) error {
	defer x.close()
	began, err := x.process.usage(ctx)
	if err != nil {
		return err
	}
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		start = time.Now()
	)
	for _, c := range x.connect(address, fillers) {
		wg.Go(func() {
			mine := sample{statuses: map[int]int{}}
			for i := next.Add(1) - 1; int(i) < n && ctx.Err() == nil; i = next.Add(1) - 1 {
				sent := time.Now()
				status, _, err := c.exchange(post(int(i)))
				if err == nil && !succeeded(status) {
					err = fmt.Errorf("status %d", status)
				}
				if err != nil {
					next.Store(int64(n)) // nobody goes on
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
					return
				}
				mine.statuses[status]++
				mine.took = append(mine.took, time.Since(sent))
			}
			mu.Lock()
			defer mu.Unlock()
			x.sample.add(mine)
		})
	}
	wg.Wait()
	x.sample.elapsed = time.Since(start)
	ended, err := x.process.usage(ctx)
	x.usage.add(began, ended)
	return errors.Join(append(errs, err, ctx.Err())...)
}

func (k *scale) tables(namespace string) string {
	return k.catalog.path + "/namespaces/" + namespace + "/tables"
}

func (k *scale) creation(namespace, table string) []byte {
	return request(http.MethodPost, k.tables(namespace), creation(table))
}

func (k *scale) fillRow(ctx context.Context, s *site) (result, error) {
	err := k.serve(ctx, s)
	return result{lines: k.filled}, err
}

// requests is a side on which one client makes requests that must succeed.
func (k *scale) requests(name string, next func() []byte) *side {
	x := &side{name: name, process: k.process}
	c := x.connect(k.catalog.address, 1)[0]
	x.workers = []worker{func(statuses map[int]int) (bool, error) {
		status, length, err := c.exchange(next())
		if err == nil && !succeeded(status) {
			err = fmt.Errorf("status %d", status)
		}
		x.bytes = length
		statuses[status]++
		return true, err
	}}
	return x
}

// gets is a side on which one client gets a path.
func (k *scale) gets(name, path string) *side {
	get := request(http.MethodGet, path, nil)
	return k.requests(name, func() []byte { return get })
}

// compare drives the sides that make makes.
func (k *scale) compare(ctx context.Context, s *site, makers ...func() (*side, error)) (r result, err error) {
	if err := k.serve(ctx, s); err != nil {
		return result{}, err
	}
	var sides []*side
	defer func() {
		for _, x := range sides {
			x.close()
		}
	}()
	for _, maker := range makers {
		x, err := maker()
		if x != nil {
			sides = append(sides, x)
		}
		if err != nil {
			return result{}, err
		}
	}
	if err := takeTurns(ctx, sides, k.options.duration()); err != nil {
		return result{}, err
	}
	for _, x := range sides {
		if x.check != nil {
			if err := x.check(ctx); err != nil {
				return result{}, fmt.Errorf("%s: %w", x.name, err)
			}
		}
		r.lines = append(r.lines, x.line(sides[0].sample.rate()))
	}
	return r, nil
}

func (k *scale) manyTables() string { return count(k.options.scaled(tablesMany)) + " tables" }

func (k *scale) createRow(ctx context.Context, s *site) (result, error) {
	create := func(name string, already int, namespaces ...string) (*side, error) {
		i := 0
		x := k.requests(name, func() []byte {
			i++
			return k.creation(namespaces[i%len(namespaces)], fmt.Sprintf("u%07d", i))
		})
		x.check = func(ctx context.Context) error {
			found := 0
			for _, namespace := range namespaces {
				names, err := k.catalog.names(ctx, k.tables(namespace))
				if err != nil {
					return err
				}
				found += len(names)
			}
			if found != already+i {
				return fmt.Errorf("%d tables are listed, but %d were created", found, already+i)
			}
			return nil
		}
		return x, nil
	}
	return k.compare(ctx, s,
		func() (*side, error) {
			return create(fmt.Sprintf("%d tables", smallTables), smallSpaces*smallTables, k.few...)
		},
		func() (*side, error) { return create(k.manyTables(), k.options.scaled(tablesMany), k.many) })
}

func (k *scale) pageRow(ctx context.Context, s *site) (result, error) {
	page := fmt.Sprintf("?pageSize=%d&pageToken=", pageOf)
	return k.compare(ctx, s,
		func() (*side, error) {
			namespace, err := newNamespace(ctx, k.catalog, "_page")
			if err != nil {
				return nil, err
			}
			made := &side{process: k.process}
			if err := made.fill(ctx, k.catalog.address, pageOf, func(i int) []byte {
				return k.creation(namespace, fmt.Sprintf("t%07d", i))
			}); err != nil {
				return nil, err
			}
			return k.gets(fmt.Sprintf("%s tables", count(pageOf)), k.tables(namespace)+page), nil
		},
		func() (*side, error) { return k.gets(k.manyTables()+", first page", k.tables(k.many)+page), nil },
		func() (*side, error) {
			token := ""
			for range k.options.scaled(tablesMany) / pageOf / 2 {
				body, _, err := k.catalog.call(ctx, http.MethodGet, k.tables(k.many)+page+url.QueryEscape(token), nil)
				if err != nil {
					return nil, err
				}
				if token, err = nextPage(body); err != nil {
					return nil, err
				}
			}
			return k.gets(k.manyTables()+", in the middle", k.tables(k.many)+page+url.QueryEscape(token)), nil
		})
}

func (k *scale) loadRow(ctx context.Context, s *site) (result, error) {
	return k.compare(ctx, s,
		func() (*side, error) {
			return k.gets(fmt.Sprintf("%d tables", smallTables), k.tables(k.few[0])+"/t0000000"), nil
		},
		func() (*side, error) { return k.gets(k.manyTables(), k.tables(k.many)+"/t0000000"), nil })
}

// committing is a side on which one client each commits to tables that are there.
func (k *scale) committing(ctx context.Context, name, namespace, property string, tables ...string) (*writers, *side, error) {
	c := *k.catalog
	c.namespace = namespace
	var list []*writer
	c.tables = map[string]bool{}
	for _, table := range tables {
		c.tables[table] = true // they are there
		list = append(list, newWriter(&c, property, table))
	}
	ws, err := prepareWriters(ctx, &c, list)
	if err != nil {
		return nil, nil, err
	}
	x := ws.side()
	x.name, x.process = name, k.process
	return ws, x, nil
}

func (k *scale) commitRow(ctx context.Context, s *site) (result, error) {
	commit := func(name, namespace string) (*side, error) {
		_, x, err := k.committing(ctx, name, namespace, "value", "t0000000")
		return x, err
	}
	return k.compare(ctx, s,
		func() (*side, error) { return commit(fmt.Sprintf("%d tables", smallTables), k.few[0]) },
		func() (*side, error) { return commit(k.manyTables(), k.many) })
}

func (k *scale) namespacesRow(ctx context.Context, s *site) (result, error) {
	i := 0
	r, err := k.compare(ctx, s,
		func() (*side, error) { return k.gets("load one", k.catalog.path+"/namespaces/n0000000"), nil },
		func() (*side, error) {
			x := k.requests("create one", func() []byte {
				i++
				return request(http.MethodPost, k.catalog.path+"/namespaces", fmt.Appendf(nil, `{"namespace":["m%07d"]}`, i))
			})
			x.check = func(ctx context.Context) error {
				names, err := k.catalog.names(ctx, k.catalog.path+"/namespaces")
				for n := range i {
					if name := fmt.Sprintf("m%07d", n+1); err == nil && !names[name] {
						err = fmt.Errorf("namespace %s was created and is not in the list of %d", name, len(names))
					}
				}
				return err
			}
			return x, nil
		},
		func() (*side, error) {
			return k.gets(fmt.Sprintf("a page of %s", count(pageOf)), fmt.Sprintf("%s/namespaces?pageSize=%d&pageToken=", k.catalog.path, pageOf)), nil
		})
	for _, l := range r.lines { // of different things
		l.cells[slices.Index(contestColumns, "of floor")] = none
	}
	return r, err
}

// The tables with much metadata, and what is much about them.
const (
	ordinary      = "ordinary"
	manySnapshots = "snapshots"
	manyColumns   = "columns"
	largeMetadata = "metadata"
)

// makeLarge makes the tables with much metadata, once, and says how to call them.
func (k *scale) makeLarge(ctx context.Context, s *site) ([]string, map[string]string, error) {
	snapshots, columns, size := k.options.scaled(snapshotsMany), k.options.scaled(columnsMany), k.options.scaled(metadataLarge)
	tables := []string{ordinary, manySnapshots, manyColumns, largeMetadata}
	names := map[string]string{
		ordinary:      "small metadata",
		manySnapshots: count(snapshots) + " snapshots",
		manyColumns:   count(columns) + " columns",
		largeMetadata: fmt.Sprintf("%.0f MiB", float64(size)/(1<<20)),
	}
	if err := k.serve(ctx, s); err != nil {
		return nil, nil, err
	}
	if k.catalog.tables[manyColumns] {
		return tables, names, nil
	}
	var fields []string
	for i := range columns {
		fields = append(fields, fmt.Sprintf(`{"id":%d,"name":"column_%04d","required":false,"type":"string","doc":"as in real tables"}`, i+1, i))
	}
	body := fmt.Appendf(nil, `{"name":%q,"schema":{"type":"struct","schema-id":0,"fields":[%s]},"properties":{%s}}`,
		manyColumns, strings.Join(fields, ","), keepOneVersion)
	if _, _, err := k.catalog.call(ctx, http.MethodPost, k.catalog.tablesPath(), body); err != nil {
		return nil, nil, err
	}
	k.catalog.tables[manyColumns] = true
	return tables, names, errors.Join(
		k.catalog.ensureTable(ctx, ordinary, 0),
		k.catalog.ensureTable(ctx, manySnapshots, snapshots),
		k.catalog.ensureTable(ctx, largeMetadata, size/snapshotBytes))
}

func (k *scale) largeLoadRow(ctx context.Context, s *site) (result, error) {
	tables, names, err := k.makeLarge(ctx, s)
	if err != nil {
		return result{}, err
	}
	var makers []func() (*side, error)
	for _, table := range tables {
		makers = append(makers, func() (*side, error) { return k.gets(names[table], k.catalog.tablePath(table)), nil })
	}
	return k.compare(ctx, s, makers...)
}

func (k *scale) largeCommitRow(ctx context.Context, s *site) (result, error) {
	tables, names, err := k.makeLarge(ctx, s)
	if err != nil {
		return result{}, err
	}
	var makers []func() (*side, error)
	for _, table := range tables {
		makers = append(makers, func() (*side, error) { return k.propertyCommits(names[table], table), nil })
	}
	return k.compare(ctx, s, makers...)
}

// propertyCommits is a side on which one client commits to a table and does not
// decode the answers.
func (k *scale) propertyCommits(name, table string) *side {
	w := newWriter(k.catalog, "value", table)
	value := ""
	x := k.requests(name, func() []byte {
		value = w.next()
		return w.request
	})
	x.check = func(ctx context.Context) error {
		t, err := k.catalog.load(ctx, table)
		if err != nil {
			return err
		}
		if got, err := t.property("value"); err != nil || got != value {
			return fmt.Errorf("table %s has value = %s, %v, but %s is what was last acknowledged", table, got, err, value)
		}
		return nil
	}
	return x
}

// othersRow is how long clients with tables of their own wait, alone and beside one
// that commits to a table with many snapshots.
func (k *scale) othersRow(ctx context.Context, s *site) (result, error) {
	_, names, err := k.makeLarge(ctx, s)
	if err != nil {
		return result{}, err
	}
	others := func(name, property string) (*side, error) {
		var tables []string
		for i := range othersBeside {
			tables = append(tables, fmt.Sprintf("t%07d", i))
		}
		ws, x, err := k.committing(ctx, name, k.many, property, tables...)
		if err != nil {
			return nil, err
		}
		ws.counted = false // the other side makes versions of the same tables
		return x, nil
	}
	return k.compare(ctx, s,
		func() (*side, error) { return others(fmt.Sprintf("%d clients", othersBeside), "alone") },
		func() (*side, error) {
			x, err := others("beside "+names[manySnapshots], "beside")
			if err != nil {
				return nil, err
			}
			one, check := k.propertyCommits("", manySnapshots), x.check
			x.conns = append(x.conns, one.conns...)
			x.beside = one.workers
			x.check = func(ctx context.Context) error { return errors.Join(check(ctx), one.check(ctx)) }
			return x, nil
		})
}

// startRow starts Landfast again with all that is there.
func (k *scale) startRow(ctx context.Context, s *site) (result, error) {
	if err := k.serve(ctx, s); err != nil {
		return result{}, err
	}
	used := k.process.resident()
	if err := k.process.stop(); err != nil {
		return result{}, err
	}
	var took []time.Duration
	ready := ""
	for range scaleStarts {
		p, err := s.start(ctx, scaleData)
		if err != nil {
			return result{}, err
		}
		took = append(took, p.ready)
		ready = p.resident()
		if err := p.stop(); err != nil {
			return result{}, err
		}
	}
	slices.Sort(took)
	median, slowest := took[len(took)/2], took[len(took)-1]
	cells := make([]string, len(contestColumns))
	for i := range cells {
		cells[i] = none
	}
	cells[0], cells[3], cells[6] = k.manyTables(), short(median), short(slowest)
	cells[len(cells)-1] = fmt.Sprintf("RSS %s when ready, %s after the rows above", ready, used)
	return result{lines: []line{{"", cells, figures{p50: median}}}}, nil
}
