// Package textdiff compares two texts line by line and shows the difference: numbered for reading, or as a unified
// patch. The edit tool puts both into its details; whoever reports a revision conflict can use it too.
//
// A line includes its LF, so a last line with and one without LF differ. The script is a shortest one (Myers); where
// several are equally short the one that has deleted more goes first, so that deletions come before insertions. Time and
// memory are bounded: from maxDistance changed lines on, what lies between the first and the last difference is shown
// as one block that was replaced.
package textdiff

import (
	"fmt"
	"strconv"
	"strings"
)

// context is the number of unchanged lines shown on each side of a change.
const context = 4

// maxDistance is the number of deleted and inserted lines up to which the script is a shortest one. Time and memory
// grow with its square: 16 MB at the limit.
const maxDistance = 2000

// Diff is the difference between an old and a new text.
type Diff struct {
	old, new []string // lines with their LF
	changes  []change // in order, with at least one unchanged line between two of them
}

// change says that old[a:b] became new[c:d].
type change struct{ a, b, c, d int }

// Compare computes the difference.
func Compare(before, after string) *Diff {
	d := &Diff{old: lines(before), new: lines(after)}
	d.changes = script(d.old, d.new)
	return d
}

// FirstChangedLine is the number, from 1, that the first change has in the new text; 0 if there is none.
func (d *Diff) FirstChangedLine() int {
	if len(d.changes) == 0 {
		return 0
	}
	return d.changes[0].c + 1
}

// Display returns rows without a final LF: "-NN text" and " NN text" with old numbers, "+NN text" with new ones. A row
// of dots stands for unchanged lines left out.
func (d *Diff) Display() string {
	width := len(strconv.Itoa(max(count(d.old), count(d.new))))
	gap := " " + strings.Repeat(" ", width) + " ..."
	var rows []string
	row := func(sign string, n int, line string) {
		rows = append(rows, fmt.Sprintf("%s%*d %s", sign, width, n, strings.TrimSuffix(line, "\n")))
	}
	for _, h := range d.hunks() {
		if h.a > 0 {
			rows = append(rows, gap)
		}
		d.walk(h, row)
	}
	if h := d.hunks(); len(h) > 0 && h[len(h)-1].b < len(d.old) {
		rows = append(rows, gap)
	}
	return strings.Join(rows, "\n")
}

// Patch returns a unified patch with path in both header lines; empty if there is no difference.
func (d *Diff) Patch(path string) string {
	var b strings.Builder
	for i, h := range d.hunks() {
		if i == 0 {
			fmt.Fprintf(&b, "--- %s\n+++ %s\n", path, path)
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(h.a, h.b), span(h.c, h.d))
		d.walk(h, func(sign string, _ int, line string) {
			b.WriteString(sign)
			b.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		})
	}
	return b.String()
}

// hunks returns the ranges to show: changes with their context, joined where that touches or overlaps.
func (d *Diff) hunks() []change {
	var out []change
	for _, c := range d.changes {
		before := min(context, c.a)
		after := min(context, len(d.old)-c.b)
		h := change{c.a - before, c.b + after, c.c - before, c.d + after}
		if n := len(out); n > 0 && h.a <= out[n-1].b {
			out[n-1].b, out[n-1].d = h.b, h.d
		} else {
			out = append(out, h)
		}
	}
	return out
}

// walk calls row for each line of a hunk.
func (d *Diff) walk(h change, row func(sign string, n int, line string)) {
	at := h.a
	same := func(to int) {
		for ; at < to; at++ {
			row(" ", at+1, d.old[at])
		}
	}
	for _, c := range d.changes {
		if c.a < h.a || c.b > h.b {
			continue
		}
		same(c.a)
		for ; at < c.b; at++ {
			row("-", at+1, d.old[at])
		}
		for i := c.c; i < c.d; i++ {
			row("+", i+1, d.new[i])
		}
	}
	same(h.b)
}

func span(from, to int) string {
	if from == to { // an empty range is named after the line before it
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func lines(s string) []string {
	l := strings.SplitAfter(s, "\n")
	if l[len(l)-1] == "" {
		l = l[:len(l)-1]
	}
	return l
}

// count is the number of lines as an editor counts them: a final LF opens one more, empty line.
func count(lines []string) int {
	if n := len(lines); n > 0 && strings.HasSuffix(lines[n-1], "\n") {
		return n + 1
	}
	return len(lines)
}
