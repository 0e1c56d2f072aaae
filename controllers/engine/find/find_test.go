package find_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/find"
)

// tree makes files below a fresh directory; a name that ends in a slash is a directory.
func tree(t *testing.T, files ...string) engine.Env {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := engine.Env{Cwd: filepath.Join(root, "cwd"), Home: filepath.Join(root, "home"), ConfigHome: filepath.Join(root, "home/.config")}
	for _, f := range append(files, "./") {
		path := filepath.Join(env.Cwd, f)
		if strings.HasSuffix(f, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return env
}

func write(t *testing.T, env engine.Env, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(env.Cwd, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, env engine.Env, a find.Args) string {
	t.Helper()
	res, err := find.Run(context.Background(), env, a)
	if err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
	return res.Text
}

// TestIgnoredExactPath is case J1: an exact path hidden by ignore files must not look missing.
func TestIgnoredExactPath(t *testing.T) {
	env := tree(t, ".git/", "dist/app.js", "dist/deep/x.js", "src/main.js", "dist/a.map", "dist/b.map", "dist/c.map", "dist/d.map", "local.env")
	write(t, env, ".gitignore", "dist/\n*.env\n")
	for _, c := range []struct{ pattern, want string }{
		{"dist/app.js", "No files found matching pattern\n\n[1 ignored match: dist/app.js]"},
		{"dist/*.map", "No files found matching pattern\n\n[4 ignored matches: dist/a.map, dist/b.map, dist/c.map, …]"},
		{"dist", "No files found matching pattern\n\n[1 ignored match: dist/]"},
		{"local.env", "No files found matching pattern\n\n[1 ignored match: local.env]"},
		{"x.js", "No files found matching pattern\n\n[1 ignored match: dist/deep/x.js]"},
		{"dist/nothing.js", "No files found matching pattern"},
		{"main.js", "src/main.js"},
		{"*.js", "src/main.js"},
		{filepath.Join(env.Cwd, "dist/app.js"), "No files found matching pattern\n\n[1 ignored match: dist/app.js]"},
	} {
		if got := text(t, env, find.Args{Pattern: c.pattern}); got != c.want {
			t.Errorf("%s: %q, want %q", c.pattern, got, c.want)
		}
	}
	if err := os.MkdirAll(filepath.Join(env.Cwd, "sub/dist"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, env, "sub/dist/app.js", "")
	write(t, env, ".gitignore", "/dist/\n")
	want := "sub/dist/app.js\n\n[1 ignored match: dist/app.js]"
	if got := text(t, env, find.Args{Pattern: "dist/app.js"}); got != want {
		t.Errorf("beside another match: %q, want %q", got, want)
	}
}

// TestMissingAnchor is case J3: a pattern anchored to a missing directory does not walk the tree.
func TestMissingAnchor(t *testing.T) {
	env := tree(t)
	for i := range 200 {
		dir := filepath.Join(env.Cwd, fmt.Sprintf("d%d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for j := range 50 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.ts", j)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	start := time.Now()
	if got := text(t, env, find.Args{Pattern: env.Cwd + "/missing/**/*.ts"}); got != "No files found matching pattern" {
		t.Errorf("got %q", got)
	}
	if got := text(t, env, find.Args{Pattern: "/nowhere/at/all/*.ts"}); got != "No files found matching pattern" {
		t.Errorf("got %q", got)
	}
	if got := text(t, env, find.Args{Pattern: "missing/**/*.ts"}); got != "No files found matching pattern" {
		t.Errorf("got %q", got)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestBothSpellings is case H3: composed and decomposed names are both found by either spelling.
func TestBothSpellings(t *testing.T) {
	env := tree(t, "a/caf\u00e9.txt", "b/cafe\u0301.txt")
	want := "a/caf\u00e9.txt\nb/cafe\u0301.txt"
	for _, p := range []string{"caf\u00e9.txt", "cafe\u0301.txt", "caf?.txt", "*/caf\u00e9*", "caf[\u00e9]*"} {
		if got := text(t, env, find.Args{Pattern: p}); got != want {
			t.Errorf("%q: %q", p, got)
		}
	}
}

// TestLinkLoops is case H5: links to parents, to themselves and to each other end at once, each file once.
func TestLinkLoops(t *testing.T) {
	env := tree(t, "a/b/f.txt")
	for name, target := range map[string]string{"a/b/up": "..", "a/self": "self", "x": "y", "y": "x", "a/all": env.Cwd} {
		if err := os.Symlink(target, filepath.Join(env.Cwd, name)); err != nil {
			t.Fatal(err)
		}
	}
	want := "a/\na/all\na/b/\na/b/f.txt\na/b/up\na/self\nx\ny"
	if got := text(t, env, find.Args{Pattern: "*"}); got != want {
		t.Errorf("got %q", got)
	}
}

func TestBadPaths(t *testing.T) {
	env := tree(t, "f.txt")
	for path, reason := range map[string]engine.Reason{"nope": engine.FileNotFound, "f.txt": engine.NotADirectory, "a\x00b": engine.InvalidPath} {
		_, err := find.Run(context.Background(), env, find.Args{Pattern: "*", Path: path})
		if engine.ReasonOf(err) != reason {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, p := range []string{"[a", "{a", "a}", `a\`, "x/[z-a]"} {
		if _, err := find.Run(context.Background(), env, find.Args{Pattern: p}); engine.ReasonOf(err) != engine.InvalidPattern {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestFirstRowsInOrder(t *testing.T) {
	env := tree(t)
	var want []string
	for i := range 60 {
		for j := range 20 {
			name := fmt.Sprintf("d%02d/f%02d", i, j)
			want = append(want, name)
			if err := os.MkdirAll(filepath.Dir(filepath.Join(env.Cwd, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, env, name, "")
		}
	}
	for range 20 {
		for _, limit := range []int{1, 19, 20, 21, 333, 1199} {
			got := text(t, env, find.Args{Pattern: "f*", Limit: limit})
			rows := strings.Join(want[:limit], "\n") + fmt.Sprintf("\n\n[%d results limit reached. Use limit=%d for more, or refine pattern]", limit, 2*limit)
			if got != rows {
				t.Fatalf("limit %d: %q", limit, got)
			}
		}
	}
	if got := text(t, env, find.Args{Pattern: "f*", Limit: 1200}); got != strings.Join(want, "\n") {
		t.Errorf("exact limit: %q", got[max(0, len(got)-200):])
	}
}

// TestOutOfTime keeps what was found and says what is missing.
func TestOutOfTime(t *testing.T) {
	env := tree(t)
	for i := range 300 {
		if err := os.MkdirAll(filepath.Join(env.Cwd, fmt.Sprintf("d%d/e/f", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	defer func(d time.Duration) { find.Budget = d }(find.Budget)
	find.Budget = time.Nanosecond
	res, err := find.Run(context.Background(), env, find.Args{Pattern: "nothing-of-this-name"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(res.Text, "incomplete: stopped after 0 seconds with ") || !strings.HasSuffix(res.Text, " unread. Narrow path or pattern]") {
		t.Errorf("got %q", res.Text)
	}
	if d, ok := res.Details.(find.Details); !ok || !d.Incomplete {
		t.Errorf("details %+v", res.Details)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := find.Run(ctx, tree(t, "a"), find.Args{Pattern: "*"})
	if engine.ReasonOf(err) != engine.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestGitIsNamed(t *testing.T) {
	env := tree(t, ".git/HEAD", ".git/hooks/pre-commit", "sub/.git", "a")
	for pattern, want := range map[string]string{
		"*": "a\nsub/", "**": "a\nsub/", "HEAD": "No files found matching pattern",
		".git": ".git/\nsub/.git", ".git/*": ".git/HEAD\n.git/hooks/",
	} {
		if got := text(t, env, find.Args{Pattern: pattern}); got != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
	if got := text(t, env, find.Args{Pattern: "pre*", Path: ".git"}); got != "hooks/pre-commit" {
		t.Errorf("below .git: %q", got)
	}
}

func TestOddNames(t *testing.T) {
	env := tree(t, "a\nb.txt", " lead.txt", "trail.txt ", "bad\xff.txt")
	want := " lead.txt\na\\nb.txt\nbad\ufffd.txt\ntrail.txt "
	if got := text(t, env, find.Args{Pattern: "*txt*"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPseudoFileSystems: a search from the root does not enter proc, one that begins there does and ends.
func TestPseudoFileSystems(t *testing.T) {
	env := tree(t)
	defer func(d time.Duration) { find.Budget = d }(find.Budget)
	find.Budget = 10 * time.Second
	got := text(t, env, find.Args{Pattern: "/proc/self/status", Path: "/"})
	if strings.HasPrefix(got, "proc/self/status") {
		t.Errorf("proc was entered: %q", got)
	}
	if got := text(t, env, find.Args{Pattern: "cpuinfo", Path: "/proc", Limit: 1}); !strings.HasPrefix(got, "cpuinfo") {
		t.Errorf("in proc: %q", got)
	}
}

// TestAgainstFd compares with the real program, where there is one, on what both do the same way.
func TestAgainstFd(t *testing.T) {
	program := fd()
	if program == "" {
		t.Log("fd is not on PATH: nothing to compare with")
		return
	}
	part := rapid.SampledFrom([]string{"a", "b", "c.x", "*.x", "a*", "?", "[ab]", "[!a]", "*", "**", "{a,b}", "c.{x,y}", "B"})
	name := rapid.SampledFrom([]string{"a", "b", "B", "ab", "c.x", "c.y", ".h", "d.x"})
	base, err := os.MkdirTemp("", "zz") // without capitals, which would make the program mind case
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(base, "zz")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
			rt.Fatal(err)
		}
		for _, parts := range rapid.SliceOfN(rapid.SliceOfN(name, 1, 4), 1, 15).Draw(rt, "paths") {
			path := filepath.Join(append([]string{root}, parts...)...)
			if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
				_ = os.WriteFile(path, nil, 0o644) // a directory of that name may be there already
			}
		}
		pattern := strings.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "pattern"), "/")
		args := []string{"--glob", "--hidden", "--exclude", ".git", "--color=never"}
		given := pattern
		if strings.Contains(pattern, "/") {
			args = append(args, "--full-path")
			given = root + "/**/" + pattern // the program itself would let names above the root match
		}
		cmd := exec.Command(program, append(args, "--", given)...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil && len(out) == 0 && !strings.Contains(err.Error(), "exit status 1") {
			rt.Fatalf("%v", err)
		}
		var want []string
		for _, row := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			if row = strings.TrimPrefix(row, "./"); row != "" {
				want = append(want, strings.TrimSuffix(row, "/"))
			}
		}
		env := engine.Env{Cwd: root, Home: base, ConfigHome: filepath.Join(base, "none")}
		res, err := find.Run(context.Background(), env, find.Args{Pattern: pattern})
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, row := range strings.Split(res.Text, "\n") {
			if row != "No files found matching pattern" {
				got = append(got, strings.TrimSuffix(row, "/"))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("%q: %q, want %q", pattern, got, want)
		}
	})
}
