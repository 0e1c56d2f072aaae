package skills

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rigbridge/rigbridge/controllers/engine/ignore"
)

// maxDirs is how many directories of one place are entered.
const maxDirs = 2000

// Loose says which Markdown files of a place count besides each SKILL.md.
type Loose int

const (
	// LooseAtTop counts those in the place itself.
	LooseAtTop Loose = iota
	// LooseBelow counts those in its sub-directories.
	LooseBelow
)

// ignoreFiles hide entries of a place; a later one wins.
var ignoreFiles = []string{".gitignore", ".ignore", ".fdignore"}

// walker goes through one place.
type walker struct {
	cache   *cache
	set     *Set
	scope   string
	loose   Loose
	entered map[fileID]bool
}

// walk loads the skills of a directory and of what lies below it, entries in byte order. rules are the ignore
// files met on the way, nearest last.
func (w *walker) walk(dir string, rules []*ignore.List, top bool) {
	entries, id, err := w.cache.dir(dir)
	if err != nil || w.entered[id] || len(w.entered) >= maxDirs {
		return
	}
	rules = w.withIgnoreFiles(dir, rules, entries)
	if file, ok := w.skillFile(dir, rules, entries); ok {
		w.set.addFile(w.cache, file, w.scope, false)
		return
	}
	w.entered[id] = true
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || name == "node_modules" {
			continue
		}
		path := filepath.Join(dir, name)
		switch mode := kindOf(path, e); {
		case mode.IsDir():
			if !hidden(rules, dir, name, true) {
				w.walk(path, rules, false)
			}
		case mode.IsRegular() && top == (w.loose == LooseAtTop) && strings.HasSuffix(name, ".md"):
			if !hidden(rules, dir, name, false) {
				w.set.addFile(w.cache, path, w.scope, true)
			}
		}
	}
}

// skillFile returns the SKILL.md of a directory, if it has one that is not ignored.
func (w *walker) skillFile(dir string, rules []*ignore.List, entries []fs.DirEntry) (string, bool) {
	const name = "SKILL.md"
	for _, e := range entries {
		if e.Name() == name {
			path := filepath.Join(dir, name)
			return path, kindOf(path, e).IsRegular() && !hidden(rules, dir, name, false)
		}
	}
	return "", false
}

// withIgnoreFiles adds the rules of a directory's own ignore files.
func (w *walker) withIgnoreFiles(dir string, rules []*ignore.List, entries []fs.DirEntry) []*ignore.List {
	for _, name := range ignoreFiles {
		for _, e := range entries {
			if e.Name() != name {
				continue
			}
			list, _, err := file(w.cache, kindIgnore, filepath.Join(dir, name), func(text string) *ignore.List {
				return ignore.Parse(dir, []byte(text))
			})
			if err == nil && list != nil {
				rules = append(rules[:len(rules):len(rules)], list)
			}
		}
	}
	return rules
}

// hidden says whether the last rule that knows an entry hides it.
func hidden(rules []*ignore.List, dir, name string, isDir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if v := rules[i].Match(dir, name, isDir); v != ignore.Silent {
			return v == ignore.Hidden
		}
	}
	return false
}

// kindOf returns the type of an entry, links followed; a link that leads nowhere stays a link.
func kindOf(path string, e fs.DirEntry) fs.FileMode {
	if e.Type()&fs.ModeSymlink != 0 {
		if st, err := os.Stat(path); err == nil {
			return st.Mode().Type()
		}
	}
	return e.Type()
}
