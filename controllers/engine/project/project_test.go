package project

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDiscover(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	top := tempDir(t)
	repo, tree, clone, bare, plain := filepath.Join(top, "repo"), filepath.Join(top, "tree"), filepath.Join(top, "clone"), filepath.Join(top, "bare"), filepath.Join(top, "plain")
	for _, d := range []string{filepath.Join(repo, "sub", "deep"), plain} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git(t, repo, "init", "-q")
	git(t, repo, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, repo, "worktree", "add", "-q", tree)
	git(t, top, "clone", "-q", repo, clone)
	git(t, top, "clone", "-q", "--bare", repo, bare)

	ofRepo := "git:" + filepath.Join(repo, ".git")
	for _, c := range []struct{ dir, root, identity string }{
		{repo, repo, ofRepo},
		{filepath.Join(repo, "sub", "deep"), repo, ofRepo},
		{tree, tree, ofRepo},
		{clone, clone, "git:" + filepath.Join(clone, ".git")},
		{bare, bare, "git:" + bare},
		{plain, plain, "directory:" + plain},
	} {
		if got := Discover(c.dir); got.Root != c.root || got.Identity != c.identity {
			t.Errorf("%s: %+v, want root %s, identity %s", c.dir, got, c.root, c.identity)
		}
	}
}

func TestState(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	repo := tempDir(t)
	git(t, repo, "init", "-q")
	c := State(t.Context(), Discover(repo))
	if c.Head != nil || c.Branch == nil || *c.Branch != "main" || c.Dirty == nil || *c.Dirty {
		t.Errorf("unborn branch: %+v", c)
	}
	git(t, repo, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, repo, "checkout", "-q", "--detach")
	c = State(t.Context(), Discover(repo))
	if c.Head == nil || len(*c.Head) != 40 || c.Branch != nil || *c.Dirty {
		t.Errorf("detached: %+v", c)
	}
	for i := range 3000 {
		if err := os.WriteFile(filepath.Join(repo, fmt.Sprintf("untracked-%d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c = State(t.Context(), Discover(repo))
	if c.Dirty == nil || !*c.Dirty || c.Note != "" {
		t.Errorf("many untracked files: %+v", c)
	}
	if c := State(t.Context(), Discover(tempDir(t))); c != nil {
		t.Errorf("no repository: %+v", c)
	}
}
