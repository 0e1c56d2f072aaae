package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// survey finds out what git looks at to tell the state of a checkout. It begins before git is asked.
type survey struct {
	top, dir, common string
	began            time.Time
	own              *marks // git's files and its configuration
	newest           stamp  // of these
	err              error

	tracked map[string]bool // files, and the directories that hold them
	tree    *marks
	root    stamp
	max     int
}

var (
	errUnsettled = errors.New("something was changed lately, or is being changed")
	errMore      = errors.New("git looks at more than is known")
	errTooMany   = errors.New("there are too many files")
)

func newSurvey(top string) *survey {
	s := &survey{top: top, began: time.Now(), own: &marks{}}
	var ok bool
	if s.dir, s.common, ok = gitDirs(filepath.Join(top, ".git")); !ok || os.Getenv("GIT_ATTR_SOURCE") != "" {
		s.err = errMore
		return s
	}
	s.err = s.markOwn(s.ownFiles())
	return s
}

// markOwn adds files of git's. It follows links, as git does where it looks for them.
func (s *survey) markOwn(paths []string) error {
	for _, path := range paths {
		st, err := stampAt(unix.AT_FDCWD, path, 0)
		if err != nil {
			return err
		}
		s.newest = stamp{mtime: max(s.newest.mtime, st.mtime), ctime: max(s.newest.ctime, st.ctime)}
		s.own.add(path, st)
	}
	return nil
}

// ownFiles lists the places of git's files and configuration, whether there is something or not.
func (s *survey) ownFiles() []string {
	var all []string
	in := func(dir string, names ...string) {
		if dir == "" {
			return
		}
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
	}
	in(s.dir, "HEAD", "index", "config.worktree", "commondir", "info/sparse-checkout")
	in(s.common, "config", "packed-refs", "info/exclude", "info/attributes", "info/grafts", "shallow", "refs/replace")
	if head, err := readSmall(filepath.Join(s.dir, "HEAD")); err == nil {
		if ref, ok := strings.CutPrefix(head, "ref: "); ok {
			in(s.common, ref)
		}
	}
	if st, err := os.Stat(filepath.Join(s.top, ".git")); err == nil && !st.IsDir() {
		in(s.top, ".git")
	}
	if binary, err := exec.LookPath("git"); err == nil {
		if real, err := filepath.EvalSymlinks(binary); err == nil {
			in(filepath.Join(filepath.Dir(real), "..", "etc"), "gitconfig", "gitattributes")
		}
		in(filepath.Join(filepath.Dir(binary), "..", "etc"), "gitconfig", "gitattributes")
		all = append(all, binary)
	}
	in("/etc", "gitconfig", "gitattributes")
	in(os.Getenv("GIT_CONFIG_SYSTEM"), "")
	in(os.Getenv("GIT_CONFIG_GLOBAL"), "")
	home, config := os.Getenv("HOME"), os.Getenv("XDG_CONFIG_HOME")
	in(home, ".gitconfig")
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	if config != "" {
		in(filepath.Join(config, "git"), "config", "ignore", "attributes")
	}
	return all
}

// run returns the marks of the tree, or why there can be none.
func (s *survey) run(ctx context.Context, settle time.Duration, most int) (*marks, error) {
	s.max = most
	if s.err != nil {
		return nil, s.err
	}
	if !isLocal(s.top) || !isLocal(s.dir) || !isLocal(s.common) {
		return nil, errMore
	}
	still := s.began.Add(-settle)
	if !s.newest.before(still) {
		return nil, errUnsettled
	}
	for _, step := range []func(context.Context, time.Time) error{s.branch, s.configuration, s.files, s.directories} {
		if err := step(ctx, still); err != nil {
			return nil, err
		}
	}
	// Nothing of git's was changed while it was asked, and what it had found was old by then. A clock that was
	// set meanwhile would tell nothing.
	if passed := time.Since(s.began) - time.Now().Round(0).Sub(s.began.Round(0)); passed.Abs() > settle/2 {
		return nil, errUnsettled
	}
	if !s.newest.before(still) || !s.own.hold(ctx) {
		return nil, errUnsettled
	}
	return s.tree, nil
}

// branch makes sure that HEAD is a commit or a branch that is a commit.
func (s *survey) branch(context.Context, time.Time) error {
	head, err := readSmall(filepath.Join(s.dir, "HEAD"))
	if err != nil {
		return err
	}
	ref, ok := strings.CutPrefix(head, "ref: ")
	if !ok {
		return nil
	}
	if !strings.HasPrefix(ref, "refs/heads/") || ref == "refs/heads/.invalid" { // another way to keep references
		return errMore
	}
	switch id, err := readSmall(filepath.Join(s.common, ref)); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case strings.HasPrefix(id, "ref:"):
		return errMore
	}
	return nil
}

// plainExtensions are those of the repository's format that change nothing about where git looks.
var plainExtensions = []string{"extensions.noop", "extensions.objectformat", "extensions.partialclone", "extensions.preciousobjects",
	"extensions.relativeworktrees", "extensions.worktreeconfig"}

// configuration adds the files that git's configuration was read from and those that it names.
func (s *survey) configuration(ctx context.Context, _ time.Time) error {
	out, err := s.git(ctx, nil, "config", "--list", "--show-origin", "-z")
	if err != nil {
		return err
	}
	var more []string
	for len(out) >= 2 {
		origin, key, value := string(out[0]), string(out[1]), ""
		key, value, _ = strings.Cut(key, "\n")
		out = out[2:]
		if path, ok := strings.CutPrefix(origin, "file:"); ok {
			more = append(more, inside(s.top, path))
		}
		switch section, _, _ := strings.Cut(key, "."); {
		case section == "include", section == "includeif", key == "core.worktree", key == "attr.tree",
			section == "extensions" && !slices.Contains(plainExtensions, key):
			return errMore
		case key == "core.excludesfile", key == "core.attributesfile":
			if rest, ok := strings.CutPrefix(value, "~/"); ok {
				value = filepath.Join(os.Getenv("HOME"), rest)
			}
			if _, err := os.Stat(value); value != "" && (!filepath.IsAbs(value) || err != nil) {
				return errMore
			}
			if value != "" {
				more = append(more, value)
			}
		}
	}
	return s.markOwn(more)
}

// files marks what is tracked.
func (s *survey) files(ctx context.Context, still time.Time) error {
	out, err := s.git(ctx, nil, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	s.tree = &marks{dir: s.top, flags: unix.AT_SYMLINK_NOFOLLOW}
	s.tracked = make(map[string]bool, len(out))
	fd, done, err := s.tree.open()
	if err != nil {
		return err
	}
	defer done()
	if s.root, err = stampAt(fd, ".", 0); err != nil {
		return err
	}
	for _, line := range out {
		about, path, ok := strings.Cut(string(line), "\t")
		if !ok || strings.HasPrefix(about, "160000 ") { // a submodule has files of its own
			return errMore
		}
		path = strings.Clone(path) // without the rest of the line
		if s.tracked[path] {
			continue // in conflict, so there are several versions
		}
		for dir := path; dir != "." && !s.tracked[dir]; dir = filepath.Dir(dir) {
			s.tracked[dir] = true
		}
		if err := s.mark(fd, path, still, true); err != nil {
			return err
		}
	}
	return nil
}

// mark adds a file of the tree, which must have been left alone.
func (s *survey) mark(fd int, path string, still time.Time, maybe bool) error {
	st, err := stampAt(fd, path, s.tree.flags)
	switch {
	case err != nil:
		return err
	case st == stamp{}:
		if !maybe {
			return errUnsettled
		}
	case st.dev != s.root.dev: // of a file system of which nothing is known
		return errMore
	case !st.before(still):
		return errUnsettled
	}
	if len(s.tree.paths) >= s.max {
		return errTooMany
	}
	s.tree.add(path, st)
	return nil
}

// directories marks those that git reads for what is untracked: all that are not ignored. Those that hold tracked
// files are read in any case, for the attributes of these.
func (s *survey) directories(ctx context.Context, still time.Time) error {
	fd, done, err := s.tree.open()
	if err != nil {
		return err
	}
	defer done()
	for level := []string{"."}; len(level) > 0; {
		var doubtful, next []string
		for _, dir := range level {
			entries, err := os.ReadDir(filepath.Join(s.top, dir))
			if err != nil {
				return err
			}
			if err := s.mark(fd, dir, still, false); err != nil { // after it was read
				return err
			}
			for _, e := range entries {
				path := filepath.Join(dir, e.Name())
				switch name := e.Name(); {
				case name == ".git":
					if dir != "." {
						return errMore // a nested repository
					}
				case name == ".gitignore", name == ".gitattributes":
					if !e.Type().IsRegular() {
						return errMore
					}
					if err := s.mark(fd, path, still, false); err != nil {
						return err
					}
				case !e.IsDir():
				case s.tracked[path]:
					next = append(next, path)
				default:
					doubtful = append(doubtful, path)
				}
			}
		}
		if level, err = s.shown(ctx, doubtful); err != nil {
			return err
		}
		level = append(level, next...)
	}
	return nil
}

// shown leaves out the directories that are ignored.
func (s *survey) shown(ctx context.Context, dirs []string) ([]string, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	var in bytes.Buffer
	for _, dir := range dirs {
		in.WriteString("./" + dir + "\x00") // a colon at the start would mean something else
	}
	out, err := s.git(ctx, in.Bytes(), "check-ignore", "--no-index", "--stdin", "-z")
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: none is
		return nil, err
	}
	ignored := make(map[string]bool, len(out))
	for _, dir := range out {
		ignored[strings.TrimPrefix(string(dir), "./")] = true
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return ignored[dir] }), nil
}

// git returns what a git process says, without the NUL after each part.
func (s *survey) git(ctx context.Context, in []byte, args ...string) ([][]byte, error) {
	cmd := gitCommand(ctx, s.top, args...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0}), nil
}
