package grep_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/grep"
)

// tree makes files, given as name and text, below a fresh directory.
func tree(t *testing.T, files map[string]string) engine.Env {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := engine.Env{Cwd: filepath.Join(root, "cwd"), Home: filepath.Join(root, "home"), ConfigHome: filepath.Join(root, "home/.config")}
	if err := os.MkdirAll(env.Cwd, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(env.Cwd, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return env
}

func text(t *testing.T, env engine.Env, a grep.Args) string {
	t.Helper()
	res, err := grep.Run(context.Background(), env, a)
	if err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
	return res.Text
}

// TestRulesOfGlobAndIgnore: a glob narrows and never widens; ignore files count outside of repositories too.
func TestRulesOfGlobAndIgnore(t *testing.T) {
	env := tree(t, map[string]string{
		".gitignore": "*.log\nout/\n", "a.txt": "needle\n", "b.log": "needle\n", "out/c.txt": "needle\n", "src/d.ts": "needle\n",
		"src/deep/e.ts": "needle\n", "other/src/f.ts": "needle\n", ".hidden": "needle\n",
	})
	for _, c := range []struct{ glob, want string }{
		{"", ".hidden:1: needle\na.txt:1: needle\nother/src/f.ts:1: needle\nsrc/d.ts:1: needle\nsrc/deep/e.ts:1: needle"},
		{"*.log", "No matches found\n\n[1 ignored match: b.log]"},
		{"out/*", "No matches found\n\n[1 ignored match: out/c.txt]"},
		{"*.txt", "a.txt:1: needle"},
		{"src/*.ts", "src/d.ts:1: needle"},
		{"/src/**", "src/d.ts:1: needle\nsrc/deep/e.ts:1: needle"},
		{"**/src/*.ts", "other/src/f.ts:1: needle\nsrc/d.ts:1: needle"},
		{"!src", ".hidden:1: needle\na.txt:1: needle"},
		{"!*.ts", ".hidden:1: needle\na.txt:1: needle"},
		{"{a,b}.{txt,log}", "a.txt:1: needle"},
		{"?.txt", "a.txt:1: needle"},
		{"*.TXT", "No matches found"},
	} {
		if got := text(t, env, grep.Args{Pattern: "needle", Glob: c.glob}); got != c.want {
			t.Errorf("glob %q: %q, want %q", c.glob, got, c.want)
		}
	}
	if _, err := grep.Run(context.Background(), env, grep.Args{Pattern: "x", Glob: "{a"}); engine.ReasonOf(err) != engine.InvalidPattern {
		t.Errorf("bad glob: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	env := tree(t, map[string]string{"a": "x\n"})
	for _, c := range []struct {
		a      grep.Args
		reason engine.Reason
	}{
		{grep.Args{Pattern: "[", Path: "nope"}, engine.FileNotFound}, // the path is looked at first
		{grep.Args{Pattern: "a(?=b)"}, engine.InvalidPattern},
		{grep.Args{Pattern: `(a)\1`}, engine.InvalidPattern},
		{grep.Args{Pattern: "a\nb", Literal: true}, engine.InvalidPattern},
		{grep.Args{Pattern: "x", Path: "a/b"}, engine.NotADirectory},
		{grep.Args{Pattern: "x", Path: "/dev/zero"}, engine.UnsupportedFile},
	} {
		if _, err := grep.Run(context.Background(), env, c.a); engine.ReasonOf(err) != c.reason {
			t.Errorf("%+v: %v, want %s", c.a, err, c.reason)
		}
	}
}

// TestFIFO is case H7: a FIFO is refused as path and skipped in a directory; nothing blocks.
func TestFIFO(t *testing.T) {
	env := tree(t, map[string]string{"a.txt": "needle\n"})
	if err := syscall.Mkfifo(filepath.Join(env.Cwd, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := text(t, env, grep.Args{Pattern: "needle"}); got != "a.txt:1: needle" {
		t.Errorf("got %q", got)
	}
	_, err := grep.Run(context.Background(), env, grep.Args{Pattern: "needle", Path: "pipe"})
	if engine.ReasonOf(err) != engine.UnsupportedFile {
		t.Errorf("got %v", err)
	}
}

// TestLinkLoops is case H5.
func TestLinkLoops(t *testing.T) {
	env := tree(t, map[string]string{"a/b/f.txt": "needle\n"})
	for name, target := range map[string]string{"a/b/up": "..", "a/self": "self", "x": "y", "y": "x", "a/f": "b/f.txt"} {
		if err := os.Symlink(target, filepath.Join(env.Cwd, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := text(t, env, grep.Args{Pattern: "needle"}); got != "a/b/f.txt:1: needle" {
		t.Errorf("got %q", got)
	}
	if got := text(t, env, grep.Args{Pattern: "needle", Path: "a/f"}); got != "f:1: needle" {
		t.Errorf("a link as path: %q", got)
	}
}

// TestRootOfTheSystem is case J6: a search of / with a limit stays out of proc and is bounded in time.
func TestRootOfTheSystem(t *testing.T) {
	defer func(d time.Duration) { grep.Budget = d }(grep.Budget)
	grep.Budget = 2 * time.Second
	env := tree(t, nil)
	start := time.Now()
	got := text(t, env, grep.Args{Pattern: "[a-z]", Path: "/", Limit: 5})
	if d := time.Since(start); d > time.Minute {
		t.Errorf("took %v", d)
	}
	if strings.HasPrefix(got, "proc/") || strings.HasPrefix(got, "sys/") {
		t.Errorf("a pseudo file system was entered: %q", got)
	}
	start = time.Now()
	text(t, env, grep.Args{Pattern: "no such text anywhere \u2603", Path: "/proc/self"})
	if d := time.Since(start); d > time.Minute {
		t.Errorf("/proc/self took %v", d)
	}
}

// TestLimits: the first matches in order, a notice only if something was left out, context behind the last.
func TestLimits(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%03d/f.txt", i)] = "one needle\nno\ntwo needle\nmid\n"
	}
	env := tree(t, files)
	for range 10 {
		got := text(t, env, grep.Args{Pattern: "needle", Limit: 3})
		want := "d000/f.txt:1: one needle\nd000/f.txt:3: two needle\nd001/f.txt:1: one needle\n\n[3 matches limit reached. Use limit=6 for more, or refine pattern]"
		if got != want {
			t.Fatalf("got %q", got)
		}
	}
	if got := text(t, env, grep.Args{Pattern: "needle", Limit: 600}); strings.Contains(got, "limit=") || strings.Count(got, "\n") != 599 {
		t.Errorf("exact limit: %d rows, %q", strings.Count(got, "\n")+1, got[len(got)-200:])
	}
	got := text(t, env, grep.Args{Pattern: "needle", Path: "d000", Context: 2, Limit: 1})
	want := "f.txt:1: one needle\nf.txt-2- no\nf.txt-3- two needle\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]"
	if got != want {
		t.Errorf("context behind the last match: %q", got)
	}
}

// TestGlobSpellings: a glob finds both spellings of an accented name, as find does.
func TestGlobSpellings(t *testing.T) {
	env := tree(t, map[string]string{"caf\u00e9.txt": "needle\n", "cafe\u0301.md": "needle\n"})
	for _, g := range []string{"caf\u00e9.*", "cafe\u0301.*", "caf?.*"} {
		if got := text(t, env, grep.Args{Pattern: "needle", Glob: g}); strings.Count(got, "needle") != 2 {
			t.Errorf("%q: %q", g, got)
		}
	}
}

// TestLargeFile: memory does not grow with the file, nor with the length of a line.
func TestLargeFile(t *testing.T) {
	env := tree(t, nil)
	const size = 96 << 20
	for _, name := range []string{"lines", "line"} {
		f, err := os.Create(filepath.Join(env.Cwd, name))
		if err != nil {
			t.Fatal(err)
		}
		block := []byte(strings.Repeat(strings.Repeat("x", 63)+"\n", 16<<10))
		if name == "line" {
			block = []byte(strings.Repeat("x", 1<<20))
		}
		for range size / len(block) {
			if _, err := f.Write(block); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.WriteString("the needle\n"); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := text(t, env, grep.Args{Pattern: "needle", Context: 1})
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
	x := strings.Repeat("x", 500) + "... [truncated]"
	want := "line:1: " + x + "\n" +
		fmt.Sprintf("lines-%d- %s\nlines:%d: the needle", size/64, strings.Repeat("x", 63), size/64+1) +
		"\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]"
	if got != want {
		t.Errorf("got %.300q", got)
	}
}

// TestCancelled: a search that is cancelled on its way ends at once.
func TestCancelled(t *testing.T) {
	env := tree(t, nil)
	f, err := os.Create(filepath.Join(env.Cwd, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(64 << 30); err != nil { // sparse: reading it all would take a minute
		t.Fatal(err)
	}
	f.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	_, err = grep.Run(ctx, env, grep.Args{Pattern: "x", Path: "big"})
	if engine.ReasonOf(err) != engine.Cancelled {
		t.Errorf("got %v", err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestOutOfTime keeps what was found before the time ran out.
func TestOutOfTime(t *testing.T) {
	env := tree(t, map[string]string{"a": "needle\n"})
	f, err := os.Create(filepath.Join(env.Cwd, "big"))
	if err != nil {
		t.Fatal(err)
	}
	for range 16 {
		if _, err := f.Write([]byte(strings.Repeat("x", 64<<10))); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(64 << 30); err != nil {
		t.Fatal(err)
	}
	f.Close()
	defer func(d time.Duration) { grep.Budget = d }(grep.Budget)
	grep.Budget = time.Second
	res, err := grep.Run(context.Background(), env, grep.Args{Pattern: "needle", Path: "big"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "No matches found\n\n[incomplete: stopped after 1 second with files not read to their end. Narrow path or pattern]"; res.Text != want {
		t.Errorf("got %q", res.Text)
	}
}

// TestAgainstRipgrep compares with the real program, where there is one, on patterns that need no Unicode
// tables of the same age.
func TestAgainstRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Log("rg is not on PATH: nothing to compare with")
		return
	}
	atom := rapid.SampledFrom([]string{"a", "b", "foo", ".", `\w`, `\d`, `\s`, `\b`, `\B`, "[^a]", "[a-c]", "[[:upper:]]", "x*", "(a|bb)+",
		"é", `\W`, "(?i:f)", "[é-ü]", "^", "$", `\x{e9}`, `\p{Lu}`, "[a-z&&[^b]]", "o{2}", "(?-u:[a-z])", `[\w.]`, `[^\s]`})
	word := rapid.SampledFrom([]string{"a", "b", "foo", "Foo", " ", "  ", "é", "É", "\t", "bb", "1", "_", "x", "\n", "\n", "ü.", "日"})
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(base, "zz")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		for i := range rapid.IntRange(1, 4).Draw(rt, "files") {
			body := strings.Join(rapid.SliceOfN(word, 0, 40).Draw(rt, "text"), "")
			if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("f%d", i)), []byte(body), 0o644); err != nil {
				rt.Fatal(err)
			}
		}
		a := grep.Args{Pattern: strings.Join(rapid.SliceOfN(atom, 1, 4).Draw(rt, "pattern"), ""), Limit: 1000,
			IgnoreCase: rapid.Bool().Draw(rt, "ignore case"), Literal: rapid.Bool().Draw(rt, "literal")}
		env := engine.Env{Cwd: root, Home: base, ConfigHome: filepath.Join(base, "none")}
		res, err := grep.Run(context.Background(), env, a)
		if err != nil {
			rt.Fatal(err)
		}
		if want := ripgrep(rt, rg, root, a); res.Text != want {
			rt.Fatalf("%+v: %q, want %q", a, res.Text, want)
		}
	})
}

func ripgrep(t *rapid.T, rg, root string, a grep.Args) string {
	args := []string{"--json", "--hidden", "--sort", "path"}
	if a.IgnoreCase {
		args = append(args, "--ignore-case")
	}
	if a.Literal {
		args = append(args, "--fixed-strings")
	}
	cmd := exec.Command(rg, append(args, "--", a.Pattern, ".")...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil && !strings.Contains(err.Error(), "exit status 1") {
		t.Fatalf("%q: %v", a.Pattern, err)
	}
	var rows []string
	for _, line := range strings.Split(string(out), "\n") {
		var m struct {
			Type string
			Data struct {
				Path  struct{ Text string }
				Lines struct{ Text string }
				Line  int `json:"line_number"`
			}
		}
		if line == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == "match" {
			rows = append(rows, fmt.Sprintf("%s:%d: %s", strings.TrimPrefix(m.Data.Path.Text, "./"), m.Data.Line, strings.TrimSuffix(m.Data.Lines.Text, "\n")))
		}
	}
	if rows == nil {
		return "No matches found"
	}
	return strings.Join(rows, "\n")
}

// TestGlobAgainstRipgrep compares which files a glob selects with the real program, where there is one.
func TestGlobAgainstRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Log("rg is not on PATH: nothing to compare with")
		return
	}
	part := rapid.SampledFrom([]string{"a", "b", "c.x", "*.x", "a*", "?", "[ab]", "[!a]", "*", "**", "{a,b}", "c.{x,y}", "B", `\a`})
	name := rapid.SampledFrom([]string{"a", "b", "B", "ab", "c.x", "c.y", ".h", "d.x"})
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(base, "zz")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		for _, parts := range rapid.SliceOfN(rapid.SliceOfN(name, 1, 4), 1, 15).Draw(rt, "paths") {
			path := filepath.Join(append([]string{root}, parts...)...)
			if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
				_ = os.WriteFile(path, []byte("x\n"), 0o644) // a directory of that name may be there already
			}
		}
		glob := rapid.SampledFrom([]string{"", "", "!", "/", "!/", "**/"}).Draw(rt, "front") +
			strings.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "glob"), "/") + rapid.SampledFrom([]string{"", "", "/", "/**"}).Draw(rt, "back")
		cmd := exec.Command(rg, "--hidden", "--sort", "path", "--line-number", "--color", "never", "--glob", glob, "--", "x", ".")
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil && !strings.Contains(err.Error(), "exit status 1") {
			rt.Fatalf("%q: %v", glob, err)
		}
		want := "No matches found"
		if len(out) > 0 {
			want = strings.TrimPrefix(strings.ReplaceAll("\n"+strings.TrimSuffix(string(out), "\n"), "\n./", "\n"), "\n")
		}
		env := engine.Env{Cwd: root, Home: base, ConfigHome: filepath.Join(base, "none")}
		res, err := grep.Run(context.Background(), env, grep.Args{Pattern: "x", Glob: glob, Limit: 1000})
		if err != nil {
			rt.Fatal(err)
		}
		if got := strings.ReplaceAll(res.Text, ":1: x", ":1:x"); got != want {
			rt.Fatalf("glob %q: %q, want %q", glob, got, want)
		}
	})
}
