package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// result is what one row measured.
type result struct {
	row   string
	lines []line
}

// line is one line of a row: of one side of it, or the only one.
type line struct {
	side    string
	cells   []string // behind the row's name
	figures figures
}

// figures are what targets and plots are made from.
type figures struct {
	rate          float64
	p50, p95, p99 time.Duration
	max           time.Duration
	fairness      float64
	statuses      map[int]int
	ratio         float64 // of the rate to the floor's
	fault         error   // why they are not what they seem
}

// results are those of a run, in the order they came.
type results []result

// find is the figures of one side of a row. ok says that there are any.
func (rs results) find(row, side string) (figures, bool) {
	for _, r := range rs {
		for _, l := range r.lines {
			if r.row == row && l.side == side && l.figures.fault == nil {
				return l.figures, true
			}
		}
	}
	return figures{}, false
}

// has says whether a row was measured.
func (rs results) has(row string) bool {
	return slices.ContainsFunc(rs, func(r result) bool { return r.row == row })
}

// sideColumn is the column that says whose line it is.
const sideColumn = "of"

// contestColumns are the columns of the rows that drive catalogs beside a floor.
var contestColumns = []string{
	sideColumn, "bytes", "rate/s", "p50", "p95", "p99", "max", "of floor", "fairness", "files", "CPU s", "MB", "answers",
}

// contestResult is the result of a contest. The floor is its last side.
func contestResult(name string, sides []*side) result {
	r := result{row: name}
	floor := sides[len(sides)-1].sample.rate()
	for _, x := range sides {
		r.lines = append(r.lines, x.line(floor))
	}
	return r
}

// oneLine is an error in a cell of a table.
func oneLine(err error) string {
	return fmt.Sprintf("%.160s", strings.ReplaceAll(strings.Join(strings.Fields(err.Error()), " "), "|", "/"))
}

// none is a cell without a figure.
const none = "-"

func (x *side) line(floorRate float64) line {
	s := &x.sample
	f := figures{
		rate: s.rate(), p50: s.quantile(0.5), p95: s.quantile(0.95), p99: s.quantile(0.99), max: s.quantile(1),
		fairness: s.fairness(), statuses: s.statuses, ratio: s.rate() / floorRate, fault: x.fault,
	}
	if x.lost != nil {
		f.fault = x.lost
	}
	if x.fault != nil {
		cells := make([]string, len(contestColumns))
		for i := range cells {
			cells[i] = none
		}
		cells[0], cells[len(cells)-1] = x.name, "not supported, or failed: "+oneLine(x.fault)
		return line{x.name, cells, f}
	}
	ofFloor, fairness, files, cpu, mb := none, none, none, none, none
	if x.name != floorName {
		ofFloor = fmt.Sprintf("%.2f", f.ratio)
	}
	if len(s.each) > 1 {
		fairness = fmt.Sprintf("%.2f", f.fairness)
	}
	if x.accepted > 0 {
		files = fmt.Sprintf("%.2f", float64(x.filesMade)/float64(x.accepted))
	}
	thousands := float64(len(s.took)+len(x.besideSample.took)) / 1000
	if x.usage.cpuKnown && thousands > 0 {
		cpu = fmt.Sprintf("%.3f", x.usage.cpuSeconds/thousands)
	}
	if x.usage.allocKnown && thousands > 0 {
		mb = fmt.Sprintf("%.1f", x.usage.allocated/1e6/thousands)
	}
	answers := s.answers()
	if len(x.beside) > 0 {
		answers += fmt.Sprintf("; beside them %s/s: %s", count(x.besideSample.rate()), x.besideSample.answers())
	}
	if x.lost != nil {
		answers += "; **lost**: " + oneLine(x.lost)
	}
	return line{x.name, []string{
		x.name, count(x.bytes), count(f.rate), short(f.p50), short(f.p95), short(f.p99), short(f.max),
		ofFloor, fairness, files, cpu, mb, answers,
	}, f}
}
