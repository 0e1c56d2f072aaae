package project

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// checkout is a repository that the tests change, with a memory of its own.
type checkout struct {
	t   *testing.T
	m   *memory
	dir string
}

// newCheckout makes a committed project. Files are settled sooner than they are for the product, but later than any
// file system's clock ticks.
func newCheckout(t *testing.T) *checkout {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is needed")
	}
	c := &checkout{t: t, m: newMemory(50 * time.Millisecond), dir: tempDir(t)}
	c.m.later = func(f func()) { f() }
	if !isLocal(c.dir) {
		t.Skip("nothing is remembered on the file system of " + c.dir)
	}
	c.must(os.CopyFS(c.dir, os.DirFS(filepath.Join(home, "template"))))
	c.mkdir("empty/below")
	c.git("status")
	return c
}

// branchOff commits a change on a branch other, and returns to main.
func (c *checkout) branchOff() {
	c.git("checkout", "-qb", "other")
	c.put("a.txt", "ONE\n")
	c.git("commit", "-qam", "second")
	c.git("checkout", "-q", "main")
}

// diverge commits different changes of the same line on a branch other and on main.
func (c *checkout) diverge() {
	c.branchOff()
	c.put("a.txt", "EIN\n")
	c.git("commit", "-qam", "third")
}

// home is the account's directory, without any configuration.
var home string

// TestMain makes the repository that newCheckout copies.
func TestMain(m *testing.M) {
	var err error
	if home, err = os.MkdirTemp("", "project-"); err != nil {
		panic(err)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		os.Unsetenv(name)
	}
	os.Setenv("HOME", home)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir := filepath.Join(home, "template")
	for name, text := range map[string]string{"a.txt": "one\n", "dir/b.txt": "two\n", "dir/deep/c.txt": "three\n", "other/d.txt": "four\n",
		".gitignore": "*.log\n/build/\n", "build/out/x": "", "dir/e.log": "", ".venv/.gitignore": "*\n", ".venv/lib/x.py": ""} {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	err = errors.Join(err, os.Symlink("a.txt", filepath.Join(dir, "link")))
	if _, lookErr := exec.LookPath("git"); lookErr == nil {
		for _, args := range [][]string{{"-c", "init.defaultBranch=main", "init", "-q"}, {"config", "user.name", "n"}, {"config", "user.email", "e@example.com"},
			{"add", "-A"}, {"commit", "-q", "-m", "first"}} {
			err = errors.Join(err, exec.Command("git", append([]string{"-C", dir}, args...)...).Run())
		}
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

func (c *checkout) path(name string) string { return filepath.Join(c.dir, name) }

func (c *checkout) git(args ...string) { c.t.Helper(); git(c.t, c.dir, args...) }

func (c *checkout) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *checkout) mkdir(name string) { c.t.Helper(); c.must(os.MkdirAll(c.path(name), 0o755)) }

func (c *checkout) put(name, text string) {
	c.t.Helper()
	c.mkdir(filepath.Dir(name))
	c.must(os.WriteFile(c.path(name), []byte(text), 0o644))
}

func (c *checkout) link(to, name string) { c.t.Helper(); c.must(os.Symlink(to, c.path(name))) }
func (c *checkout) remove(name string)   { c.t.Helper(); c.must(os.RemoveAll(c.path(name))) }
func (c *checkout) rename(old, name string) {
	c.t.Helper()
	c.must(os.Rename(c.path(old), c.path(name)))
}
func (c *checkout) chmod(n string, m uint32) {
	c.t.Helper()
	c.must(os.Chmod(c.path(n), os.FileMode(m)))
}

func (c *checkout) touch(name string) {
	c.t.Helper()
	now := time.Now()
	c.must(os.Chtimes(c.path(name), now, now))
}

// state is what the memory says, which must be what git says.
func (c *checkout) state() *Checkout {
	c.t.Helper()
	got, want := c.m.state(c.t.Context(), Discover(c.dir)), ask(c.t.Context(), c.dir)
	if show(got) != show(want) {
		c.t.Fatalf("got %s, git says %s", show(got), show(want))
	}
	return got
}

func show(c *Checkout) string {
	text := "head " + deref(c.Head) + ", branch " + deref(c.Branch)
	if c.Dirty != nil {
		text += fmt.Sprint(", dirty ", *c.Dirty)
	}
	return text + c.Note
}

func deref(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// settle waits until the state is remembered and makes sure that it is then told without git.
func (c *checkout) settle() {
	c.t.Helper()
	if !c.settled() {
		c.t.Fatalf("the state is not remembered: %v", c.m.why)
	}
}

func (c *checkout) settled() bool {
	c.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c.state()
		if c.m.of[c.dir] != nil {
			break
		}
		if !errors.Is(c.m.why, errUnsettled) || time.Since(began) > time.Minute {
			return false
		}
	}
	asked := c.m.asked
	if c.state(); c.m.asked != asked {
		c.t.Fatalf("git was asked %d times though nothing has changed", c.m.asked-asked)
	}
	return true
}

const (
	clean = false
	dirty = true
)

// changes are all kinds of change to a checkout that was clean, or that prepare has made what it is; and whether it
// is dirty then.
var changes = []struct {
	name    string
	prepare func(*checkout)
	change  func(*checkout)
	dirty   bool
	silent  bool // git does not look there
}{
	{name: "touched", change: func(c *checkout) { c.touch("a.txt") }},
	{name: "same size", change: func(c *checkout) { c.put("a.txt", "ONE\n") }, dirty: dirty},
	{name: "same size and time", change: func(c *checkout) {
		st, err := os.Stat(c.path("dir/b.txt"))
		c.must(err)
		c.put("dir/b.txt", "TWO\n")
		c.must(os.Chtimes(c.path("dir/b.txt"), st.ModTime(), st.ModTime()))
	}, dirty: dirty},
	{name: "other size", change: func(c *checkout) { c.put("dir/deep/c.txt", "3\n") }, dirty: dirty},
	{name: "other size again", prepare: func(c *checkout) { c.put("a.txt", "1\n") }, change: func(c *checkout) { c.put("a.txt", "one\n") }},
	{name: "executable", change: func(c *checkout) { c.chmod("a.txt", 0o755) }, dirty: dirty},
	{name: "deleted", change: func(c *checkout) { c.remove("other/d.txt") }, dirty: dirty},
	{name: "directory deleted", change: func(c *checkout) { c.remove("dir") }, dirty: dirty},
	{name: "back again", prepare: func(c *checkout) { c.remove("dir/deep") }, change: func(c *checkout) { c.put("dir/deep/c.txt", "three\n") }},
	{name: "renamed", change: func(c *checkout) { c.rename("a.txt", "z.txt") }, dirty: dirty},
	{name: "renamed to what is ignored", change: func(c *checkout) { c.rename("a.txt", "a.log") }, dirty: dirty},
	{name: "replaced by a copy", change: func(c *checkout) { c.put("n.log", "one\n"); c.rename("n.log", "a.txt") }},
	{name: "replaced by a link", change: func(c *checkout) { c.rename("a.txt", "a.log"); c.link("a.log", "a.txt") }, dirty: dirty},
	{name: "replaced by a directory", change: func(c *checkout) { c.remove("a.txt"); c.mkdir("a.txt") }, dirty: dirty},
	{name: "link elsewhere", change: func(c *checkout) { c.remove("link"); c.link("b.txt", "link") }, dirty: dirty},
	{name: "directory becomes a link", change: func(c *checkout) { c.rename("other", "build/other"); c.link("build/other", "other") }, dirty: dirty},
	{name: "untracked", change: func(c *checkout) { c.put("new", "") }, dirty: dirty},
	{name: "untracked below", change: func(c *checkout) { c.put("dir/deep/new", "") }, dirty: dirty},
	{name: "untracked in what was empty", change: func(c *checkout) { c.put("empty/below/new", "") }, dirty: dirty},
	{name: "untracked goes", prepare: func(c *checkout) { c.put("x/y/z", "") }, change: func(c *checkout) { c.remove("x/y/z") }},
	{name: "empty directory", change: func(c *checkout) { c.mkdir("dir/new/newer") }},
	{name: "ignored", change: func(c *checkout) { c.put("dir/new.log", "") }},
	{name: "ignored, content", change: func(c *checkout) { c.put("dir/e.log", "x") }, silent: true},
	{name: "in an ignored directory", change: func(c *checkout) { c.put("build/new/x", "") }, silent: true},
	{name: "tracked in an ignored directory", prepare: func(c *checkout) { c.git("add", "-f", "build/out/x"); c.git("commit", "-qm", "x") },
		change: func(c *checkout) { c.put("build/out/x", "new") }, dirty: dirty},
	{name: ".gitignore", change: func(c *checkout) { c.put(".gitignore", "*.txt\n/build/\n") }, dirty: dirty},
	{name: ".gitignore of its own", change: func(c *checkout) { c.put(".venv/.gitignore", "y\n") }, dirty: dirty},
	{name: ".gitignore below", change: func(c *checkout) { c.put("dir/.gitignore", "!e.log\n.gitignore\n") }, dirty: dirty},
	{name: "no longer excluded", prepare: func(c *checkout) { c.put(".git/info/exclude", "new\n"); c.put("new", "") },
		change: func(c *checkout) { c.put(".git/info/exclude", "neu\n") }, dirty: dirty},
	{name: "excluded", prepare: func(c *checkout) { c.remove(".git/info"); c.put("new", "") }, change: func(c *checkout) { c.put(".git/info/exclude", "new\n") }},
	{name: "excludesFile", prepare: func(c *checkout) { c.put("new", "") }, change: func(c *checkout) {
		c.put("build/own", "new\n")
		c.git("config", "core.excludesFile", c.path("build/own"))
	}},
	{name: "excludesFile changed", prepare: func(c *checkout) {
		c.put("build/own", "new\n")
		c.git("config", "core.excludesFile", c.path("build/own"))
		c.put("new", "")
	}, change: func(c *checkout) { c.put("build/own", "") }, dirty: dirty},
	{name: "excludesFile gone", prepare: func(c *checkout) {
		c.put("build/own", "new\n")
		c.git("config", "core.excludesFile", c.path("build/own"))
		c.put("new", "")
	}, change: func(c *checkout) { c.remove("build/own") }, dirty: dirty},
	{name: "configuration", prepare: func(c *checkout) { c.chmod("a.txt", 0o755) }, change: func(c *checkout) { c.git("config", "core.fileMode", "false") }},
	{name: "attributes", prepare: func(c *checkout) { c.git("config", "filter.x.clean", "tr a-z A-Z"); c.touch("a.txt") },
		change: func(c *checkout) { c.put(".git/info/attributes", "a.txt filter=x\n") }, dirty: dirty},
	{name: ".gitattributes in an ignored directory", prepare: func(c *checkout) {
		c.git("add", "-f", "build/out/x")
		c.git("commit", "-qm", "x")
		c.git("config", "filter.x.clean", "echo y")
		c.put("build/.gitattributes", "\n")
		c.touch("build/out/x")
	}, change: func(c *checkout) { c.put("build/.gitattributes", "x filter=x\n") }, dirty: dirty},
	{name: "staged", change: func(c *checkout) { c.put("a.txt", "ONE\n"); c.git("add", "a.txt") }, dirty: dirty},
	{name: "staged, file as before", change: func(c *checkout) { c.git("rm", "-q", "--cached", "a.txt"); c.put(".git/info/exclude", "a.txt\n") }, dirty: dirty},
	{name: "intended to add", prepare: func(c *checkout) { c.put("n.log", "") }, change: func(c *checkout) { c.git("add", "-fN", "n.log") }, dirty: dirty},
	{name: "committed", prepare: func(c *checkout) { c.put("a.txt", "ONE\n") }, change: func(c *checkout) { c.git("commit", "-qam", "second") }},
	{name: "empty commit", change: func(c *checkout) { c.git("commit", "-q", "--allow-empty", "-m", "second") }},
	{name: "other branch", change: func(c *checkout) { c.git("checkout", "-qb", "feature/one") }},
	{name: "detached", change: func(c *checkout) { c.git("checkout", "-q", "--detach") }},
	{name: "unborn", change: func(c *checkout) { c.git("symbolic-ref", "HEAD", "refs/heads/none") }, dirty: dirty},
	{name: "unborn and empty", prepare: func(c *checkout) {
		c.git("rm", "-qrf", ".")
		c.git("symbolic-ref", "HEAD", "refs/heads/none")
		c.remove(".venv")
		c.remove("build")
		c.remove("dir")
	}, change: func(c *checkout) { c.put("first", "") }, dirty: dirty},
	{name: "branch moved", prepare: func(c *checkout) { c.put("a.txt", "ONE\n"); c.git("commit", "-qam", "second") },
		change: func(c *checkout) { c.git("update-ref", "refs/heads/main", "HEAD~1") }, dirty: dirty},
	{name: "packed branch moved", prepare: func(c *checkout) {
		c.put("a.txt", "ONE\n")
		c.git("commit", "-qam", "second")
		c.git("pack-refs", "--all", "--prune")
	}, change: func(c *checkout) { c.git("update-ref", "refs/heads/main", "HEAD~1") }, dirty: dirty},
	{name: "references packed", change: func(c *checkout) { c.git("pack-refs", "--all", "--prune") }},
	{name: "all packed", change: func(c *checkout) { c.git("gc", "-q") }},
	{name: "replaced commit", prepare: (*checkout).branchOff, change: func(c *checkout) { c.git("replace", "main", "other") }, dirty: dirty},
	{name: "assumed unchanged", prepare: func(c *checkout) { c.put("a.txt", "ONE\n") }, change: func(c *checkout) { c.git("update-index", "--assume-unchanged", "a.txt") }},
	{name: "assumed unchanged, changed", prepare: func(c *checkout) { c.git("update-index", "--assume-unchanged", "a.txt") }, change: func(c *checkout) { c.put("a.txt", "ONE\n") }},
	{name: "skipped", prepare: func(c *checkout) { c.remove("a.txt") }, change: func(c *checkout) { c.git("update-index", "--skip-worktree", "a.txt") }},
	{name: "sparse", change: func(c *checkout) { c.git("sparse-checkout", "set", "dir") }},
	{name: "sparse, untracked", prepare: func(c *checkout) { c.git("sparse-checkout", "set", "dir") }, change: func(c *checkout) { c.put("other/new", "") }, dirty: dirty},
	{name: "sparse index, changed", prepare: func(c *checkout) { c.git("sparse-checkout", "set", "--sparse-index", "dir") },
		change: func(c *checkout) { c.put("dir/b.txt", "TWO\n") }, dirty: dirty},
	{name: "split index", prepare: func(c *checkout) { c.git("update-index", "--split-index") }, change: func(c *checkout) { c.put("a.txt", "ONE\n") }, dirty: dirty},
	{name: "index version 4", prepare: func(c *checkout) { c.git("update-index", "--index-version", "4") }, change: func(c *checkout) { c.put("dir/b.txt", "TWO\n") }, dirty: dirty},
	{name: "untracked cache", prepare: func(c *checkout) { c.git("update-index", "--force-untracked-cache"); c.git("status") },
		change: func(c *checkout) { c.put("dir/new", "") }, dirty: dirty},
	{name: "conflict", prepare: (*checkout).diverge, change: func(c *checkout) {
		if err := exec.Command("git", "-C", c.dir, "merge", "-q", "other").Run(); err == nil {
			c.t.Fatal("the merge has no conflict")
		}
	}, dirty: dirty},
	{name: "conflict resolved", prepare: func(c *checkout) {
		c.diverge()
		_ = exec.Command("git", "-C", c.dir, "merge", "-q", "other").Run() // fails, that is its purpose
	}, change: func(c *checkout) { c.put("a.txt", "EIN\n"); c.git("commit", "-qam", "merged") }},
	{name: "nested repository", change: func(c *checkout) { c.git("init", "-q", "empty/below") }, dirty: dirty},
	{name: "nested repository with a commit", change: func(c *checkout) {
		c.git("init", "-q", "empty/below")
		git(c.t, c.path("empty/below"), "commit", "-q", "--allow-empty", "-m", "x")
	}, dirty: dirty},
	{name: "another repository in its place", change: func(c *checkout) {
		c.git("clone", "-q", c.dir, c.dir+"-copy")
		c.t.Cleanup(func() { os.RemoveAll(c.dir + "-copy"); os.RemoveAll(c.dir + "-old") })
		c.must(os.Rename(c.dir, c.dir+"-old"))
		c.must(os.Rename(c.dir+"-copy", c.dir))
		c.put("a.txt", "ONE\n")
	}, dirty: dirty},
}

// After each kind of change the state is what it should be and what git says, though it was remembered before.
func TestEveryChangeIsSeen(t *testing.T) {
	for _, tt := range changes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			if tt.prepare != nil {
				tt.prepare(c)
			}
			c.settle()
			asked := c.m.asked
			tt.change(c)
			if got := c.state(); *got.Dirty != tt.dirty {
				t.Errorf("it is said to be %s", show(got))
			}
			if again := c.m.asked > asked; again == tt.silent {
				t.Errorf("git was asked: %v", again)
			}
		})
	}
}

// Changes at random, one upon the other, some of them when the state is remembered and some at once after another.
func TestRandomChanges(t *testing.T) {
	rounds := 15
	if os.Getenv("RIG_BRIDGE_MEASURE") != "" {
		rounds = 300
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			c := newCheckout(t)
			for range rounds {
				if r.IntN(3) > 0 && !c.settled() && !errors.Is(c.m.why, errMore) {
					t.Fatal(c.m.why)
				}
				name := c.mutate(r)
				got := c.state()
				t.Logf("%s: %s", name, show(got))
			}
		})
	}
}

// mutate changes something. What cannot be done just now is left.
func (c *checkout) mutate(r *rand.Rand) string {
	file := []string{"a.txt", "dir/b.txt", "dir/deep/c.txt", "other/d.txt", "new", "dir/new.log", "empty/below/n", "build/out/x", ".gitignore",
		"dir/.gitignore", ".venv/.gitignore"}[r.IntN(11)]
	path := c.path(file)
	run := func(args ...string) { _ = exec.Command("git", append([]string{"-C", c.dir}, args...)...).Run() } // may be impossible
	texts := []string{"one\n", "two\n", "three\n", "four\n", "*.log\n/build/\n", "*\n", ""}
	all := []struct {
		name string
		do   func()
	}{
		{"write", func() { _ = os.WriteFile(path, []byte(texts[r.IntN(len(texts))]), 0o644) }},
		{"write again", func() { _ = os.WriteFile(path, []byte(texts[r.IntN(len(texts))]), 0o644) }},
		{"touch", func() { _ = os.Chtimes(path, time.Now(), time.Now()) }},
		{"chmod", func() { _ = os.Chmod(path, os.FileMode(0o644|r.IntN(2)*0o111)) }},
		{"remove", func() { _ = os.Remove(path) }},
		{"rename", func() { _ = os.Rename(path, path+".log") }},
		{"rename back", func() { _ = os.Rename(path+".log", path) }},
		{"link", func() { _ = os.Remove(path); _ = os.Symlink("a.txt", path) }},
		{"add", func() { run("add", file) }},
		{"commit", func() { run("commit", "-qm", "more") }},
		{"commit all", func() { run("add", "-A"); run("commit", "-qam", "all") }},
		{"reset", func() { run("reset", "-q", "--hard") }},
		{"back", func() { run("reset", "-q", "--soft", "HEAD~1") }},
		{"clean", func() { run("clean", "-qfd") }},
		{"branch", func() { run("checkout", "-qB", fmt.Sprint("branch-", r.IntN(3))) }},
		{"detach", func() { run("checkout", "-q", "--detach") }},
		{"unstage", func() { run("rm", "-q", "--cached", file) }},
		{"assume", func() { run("update-index", "--assume-unchanged", file) }},
		{"assume no more", func() { run("update-index", "--no-assume-unchanged", file) }},
		{"refresh", func() { run("status") }},
		{"pack", func() { run("pack-refs", "--all") }},
		{"exclude", func() { _ = os.WriteFile(c.path(".git/info/exclude"), []byte(filepath.Base(file)+"\n"), 0o644) }},
	}
	m := all[r.IntN(len(all))]
	m.do()
	return m.name + " " + file
}

// Where git looks at more than is known it is asked each time, and what it says is true.
func TestAskedEachTime(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare, change func(*checkout)
		why             error
	}{
		"submodule": {func(c *checkout) {
			inner := tempDir(c.t)
			git(c.t, inner, "init", "-q")
			git(c.t, inner, "commit", "-q", "--allow-empty", "-m", "x")
			c.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub")
			c.git("commit", "-qm", "sub")
		}, func(c *checkout) { c.put("sub/new", "") }, errMore},
		"included": {func(c *checkout) {
			c.put("new", "")
			c.put("build/own", "new\n")
			c.put("build/included", "[core]\nexcludesFile = "+c.path("build/own")+"\n")
			c.git("config", "include.path", c.path("build/included"))
		}, func(c *checkout) { c.put("build/included", "") }, errMore},
		"nested repository": {func(c *checkout) { c.git("init", "-q", "dir") }, func(c *checkout) { c.put("a.txt", "ONE\n") }, errMore},
		"symbolic branch": {func(c *checkout) {
			c.git("branch", "other")
			c.git("symbolic-ref", "refs/heads/main", "refs/heads/other")
		}, func(c *checkout) { c.put("a.txt", "ONE\n"); c.git("commit", "-qam", "second"); c.put("new", "") }, errMore},
		"attributes of a commit": {func(c *checkout) { c.git("config", "attr.tree", "main") }, func(c *checkout) { c.put("new", "") }, errMore},
		"excludesFile that is not there": {func(c *checkout) {
			c.git("config", "core.excludesFile", c.path("build/own"))
		}, func(c *checkout) { c.put("new", "") }, errMore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			tt.prepare(c)
			time.Sleep(2 * c.m.settle)
			if got := c.state(); *got.Dirty {
				t.Errorf("before: %s", show(got))
			}
			if !errors.Is(c.m.why, tt.why) || len(c.m.of) > 0 {
				t.Errorf("not remembered because of %v", c.m.why)
			}
			tt.change(c)
			if got := c.state(); !*got.Dirty || c.m.asked != 2 {
				t.Errorf("after: %s, git was asked %d times", show(got), c.m.asked)
			}
		})
	}
}

// A worktree, and a directory in it that was named as the project's root.
func TestRememberedWorktree(t *testing.T) {
	c := newCheckout(t)
	main := c.dir
	tree := filepath.Join(tempDir(t), "tree")
	c.git("worktree", "add", "-q", "-b", "side", tree)
	c.dir = tree
	c.settle()
	sub := Project{Root: filepath.Join(tree, "dir"), Git: true}
	asked := c.m.asked
	if got := c.m.state(t.Context(), sub); got.Root != sub.Root || *got.Branch != "side" || *got.Dirty || c.m.asked != asked {
		t.Errorf("below: %+v, git was asked %d times", got, c.m.asked-asked)
	}
	git(t, main, "commit", "-q", "--allow-empty", "-m", "second")
	git(t, main, "update-ref", "refs/heads/side", "main")
	head := *c.state().Head
	c.settle()
	c.put("dir/b.txt", "TWO\n")
	if got := c.state(); *got.Head != head || !*got.Dirty {
		t.Errorf("changed: %s", show(got))
	}
}

// What was changed just before git was asked, or while it was, is not remembered: a later change might not show.
func TestUnsettled(t *testing.T) {
	for _, name := range []string{"a.txt", "dir/deep/new", ".venv/.gitignore", ".git/info/exclude"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			c.m.settle = 500 * time.Millisecond
			for range 20 {
				c.settle()
				began := time.Now()
				c.put(name, "*\n")
				c.m.state(t.Context(), Discover(c.dir))
				if time.Since(began) >= c.m.settle {
					continue // on a machine that is busy with much else it has settled by now
				}
				if !errors.Is(c.m.why, errUnsettled) || c.m.of[c.dir] != nil {
					t.Errorf("remembered: %v; %v", c.m.of[c.dir] != nil, c.m.why)
				}
				return
			}
			t.Skip("the machine is too busy")
		})
	}
}

func TestChangedWhileGitLooks(t *testing.T) {
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("git is needed")
	}
	for name, change := range map[string]string{
		"tracked":   "printf 'ONE\\n' >a.txt",
		"untracked": ": >new",
		"ignored":   "printf 'x\\n' >.venv/.gitignore",
		"gone":      "rm other/d.txt",
		"excluded":  "printf 'x\\n' >.git/info/exclude",
		"committed": "git commit -q --allow-empty -m x",
		"switched":  "git checkout -q -b other",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCheckout(t)
			bin := tempDir(t)
			script := "#!/bin/sh\n" + real + ` "$@"` + "\ncode=$?\ncase \"$*\" in *' status '*) PATH=${PATH#*:}; " + change + ";; esac\nexit $code\n"
			c.must(os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755))
			time.Sleep(2 * c.m.settle)
			path := os.Getenv("PATH")
			t.Setenv("PATH", bin+":"+path)
			before := c.m.state(t.Context(), Discover(c.dir))
			if *before.Dirty || len(c.m.of) > 0 || !errors.Is(c.m.why, errUnsettled) {
				t.Errorf("%s, remembered %v: %v", show(before), len(c.m.of) > 0, c.m.why)
			}
			t.Setenv("PATH", path)
			c.state()
		})
	}
}

// The repository is asked about, whatever another one's hook has put into the environment; nothing is written.
func TestEnvironmentOfAnotherRepository(t *testing.T) {
	c := newCheckout(t)
	other := newCheckout(t)
	other.put("new", "")
	want := show(ask(t.Context(), c.dir))
	t.Setenv("GIT_DIR", other.path(".git"))
	t.Setenv("GIT_WORK_TREE", other.dir)
	t.Setenv("GIT_INDEX_FILE", other.path("none"))
	before := contentOf(t, c.path(".git"))
	for c.m.of[c.dir] == nil {
		if got := c.m.state(t.Context(), Discover(c.dir)); show(got) != want || *got.Dirty {
			t.Fatalf("got %s, want %s", show(got), want)
		}
	}
	if after := contentOf(t, c.path(".git")); !maps.Equal(before, after) {
		t.Errorf("git's own files were changed: %v, then %v", before, after)
	}
}

// The account's configuration counts, too, and that it has none yet.
func TestAccountConfiguration(t *testing.T) {
	home := tempDir(t)
	t.Setenv("HOME", home)
	c := newCheckout(t)
	c.put("new", "")
	for _, step := range []struct {
		file, text string
		dirty      bool
	}{
		{".config/git/ignore", "new\n", clean},
		{".config/git/ignore", "neu\n", dirty},
		{".gitconfig", "[core]\nexcludesFile = ~/mine\n", dirty},
		{"mine", "new\n", clean},
		{"mine", "neu\n", dirty},
		{".config/git/config", "[core]\nexcludesFile = ~/none\n", dirty},
	} {
		if step.file != "mine" || step.dirty {
			c.settle()
		}
		path := filepath.Join(home, step.file)
		c.must(os.MkdirAll(filepath.Dir(path), 0o755))
		c.must(os.WriteFile(path, []byte(step.text), 0o644))
		if got := c.state(); *got.Dirty != step.dirty {
			t.Errorf("%s: %s", strings.TrimSpace(step.text), show(got))
		}
	}
}

// Looking at what is remembered takes no longer than git may. What there was no time for stays remembered.
func TestNoTimeToLook(t *testing.T) {
	c := newCheckout(t)
	c.settle()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if got := c.m.state(ctx, Discover(c.dir)); got.Dirty != nil || got.Note != tooSlow || c.m.of[c.dir] == nil {
		t.Errorf("%s, remembered: %v", show(got), c.m.of[c.dir] != nil)
	}
	c.settle()
}

// There is an end to what is remembered: the checkout that was not used for longest is forgotten, and one that is
// too large is never remembered.
func TestMemoryIsBounded(t *testing.T) {
	a, b := newCheckout(t), newCheckout(t)
	a.settle()
	size := a.m.paths
	a.m.max, b.m = 2*size, a.m
	b.settle()
	a.settle() // both are there
	if len(a.m.of) != 2 || a.m.paths != 2*size {
		t.Fatalf("%d remembered, %d paths", len(a.m.of), a.m.paths)
	}
	c := newCheckout(t)
	c.m = a.m
	c.settle()
	if len(a.m.of) != 2 || a.m.paths != 2*size || a.m.of[b.dir] != nil {
		t.Errorf("%d remembered, %d paths", len(a.m.of), a.m.paths)
	}
	d := newCheckout(t)
	d.m = newMemory(time.Millisecond)
	d.m.later, d.m.max = a.m.later, 10
	time.Sleep(50 * time.Millisecond)
	if d.state(); !errors.Is(d.m.why, errTooMany) {
		t.Errorf("a large one: %v", d.m.why)
	}
}
