package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// chart is a line chart.
type chart struct {
	title, note  string
	xName, yName string
	xLog, yLog   bool
	series       []series
}

// series is one line. With dashes it has the colour of the one before, to which it belongs.
type series struct {
	name   string
	dashes string
	points []point
}

type point struct{ x, y float64 }

// Sizes of a chart, in pixels.
const (
	chartWidth, chartHeight = 860, 440
	chartLeft, chartRight   = 80, 200 // the names of the lines are on the right
	chartTop, chartBottom   = 52, 58
)

// colours can be told apart with any eyes (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"}

// save writes charts to a directory, by name.
func save(dir string, charts map[string]chart) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the plots: %w", err)
	}
	for name, c := range charts {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(c.svg()), 0o644); err != nil {
			return fmt.Errorf("write a plot: %w", err)
		}
	}
	return nil
}

func (c chart) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	label(&b, chartLeft, 22, "start", 15, c.title)
	label(&b, chartLeft, 40, "start", 11, c.note)
	x := newAxis(c.xLog, chartLeft, chartWidth-chartRight, c.values(func(p point) float64 { return p.x }))
	y := newAxis(c.yLog, chartHeight-chartBottom, chartTop, c.values(func(p point) float64 { return p.y }))
	for _, v := range x.ticks() {
		at := x.at(v)
		line(&b, at, chartTop, at, chartHeight-chartBottom)
		label(&b, at, chartHeight-chartBottom+18, "middle", 11, short4(v))
	}
	for _, v := range y.ticks() {
		at := y.at(v)
		line(&b, chartLeft, at, chartWidth-chartRight, at)
		label(&b, chartLeft-8, at+4, "end", 11, short4(v))
	}
	label(&b, (chartLeft+chartWidth-chartRight)/2, chartHeight-14, "middle", 12, c.xName)
	middle := float64(chartTop+chartHeight-chartBottom) / 2
	fmt.Fprintf(&b, `<text x="20" y="%.1f" text-anchor="middle" transform="rotate(-90 20 %.1f)">%s</text>`+"\n", middle, middle, html.EscapeString(c.yName))
	for i, s := range c.series {
		c.line(&b, s, c.colour(i), x, y)
	}
	c.legend(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

// colour of the line with a number.
func (c chart) colour(number int) string {
	own := -1
	for _, s := range c.series[:number+1] {
		if s.dashes == "" {
			own++
		}
	}
	return colours[max(own, 0)%len(colours)]
}

// line draws one series. A few points are marked, many are not.
func (c chart) line(b *strings.Builder, s series, colour string, x, y axis) {
	var path []string
	for _, p := range s.points {
		if x.shows(p.x) && y.shows(p.y) {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.x), y.at(p.y)))
		}
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.8" stroke-dasharray="%s" points="%s"/>`+"\n", colour, s.dashes, strings.Join(path, " "))
	if len(path) > 30 {
		return
	}
	for _, at := range path {
		px, py, _ := strings.Cut(at, ",")
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3" fill="%s"/>`+"\n", px, py, colour)
	}
}

func (c chart) legend(b *strings.Builder) {
	for i, s := range c.series {
		at := float64(chartTop + 12 + 20*i)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="3" stroke-dasharray="%s"/>`+"\n",
			chartWidth-chartRight+10, at-4, chartWidth-chartRight+36, at-4, c.colour(i), s.dashes)
		label(b, chartWidth-chartRight+42, at, "start", 12, s.name)
	}
}

func (c chart) values(of func(point) float64) (all []float64) {
	for _, s := range c.series {
		for _, p := range s.points {
			all = append(all, of(p))
		}
	}
	return all
}

func label(b *strings.Builder, x, y float64, anchor string, size int, text string) {
	if text != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">%s</text>`+"\n", x, y, anchor, size, html.EscapeString(text))
	}
}

func line(b *strings.Builder, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x1, y1, x2, y2)
}

// axis maps values to pixels. A linear one begins at 0. On a logarithmic one 0 has a place of its own, a decade
// before the smallest value, if the values have one: an empty store belongs to the picture.
type axis struct {
	log      bool
	zero     bool
	low, top float64 // of the values; logarithms on a logarithmic axis
	from, to float64 // pixels
}

func newAxis(logarithmic bool, from, to float64, values []float64) axis {
	a := axis{log: logarithmic, from: from, to: to}
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if logarithmic && v <= 0 {
			a.zero = a.zero || v == 0
			continue
		}
		least, most = min(least, v), max(most, v)
	}
	if most < least {
		least, most = 1, 1
	}
	if !logarithmic {
		a.low, a.top = 0, most
		if most <= 0 {
			a.top = 1
		}
		a.top = math.Ceil(a.top/a.step()) * a.step()
		return a
	}
	a.low, a.top = math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	if a.top == a.low {
		a.top++
	}
	if a.zero {
		a.low--
	}
	return a
}

// step is the distance of the ticks of a linear axis: 1, 2, 4 or 5 times a power of ten.
func (a axis) step() float64 {
	rough := (a.top - a.low) / 6
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{1, 2, 4, 5} {
		if m*power >= rough {
			return m * power
		}
	}
	return 10 * power
}

func (a axis) ticks() (all []float64) {
	if !a.log {
		for v := a.low; v <= a.top+a.step()/2; v += a.step() {
			all = append(all, v)
		}
		return all
	}
	first := a.low
	if a.zero {
		all = append(all, 0)
		first++
	}
	for e := first; e <= a.top; e++ {
		all = append(all, math.Pow(10, e))
		for _, m := range []float64{2, 5} {
			if a.top-a.low <= 3 && e < a.top {
				all = append(all, m*math.Pow(10, e))
			}
		}
	}
	return all
}

func (a axis) shows(v float64) bool { return !a.log || v > 0 || a.zero && v == 0 }

func (a axis) at(v float64) float64 {
	if a.log {
		if v == 0 {
			v = a.low
		} else {
			v = math.Log10(v)
		}
	}
	return a.from + (v-a.low)/(a.top-a.low)*(a.to-a.from)
}

// short4 writes a number in at most a few characters: 250k, 1M, 0.05.
func short4(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.size {
			return strconv.FormatFloat(math.Round(v/unit.size*100)/100, 'f', -1, 64) + unit.name
		}
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'g', 4, 64)
}
