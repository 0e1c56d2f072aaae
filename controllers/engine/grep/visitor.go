package grep

import (
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/rigbridge/rigbridge/controllers/engine/glob"
	"github.com/rigbridge/rigbridge/controllers/engine/grep/pattern"
	"github.com/rigbridge/rigbridge/controllers/engine/ignore"
	"github.com/rigbridge/rigbridge/controllers/engine/walk"
)

// file is what one file adds to the answer.
type file struct {
	name    string // relative to the search directory
	rows    []row
	matches int
}

// visitor searches the files of a walk.
type visitor struct {
	matcher *pattern.Matcher
	rules   rules
	filter  *filter
	scans   []*scan // one for each worker, made when first used
	// unreadable counts files that could not be read.
	unreadable atomic.Int64
}

// Wants takes the regular files that the glob lets through.
func (v *visitor) Wants(d *walk.Dir, name string, t walk.Type) bool {
	return t == walk.File && v.filter.file(d.Path, name)
}

// Enter goes into every directory that the glob does not exclude.
func (v *visitor) Enter(d *walk.Dir, name string) (any, bool) {
	return nil, v.filter.directory(d.Path, name)
}

// Weight counts matching lines.
func (v *visitor) Weight(f file) int { return f.matches }

// Visit searches files.
func (v *visitor) Visit(w *walk.Worker, d *walk.Dir, items []walk.Item) []file {
	s := v.scans[w.ID]
	if s == nil {
		s = newScan(v.matcher)
		v.scans[w.ID] = s
	}
	var out []file
	for _, it := range items {
		if w.Stopped() {
			break
		}
		path := d.Path + "/" + it.Name
		if rows, n := v.search(w, s, path); n > 0 {
			out = append(out, file{name: d.Rel + it.Name, rows: rows, matches: n})
		}
	}
	return out
}

func (v *visitor) search(w *walk.Worker, s *scan, path string) ([]row, int) {
	d, err := open(path)
	if err != nil {
		v.failed(path)
		return nil, 0
	}
	defer d.close()
	r := v.rules
	r.stopped = w.Stopped
	rows, n, err := s.run(d, r)
	if err != nil {
		v.failed(path)
	}
	return rows, n
}

// failed counts a file that cannot be read; one that has gone or turned into something else is no failure.
func (v *visitor) failed(path string) {
	if walk.IsFile(path) {
		v.unreadable.Add(1)
	}
}

// filter is the glob argument. The nil filter lets everything through.
type filter struct {
	list    *ignore.List
	exclude bool
}

// newFilter reads a glob in the style of ignore files, with braces; "!" in front excludes.
func newFilter(root, pattern string) (*filter, error) {
	if pattern == "" {
		return nil, nil
	}
	rest, exclude := strings.CutPrefix(pattern, "!")
	alternatives, err := glob.ExpandBraces(glob.Composed(rest))
	if err != nil {
		return nil, err
	}
	list, err := ignore.Select(filepath.Clean(root), alternatives)
	if err != nil {
		return nil, err
	}
	return &filter{list: list, exclude: exclude}, nil
}

func (f *filter) file(dir, name string) bool {
	return f == nil || f.names(dir, name, false) != f.exclude
}

func (f *filter) directory(dir, name string) bool {
	return f == nil || !f.exclude || !f.names(dir, name, true)
}

func (f *filter) names(dir, name string, isDir bool) bool {
	return f.list.Match(dir, glob.Composed(name), isDir) == ignore.Hidden
}
