package pattern

import (
	"bytes"
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// Options are the ways to read a pattern.
type Options struct {
	// Literal takes the pattern as plain text.
	Literal bool
	// IgnoreCase ignores case by simple Unicode folding.
	IgnoreCase bool
}

// Matcher is a compiled pattern.
type Matcher struct {
	program *program
	literal literal
	narrow  bool // literal is to be looked for
}

// Compile reads a pattern. An error says in plain words what is wrong and what to do instead.
func Compile(pattern string, o Options) (*Matcher, error) {
	text, cr, err := quote(pattern), strings.Contains(pattern, "\r"), error(nil)
	if o.Literal && strings.Contains(pattern, "\n") {
		err = errLineBreak
	} else if !o.Literal {
		text, cr, err = translate(pattern, o.IgnoreCase)
	}
	if err != nil {
		return nil, err
	}
	flags := syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups
	if o.IgnoreCase {
		flags |= syntax.FoldCase
	}
	re, err := syntax.Parse(text, flags)
	if err != nil {
		return nil, plain(err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, fmt.Errorf("compile pattern: %w", err)
	}
	m := &Matcher{program: newProgram(prog, cr)}
	m.literal, m.narrow = required(re)
	return m, nil
}

// quote escapes the characters that mean something in a pattern.
func quote(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`\.+*?()|[]{}^$`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// advice has plain words for the codes of the parser, whose own texts would quote the translated pattern.
var advice = map[syntax.ErrorCode]string{
	syntax.ErrInvalidRepeatSize:     "a repetition count is above 1000 or its bounds are reversed; use a smaller one",
	syntax.ErrInvalidRepeatOp:       "two repetition operators follow each other; put the first into a group (?:…)",
	syntax.ErrMissingRepeatArgument: "a repetition operator has nothing to repeat; escape it with a backslash to mean the character, or set literal",
	syntax.ErrMissingParen:          "a group is not closed; add ) or write \\( for a literal parenthesis, or set literal",
	syntax.ErrUnexpectedParen:       "a ) has no opening parenthesis; write \\) for a literal one, or set literal",
	syntax.ErrNestingDepth:          "the groups are nested too deeply",
	syntax.ErrLarge:                 "the repetitions multiply to too much; use smaller counts",
	syntax.ErrInvalidUTF8:           "the pattern is not UTF-8",
}

func plain(err error) error {
	var e *syntax.Error
	if errors.As(err, &e) {
		if text, ok := advice[e.Code]; ok {
			return errors.New(text)
		}
		return errors.New(e.Code.String())
	}
	return err
}

// Scanner finds matching lines. It is for one goroutine.
type Scanner struct {
	m    *Matcher
	a    *automaton
	line int32 // state within a line that is fed in pieces
}

// NewScanner returns a scanner with empty tables, which grow to some megabytes at most.
func (m *Matcher) NewScanner() *Scanner { return &Scanner{m: m, a: newAutomaton(m.program)} }

// Find returns the bounds of the first line of text that matches, without its LF. text begins at a line start
// and ends behind an LF or at the end of all data.
func (s *Scanner) Find(text []byte) (start, end int, ok bool) {
	if !s.m.narrow {
		return s.find(text)
	}
	for from := 0; from < len(text); {
		n := s.m.literal.index(text[from:])
		if n < 0 {
			return 0, 0, false
		}
		start, end = lineAround(text, from+n)
		if s.m.literal.whole {
			return start, end, true
		}
		if _, _, ok := s.find(text[start:min(end+1, len(text))]); ok {
			return start, end, true
		}
		from = end + 1
	}
	return 0, 0, false
}

func (s *Scanner) find(text []byte) (start, end int, ok bool) {
	to, used := s.a.scan(text)
	if to == matched {
		start, end = lineAround(text, used)
		return start, end, true
	}
	if n := len(text); n > 0 && text[n-1] != '\n' && to != dead && s.a.step(to, lineEnd) == matched {
		return bytes.LastIndexByte(text, '\n') + 1, n, true
	}
	return 0, 0, false
}

// lineAround returns the bounds of the line that the byte at i belongs to; an LF belongs to the line it ends.
func lineAround(text []byte, i int) (start, end int) {
	start = bytes.LastIndexByte(text[:i], '\n') + 1
	if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
		return start, i + n
	}
	return start, len(text)
}

// Begin starts a line that comes in pieces.
func (s *Scanner) Begin() { s.line = 0 }

// Feed takes the next piece of the line, which has no LF, and returns how much of it was used: the rest, such as
// a character that is cut off at the end, has to come again with more behind it. Of a piece of maxCarried bytes
// some is always used.
func (s *Scanner) Feed(piece []byte) int {
	if s.line == matched || s.line == dead {
		return len(piece)
	}
	if s.m.carried() {
		return s.feedLiteral(piece)
	}
	used := 0
	if s.line, used = s.a.run(s.line, piece, false); s.line == matched {
		return len(piece)
	}
	return used
}

// maxCarried is the longest plain text that is looked for as such in a line that comes in pieces, bytes.
const maxCarried = 1024

// carried says that the pattern is a short plain text: a long line need not go through the automaton.
func (m *Matcher) carried() bool {
	return m.narrow && m.literal.whole && len(m.literal.text) <= maxCarried
}

// feedLiteral keeps the end of the piece, where an occurrence may begin.
func (s *Scanner) feedLiteral(piece []byte) int {
	if s.m.literal.index(piece) >= 0 {
		s.line = matched
		return len(piece)
	}
	return max(0, len(piece)-len(s.m.literal.text)+1)
}

// End takes the last piece and says whether the line matches. A CR at the end of it belongs to the line end if
// an LF follows.
func (s *Scanner) End(piece []byte, lf bool) bool {
	if s.line == dead {
		return false
	}
	if lf && !s.m.program.keepCR {
		piece = bytes.TrimSuffix(piece, []byte("\r"))
	}
	if s.line != matched && s.m.carried() {
		return s.m.literal.index(piece) >= 0
	}
	if s.line != matched {
		s.line, _ = s.a.run(s.line, piece, true)
	}
	return s.line == matched || s.line != dead && s.a.step(s.line, lineEnd) == matched
}
