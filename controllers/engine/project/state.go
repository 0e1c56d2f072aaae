package project

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// stateWait is how long git may take to tell the state of a checkout.
const stateWait = 2 * time.Second

const tooSlow = "git did not answer within 2 seconds, so it is not known whether the checkout is dirty"

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

// State tells the state of a checkout. It returns nil if the project has no working tree.
func State(ctx context.Context, p Project) *Checkout { return shared.state(ctx, p) }

// ask has git look at the checkout that a directory belongs to. The caller's deadline is stateWait.
func ask(ctx context.Context, dir string) *Checkout {
	c := &Checkout{Root: dir}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := gitCommand(ctx, dir, "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--no-renames", "--untracked-files=normal", "-z")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		c.Note = tooSlow
		return c
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
		c.Note = tooSlow
		c.Dirty = nil
	case werr != nil:
		c.Note = "git could not tell the state of the checkout"
		c.Dirty = nil
	}
	return c
}

// gitCommand is a git process that takes no locks and asks nobody, in the repository of a directory whatever the
// environment says of another one (git rev-parse --local-env-vars).
func gitCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(ofOneRepository, name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	return cmd
}

// ofOneRepository are variables that a git hook, say, has in its environment: they are about its repository.
var ofOneRepository = []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE",
	"GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_REPLACE_REF_BASE",
	"GIT_SHALLOW_FILE", "GIT_WORK_TREE"}

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
