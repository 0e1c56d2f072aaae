package ignore

import (
	"bytes"
	"strings"

	"github.com/rigbridge/rigbridge/controllers/engine/glob"
)

// Verdict is what a List says about an entry.
type Verdict int8

// The verdicts. Silent means that no line matches.
const (
	Silent Verdict = iota
	Hidden
	Kept
)

// rule is one line of an ignore file.
type rule struct {
	keep    bool // the line begins with !
	dirOnly bool // the line ends with /
	name    *glob.Segment
	path    *glob.Path // set instead of name if the line has an inner or a leading slash
}

// List is one compiled ignore file.
type List struct {
	base  string // directory that paths in the file are relative to, absolute, without a final slash
	rules []rule
	// literal and suffix index the plain rules "name" and "*.ext"; other holds the rest. All are ascending.
	literal map[string][]int32
	suffix  map[string][]int32
	other   []int32
}

// Parse compiles the text of an ignore file whose paths are relative to base. Lines that git would not
// understand never match, as in git. It returns nil if no line is left.
func Parse(base string, text []byte) *List {
	l := &List{base: strings.TrimSuffix(base, "/")}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if r, ok := parseRule(string(line)); ok {
			l.add(r)
		}
	}
	if len(l.rules) == 0 {
		return nil
	}
	return l
}

func parseRule(line string) (rule, bool) {
	if strings.HasPrefix(line, "#") {
		return rule{}, false
	}
	line = trimBlanks(line)
	rest, keep := strings.CutPrefix(line, "!")
	r, err := compileRule(rest, glob.Dialect{Git: true})
	if err != nil || r == (rule{}) {
		return rule{}, false
	}
	r.keep = keep
	return r, true
}

// compileRule reads a pattern without its "!"; an empty one gives the empty rule.
func compileRule(pattern string, d glob.Dialect) (r rule, err error) {
	text, dirOnly := strings.CutSuffix(pattern, "/")
	if text == "" {
		return rule{}, nil
	}
	r.dirOnly = dirOnly
	if strings.Contains(text, "/") {
		text = strings.ReplaceAll(strings.TrimPrefix(text, "/"), `\/`, "/")
		r.path, err = glob.CompilePath(text, d)
	} else {
		r.name, err = glob.CompileSegment(text, d)
	}
	return r, err
}

// trimBlanks removes blanks at the end unless a backslash keeps them.
func trimBlanks(line string) string {
	keep := 0 // length up to which the line stays
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			if i+1 < len(line) {
				i++
			}
		}
		keep = i + 1
	}
	return line[:keep]
}

func (l *List) add(r rule) {
	i := int32(len(l.rules))
	l.rules = append(l.rules, r)
	if r.name != nil {
		if text, ok := r.name.Literal(); ok {
			l.literal = index(l.literal, text, i)
			return
		}
		if ext, ok := r.name.Suffix(); ok && len(ext) > 1 && strings.LastIndexByte(ext, '.') == 0 {
			l.suffix = index(l.suffix, ext, i)
			return
		}
	}
	l.other = append(l.other, i)
}

func index(m map[string][]int32, key string, i int32) map[string][]int32 {
	if m == nil {
		m = map[string][]int32{}
	}
	m[key] = append(m[key], i)
	return m
}

// Match judges the entry name of directory dir, which is base or lies below it.
func (l *List) Match(dir, name string, isDir bool) Verdict {
	best := int32(-1)
	if l.literal != nil {
		best = l.last(best, l.literal[name], dir, name, isDir)
	}
	if l.suffix != nil {
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			best = l.last(best, l.suffix[name[dot:]], dir, name, isDir)
		}
	}
	best = l.last(best, l.other, dir, name, isDir)
	switch {
	case best < 0:
		return Silent
	case l.rules[best].keep:
		return Kept
	default:
		return Hidden
	}
}

// last returns the last of the candidate rules that matches and comes after best, else best.
func (l *List) last(best int32, candidates []int32, dir, name string, isDir bool) int32 {
	for k := len(candidates) - 1; k >= 0 && candidates[k] > best; k-- {
		r := &l.rules[candidates[k]]
		if r.dirOnly && !isDir {
			continue
		}
		if r.name != nil && r.name.Match(name) || r.path != nil && l.matchPath(r.path, dir, name) {
			return candidates[k]
		}
	}
	return best
}

func (l *List) matchPath(p *glob.Path, dir, name string) bool {
	s := p.Start()
	for rest := strings.TrimPrefix(dir[len(l.base):], "/"); rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		if s = p.Step(s, part); s == 0 {
			return false
		}
	}
	return p.Done(p.Step(s, name))
}

// Select makes a List of single patterns, read as lines of an ignore file are but with characters instead of
// bytes and without comments. Match answers Hidden for what a pattern names. A malformed pattern is an error.
func Select(base string, patterns []string) (*List, error) {
	l := &List{base: strings.TrimSuffix(base, "/")}
	for _, p := range patterns {
		r, err := compileRule(p, glob.Dialect{})
		if err != nil {
			return nil, err
		}
		if r != (rule{}) {
			l.add(r)
		}
	}
	return l, nil
}
