package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// runMax bounds a whole run: whatever hangs, it ends.
const runMax = 2 * time.Hour

func main() {
	var o options
	var pattern, floorDir string
	flag.Float64Var(&o.seconds, "seconds", 2, "how many `seconds` each side of a row is driven")
	flag.StringVar(&pattern, "run", "", "measure only the rows whose name matches this `regexp`")
	flag.BoolVar(&o.list, "list", false, "print the names of the rows and exit")
	flag.StringVar(&o.binary, "binary", "", "measure this `file` instead of building ./cmd/landfast")
	flag.StringVar(&o.dir, "dir", "", "the `directory` for data, on the disk to be measured (default the system's for temporary files)")
	flag.Func("url", "measure the Iceberg catalog at `NAME=URL`, too, such as x=http://127.0.0.1:9000/catalog?warehouse=w; may be repeated", o.addURL)
	flag.Func("with", "start this `catalog` and measure it, too: "+strings.Join(slices.Sorted(maps.Keys(packagedCatalogs)), " or ")+"; may be repeated", o.addWith)
	flag.BoolVar(&o.scale, "scale", false, "also measure many and large things, which takes long")
	flag.Float64Var(&o.scaleBy, "scale-by", 1, "with -scale: measure so many `times` as many things, such as 0.01")
	flag.StringVar(&o.write, "write", "", "write the results as this Markdown `file`, with plots in a directory beside it")
	flag.StringVar(&floorDir, floorFlag, "", "serve the floor with files in this `directory` until standard input ends (the bench starts itself so)")
	flag.Parse()

	err := func() (err error) {
		if flag.NArg() > 0 {
			return fmt.Errorf("unexpected argument %q", flag.Arg(0))
		}
		if o.run, err = regexp.Compile(pattern); err != nil {
			return fmt.Errorf("-run: %w", err)
		}
		if o.seconds <= 0 {
			return fmt.Errorf("-seconds %v: must be more than 0", o.seconds)
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if floorDir != "" {
			return serveFloor(ctx, floorDir, os.Stdin, os.Stdout)
		}
		ctx, cancel := context.WithTimeout(ctx, runMax)
		defer cancel()
		return bench(ctx, o)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	seconds float64
	run     *regexp.Regexp
	list    bool
	binary  string
	dir     string
	urls    []namedURL
	with    []string
	write   string

	scale   bool
	scaleBy float64
}

type namedURL struct{ name, base string }

func (o *options) addURL(value string) error {
	name, base, ok := strings.Cut(value, "=")
	if !ok || name == "" || name == landfast || name == floorName || name == limitName {
		return errors.New("want NAME=URL, with a name of its own")
	}
	o.urls = append(o.urls, namedURL{name, base})
	return nil
}

func (o *options) addWith(value string) error {
	if packagedCatalogs[value] == nil {
		return errors.New("no such catalog")
	}
	o.with = append(o.with, value)
	return nil
}

// duration is how long one side of a row runs in all.
func (o options) duration() time.Duration {
	return time.Duration(o.seconds * float64(time.Second))
}

// sideNames are those that lines may be of, in their order.
func (o options) sideNames() []string {
	names := append([]string{landfast}, o.with...)
	for _, u := range o.urls {
		names = append(names, u.name)
	}
	return append(names, floorName)
}

// onPostgres says that Landfast is measured on PostgreSQL, too.
func (o options) onPostgres() bool {
	return slices.Contains(o.with, onPostgres) || slices.Contains(o.with, threeOnPostgres)
}

// section is rows that share a table of results.
type section struct {
	title     string
	about     string
	columns   []string
	rows      []row
	sideWidth int // of the names of sides, where they are not those of catalogs
}

// contest adds a row that drives the catalogs and the floor.
func (sec *section) contest(name string, prepare func(ctx context.Context, s *site, c *catalog) (*side, error)) {
	sec.add(contest{name: name, prepare: prepare})
}

func (sec *section) add(r contest) {
	sec.columns = contestColumns
	sec.rows = append(sec.rows, r.row())
}

// row is one measurement.
type row struct {
	name string
	run  func(ctx context.Context, s *site) (result, error)
}

// clientCounts is how many clients the rows have.
var clientCounts = []int{1, 16, 64}

func sections(o options) []section {
	list := []section{
		readSection(), createSection(), commitSection(), appendSection(), transactionSection(), besideSection(), raceSection(),
		tablemetaSection(), storeSection(), processSection(),
	}
	if o.onPostgres() {
		list = append(list, costSection())
	}
	if o.scale {
		list = append(list, scaleSection(o))
	}
	return list
}

func bench(ctx context.Context, o options) (err error) {
	s := &site{options: o}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	rep := newReport(o, time.Now())
	if !o.list {
		fmt.Println(rep.machine())
	}
	for _, sec := range sections(o) {
		t := newTable(os.Stdout, sec, o.sideNames())
		var rs results
		for _, r := range sec.rows {
			if !o.run.MatchString(r.name) {
				continue
			}
			if o.list {
				fmt.Println(r.name)
				continue
			}
			res, err := r.run(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			res.row = r.name
			t.result(res)
			rs = append(rs, res)
		}
		rep.add(sec, rs)
	}
	if o.list {
		return nil
	}
	rep.end(time.Now())
	fmt.Print("\n", rep.goalsTable(), "\n", rep.closing(), "\n")
	if o.write != "" {
		return rep.write(o.write)
	}
	return nil
}

// single is a row of one line.
func single(l line, err error) (result, error) { return result{lines: []line{l}}, err }

// one is a row of one line that needs nothing but the site.
func one(run func(context.Context, *site) (line, error)) func(context.Context, *site) (result, error) {
	return func(ctx context.Context, s *site) (result, error) { return single(run(ctx, s)) }
}
