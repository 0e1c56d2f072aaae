package grep

import (
	"bytes"
	"errors"
	"io"

	"github.com/rigbridge/rigbridge/controllers/engine/grep/pattern"
)

const (
	// bufferSize is how much of a file is looked at at once, bytes.
	bufferSize = 256 << 10
	// binaryBlock is the unit in which a NUL makes a file binary, bytes.
	binaryBlock = 64 << 10
)

// rules bound the search of one file.
type rules struct {
	context int   // rows before and after a match
	most    int   // matches to find
	whole   bool  // NUL bytes do not end the search
	size    int64 // bytes to read at most, 0 for all
	stopped func() bool
}

// scan is the search of one file. It is reused, with its buffer.
type scan struct {
	rules
	scanner *pattern.Scanner
	buf     []byte

	src    io.Reader
	n      int   // bytes in buf
	off    int64 // place of buf[0] in the decoded file
	last   bool  // nothing comes after buf[:n]
	begun  bool  // the start of the file was looked at
	binary bool  // a NUL ended the search

	line    int // number of the line at the start of what is not reported yet
	rows    []row
	matches int
	before  []row // lines that precede, at most context
	after   int   // rows of context still due after a match
}

func newScan(m *pattern.Matcher) *scan {
	return &scan{scanner: m.NewScanner(), buf: make([]byte, bufferSize)}
}

// run searches src and returns the rows and the number of matches.
func (s *scan) run(src io.Reader, r rules) ([]row, int, error) {
	s.rules, s.src = r, src
	s.n, s.off, s.last, s.begun, s.binary = 0, 0, false, false, false
	s.line, s.rows, s.matches, s.before, s.after = 1, nil, 0, s.before[:0], 0
	for (!s.last || s.n > 0) && !s.done() {
		if err := s.fill(); err != nil {
			return s.rows, s.matches, err
		}
		end := s.textEnd()
		if end == 0 && s.n == len(s.buf) {
			if err := s.longLine(); err != nil {
				return s.rows, s.matches, err
			}
			continue
		}
		s.search(s.buf[:end])
		s.discard(end)
	}
	return s.rows, s.matches, nil
}

// done says that nothing more can be added.
func (s *scan) done() bool {
	return s.matches >= s.most && s.after == 0 || s.stopped()
}

// fill reads until the buffer is full or the data ends, be it at a NUL.
func (s *scan) fill() error {
	from := s.n
	if err := s.load(); err != nil {
		return err
	}
	if !s.begun {
		s.begun = true
		if err := s.begin(); err != nil {
			return err
		}
	}
	if s.whole {
		return nil
	}
	if nul := bytes.IndexByte(s.buf[from:s.n], 0); nul >= 0 {
		at := s.off + int64(from+nul)
		at -= at % binaryBlock
		s.n, s.last, s.binary = max(0, int(at-s.off)), true, true
		s.n = bytes.LastIndexByte(s.buf[:s.n], '\n') + 1
	}
	return nil
}

func (s *scan) load() error {
	for !s.last && s.n < len(s.buf) {
		n, err := s.src.Read(s.buf[s.n:])
		s.n += n
		if errors.Is(err, io.EOF) || s.size > 0 && s.off+int64(s.n) >= s.size {
			s.last = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// begin looks at byte order marks: UTF-16 is decoded, the mark of UTF-8 is dropped.
func (s *scan) begin() error {
	if d := decoded(s.buf[:s.n], s.src); d != nil {
		s.src, s.n, s.last = d, 0, false
		return s.load()
	}
	if bytes.HasPrefix(s.buf[:s.n], []byte("\xef\xbb\xbf")) {
		s.discard(3)
	}
	return nil
}

// textEnd is where the last complete line of the buffer ends.
func (s *scan) textEnd() int {
	if s.last {
		return s.n
	}
	return bytes.LastIndexByte(s.buf[:s.n], '\n') + 1
}

// discard moves what is behind end to the front.
func (s *scan) discard(end int) {
	copy(s.buf, s.buf[end:s.n])
	s.n -= end
	s.off += int64(end)
}

// search reports the matches of complete lines.
func (s *scan) search(text []byte) {
	for len(text) > 0 {
		if s.matches >= s.most {
			s.skip(text)
			return
		}
		start, end, ok := s.scanner.Find(text)
		if !ok {
			s.skip(text)
			return
		}
		s.skip(text[:start])
		s.match(text[start:end])
		text = text[min(end+1, len(text)):]
	}
}

// skip passes over lines without a match: the first may be due as context of the match before, the last are
// kept as context of the next.
func (s *scan) skip(text []byte) {
	if len(text) == 0 {
		return
	}
	for s.after > 0 && len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		s.rows = append(s.rows, newRow(s.line, line, false))
		s.after--
		s.line++
		text = rest
	}
	if s.context > 0 && s.matches < s.most {
		s.keep(text)
	}
	s.line += bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		s.line++
	}
}

// keep remembers the last lines of text, which begins at line number s.line.
func (s *scan) keep(text []byte) {
	from := len(text)
	for n := 0; n < s.context && from > 0; n++ {
		from = bytes.LastIndexByte(text[:from-1], '\n') + 1
	}
	number := s.line + bytes.Count(text[:from], []byte("\n"))
	for line := range bytes.Lines(text[from:]) {
		s.remember(newRow(number, bytes.TrimSuffix(line, []byte("\n")), false))
		number++
	}
}

func (s *scan) remember(r row) {
	if len(s.before) == s.context {
		s.before = append(s.before[:0], s.before[1:]...)
	}
	s.before = append(s.before, r)
}

// match reports the line at s.line.
func (s *scan) match(line []byte) {
	s.rows = append(s.rows, s.before...)
	s.before = s.before[:0]
	s.rows = append(s.rows, newRow(s.line, line, true))
	s.line++
	s.matches++
	s.after = s.context
}

// longLine searches a line that does not fit into the buffer, which holds its first part. Only its head is
// kept for the row.
func (s *scan) longLine() error {
	head := bytes.Clone(s.buf[:min(s.n, headBytes+8)])
	wanted := s.matches < s.most
	s.scanner.Begin()
	for !s.stopped() {
		nl := bytes.IndexByte(s.buf[:s.n], '\n')
		if nl >= 0 || s.last {
			s.endLongLine(head, nl, wanted)
			return nil
		}
		used := s.n
		if wanted {
			used = s.scanner.Feed(s.buf[:s.n])
		}
		s.discard(used)
		if err := s.fill(); err != nil {
			return err
		}
		if s.binary {
			return nil // the line has no end that counts
		}
	}
	return nil
}

func (s *scan) endLongLine(head []byte, nl int, wanted bool) {
	end, next := s.n, s.n
	if nl >= 0 {
		end, next = nl, nl+1
	}
	switch {
	case wanted && s.scanner.End(s.buf[:end], nl >= 0):
		s.match(head)
	default:
		s.skip(head)
	}
	s.discard(next)
}
