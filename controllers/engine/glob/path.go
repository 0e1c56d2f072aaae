package glob

import (
	"errors"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxParts is what a State can tell apart.
const maxParts = 62

// ErrTooDeep is returned for a pattern with more parts than any path on the system has use for.
var ErrTooDeep = errors.New("the pattern has more than 62 parts between slashes")

// State says how much of a Path the parts seen so far can have matched; the zero State means that nothing
// below can match.
type State uint64

// Path is a compiled pattern over the parts of a path. It is immutable.
type Path struct {
	parts []*Segment // nil stands for **
}

// CompilePath reads a pattern without braces; slashes separate its parts and a part "**" stands for any
// number of parts, at the end for at least one.
func CompilePath(pattern string, d Dialect) (*Path, error) {
	p := &Path{}
	for _, part := range splitParts(pattern, d) {
		if isDoubleStar(part, d) {
			if n := len(p.parts); n == 0 || p.parts[n-1] != nil {
				p.parts = append(p.parts, nil)
			}
			continue
		}
		seg, err := CompileSegment(part, d)
		if err != nil {
			return nil, err
		}
		p.parts = append(p.parts, seg)
	}
	if len(p.parts) > maxParts {
		return nil, ErrTooDeep
	}
	return p, nil
}

// splitParts cuts at the slashes outside of classes; a slash inside of a class is one of its characters.
func splitParts(pattern string, d Dialect) []string {
	var out []string
	from := 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '/':
			out = append(out, pattern[from:i])
			from = i + 1
		case '\\':
			i++
		case '[':
			if _, n, err := parseClass(pattern[i:], d); err == nil {
				i += n - 1
			}
		}
	}
	return append(out, pattern[min(from, len(pattern)):])
}

// isDoubleStar knows that ignore files take any longer run of stars the same way.
func isDoubleStar(part string, d Dialect) bool {
	return part == "**" || d.Git && len(part) > 2 && strings.Trim(part, "*") == ""
}

// Start is the state before the first part.
func (p *Path) Start() State { return p.closure(0) }

// closure is the state at part i, which for an inner ** includes the state behind it.
func (p *Path) closure(i int) State {
	s := State(1) << i
	if i < len(p.parts)-1 && p.parts[i] == nil {
		s |= State(1) << (i + 1)
	}
	return s
}

// Step goes one part further down.
func (p *Path) Step(s State, name string) State {
	var next State
	for i, seg := range p.parts {
		switch bit := State(1) << i; {
		case s&bit == 0:
		case seg == nil:
			next |= p.closure(i)
			if i == len(p.parts)-1 {
				next |= bit << 1
			}
		case seg.Match(name):
			next |= p.closure(i + 1)
		}
	}
	return next
}

// Done says whether the parts seen so far are a match.
func (p *Path) Done(s State) bool { return s&(State(1)<<len(p.parts)) != 0 }

// Open says whether parts below could still make a match.
func (p *Path) Open(s State) bool { return s&(State(1)<<len(p.parts)-1) != 0 }

// Match matches a whole path.
func (p *Path) Match(path string) bool {
	s := p.Start()
	for more := true; more; {
		var part string
		part, path, more = strings.Cut(path, "/")
		if s = p.Step(s, part); s == 0 {
			return false
		}
	}
	return p.Done(s)
}

// Composed is the form in which patterns and names are to be compared where both spellings of an accented
// letter count as one.
func Composed(name string) string {
	for i := 0; i < len(name); i++ {
		if name[i] >= 0x80 {
			return norm.NFC.String(name)
		}
	}
	return name
}
