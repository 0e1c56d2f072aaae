package find

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/glob"
	"github.com/rigbridge/rigbridge/controllers/engine/ignore"
	"github.com/rigbridge/rigbridge/controllers/engine/walk"
)

// matcher is a compiled pattern; it is the walk's visitor. Either names or paths is set.
type matcher struct {
	names []*glob.Segment
	paths []*glob.Path
	// literal is the pattern if it has no wildcard.
	literal string
	// git is set when the pattern names .git itself.
	git bool
	// absolute is set when paths are matched from the root of the file system.
	absolute bool
}

func compile(pattern string) (*matcher, error) {
	text := glob.Composed(pattern)
	d := glob.Dialect{Fold: !strings.ContainsFunc(text, unicode.IsUpper)}
	m := &matcher{git: slices.Contains(strings.Split(text, "/"), ignore.GitDir)}
	if !glob.HasMeta(pattern) {
		m.literal = pattern
	}
	alternatives, err := glob.ExpandBraces(text)
	if err != nil {
		return nil, invalid(pattern, err)
	}
	if !strings.Contains(text, "/") {
		for _, a := range alternatives {
			seg, err := glob.CompileSegment(a, d)
			if err != nil {
				return nil, invalid(pattern, err)
			}
			m.names = append(m.names, seg)
		}
		return m, nil
	}
	m.absolute = strings.HasPrefix(text, "/")
	for _, a := range alternatives {
		switch {
		case m.absolute:
			a = a[1:]
		case !strings.HasPrefix(text, "**/"):
			a = "**/" + a
		}
		p, err := glob.CompilePath(a, d)
		if err != nil {
			return nil, invalid(pattern, err)
		}
		m.paths = append(m.paths, p)
	}
	return m, nil
}

func invalid(pattern string, err error) error {
	return &engine.Error{Reason: engine.InvalidPattern, Err: err,
		Message: fmt.Sprintf("Invalid glob pattern %q: %s.", pattern, err)}
}

// start is the state at the search root. ok is false if nothing below root can match.
func (m *matcher) start(root string) (data any, ok bool) {
	if m.paths == nil {
		return nil, true
	}
	states := make([]glob.State, len(m.paths))
	for i, p := range m.paths {
		states[i] = p.Start()
		if !m.absolute {
			continue
		}
		for part := range strings.SplitSeq(strings.Trim(root, "/"), "/") {
			if part != "" {
				states[i] = p.Step(states[i], glob.Composed(part))
			}
		}
	}
	return states, m.open(states)
}

func (m *matcher) open(states []glob.State) bool {
	for i, p := range m.paths {
		if p.Open(states[i]) {
			return true
		}
	}
	return false
}

// Wants matches an entry.
func (m *matcher) Wants(d *walk.Dir, name string, _ walk.Type) bool {
	name = glob.Composed(name)
	for _, seg := range m.names {
		if seg.Match(name) {
			return true
		}
	}
	if m.paths == nil {
		return false
	}
	for i, s := range d.Data.([]glob.State) {
		if p := m.paths[i]; p.Done(p.Step(s, name)) {
			return true
		}
	}
	return false
}

// Enter goes down wherever something can still match.
func (m *matcher) Enter(d *walk.Dir, name string) (any, bool) {
	if m.paths == nil {
		return nil, true
	}
	name = glob.Composed(name)
	states := slices.Clone(d.Data.([]glob.State))
	for i, p := range m.paths {
		states[i] = p.Step(states[i], name)
	}
	return states, m.open(states)
}

// Visit makes the rows.
func (m *matcher) Visit(_ *walk.Worker, d *walk.Dir, items []walk.Item) []string {
	rows := make([]string, len(items))
	for i, it := range items {
		rows[i] = d.Rel + it.Name
		if it.Type == walk.Directory {
			rows[i] += "/"
		}
	}
	return rows
}

// Weight counts every row as one.
func (m *matcher) Weight(string) int { return 1 }
