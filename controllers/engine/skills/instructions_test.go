package skills

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// found lists the instruction files below root, the ones of this machine above it left out.
func found(root string, env engine.Env) []string {
	var out []string
	for _, f := range InstructionFiles(env) {
		if rel, err := filepath.Rel(root, f.Path); err == nil && !strings.HasPrefix(rel, "..") {
			out = append(out, rel+"="+strings.TrimSpace(f.Content))
		}
	}
	return out
}

func TestInstructionFiles(t *testing.T) {
	root, env := world(t, "a/b/c/d", map[string]string{
		"home/.pi/agent/AGENTS.md": "account",
		"CLAUDE.md":                "top",
		"a/AGENTS.md":              "agents",
		"a/CLAUDE.md":              "not this one",
		"a/CONTEXT.md":             "\n  first context \n\n",
		"a/b/AGENTS.override.md":   "override",
		"a/b/AGENTS.md":            "not this one either",
		"a/b/c/AGENTS.MD":          "capitals",
		"a/b/c/d/CLAUDE.MD":        "cwd",
		"a/b/c/d/CONTEXT.md":       "second context",
		"a/b/CONTEXT.md":           " \n ",
		"a/b/c/d/e/AGENTS.md":      "below",
	})
	want := []string{"home/.pi/agent/AGENTS.md=account", "CLAUDE.md=top", "a/AGENTS.md=agents", "a/b/AGENTS.override.md=override",
		"a/b/c/AGENTS.MD=capitals", "a/b/c/d/CLAUDE.MD=cwd", "a/CONTEXT.md=first context", "a/b/c/d/CONTEXT.md=second context"}
	if got := found(root, env); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	env.Cwd = filepath.Join(env.Home, ".pi/agent")
	if got, want := found(root, env), []string{"home/.pi/agent/AGENTS.md=account", "CLAUDE.md=top"}; !slices.Equal(got, want) {
		t.Errorf("in the agent directory itself: got %q, want %q", got, want)
	}
}

// TestNestedWorktree leaves the main checkout's copy out, but only that.
func TestNestedWorktree(t *testing.T) {
	files := map[string]string{
		"AGENTS.md":                         "above",
		"repo/.git/worktrees/wt/commondir":  "../..\n",
		"repo/.git/HEAD":                    "ref: x\n",
		"repo/AGENTS.md":                    "main",
		"repo/CONTEXT.md":                   "context",
		"repo/trees/AGENTS.md":              "between",
		"repo/trees/wt/.git":                "gitdir: ../../.git/worktrees/wt\n",
		"repo/trees/wt/AGENTS.md":           "copy",
		"repo/trees/wt/sub/AGENTS.md":       "sub",
		"repo/modules/m/.git":               "gitdir: ../../.git/modules/m\n",
		"repo/modules/m/AGENTS.md":          "module",
		"repo/.git/modules/m/HEAD":          "ref: x\n",
		"beside/wt/.git":                    "gitdir: ../../repo/.git/worktrees/wt\n",
		"beside/wt/AGENTS.md":               "beside",
		"repo/trees/bare/.git":              "gitdir: ../../.git/worktrees/wt\n",
		"repo/trees/bare/sub/only/file.txt": "",
	}
	root, env := world(t, "repo", files)
	for cwd, want := range map[string][]string{
		"repo/trees/wt/sub": {"AGENTS.md=above", "repo/trees/AGENTS.md=between", "repo/trees/wt/AGENTS.md=copy", "repo/trees/wt/sub/AGENTS.md=sub", "repo/CONTEXT.md=context"},
		"repo/modules/m":    {"AGENTS.md=above", "repo/AGENTS.md=main", "repo/modules/m/AGENTS.md=module", "repo/CONTEXT.md=context"},
		"beside/wt":         {"AGENTS.md=above", "beside/wt/AGENTS.md=beside"},
		"repo/trees/bare":   {"AGENTS.md=above", "repo/AGENTS.md=main", "repo/trees/AGENTS.md=between", "repo/CONTEXT.md=context"},
	} {
		env.Cwd = filepath.Join(root, cwd)
		if got := found(root, env); !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", cwd, got, want)
		}
	}
}

func TestInstructionFilesAreCut(t *testing.T) {
	root, env := world(t, "cwd", map[string]string{
		"AGENTS.md":     strings.Repeat("x", maxInstructions),
		"cwd/AGENTS.md": "x" + strings.Repeat("😀", maxInstructions),
	})
	for _, f := range InstructionFiles(env) {
		switch f.Path {
		case filepath.Join(root, "AGENTS.md"):
			if len(f.Content) != maxInstructions {
				t.Errorf("a file of exactly the limit was cut to %d", len(f.Content))
			}
		case filepath.Join(root, "cwd/AGENTS.md"):
			text, note, _ := strings.Cut(f.Content, "\n\n[")
			if n := len(utf16.Encode([]rune(text))); n != maxInstructions-1 || !strings.HasSuffix(text, "😀") {
				t.Errorf("cut to %d units", n)
			}
			if !strings.Contains(note, f.Path) {
				t.Errorf("the note does not name the file: %q", note)
			}
		}
	}
}

func TestContextBlock(t *testing.T) {
	if got := ContextBlock(nil); got != "" {
		t.Errorf("without files: %q", got)
	}
	got := ContextBlock([]File{{"/a/AGENTS.md", "Use <tabs> & care.\n"}, {"/b/CONTEXT.md", "B"}})
	for _, part := range []string{"<project_context>\n", "<project_instructions path=\"/a/AGENTS.md\">\nUse <tabs> & care.\n\n</project_instructions>\n",
		"<project_instructions path=\"/b/CONTEXT.md\">\nB\n</project_instructions>\n", "\n</project_context>"} {
		if !strings.Contains(got, part) {
			t.Errorf("lacks %q: %s", part, got)
		}
	}
}
