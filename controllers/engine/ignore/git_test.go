package ignore_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rigbridge/rigbridge/controllers/engine/ignore"
	"github.com/rigbridge/rigbridge/controllers/engine/walk"
)

// files is a walk visitor that lists all files.
type files struct{}

func (files) Wants(_ *walk.Dir, _ string, t walk.Type) bool { return t == walk.File }
func (files) Enter(*walk.Dir, string) (any, bool)           { return nil, true }
func (files) Weight(string) int                             { return 1 }
func (files) Visit(_ *walk.Worker, d *walk.Dir, items []walk.Item) []string {
	var out []string
	for _, it := range items {
		out = append(out, d.Rel+it.Name)
	}
	return out
}

func visible(t interface{ Fatal(...any) }, root string, c ignore.Config) []string {
	out, err := walk.Run(context.Background(), []walk.Seed{{Dir: walk.NewRoot(root, ignore.ForRoot(root, c), nil)}},
		files{}, walk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Results
}

// gitVisible asks git for the files that are neither tracked nor ignored.
func gitVisible(t interface{ Fatal(...any) }, root, home string) []string {
	cmd := exec.Command("git", "-C", root, "ls-files", "-z", "--others", "--exclude-standard")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "GIT_CONFIG_NOSYSTEM=1"}
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err, string(b))
	}
	out := strings.FieldsFunc(string(b), func(r rune) bool { return r == 0 })
	byParts(out)
	return out
}

func byParts(list []string) {
	slices.SortFunc(list, func(a, b string) int {
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
}

func put(t interface{ Fatal(...any) }, path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pattern draws one line of an ignore file, mostly sensible, sometimes odd. Text before ** in one part is left
// out: git cuts such text off first and then takes the ** for one that stands alone.
func pattern() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{"a", "b", "c", "ab", "a.x", "*.x", "*.y", "a*", "*b", "?", "??", "[ab]", "[!a]", "[^b]", "[a-c]",
		"[[:alpha:]]", "[[:digit:]].x", "**", "*", `\a`, `a\*b`, "a*b*", "***", "**b", "d", "[]-]", "[a", `x\`, "ä", "*ä", "A", "[[:bogus:]]", "", " "})
	return rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "/")
		s = rapid.SampledFrom([]string{"", "", "", "/", "**/", "!", "!", "!/", "#", `\#`, `\!`}).Draw(t, "front") + s
		return s + rapid.SampledFrom([]string{"", "", "", "", "/", "/", "/**", " ", `\ `, "  ", "\r", "/ "}).Draw(t, "back")
	})
}

// TestAgainstGit compares the files that a walk shows with what git shows, on generated trees and rules.
func TestAgainstGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is needed")
	}
	home := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(home, "tree")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		for _, dir := range []string{"objects", "refs"} {
			if err := os.MkdirAll(filepath.Join(root, ".git", dir), 0o755); err != nil {
				rt.Fatal(err)
			}
		}
		put(rt, filepath.Join(root, ".git/HEAD"), "ref: refs/heads/main\n")
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "ab", "a.x", "b.x", "c.y", "a*b", "1.x", "ä", "A", "#a", "!a", "a ", "]", "-"})
		for _, parts := range rapid.SliceOfN(rapid.SliceOfN(name, 1, 4), 1, 25).Draw(rt, "paths") {
			path := filepath.Join(append([]string{root}, parts...)...)
			if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
				_ = os.WriteFile(path, nil, 0o644) // a directory of that name may be there already
			}
		}
		lines := rapid.SliceOfN(pattern(), 0, 6)
		rules := map[string][]string{".gitignore": lines.Draw(rt, "rules"), "a/.gitignore": lines.Draw(rt, "rules of a"),
			"a/b/.gitignore": lines.Draw(rt, "rules of a/b"), ".git/info/exclude": lines.Draw(rt, "exclude")}
		for file, text := range rules {
			if st, err := os.Stat(filepath.Dir(filepath.Join(root, file))); err == nil && st.IsDir() || strings.HasPrefix(file, ".git/") {
				put(rt, filepath.Join(root, file), strings.Join(text, "\n"))
			}
		}
		got := visible(rt, root, ignore.Config{Own: ".fdignore", Home: home, ConfigHome: filepath.Join(home, ".config")})
		want := gitVisible(rt, root, home)
		if !slices.Equal(got, want) {
			rt.Fatalf("rules %q:\n got %q\nwant %q", rules, got, want)
		}
	})
}

// TestAccountFiles covers git/ignore of the account, core.excludesFile and the tool's own account file.
func TestAccountFiles(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	put(t, filepath.Join(root, ".git/HEAD"), "ref: refs/heads/main\n")
	for _, n := range []string{"a.swp", "b.tmp", "c.own", "d.txt"} {
		put(t, filepath.Join(root, n), "")
	}
	c := ignore.Config{Own: ".fdignore", Home: home, ConfigHome: filepath.Join(home, ".config"), Account: filepath.Join(home, "own")}
	put(t, filepath.Join(home, ".config/git/ignore"), "*.swp\n")
	put(t, filepath.Join(home, "own"), "*.own\n")
	if got := visible(t, root, c); !slices.Equal(got, []string{"b.tmp", "d.txt"}) {
		t.Errorf("with git/ignore: %q", got)
	}
	put(t, filepath.Join(home, "excludes"), "*.tmp\n")
	put(t, filepath.Join(home, ".gitconfig"), "[user]\n\tname = x\n[core]\n\texcludesFile = \"~/excludes\" # mine\n")
	if got := visible(t, root, c); !slices.Equal(got, []string{"a.swp", "d.txt"}) {
		t.Errorf("with core.excludesFile: %q", got)
	}
}

// TestPrecedence walks through the kinds of files from low to high.
func TestPrecedence(t *testing.T) {
	root := t.TempDir()
	c := ignore.Config{Own: ".rgignore", Home: root, ConfigHome: filepath.Join(root, "none")}
	put(t, filepath.Join(root, ".git/info/exclude"), "x\n")
	put(t, filepath.Join(root, "x"), "")
	for _, step := range []struct {
		file, text string
		shown      bool
	}{
		{"", "", false},
		{".gitignore", "!x\n", true},
		{".ignore", "x\n", false},
		{".rgignore", "!x\n", true},
	} {
		if step.file != "" {
			put(t, filepath.Join(root, step.file), step.text)
		}
		if got := slices.Contains(visible(t, root, c), "x"); got != step.shown {
			t.Errorf("with %q: shown = %v", step.file, got)
		}
	}
}

// TestWorktreeExclude follows a .git file and commondir to the exclude file that worktrees share.
func TestWorktreeExclude(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "main/.git/info/exclude"), "hidden\n")
	put(t, filepath.Join(base, "main/.git/worktrees/w/commondir"), "../..\n")
	put(t, filepath.Join(base, "w/.git"), "gitdir: "+filepath.Join(base, "main/.git/worktrees/w")+"\n")
	put(t, filepath.Join(base, "w/hidden"), "")
	put(t, filepath.Join(base, "w/shown"), "")
	got := visible(t, filepath.Join(base, "w"), ignore.Config{Own: ".fdignore", Home: base, ConfigHome: base})
	if !slices.Equal(got, []string{"shown"}) {
		t.Errorf("got %q", got)
	}
}

// TestNestedRepositories: inside a repository rules end at a nested one, outside they do not.
func TestNestedRepositories(t *testing.T) {
	root := t.TempDir()
	c := ignore.Config{Own: ".fdignore", Home: root, ConfigHome: filepath.Join(root, "none")}
	put(t, filepath.Join(root, ".gitignore"), "*.log\n")
	put(t, filepath.Join(root, "in/.git/HEAD"), "ref: refs/heads/main\n")
	put(t, filepath.Join(root, "in/x.log"), "")
	if got := visible(t, root, c); slices.Contains(got, "in/x.log") {
		t.Errorf("outside of a repository: %q", got)
	}
	put(t, filepath.Join(root, ".git/HEAD"), "ref: refs/heads/main\n")
	if got := visible(t, root, c); !slices.Contains(got, "in/x.log") {
		t.Errorf("inside a repository: %q", got)
	}
}

// TestFIFOAsIgnoreFile must not block.
func TestFIFOAsIgnoreFile(t *testing.T) {
	root := t.TempDir()
	mkfifo(t, filepath.Join(root, ".gitignore"))
	mkfifo(t, filepath.Join(root, ".ignore"))
	put(t, filepath.Join(root, "x"), "")
	if got := visible(t, root, ignore.Config{Own: ".fdignore", Home: root, ConfigHome: root}); !slices.Equal(got, []string{"x"}) {
		t.Errorf("got %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a\n!b/\n", "[a", "**/x/**", `\`, "[[:alpha:]", "/\n//\n", "\xff*\r\n"} {
		f.Add(s, "a/b", "c", true)
	}
	f.Fuzz(func(t *testing.T, text, dir, name string, isDir bool) {
		if l := ignore.Parse("/r", []byte(text)); l != nil {
			l.Match("/r/"+dir, name, isDir)
		}
	})
}
