package read

import (
	"bytes"
	"context"
	"fmt"
	"hash"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// window collects the wanted lines of a text that passes by, and counts everything else.
type window struct {
	first, end int // wanted lines, counted from 0; end is excluded

	line      int  // the line at the current position
	open      bool // the current line has begun
	text      []byte
	bytes     int // of the wanted text, its cut-off part included
	lineEnds  int // LFs in the wanted text
	last      byte
	firstLine int // bytes of the first wanted line
}

// keep is how much of the wanted text is kept: enough to tell which limit was passed first.
const keep = engine.MaxBytes + 2

func newWindow(a Args) *window {
	w := &window{first: max(a.Offset, 1) - 1, end: math.MaxInt}
	if a.Limit > 0 && a.Limit < math.MaxInt-w.first {
		w.end = w.first + a.Limit
	}
	return w
}

// readFrom passes over src, using buf, and returns the number of bytes.
func (w *window) readFrom(ctx context.Context, src io.Reader, digest hash.Hash, buf []byte) (int64, error) {
	var total int64
	rest := 0 // bytes of an unfinished character at the start of buf
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		n, err := src.Read(buf[rest:])
		digest.Write(buf[rest : rest+n])
		total += int64(n)
		text := buf[:rest+n]
		if err == nil {
			rest = unfinished(text)
		} else {
			rest = 0
		}
		w.feed(text[:len(text)-rest])
		copy(buf, text[len(text)-rest:])
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// unfinished returns how many bytes at the end of b begin a character that is not complete yet.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// feed takes the next part of the file, whole characters only.
func (w *window) feed(part []byte) {
	if !utf8.Valid(part) {
		part = []byte(engine.ValidText(string(part)))
	}
	for len(part) > 0 {
		line := part
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			line = part[:i+1]
		}
		w.add(line)
		part = part[len(line):]
	}
}

// add takes the next part of a line, with its LF if that has been met.
func (w *window) add(part []byte) {
	ends := part[len(part)-1] == '\n'
	body := part
	if ends && w.line == w.end-1 {
		body = part[:len(part)-1] // the LF behind the last wanted line separates it from what is not wanted
	}
	if w.line >= w.first && w.line < w.end && len(body) > 0 {
		w.take(body)
	}
	w.open = !ends
	if ends {
		w.line++
	}
}

func (w *window) take(body []byte) {
	w.last = body[len(body)-1]
	if w.line == w.first {
		w.firstLine += len(body)
		if w.last == '\n' {
			w.firstLine--
		}
	}
	if w.last == '\n' {
		w.lineEnds++
	}
	w.bytes += len(body)
	w.text = append(w.text, body[:min(len(body), keep-len(w.text))]...)
}

// totalLines counts the lines of the whole file; an empty file has one.
func (w *window) totalLines() int {
	if w.open || w.line == 0 {
		return w.line + 1
	}
	return w.line
}

// write puts the text, its notice and its details into the result.
func (w *window) write(res *engine.Result, path string) error {
	total := w.totalLines()
	if w.first >= total {
		return &engine.Error{Reason: engine.OffsetBeyondEnd, Path: path,
			Message: fmt.Sprintf("Offset %d is beyond end of file (%d lines total)", w.first+1, total)}
	}
	t := w.truncate()
	res.Text = t.Content
	switch shown := w.first + t.OutputLines; {
	case t.FirstLineExceedsLimit:
		res.Text = fmt.Sprintf("[Line %d is %s, exceeds %s limit. Use bash: sed -n '%dp' %s | head -c %d]", w.first+1,
			engine.FormatSize(int64(w.firstLine)), engine.FormatSize(engine.MaxBytes), w.first+1, shellWord(path), engine.MaxBytes)
	case t.Truncated && t.OutputLines == t.TotalLines:
		return nil // only the LF at the very end did not fit: nothing is left to continue with
	case t.Truncated:
		cause := ""
		if t.TruncatedBy == engine.ByBytes {
			cause = fmt.Sprintf(" (%s limit)", engine.FormatSize(engine.MaxBytes))
		}
		res.Text = engine.Notices(t.Content, fmt.Sprintf("Showing lines %d-%d of %d%s. Use offset=%d to continue.",
			w.first+1, shown, total, cause, shown+1))
	case w.end < total:
		res.Text = engine.Notices(t.Content, fmt.Sprintf("%d more lines in file. Use offset=%d to continue.", total-w.end, w.end+1))
	}
	if t.Truncated {
		res.Details = &Details{Truncation: t}
	}
	return nil
}

// truncate cuts the kept part as the whole would be cut.
func (w *window) truncate() engine.Truncation {
	t := engine.TruncateHead(string(w.text), engine.MaxLines, engine.MaxBytes)
	t.TotalBytes, t.TotalLines = w.bytes, w.lineEnds
	if w.bytes > 0 && w.last != '\n' {
		t.TotalLines++
	}
	return t
}

// shellWord writes a path so that a shell takes it as one word, unchanged if it is one already.
func shellWord(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r >= 0x80 || strings.ContainsRune("/._-+,:@%=", r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
