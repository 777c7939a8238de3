package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"text/template"
	"time"
)

// performanceTemplate holds what is written by hand about figures, and says where
// those of a run go.
//
//go:embed performance.md.tmpl
var performanceTemplate string

// report is a run as a Markdown document.
type report struct {
	options options
	began   time.Time
	took    time.Duration
	before  string // the load average when the run began
	commit  string // what was measured

	sections []measuredSection
	all      results
}

type measuredSection struct {
	section
	results results
}

func newReport(o options, began time.Time) *report {
	return &report{options: o, began: began, before: loadAverage(), commit: gitCommit()}
}

func (r *report) add(sec section, rs results) {
	r.all = append(r.all, rs...)
	if len(rs) > 0 {
		r.sections = append(r.sections, measuredSection{sec, rs})
	}
}

func (r *report) end(now time.Time) { r.took = now.Sub(r.began).Round(time.Second) }

// machine is one line about when and where.
func (r *report) machine() string {
	return fmt.Sprintf("%s, commit %s, %s/%s, %d cores (%s), %s of memory, %s, %s; load average %s at the beginning; %v s per row and side",
		r.began.Format(time.DateOnly), r.commit, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), procField("/proc/cpuinfo", "model name"),
		memory(), cmp.Or(kernel(), "unknown kernel"), runtime.Version(), r.before, r.options.seconds)
}

// closing is one line about the run as a whole.
func (r *report) closing() string {
	return fmt.Sprintf("Every acknowledged write to Landfast was found. %s in all, load average %s at the end.", r.took, loadAverage())
}

func (r *report) goalsTable() string { return goalsText(goals(r.options), r.all) }

// loadAverage says how busy the machine was in the last minute, if it tells.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	one, _, ok := strings.Cut(string(data), " ")
	if err != nil || !ok {
		return "unknown"
	}
	return one
}

func kernel() string {
	data, _ := os.ReadFile("/proc/sys/kernel/osrelease") // not there on other systems
	return strings.TrimSpace(string(data))
}

// gitCommit is that of the working directory, before anything is written to it.
func gitCommit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=7").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// procField is the first value of a field in a file of /proc.
func procField(file, name string) string {
	data, _ := os.ReadFile(file) // not there on other systems
	m := regexp.MustCompile(`(?m)^` + name + `\s*:\s*(.*)$`).FindSubmatch(data)
	if m == nil {
		return "unknown"
	}
	return string(m[1])
}

func memory() string {
	var kib int64
	if _, err := fmt.Sscanf(procField("/proc/meminfo", "MemTotal"), "%d kB", &kib); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f GB", float64(kib)/1e6)
}

// write writes the document to a file, and its plots to a directory beside it that
// has its name.
func (r *report) write(file string) error {
	dir := strings.TrimSuffix(file, filepath.Ext(file))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var plots strings.Builder
	for _, p := range r.plots() {
		if err := os.WriteFile(filepath.Join(dir, p.name), []byte(p.chart.svg()), 0o666); err != nil {
			return err
		}
		fmt.Fprintf(&plots, "![%s](%s/%s)\n\n", p.chart.title, filepath.Base(dir), p.name)
	}
	t, err := template.New("performance").Parse(performanceTemplate)
	if err != nil {
		return err
	}
	var tables strings.Builder
	for _, sec := range r.sections {
		var one bytes.Buffer
		t := newTable(&one, sec.section, r.options.sideNames())
		for _, res := range sec.results {
			t.result(res)
		}
		tables.WriteString(strings.Replace(one.String(), "\n## ", "\n### ", 1))
	}
	var out bytes.Buffer
	if err := t.Execute(&out, map[string]any{
		"Command": command(),
		"Machine": r.machine(),
		"Closing": r.closing(),
		"Goals":   r.goalsTable(),
		"Limit":   r.all.limit(),
		"Costs":   r.all.has(costRow),
		"Plots":   strings.TrimSpace(plots.String()),
		"Tables":  strings.TrimSpace(tables.String()),
	}); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o666)
}

// command is how to begin this run again.
func command() string { return fmt.Sprintf("make bench ARGS=%q", strings.Join(os.Args[1:], " ")) }

type plot struct {
	name  string
	chart chart
}

// plots are those whose rows were measured.
func (r *report) plots() (list []plot) {
	rate := func(f figures) float64 { return f.rate }
	clients := func(kind string) (rows, groups []string) {
		for _, n := range clientCounts {
			rows = append(rows, hotRow(kind, n))
			groups = append(groups, clientsText(n))
		}
		return rows, groups
	}
	add := func(name, title string, rows, groups []string, log bool, label func(float64) string, values ...func(figures) float64) {
		c := chart{title: title, groups: groups, log: log, label: label}
		known := false
		for _, side := range r.options.sideNames() {
			s := series{name: side}
			for _, row := range rows {
				for _, value := range values {
					f, ok := r.all.find(row, side)
					v := math.NaN()
					if ok && f.rate > 0 {
						v, known = value(f), true
					}
					s.values = append(s.values, v)
				}
			}
			c.series = append(c.series, s)
		}
		if known {
			list = append(list, plot{name, c})
		}
	}
	perSecond := func(v float64) string { return count(v) }
	took := func(v float64) string { return short(time.Duration(v)) }

	rows, groups := clients("hot")
	add("hot.svg", "Commits to one hot table, accepted per second", rows, groups, false, perSecond, rate)
	rows, groups = clients("distinct")
	add("distinct.svg", "Commits to distinct tables, accepted per second", rows, groups, false, perSecond, rate)
	rows, groups = clients("growing")
	add("growing.svg", "Snapshots added to one growing table, per second", rows, groups, false, perSecond, rate)
	add("hot-latency.svg", "Commits to one hot table, 64 clients: how long they wait", []string{hotRow("hot", 64)}, []string{"p50", "p95", "p99", "max"}, true, took,
		func(f figures) float64 { return float64(f.p50) }, func(f figures) float64 { return float64(f.p95) },
		func(f figures) float64 { return float64(f.p99) }, func(f figures) float64 { return float64(f.max) })
	add("reads.svg", "Reads, 16 clients, answered per second",
		[]string{"config/clients=16", "load/small/clients=16", "load/snapshots=1000/clients=16", "load/refs/clients=16", "load/304/clients=16", "list/clients=16"},
		[]string{"config", "small table", "1,000 snapshots", "refs only", "304", "list"}, true, perSecond, rate)
	add("readers.svg", "16 readers beside 64 writers: p99", []string{"readers/idle", "readers/distinct", "readers/hot"},
		[]string{"nobody writes", "64 tables are written", "one table is written"}, true, took,
		func(f figures) float64 { return float64(f.p99) })
	return list
}
