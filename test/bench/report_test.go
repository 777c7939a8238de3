package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// measured is a result of one row of Landfast.
func measured(row string, f figures) result {
	return result{row: row, lines: []line{{side: landfast, figures: f}, {side: floorName}}}
}

// TestGoals: a goal is met, missed or unknown by the rows that it is about.
func TestGoals(t *testing.T) {
	const ms = time.Millisecond
	ok := map[int]int{200: 9}
	for name, c := range map[string]struct {
		goal string // how its text begins
		rows results
		want string // the cells behind it
	}{
		"ratio met":         {"One hot table, 16 clients: at least 0.7", results{measured("commit/hot/clients=16", figures{ratio: 0.7})}, "0.70 | met"},
		"ratio missed":      {"One hot table, 16 clients: at least 0.7", results{measured("commit/hot/clients=16", figures{ratio: 0.69})}, "0.69 | **not met**"},
		"ratio unknown":     {"One hot table, 16 clients: at least 0.7", results{measured("commit/hot/clients=64", figures{ratio: 9})}, "- | not measured"},
		"ratio of a faulty": {"One hot table, 16 clients: at least 0.7", results{measured("commit/hot/clients=16", figures{ratio: 9, fault: errors.New("x")})}, "- | not measured"},
		"two rows, one missed": {"loadTable, 16 clients", results{
			measured("load/small/clients=16", figures{ratio: 0.8}), measured("load/snapshots=1000/clients=16", figures{ratio: 0.5}),
		}, "0.80 and 0.50 | **not met**"},
		"conflicts": {"One hot table: no 409", results{
			measured("commit/hot/clients=1", figures{statuses: ok}), measured("commit/hot/clients=16", figures{statuses: map[int]int{200: 1, 409: 2}}),
			measured("commit/hot/clients=64", figures{statuses: map[int]int{409: 1}}),
		}, "3 | **not met**"},
		"falling": {"Distinct tables: not slower", results{
			measured("commit/distinct/clients=16", figures{rate: 100}), measured("commit/distinct/clients=64", figures{rate: 90}),
		}, "0.90 times | **not met**"},
		"unfair": {"Distinct tables, 16 and 64 clients: the slowest", results{
			measured("commit/distinct/clients=16", figures{fairness: 0.9}), measured("commit/distinct/clients=64", figures{fairness: 0.4}),
		}, "0.90 and 0.40 | **not met**"},
		"slow": {"One hot table, 64 clients: p99", results{measured("commit/hot/clients=64", figures{p99: 61 * ms})}, "61.0 ms | **not met**"},
		"appends by rate": {"Appends, 16 clients: at least 0.6 of", results{
			measured("append/clients=1", figures{rate: 2000}), measured("append/clients=16", figures{rate: 500}),
		}, "0.25, 500/s | met"},
		"appends by share": {"Appends, 16 clients: at least 0.6 of", results{
			measured("append/clients=1", figures{rate: 100}), measured("append/clients=16", figures{rate: 60}),
		}, "0.60, 60/s | met"},
		"readers wait": {"Readers beside 64 writers of one table: p99", results{
			measured("readers/distinct", figures{p99: 10 * ms}), measured("readers/hot", figures{p99: 31 * ms}),
		}, "3.10 times | **not met**"},
		"readers slow": {"Readers beside 64 writers of one table: at least", results{
			measured("readers/idle", figures{rate: 1000}), measured("readers/hot", figures{rate: 300}),
		}, "0.30 | met"},
		"own": {"Two own tables at once, 64 clients", results{
			measured("transaction/own/clients=64", figures{rate: 39}), measured("commit/distinct/clients=64", figures{rate: 100}),
		}, "0.39 | **not met**"},
		"shared": {"Four shared tables", results{
			measured("transaction/shared/clients=16", figures{rate: 400, statuses: map[int]int{204: 7, 503: 1}}),
		}, "400/s, 1 5xx | **not met**"},
		"flat": {"A namespace of 1,000,000 tables: create", results{
			{row: scaleCreate, lines: []line{{figures: figures{p50: 2 * ms}}, {figures: figures{p50: 3 * ms}}}},
		}, "1.50 times | met"},
		"start": {"Start with 1,000,000 tables", results{{row: scaleStart, lines: []line{{figures: figures{p50: 201 * ms}}}}}, "201 ms | **not met**"},
	} {
		text := goalsText(goals(options{scaleBy: 1}), c.rows)
		m := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(c.goal) + `.*? \| (.*) \|$`).FindStringSubmatch(text)
		if m == nil || m[1] != c.want {
			t.Errorf("%s: got %q, want %q", name, m, c.want)
		}
	}
}

// TestGoalsFindTheirRows: each goal is about rows that a whole run has, and the kinds of load that are measured at one number of
// clients are measured at all.
func TestGoalsFindTheirRows(t *testing.T) {
	o := options{scale: true, scaleBy: 1, with: []string{onPostgres, threeOnPostgres}}
	var all results
	there := map[string]bool{}
	for _, sec := range sections(o) {
		for _, r := range sec.rows {
			if there[r.name] {
				t.Errorf("two rows %s", r.name)
			}
			there[r.name] = true
			figures, limit := line{side: landfast}, figures{rate: 1}
			all = append(all, result{row: r.name, lines: []line{figures, {side: onPostgres}, {side: threeOnPostgres}, {side: limitName, figures: limit}, {}, figures}})
		}
	}
	for _, g := range goals(o) {
		if _, _, known := g.measure(all); !known {
			t.Errorf("no row for: %s", g.text)
		}
	}
	for _, kind := range []string{"commit/hot", "commit/distinct", "commit/growing", "append", "transaction/own", "transaction/shared"} {
		for _, n := range clientCounts {
			if name := fmt.Sprintf("%s/clients=%d", kind, n); !there[name] {
				t.Errorf("no row %s", name)
			}
		}
	}
}

// TestReport: the document has what was measured and what is written by hand, and
// its plots exist.
func TestReport(t *testing.T) {
	sec := section{title: "Committing", about: "About.", columns: contestColumns}
	rows := results{}
	for i, n := range clientCounts {
		ours := &side{name: landfast, bytes: 1234, workers: make([]worker, n), filesMade: 4, accepted: 2}
		ours.sample = sample{took: []time.Duration{time.Millisecond, time.Second}, statuses: map[int]int{200: 2, 409: 1}, each: make([]int, n), elapsed: time.Second}
		ours.usage = usage{cpuSeconds: 0.004, allocated: 3e6, cpuKnown: true, allocKnown: true}
		lacking := &side{name: "other", foreign: true, fault: errors.New("no | such\nthing")}
		losing := &side{name: "loser", foreign: true, sample: ours.sample, lost: errors.New("one is missing")}
		floor := &side{name: floorName, sample: sample{took: make([]time.Duration, 4*(i+1)), elapsed: time.Second, statuses: map[int]int{200: 4}}}
		rows = append(rows, contestResult(hotRow("hot", n), []*side{ours, lacking, losing, floor}))
		sec.rows = append(sec.rows, row{name: hotRow("hot", n)})
	}
	r := newReport(options{seconds: 1, scaleBy: 1}, time.Now())
	r.add(sec, rows)
	r.add(section{title: "Nothing", columns: contestColumns}, nil)
	r.end(time.Now())
	file := filepath.Join(t.TempDir(), "figures.md")
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(` +`).ReplaceAllString(string(data), " ")
	for _, want := range []string{
		"### Committing\n", "What bounds what",
		"| commit/hot/clients=1 | landfast | 1,234 | 2 | 1000 ms | 1000 ms | 1000 ms | 1000 ms | 0.50 | - | 2.00 | 2.000 | 1500.0 | 200 ×2, 409 ×1 |",
		"| commit/hot/clients=16 | other | - | - | - | - | - | - | - | - | - | - | - | not supported, or failed: no / such thing |",
		"200 ×2, 409 ×1; **lost**: one is missing |",
		"| One hot table, 1 client: at least 0.5 of the floor | 0.50 | met |",
		"![Commits to one hot table, accepted per second](figures/hot.svg)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "PostgreSQL's own limit") {
		t.Error("the document tells of a limit that was not measured")
	}
	if strings.Contains(text, "Nothing") || strings.Contains(text, "{{") {
		t.Errorf("the document has what it should not:\n%s", text)
	}
	plots, err := filepath.Glob(filepath.Join(filepath.Dir(file), "figures", "*.svg"))
	for i := range plots {
		plots[i] = filepath.Base(plots[i])
	}
	if diff := cmp.Diff([]string{"hot-latency.svg", "hot.svg"}, plots); diff != "" || err != nil {
		t.Errorf("plots (-want +got)\n%s%v", diff, err)
	}
}
