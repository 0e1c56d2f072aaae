package edit

import (
	"bytes"
	"strings"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// outcome is the edited file: all bytes, and the view of what follows the byte order mark.
type outcome struct{ content, view []byte }

// apply replaces the matches, which are in order and disjoint. It makes sure that the file then reads as meant.
func (d *document) apply(matches []match) (outcome, error) {
	var o outcome
	o.content = append(make([]byte, 0, len(d.bom)+len(d.raw)+newBytes(matches)), d.bom...)
	o.view = make([]byte, 0, len(d.lf.text)+newBytes(matches))
	at, rawAt := 0, 0
	for _, m := range matches {
		start, _ := d.lf.begin(m.start)
		end, _ := d.lf.finish(m.end)
		o.content = append(o.content, d.raw[rawAt:start]...)
		o.content = append(o.content, d.withEnds(m, start, end)...)
		o.view = append(append(o.view, d.lf.text[at:m.start]...), m.text...)
		at, rawAt = m.end, end
	}
	o.content = append(o.content, d.raw[rawAt:]...)
	o.view = append(o.view, d.lf.text[at:]...)
	if !bytes.Equal(withLF(o.content[len(d.bom):]).text, o.view) {
		return o, d.failure(engine.InvalidEdit, "The edit would put a lone CR of "+d.path+" directly before an LF, and the two "+
			"would become one line end.", "Rewrite the file with write, with one kind of line end.")
	}
	return o, nil
}

// newBytes is the size of all replacements; with CR LF ends it may be a little more.
func newBytes(matches []match) int {
	n := 0
	for _, m := range matches {
		n += len(m.text)
	}
	return n
}

// withEnds gives the line ends of a replacement the form that the replaced bytes raw[start:end] have. Lines at the
// end of both texts that are the same keep theirs; otherwise the n-th line end follows the n-th one, or the last.
// If there is none, the line that is written into decides.
func (d *document) withEnds(m match, start, end int) string {
	lines := strings.Split(m.text, "\n")
	ends := lineEnds(d.raw[start:end])
	if len(lines) == 1 {
		return m.text
	}
	if len(ends) == 0 {
		return strings.Join(lines, d.endAround(start, end))
	}
	old := strings.Split(string(d.lf.text[m.start:m.end]), "\n")
	same := 0 // lines at the end that are equal
	for same < min(len(lines), len(old)) && lines[len(lines)-1-same] == old[len(old)-1-same] {
		same++
	}
	var b strings.Builder
	for i, l := range lines[:len(lines)-1] {
		n := min(i, len(ends)-1)
		if left := len(lines) - 1 - i; left <= same && left <= len(ends) {
			n = len(ends) - left
		}
		b.WriteString(l)
		b.WriteString(ends[n])
	}
	b.WriteString(lines[len(lines)-1])
	return b.String()
}

// lineEnds lists the line ends in raw bytes.
func lineEnds(raw []byte) []string {
	var ends []string
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] == '\n':
			ends = append(ends, "\n")
		case raw[i] == '\r' && i+1 < len(raw) && raw[i+1] == '\n':
			ends = append(ends, "\r\n")
			i++
		case raw[i] == '\r':
			ends = append(ends, "\r")
		}
	}
	return ends
}

// endAround is the line end of the line around a range without any: the next one, else the one before, else LF.
func (d *document) endAround(start, end int) string {
	if n := bytes.IndexAny(d.raw[end:], "\r\n"); n >= 0 {
		return lineEnds(d.raw[end+n : min(end+n+2, len(d.raw))])[0]
	}
	n := bytes.LastIndexAny(d.raw[:start], "\r\n")
	if n < 0 {
		return "\n"
	}
	before := lineEnds(d.raw[max(0, n-1) : n+1])
	return before[len(before)-1]
}
