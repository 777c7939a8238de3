package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestChart compares charts with those of testdata, which somebody looked at.
func TestChart(t *testing.T) {
	for name, c := range map[string]chart{
		"bars": {
			title: "Commits & more", groups: []string{"1 client", "16 clients"}, label: func(v float64) string { return count(v) },
			series: []series{{"landfast", []float64{1234, 5678}}, {"<other>", []float64{math.NaN(), 910}}, {"floor", []float64{2000, 8000}}},
		},
		"log": {
			title: "p99", groups: []string{"hot"}, log: true, label: func(v float64) string { return count(v) },
			series: []series{{"landfast", []float64{12}}, {"floor", []float64{3000}}},
		},
	} {
		got := c.svg()
		for d := xml.NewDecoder(strings.NewReader(got)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is not XML: %v", name, err)
			}
		}
		file := "testdata/" + name + ".svg"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", file, diff)
		}
	}
}

func TestGrid(t *testing.T) {
	for _, c := range []struct {
		values []float64
		log    bool
		want   []float64
	}{
		{[]float64{950}, false, []float64{0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}},
		{[]float64{1, 120}, false, []float64{0, 20, 40, 60, 80, 100, 120}},
		{[]float64{0}, false, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}},
		{[]float64{7, 300}, true, []float64{1, 10, 100, 1000}},
		{[]float64{10}, true, []float64{10, 100}},
	} {
		if diff := cmp.Diff(c.want, chart{series: []series{{"x", c.values}}, log: c.log}.grid()); diff != "" {
			t.Errorf("%v, log %v (-want +got)\n%s", c.values, c.log, diff)
		}
	}
}
