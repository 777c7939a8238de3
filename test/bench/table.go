package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// table prints results as they come, as a Markdown table whose columns also line
// up on a terminal.
type table struct {
	w      io.Writer
	sec    section
	widths []int
	begun  bool
}

// cellWidthMin keeps columns of figures aligned under short headings.
const cellWidthMin = 9

// newTable is a table for the rows of a section, which sides of these names may have.
func newTable(w io.Writer, sec section, sides []string) *table {
	t := &table{w: w, sec: sec, widths: []int{len("row")}}
	for _, r := range sec.rows {
		t.widths[0] = max(t.widths[0], len(r.name))
	}
	for _, c := range sec.columns {
		t.widths = append(t.widths, max(cellWidthMin, len(c)))
	}
	if sec.columns[0] == sideColumn {
		if sec.sideWidth > 0 {
			t.widths[1] = sec.sideWidth
		}
		for _, name := range sides {
			t.widths[1] = max(t.widths[1], len(name))
		}
	}
	return t
}

func (t *table) result(r result) {
	if !t.begun {
		t.begun = true
		fmt.Fprintf(t.w, "\n## %s\n\n%s\n\n", t.sec.title, t.sec.about)
		t.line(slices.Concat([]string{"row"}, t.sec.columns))
		rule := make([]string, len(t.widths))
		for i, width := range t.widths {
			rule[i] = strings.Repeat("-", width)
			if i > 0 {
				rule[i] = rule[i][1:] + ":"
			}
		}
		t.line(rule)
	}
	for _, l := range r.lines {
		t.line(slices.Concat([]string{r.row}, l.cells))
	}
}

func (t *table) line(cells []string) {
	var b strings.Builder
	for i, cell := range cells {
		if i == 0 {
			fmt.Fprintf(&b, "| %-*s |", t.widths[i], cell)
		} else {
			fmt.Fprintf(&b, " %*s |", t.widths[i], cell)
		}
	}
	fmt.Fprintln(t.w, b.String())
}

func ratio(ours, floor float64) string { return fmt.Sprintf("%.2f", ours/floor) }

// count is a number with its thousands apart.
func count[N int | int64 | uint64 | float64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// short is a duration in three digits, in ms unless it is tiny.
func short(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// against says whether a figure keeps to its bound.
func against[N int | int64 | time.Duration](got, bound N, text string) string {
	if got <= bound {
		return text + ": met"
	}
	return text + ": MISSED"
}
