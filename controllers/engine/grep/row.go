package grep

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine/walk"
)

// maxUnits is the length of a row's text, UTF-16 units, before it is cut.
const maxUnits = 500

// headBytes is what is kept of a line before that: enough for maxUnits of the widest characters.
const headBytes = 4 * maxUnits

const cutMark = "... [truncated]"

// row is one line of the answer.
type row struct {
	line  int // from 1
	text  string
	match bool
	cut   bool
}

func newRow(line int, text []byte, match bool) row {
	r := row{line: line, match: match}
	r.text, r.cut = rowText(text)
	return r
}

// rowText makes a line fit for a row: without CR, valid UTF-8, cut on a character boundary.
func rowText(line []byte) (text string, cut bool) {
	if bytes.IndexByte(line, '\r') >= 0 {
		line = bytes.ReplaceAll(line, []byte("\r"), nil)
	}
	if len(line) <= maxUnits && utf8.Valid(line) {
		return string(line), false
	}
	s := walk.ValidText(string(line[:min(len(line), headBytes)]))
	units := 0
	for i, r := range s {
		if units++; r > 0xFFFF {
			units++
		}
		if units > maxUnits {
			return s[:i] + cutMark, true
		}
	}
	return s, false
}

// append writes the row as the answer shows it.
func (r row) append(b []byte, name string) []byte {
	mark := byte('-')
	if r.match {
		mark = ':'
	}
	b = append(b, name...)
	b = append(b, mark)
	b = strconv.AppendInt(b, int64(r.line), 10)
	b = append(b, mark, ' ')
	return append(b, r.text...)
}
