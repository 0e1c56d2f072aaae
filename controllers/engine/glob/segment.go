package glob

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Errors of malformed patterns; the messages are complete phrases for the assistant.
var (
	ErrUnclosedClass = errors.New("a character class is not closed; add ] or write [[] for a literal bracket")
	ErrBadRange      = errors.New("a range in a character class ends before it begins")
	ErrDangling      = errors.New("a backslash at the end escapes nothing; write \\\\ for a literal backslash")
	ErrUnclosedBrace = errors.New("an alternative group is not closed; add } or write \\{ for a literal brace")
	ErrStrayBrace    = errors.New("a } has no opening brace; write \\} for a literal brace")
	ErrTooMany       = errors.New("the alternatives multiply to too many patterns; use fewer groups")
)

// Dialect selects the rules by which a segment is read and matched.
type Dialect struct {
	// Fold ignores the case of ASCII letters. The pattern itself must then be in lower case.
	Fold bool
	// Git reads the pattern as ignore files do: bytes instead of characters, named classes such as
	// [[:alpha:]], and a backslash that escapes inside a class too.
	Git bool
}

type op uint8

const (
	opLiteral op = iota // text
	opOne               // any one character
	opStar              // any run of characters
	opClass             // one character of a set
)

type span struct{ lo, hi rune }

type token struct {
	op     op
	text   string
	negate bool
	set    []span
}

type shape uint8

const (
	shapeGeneral shape = iota
	shapeAny           // *
	shapeLiteral       // name
	shapeSuffix        // *name
	shapePrefix        // name*
)

// Segment is a compiled pattern for one part of a path. It is immutable.
type Segment struct {
	dialect Dialect
	tokens  []token
	shape   shape
	text    string
	minLen  int // bytes that every match has at least
}

// CompileSegment reads a pattern without slashes and without braces.
func CompileSegment(pattern string, d Dialect) (*Segment, error) {
	s := &Segment{dialect: d}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			s.tokens = append(s.tokens, token{op: opLiteral, text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; c {
		case '*':
			flush()
			if n := len(s.tokens); n == 0 || s.tokens[n-1].op != opStar {
				s.tokens = append(s.tokens, token{op: opStar})
			}
			i++
		case '?':
			flush()
			s.tokens = append(s.tokens, token{op: opOne})
			i++
		case '[':
			flush()
			t, n, err := parseClass(pattern[i:], d)
			if err != nil {
				return nil, err
			}
			s.tokens = append(s.tokens, t)
			i += n
		case '\\':
			if i+1 == len(pattern) {
				return nil, ErrDangling
			}
			lit.WriteByte(pattern[i+1])
			i += 2
		default:
			lit.WriteByte(c)
			i++
		}
	}
	flush()
	s.classify()
	return s, nil
}

// classify picks the fast way for the shapes that nearly all patterns have.
func (s *Segment) classify() {
	for _, t := range s.tokens {
		switch t.op {
		case opLiteral:
			s.minLen += len(t.text)
		case opOne, opClass:
			s.minLen++
		}
	}
	switch t := s.tokens; {
	case len(t) == 0:
		s.shape = shapeLiteral
	case len(t) == 1 && t[0].op == opStar:
		s.shape = shapeAny
	case len(t) == 1 && t[0].op == opLiteral:
		s.shape, s.text = shapeLiteral, t[0].text
	case len(t) == 2 && t[0].op == opStar && t[1].op == opLiteral:
		s.shape, s.text = shapeSuffix, t[1].text
	case len(t) == 2 && t[0].op == opLiteral && t[1].op == opStar:
		s.shape, s.text = shapePrefix, t[0].text
	}
}

// Literal returns the only name that the segment matches, if there is exactly one.
func (s *Segment) Literal() (string, bool) {
	return s.text, s.shape == shapeLiteral && !s.dialect.Fold
}

// Match says whether the whole name matches.
func (s *Segment) Match(name string) bool {
	if len(name) < s.minLen {
		return false
	}
	switch s.shape {
	case shapeAny:
		return true
	case shapeLiteral:
		return len(name) == len(s.text) && s.same(name, s.text)
	case shapeSuffix:
		return s.same(name[len(name)-len(s.text):], s.text)
	case shapePrefix:
		return s.same(name[:len(s.text)], s.text)
	}
	return s.general(name)
}

// general runs the tokens with one point to go back to: the last star. That is enough because a later star
// can absorb whatever an earlier one could.
func (s *Segment) general(name string) bool {
	ti, ni := 0, 0
	starT, starN := -1, 0
	for {
		if ti < len(s.tokens) {
			t := &s.tokens[ti]
			if t.op == opStar {
				starT, starN = ti, ni
				ti++
				continue
			}
			if n := s.step(t, name[ni:]); n > 0 {
				ti++
				ni += n
				continue
			}
		} else if ni == len(name) {
			return true
		}
		if starT < 0 || starN >= len(name) {
			return false
		}
		starN += s.width(name[starN:])
		ti, ni = starT+1, starN
	}
}

// step matches one token at the start of rest and returns the bytes used, 0 if it does not match.
func (s *Segment) step(t *token, rest string) int {
	if t.op == opLiteral {
		if len(rest) >= len(t.text) && s.same(rest[:len(t.text)], t.text) {
			return len(t.text)
		}
		return 0
	}
	if rest == "" {
		return 0
	}
	r, n := rune(rest[0]), 1
	if !s.dialect.Git {
		r, n = utf8.DecodeRuneInString(rest)
	}
	if t.op == opOne || t.contains(r, s.dialect.Fold) != t.negate {
		return n
	}
	return 0
}

func (s *Segment) width(rest string) int {
	if s.dialect.Git || rest[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(rest)
	return n
}

func (s *Segment) same(name, text string) bool {
	if !s.dialect.Fold {
		return name == text
	}
	for i := 0; i < len(text); i++ {
		if lower(name[i]) != text[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func (t *token) contains(r rune, fold bool) bool {
	if t.has(r) {
		return true
	}
	if !fold {
		return false
	}
	switch {
	case 'a' <= r && r <= 'z':
		return t.has(r - 'a' + 'A')
	case 'A' <= r && r <= 'Z':
		return t.has(r - 'A' + 'a')
	}
	return false
}

func (t *token) has(r rune) bool {
	for _, s := range t.set {
		if s.lo <= r && r <= s.hi {
			return true
		}
	}
	return false
}

// Suffix returns the text after a single leading star, if the segment has that shape and minds case.
func (s *Segment) Suffix() (string, bool) {
	return s.text, s.shape == shapeSuffix && !s.dialect.Fold
}
