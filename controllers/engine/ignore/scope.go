package ignore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Names of the files that hold rules, and of the entry that marks a repository.
const (
	GitIgnore = ".gitignore"
	DotIgnore = ".ignore"
	GitDir    = ".git"
)

// maxFileSize bounds how much of an ignore file is read, bytes.
const maxFileSize = 4 << 20

// Config says which rules a tool obeys besides those of git.
type Config struct {
	// Own is the name of the tool's own ignore file, ".fdignore" or ".rgignore".
	Own string
	// Account is an account-wide file of the tool's own rules, absolute; empty for none.
	Account string
	// Home and ConfigHome locate the account's git configuration.
	Home, ConfigHome string
}

// Scope is the set of rules in force in one directory. The nil Scope hides nothing.
type Scope struct {
	parent  *Scope
	own     *List
	dot     *List
	git     *List
	exclude *List
	// repository is set where rules of git from above end.
	repository bool
	*settings
}

type settings struct {
	config  Config
	inRepo  bool
	account []*List // lowest precedence, the first that speaks wins
}

// ForRoot returns the rules that directories above root, the account and the system impose on it. root is
// absolute and free of links. Call Enter with root itself before judging its entries.
func ForRoot(root string, c Config) *Scope {
	above := ancestors(root)
	repo := nearestRepository(append(above[:len(above):len(above)], root))
	base := repo
	if base == "" {
		base = root
	}
	s := &Scope{settings: &settings{config: c, inRepo: repo != "", account: accountLists(base, c)}}
	for _, dir := range above {
		s = s.Enter(dir, probe(dir, c))
	}
	return s
}

// nearestRepository returns the last of the nested directories that is the root of a repository, or "".
func nearestRepository(nested []string) string {
	for i := len(nested) - 1; i >= 0; i-- {
		if exists(filepath.Join(nested[i], GitDir)) {
			return nested[i]
		}
	}
	return ""
}

// ancestors lists the directories above dir, outermost first.
func ancestors(dir string) []string {
	var out []string
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		out = append(out, parent)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil
}

// Present tells which files of interest a directory has, so that none is looked for in vain.
type Present struct{ Own, Dot, Git, Repository bool }

// Note records the entry name of a listing.
func (p *Present) Note(name string, own string) {
	switch name {
	case own:
		p.Own = true
	case DotIgnore:
		p.Dot = true
	case GitIgnore:
		p.Git = true
	case GitDir:
		p.Repository = true
	}
}

func probe(dir string, c Config) Present {
	return Present{Own: exists(filepath.Join(dir, c.Own)), Dot: exists(filepath.Join(dir, DotIgnore)),
		Git: exists(filepath.Join(dir, GitIgnore)), Repository: exists(filepath.Join(dir, GitDir))}
}

// Own returns the name of the tool's own ignore file.
func (s *Scope) Own() string {
	if s == nil {
		return ""
	}
	return s.config.Own
}

// Enter returns the rules in force inside dir, an entry of the directory that s belongs to.
func (s *Scope) Enter(dir string, has Present) *Scope {
	if s == nil || has == (Present{}) {
		return s
	}
	in := &Scope{parent: s, settings: s.settings, repository: has.Repository && s.inRepo}
	if has.Own {
		in.own = parseFile(dir, filepath.Join(dir, s.config.Own), 0)
	}
	if has.Dot {
		in.dot = parseFile(dir, filepath.Join(dir, DotIgnore), 0)
	}
	if has.Git {
		in.git = parseFile(dir, filepath.Join(dir, GitIgnore), unix.O_NOFOLLOW)
	}
	if has.Repository {
		in.exclude = parseFile(dir, excludeFile(dir), 0)
	}
	return in
}

// Hides says whether the entry name of directory dir is ignored. dir is the directory that s belongs to or
// lies below it without ignore files in between.
func (s *Scope) Hides(dir, name string, isDir bool) bool {
	if s == nil {
		return false
	}
	for at := s; at != nil; at = at.parent {
		if v := at.own.judge(dir, name, isDir); v != Silent {
			return v == Hidden
		}
	}
	for at := s; at != nil; at = at.parent {
		if v := at.dot.judge(dir, name, isDir); v != Silent {
			return v == Hidden
		}
	}
	for at := s; at != nil; at = at.parent {
		if v := at.git.judge(dir, name, isDir); v != Silent {
			return v == Hidden
		}
		if at.repository {
			break
		}
	}
	for at := s; at != nil; at = at.parent {
		if v := at.exclude.judge(dir, name, isDir); v != Silent {
			return v == Hidden
		}
		if at.repository {
			break
		}
	}
	for _, l := range s.account {
		if v := l.judge(dir, name, isDir); v != Silent {
			return v == Hidden
		}
	}
	return false
}

func (l *List) judge(dir, name string, isDir bool) Verdict {
	if l == nil {
		return Silent
	}
	return l.Match(dir, name, isDir)
}

func parseFile(base, path string, flags int) *List {
	text, err := readSmall(path, flags)
	if err != nil {
		return nil // unreadable rules hide nothing, as in git
	}
	return Parse(base, text)
}

var errNotRegular = errors.New("not a regular file")

// readSmall reads a configuration file without ever blocking on a FIFO or a device.
func readSmall(path string, flags int) ([]byte, error) {
	if path == "" {
		return nil, fs.ErrNotExist
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return io.ReadAll(io.LimitReader(f, maxFileSize))
}

// excludeFile locates info/exclude of the repository whose root is dir; .git may be a file that names the
// directory, and a worktree shares the file of its main repository.
func excludeFile(dir string) string {
	gitDir := filepath.Join(dir, GitDir)
	if text, err := readSmall(gitDir, 0); err == nil {
		target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
		if !ok {
			return ""
		}
		gitDir = absolute(dir, strings.TrimSpace(target))
	}
	if text, err := readSmall(filepath.Join(gitDir, "commondir"), 0); err == nil {
		gitDir = absolute(gitDir, strings.TrimSpace(string(text)))
	}
	return filepath.Join(gitDir, "info", "exclude")
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}
