package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// limited are results of both numbers of appliers; what applied with 16 was the quicker.
func limited() (rs results) {
	rates := map[int][3]float64{16: {2000, 1500, 8000}, 64: {3000, 2400, 6000}}
	for _, n := range limitAppliers {
		rs = append(rs, result{row: hotRow("distinct", n), lines: []line{
			{side: onPostgres, figures: figures{rate: rates[n][0]}}, {side: threeOnPostgres, figures: figures{rate: rates[n][1]}},
			{side: limitName, figures: figures{rate: rates[n][2]}},
		}})
	}
	return rs
}

// TestLimit: the limit is the most that was applied, and goal and document judge by it.
func TestLimit(t *testing.T) {
	want := &limitFigures{Rate: "8,000", Appliers: 16, Each: "8,000/s with 16, 6,000/s with 64", Near: []nearFigures{
		{"one instance with 16 clients", "2,000", "0.25"}, {"one instance with 64 clients", "3,000", "0.38"},
		{"three instances with 16 clients", "1,500", "0.19"}, {"three instances with 64 clients", "2,400", "0.30"},
	}}
	if diff := cmp.Diff(want, limited().limit()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := results(nil).limit(); got != nil {
		t.Errorf("a limit of nothing: %+v", got)
	}
	text := goalsText(goals(options{scaleBy: 1, with: []string{threeOnPostgres}}), limited())
	if !regexp.MustCompile(`of PostgreSQL's limit \| 0\.30, 2,400/s of 8,000/s \| met \|`).MatchString(text) {
		t.Errorf("goals:\n%s", text)
	}
	r := newReport(options{seconds: 1, scaleBy: 1}, time.Now())
	r.add(section{title: "Committing", columns: contestColumns}, limited())
	file := filepath.Join(t.TempDir(), "figures.md")
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"was 8,000 batches/s, with 16 at a time", "three instances with 64 clients 0.30 (2,400/s).\n"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the document lacks %q", want)
		}
	}
}

// TestPrices: the price list is understood, all of it, and has what is measured.
func TestPrices(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(priceList)))
	if err != nil {
		t.Fatal(err)
	}
	prices, err := readPrices(list)
	if err != nil {
		t.Fatal(err)
	}
	if titles := strings.Count(string(list), "## "); len(prices) != titles {
		t.Errorf("%d prices of %d operations", len(prices), titles)
	}
	there := map[string]price{}
	for _, p := range prices {
		there[p.operation] = p
		if len(p.operation) > costWidth {
			t.Errorf("%q is wider than its column", p.operation)
		}
	}
	for _, op := range costOperations(&catalog{}) {
		if there[op.name].statements == 0 {
			t.Errorf("no price of %s", op.name)
		}
	}
	if got, want := there["commit-table"], (price{"commit-table", 2, 7}); got != want {
		t.Errorf("a commit costs %+v, want %+v", got, want)
	}
	if _, err := readPrices([]byte("## x\n")); err == nil {
		t.Error("a list without prices is read")
	}
}
