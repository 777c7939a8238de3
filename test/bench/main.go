package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// runMax bounds a whole run: whatever hangs, it ends.
const runMax = 15 * time.Minute

func main() {
	var o options
	var pattern, floorDir string
	flag.Float64Var(&o.seconds, "seconds", 3, "how many `seconds` Landfast, and again the floor, is driven for each row")
	flag.StringVar(&pattern, "run", "", "measure only the rows whose name matches this `regexp`")
	flag.BoolVar(&o.list, "list", false, "print the names of the rows and exit")
	flag.StringVar(&o.binary, "binary", "", "measure this `file` instead of building ./cmd/landfast")
	flag.StringVar(&o.dir, "dir", "", "the `directory` for data, on the disk to be measured (default the system's for temporary files)")
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
}

// duration is how long one side of a row runs in all.
func (o options) duration() time.Duration {
	return time.Duration(o.seconds * float64(time.Second))
}

// section is rows that share a table of results.
type section struct {
	title   string
	about   string
	columns []string
	rows    []row
}

// row is one measurement. run returns the cells behind the name.
type row struct {
	name string
	run  func(ctx context.Context, s *site) ([]string, error)
}

func sections(o options) []section {
	return []section{loadSection(o), commitSection(o), tablemetaSection(o), storeSection(o), processSection(o)}
}

// loadAverage says how busy the machine was in the last minute, if it tells.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	one, _, ok := strings.Cut(string(data), " ")
	if err != nil || !ok {
		return "unknown"
	}
	return one
}

func bench(ctx context.Context, o options) (err error) {
	began := time.Now()
	s := &site{options: o}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	if !o.list {
		fmt.Printf("%s, %s/%s, %d cores, %s, load average %s; %v s per row and side\n",
			began.Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), loadAverage(), o.seconds)
	}
	for _, sec := range sections(o) {
		t := newTable(os.Stdout, sec)
		for _, r := range sec.rows {
			if !o.run.MatchString(r.name) {
				continue
			}
			if o.list {
				fmt.Println(r.name)
				continue
			}
			cells, err := r.run(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			t.row(r.name, cells)
		}
	}
	if !o.list {
		fmt.Printf("\nEvery acknowledged commit was found. %s in all, load average %s.\n", time.Since(began).Round(time.Second), loadAverage())
	}
	return nil
}
