package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// series are the bars of one colour: a value for each group, NaN where there is none.
type series struct {
	name   string
	values []float64
}

// chart is a bar chart.
type chart struct {
	title  string
	groups []string
	series []series
	log    bool // of which each grid line is ten times the last
	label  func(float64) string
}

const (
	chartWidth  = 860
	chartHeight = 340
	plotTop     = 64  // y of the highest value
	plotBottom  = 300 // y of the lowest
	plotLeft    = 70
	plotRight   = chartWidth - 20
)

// colours are told apart by those who do not see red from green, too.
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"}

// svg is the chart as an SVG document, which looks the same for the same values.
func (c chart) svg() string {
	var b strings.Builder
	text := func(x, y float64, size int, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s">`, x, y, size, anchor)
		_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
		b.WriteString("</text>\n")
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" fill="#333">`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", chartWidth, chartHeight)
	text(plotLeft, 24, 15, "start", c.title)
	x := float64(plotLeft)
	for i, s := range c.series {
		fmt.Fprintf(&b, `<rect x="%.1f" y="36" width="11" height="11" fill="%s"/>`+"\n", x, colours[i%len(colours)])
		text(x+16, 46, 12, "start", s.name)
		x += 34 + 7*float64(len(s.name))
	}

	grid := c.grid()
	low, high := grid[0], grid[len(grid)-1]
	y := func(value float64) float64 {
		share := (value - low) / (high - low)
		if c.log {
			share = math.Log(value/low) / math.Log(high/low)
		}
		return plotBottom - min(1, max(0, share))*(plotBottom-plotTop)
	}
	for _, value := range grid {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", plotLeft, y(value), plotRight, y(value))
		text(plotLeft-6, y(value)+4, 11, "end", c.label(value))
	}

	groupWidth := float64(plotRight-plotLeft) / float64(len(c.groups))
	barWidth := groupWidth * 0.84 / float64(len(c.series))
	for g, name := range c.groups {
		left := plotLeft + groupWidth*(float64(g)+0.08)
		text(plotLeft+groupWidth*(float64(g)+0.5), plotBottom+20, 12, "middle", name)
		for i, s := range c.series {
			value, at := s.values[g], left+barWidth*float64(i)
			if math.IsNaN(value) {
				text(at+barWidth/2, plotBottom-4, 10, "middle", none)
				continue
			}
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n",
				at, y(value), barWidth-2, plotBottom-y(value), colours[i%len(colours)])
			text(at+barWidth/2-1, y(value)-4, 10, "middle", c.label(value))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// grid are the values of the grid's lines, from the lowest to one that no value exceeds.
func (c chart) grid() []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range c.series {
		for _, value := range s.values {
			if !math.IsNaN(value) && value > 0 {
				low, high = min(low, value), max(high, value)
			}
		}
	}
	if math.IsInf(low, 1) {
		low, high = 1, 1
	}
	if c.log {
		lines := []float64{math.Pow(10, math.Floor(math.Log10(low)))}
		for last := lines[0]; last < high || len(lines) < 2; lines = append(lines, last) {
			last *= 10
		}
		return lines
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{5, 2} { // at least four lines
		if high/step < 3 {
			step /= part
		}
	}
	lines := []float64{0}
	for last := 0.0; last < high; lines = append(lines, last) {
		last += step
	}
	return lines
}
