package edit

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// view is a text made from another one, its source, with the way back from positions in it to positions in the source.
type view struct {
	text []byte
	cuts []cut
}

// cut says that text[at:end] stands for source[from:to], as a whole; at and end are equal where something was left
// out. Between cuts the bytes are the same. Cuts are in order and do not share at.
type cut struct{ at, end, from, to int32 }

func (v *view) add(at, from, to int) {
	v.cuts = append(v.cuts, cut{int32(at), int32(len(v.text)), int32(from), int32(to)})
}

// begin maps the start of a range. If it lies inside a cut the range grows to the whole cut, and lead is what the cut
// stands for before the start.
func (v *view) begin(i int) (source int, lead []byte) {
	n := sort.Search(len(v.cuts), func(n int) bool { return int(v.cuts[n].at) > i })
	if n == 0 {
		return i, nil
	}
	c := v.cuts[n-1]
	if i >= int(c.end) {
		return int(c.to) + i - int(c.end), nil
	}
	return int(c.from), v.text[c.at:i]
}

// finish maps the end of a range, which is not empty; tail is what the last cut stands for after the end.
func (v *view) finish(i int) (source int, tail []byte) {
	n := sort.Search(len(v.cuts), func(n int) bool { return int(v.cuts[n].at) >= i })
	if n == 0 {
		return i, nil
	}
	c := v.cuts[n-1]
	if i >= int(c.end) {
		return int(c.to) + i - int(c.end), nil
	}
	return int(c.to), v.text[i:c.end]
}

// withLF is the view in which every line end is LF. The source is not copied if it has no CR.
func withLF(source []byte) *view {
	if bytes.IndexByte(source, '\r') < 0 {
		return &view{text: source}
	}
	v := &view{text: make([]byte, 0, len(source))}
	for at := 0; at < len(source); {
		n := bytes.IndexByte(source[at:], '\r')
		if n < 0 {
			v.text = append(v.text, source[at:]...)
			break
		}
		v.text = append(append(v.text, source[at:at+n]...), '\n')
		at += n + 1
		if at < len(source) && source[at] == '\n' {
			v.add(len(v.text)-1, at-1, at+1)
			at++
		}
	}
	return v
}

// normalised is the view in which look-alikes are the same; see the package comment. The source has LF line ends.
func normalised(source []byte) *view {
	v := &view{text: make([]byte, 0, len(source)+len(source)/8)}
	for at := 0; at < len(source); {
		end := len(source)
		if n := bytes.IndexByte(source[at:], '\n'); n >= 0 {
			end = at + n
		}
		v.line(source[at:end], at)
		if end < len(source) {
			v.text = append(v.text, '\n')
		}
		at = end + 1
	}
	return v
}

// line appends one line, which begins at offset in the source.
func (v *view) line(line []byte, offset int) {
	begin := len(v.text)
	if isASCII(line) {
		v.text = append(v.text, line...)
	} else {
		v.compose(line, offset)
	}
	keep := begin + len(bytes.TrimRightFunc(v.text[begin:], isBlank))
	if keep == len(v.text) {
		return
	}
	from, _ := v.finish(keep)
	if keep == begin {
		from = offset
	}
	v.text = v.text[:keep]
	for n := len(v.cuts); n > 0 && int(v.cuts[n-1].end) > keep; n-- {
		if last := &v.cuts[n-1]; int(last.at) < keep {
			last.end = int32(keep)
		} else {
			v.cuts = v.cuts[:n-1]
		}
	}
	v.add(keep, from, offset+len(line))
}

// compose appends the compatibility composition of a line with its look-alikes made plain.
func (v *view) compose(line []byte, offset int) {
	var it norm.Iter
	it.Init(norm.NFKC, line)
	for !it.Done() {
		from, at := it.Pos(), len(v.text)
		v.plain(it.Next())
		for it.Pos() == from && !it.Done() { // a character may come in several pieces
			v.plain(it.Next())
		}
		if !bytes.Equal(v.text[at:], line[from:it.Pos()]) {
			v.add(at, offset+from, offset+it.Pos())
		}
	}
}

// plain appends a piece with its look-alikes made plain; bytes that are not UTF-8 stay.
func (v *view) plain(piece []byte) {
	for len(piece) > 0 {
		r, n := utf8.DecodeRune(piece)
		if p := plain(r); p != r {
			v.text = utf8.AppendRune(v.text, p)
		} else {
			v.text = append(v.text, piece[:n]...)
		}
		piece = piece[n:]
	}
}

// plain maps curly quotes, dashes and special spaces.
func plain(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r
	case r >= 0x2018 && r <= 0x201b:
		return '\''
	case r >= 0x201c && r <= 0x201f:
		return '"'
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r == 0xa0, r >= 0x2002 && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000:
		return ' '
	}
	return r
}

// isBlank is what counts as blank at the end of a line. U+0085 and U+200B do not.
func isBlank(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r == ' ', r == 0xa0, r == 0xfeff, r == 0x1680, r >= 0x2000 && r <= 0x200a:
		return true
	}
	return r == 0x2028 || r == 0x2029 || r == 0x202f || r == 0x205f || r == 0x3000
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// lf gives a text LF line ends.
func lf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
