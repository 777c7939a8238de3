package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"time"
)

const (
	readyTarget  = 100 * time.Millisecond
	rssTarget    = 60_000_000 // bytes
	binaryTarget = 45_000_000 // bytes
	starts       = 9          // of which the median counts
)

func processSection() section {
	return section{
		title: "The process",
		about: fmt.Sprintf("Start to ready is from starting the process to the first 200 of /readyz, the median of %d starts and the slowest.\n"+
			"The existing data directory is the one that the rows above left. Memory is VmRSS.", starts),
		columns: []string{"figure", "slowest", "target, met?", "on"},
		rows: []row{
			{"process/rss-ready", one(rssReadyRow)},
			{"process/rss-used", one(rssUsedRow)},
			{"process/rss-after-rows", one(rssAfterRowsRow)},
			{"process/start-fresh", one(startFreshRow)},
			{"process/start-existing", one(startExistingRow)},
			{"process/binary", one(binaryRow)},
		},
	}
}

func startFreshRow(ctx context.Context, s *site) (line, error) {
	return startRow(ctx, s, "a new directory", func(i int) string { return fmt.Sprintf("fresh-%d", i) })
}

func startExistingRow(ctx context.Context, s *site) (line, error) {
	if err := s.serve(ctx); err != nil {
		return line{}, err
	}
	c := s.catalogs[0]
	if err := c.ensureTable(ctx, "load_0", 0); err != nil {
		return line{}, err
	}
	if err := s.stopLandfast(); err != nil {
		return line{}, err
	}
	path, err := s.path(mainData)
	if err != nil {
		return line{}, err
	}
	// A table's directory has one directory, for its metadata.
	tables, files, err := countFiles(path)
	if err != nil {
		return line{}, err
	}
	on := fmt.Sprintf("%s tables, %s files", count(tables), count(files))
	return startRow(ctx, s, on, func(int) string { return mainData })
}

func startRow(ctx context.Context, s *site, on string, data func(i int) string) (line, error) {
	var took []time.Duration
	for i := range starts {
		p, err := s.start(ctx, data(i))
		if err != nil {
			return line{}, err
		}
		took = append(took, p.ready)
		if err := p.stop(); err != nil {
			return line{}, err
		}
	}
	slices.Sort(took)
	median := took[len(took)/2]
	return line{
		cells:   []string{short(median), short(took[len(took)-1]), against(median, readyTarget, "100 ms"), on},
		figures: figures{p50: median},
	}, nil
}

func countFiles(dir string) (tables, files int, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(_ string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case !e.IsDir():
			files++
		case e.Name() == "metadata":
			tables++
		}
		return err
	})
	return tables, files, err
}

func rssReadyRow(ctx context.Context, s *site) (l line, err error) {
	p, err := s.start(ctx, "rss-ready")
	if err != nil {
		return line{}, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	return rssCells(p, "ready, no request yet")
}

// rssUsedRow loads and commits a thousand times each on one connection.
func rssUsedRow(ctx context.Context, s *site) (l line, err error) {
	const requests = 1000
	p, err := s.start(ctx, "rss-used")
	if err != nil {
		return line{}, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	c, err := newCatalog(ctx, landfast, "http://"+p.address, "bench")
	if err != nil {
		return line{}, err
	}
	if err := c.createNamespace(ctx); err != nil {
		return line{}, err
	}
	const table = "used"
	if err := c.ensureTable(ctx, table, 0); err != nil {
		return line{}, err
	}
	conn := newClient(p.address)
	defer conn.hangUp()
	get, w := request(http.MethodGet, c.tablePath(table), nil), newWriter(c, "value", table)
	for range requests {
		load, _, err := conn.exchange(get)
		if err != nil {
			return line{}, err
		}
		commit, err := w.commit(conn)
		if err != nil {
			return line{}, err
		}
		if !succeeded(load) || !succeeded(commit) {
			return line{}, fmt.Errorf("a load was answered with status %d, a commit with %d", load, commit)
		}
	}
	return rssCells(p, fmt.Sprintf("after %s loads and %s commits", count(requests), count(requests)))
}

// rssAfterRowsRow looks at the Landfast that the rows of loading and committing shared.
func rssAfterRowsRow(ctx context.Context, s *site) (line, error) {
	if err := s.serve(ctx); err != nil {
		return line{}, err
	}
	return rssCells(s.landfast, "after the rows above")
}

func rssCells(p *process, on string) (line, error) {
	bytes, err := p.residentBytes()
	if errors.Is(err, fs.ErrNotExist) {
		return line{cells: []string{"unknown", "", "60 MB", "this system has no /proc"}}, nil
	}
	return line{cells: []string{megabytes(bytes), "", against(bytes, rssTarget, "60 MB"), on}}, err
}

func binaryRow(ctx context.Context, s *site) (line, error) {
	binary, err := s.program(ctx)
	if err != nil {
		return line{}, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return line{}, err
	}
	return line{cells: []string{megabytes(info.Size()), "", against(info.Size(), binaryTarget, "45 MB"), "CGO_ENABLED=0, -trimpath, -ldflags '-s -w'"}}, nil
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
