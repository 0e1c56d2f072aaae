package project

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	if c := State(t.Context(), Discover(tempDir(t))); c != nil {
		t.Errorf("no repository: %+v", c)
	}
}

// 100,000 untracked files, and a lock that somebody holds: the state is known, and nothing in .git is touched.
func TestStateOfMuchThatIsUntracked(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	repo := tempDir(t)
	git(t, repo, "init", "-q")
	if err := os.WriteFile(filepath.Join(repo, "tracked"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, repo, "add", "tracked")
	git(t, repo, "commit", "-q", "-m", "first")
	for i := range 100_000 {
		dir := repo
		if i%2 == 0 { // half of them in one folder, half at the top
			dir = filepath.Join(repo, "folder")
		}
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("untracked-%d", i)), os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrNotExist) {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	lock := filepath.Join(repo, ".git", "index.lock")
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := contentOf(t, filepath.Join(repo, ".git"))
	c := State(t.Context(), Discover(repo))
	for range 4 { // on a machine that is busy with much else, git may need more than its time
		if c.Dirty == nil {
			c = State(t.Context(), Discover(repo))
		}
	}
	if c.Dirty == nil || !*c.Dirty || c.Note != "" || c.Branch == nil || *c.Branch != "main" || c.Head == nil {
		t.Errorf("many untracked files: %+v", c)
	}
	if after := contentOf(t, filepath.Join(repo, ".git")); !maps.Equal(before, after) {
		t.Errorf("git's own files were changed: %v, then %v", before, after)
	}
}

// contentOf tells the files below a directory by their sizes and times of change.
func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err == nil {
			all[path] = fmt.Sprint(st.Size(), st.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A git that does not answer in time: what it has not said is not known, and least of all that nothing has changed.
func TestStateOfASlowGit(t *testing.T) {
	repo := tempDir(t)
	for _, d := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(repo, ".git", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin := tempDir(t)
	for path, text := range map[string]string{
		filepath.Join(repo, ".git", "HEAD"): "ref: refs/heads/main\n",
		filepath.Join(bin, "git"):           "#!/bin/sh\nprintf '# branch.oid (initial)\\0# branch.head main\\0'\nexec sleep 60\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	c := State(t.Context(), Discover(repo))
	if c.Dirty != nil || !strings.Contains(c.Note, "2 seconds") || c.Branch == nil || *c.Branch != "main" {
		t.Errorf("a slow git: %+v", c)
	}
}

// Submodules are projects of their own; a bare repository has no working tree and so no state.
func TestSubmoduleAndBare(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	top := tempDir(t)
	outer, inner, bare := filepath.Join(top, "outer"), filepath.Join(top, "inner"), filepath.Join(top, "bare.git")
	git(t, top, "init", "-q", inner)
	git(t, inner, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, top, "init", "-q", outer)
	git(t, outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub")
	git(t, top, "init", "-q", "--bare", bare)
	sub := filepath.Join(outer, "sub")
	if got := Discover(sub); got.Root != sub || got.Identity != "git:"+filepath.Join(outer, ".git", "modules", "sub") {
		t.Errorf("submodule: %+v", got)
	}
	if c := State(t.Context(), Discover(sub)); c == nil || c.Root != sub || c.Head == nil || c.Dirty == nil || *c.Dirty {
		t.Errorf("submodule: %+v", c)
	}
	if c := State(t.Context(), Discover(outer)); c == nil || c.Dirty == nil || !*c.Dirty || c.Head != nil {
		t.Errorf("a new submodule on an unborn branch: %+v", c)
	}
	for _, dir := range []string{bare, filepath.Join(bare, "refs")} {
		if got := Discover(dir); got.Root != bare || got.Identity != "git:"+bare || State(t.Context(), got) != nil {
			t.Errorf("bare, in %s: %+v", dir, got)
		}
	}
}
