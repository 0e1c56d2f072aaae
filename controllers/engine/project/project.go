// Package project finds out to which project a directory belongs, and what state its git checkout is in.
//
// Discovery reads git's own files and starts no process: a project's identity must not depend on git being
// installed. The state of the checkout comes from one git process that takes no locks and has two seconds.
package project

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// stateWait is how long git may take to tell the state of a checkout.
const stateWait = 2 * time.Second

// Project is what a directory belongs to.
type Project struct {
	// Root is the top directory: of the checkout, or the directory itself.
	Root string
	// Identity is "git:" and the git common directory, which subdirectories and worktrees share, or
	// "directory:" and the directory.
	Identity string
	// Git says whether Root is a git checkout with a working tree.
	Git bool
}

// Discover finds the project of a directory, which must be absolute and without links.
func Discover(cwd string) Project {
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if common, ok := commonDir(filepath.Join(dir, ".git")); ok {
			return Project{Root: dir, Identity: "git:" + common, Git: true}
		}
		if isGitDir(dir) {
			return Project{Root: dir, Identity: "git:" + dir}
		}
		if dir == filepath.Dir(dir) {
			return Project{Root: cwd, Identity: "directory:" + cwd}
		}
	}
}

// commonDir resolves a .git entry, a directory or a file that points to one (gitrepository-layout(5)).
func commonDir(dotGit string) (string, bool) {
	st, err := os.Stat(dotGit)
	if err != nil {
		return "", false
	}
	dir := dotGit
	if !st.IsDir() {
		text, err := readSmall(dotGit)
		target, ok := strings.CutPrefix(text, "gitdir: ")
		if err != nil || !ok {
			return "", false
		}
		dir = inside(filepath.Dir(dotGit), target)
	}
	if text, err := readSmall(filepath.Join(dir, "commondir")); err == nil {
		dir = inside(dir, text)
	}
	if !isGitDir(dir) {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir, true
}

func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func readSmall(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", fs.ErrInvalid
	}
	b := make([]byte, 8192)
	n, err := f.Read(b)
	return strings.TrimRight(string(b[:n]), "\r\n"), err
}

func inside(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Checkout is the state of a git checkout.
type Checkout struct {
	// Root is its top directory.
	Root string `json:"root"`
	// Head is the commit checked out, nil on a branch without one.
	Head *string `json:"head"`
	// Branch is the branch checked out, nil when detached.
	Branch *string `json:"branch"`
	// Dirty says whether anything differs from Head, untracked files included; nil when it is not known.
	Dirty *bool `json:"dirty"`
	// Note says what is not known, and why.
	Note string `json:"note,omitempty"`
}

// State asks git for the state of a checkout. It returns nil if the project has no working tree.
func State(ctx context.Context, p Project) *Checkout {
	if !p.Git {
		return nil
	}
	c := &Checkout{Root: p.Root}
	ctx, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--untracked-files=normal", "-z")
	cmd.Dir = p.Root
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.Note = "git could not be started, so the state of the checkout is not known"
		return c
	}
	complete := c.read(out)
	changed := c.Dirty != nil && *c.Dirty
	if changed {
		cancel() // the first change says all
	}
	werr := cmd.Wait()
	switch {
	case complete && (werr == nil || changed): // git was ended after the first change
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		c.Note = "git did not answer within 2 seconds, so it is not known whether the checkout is dirty"
		c.Dirty = nil
	case werr != nil:
		c.Note = "git could not tell the state of the checkout"
		c.Dirty = nil
	}
	return c
}

// read takes the header lines and stops at the first change. It reports whether it could tell dirty or clean.
func (c *Checkout) read(out interface{ Read([]byte) (int, error) }) bool {
	s := bufio.NewScanner(out)
	s.Buffer(make([]byte, 0, 64<<10), 1<<20)
	s.Split(splitNUL)
	for s.Scan() {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "# branch.oid "):
			if oid := line[len("# branch.oid "):]; oid != "(initial)" {
				c.Head = &oid
			}
		case strings.HasPrefix(line, "# branch.head "):
			if name := line[len("# branch.head "):]; name != "(detached)" {
				c.Branch = &name
			}
		case strings.HasPrefix(line, "#"):
		default:
			dirty := true
			c.Dirty = &dirty
			return true
		}
	}
	clean := false
	c.Dirty = &clean
	return s.Err() == nil
}

func splitNUL(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
