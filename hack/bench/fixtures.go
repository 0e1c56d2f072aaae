package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// madeSkills is how many skills a project has.
const madeSkills = 3

// makeProject makes what the tools work on: a file of 1 KB and one of 1 MB, a directory of 1,000 entries, skills.
func makeProject(dir string) error {
	line := "The quick brown fox jumps over the lazy dog once more, says he\n"
	files := map[string]string{
		"small.txt": strings.Repeat(line, kilobyte/len(line)),
		"large.txt": strings.Repeat(line, megabyte/len(line)),
		"AGENTS.md": strings.Repeat("Say what is true, test what you say.\n", 20),
	}
	files["small.txt"] += strings.Repeat(".", kilobyte-len(files["small.txt"]))
	for i := range 1000 {
		files[fmt.Sprintf("entries/some-file-name-%03d.txt", i)] = ""
	}
	for i := range madeSkills {
		files[fmt.Sprintf(".agents/skills/skill-%d/SKILL.md", i)] = fmt.Sprintf("---\nname: skill-%d\ndescription: Does the %d. thing.\n---\n%s", i, i, strings.Repeat(line, 20))
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make the project: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("make the project: %w", err)
		}
	}
	return nil
}

// fixtures are directories that all servers read and none changes.
type fixtures struct {
	rivals  rivals
	files   int
	tree    string // a generated tree
	git     string // a Git project, empty if there is no git
	missing []string
}

func newFixtures(ctx context.Context, dir string, files, inGit int) (*fixtures, error) {
	f := &fixtures{rivals: findRivals("", ""), files: files, tree: filepath.Join(dir, "tree")}
	if f.rivals.rg == nil || f.rivals.fd == nil {
		f.missing = append(f.missing, "ripgrep (rg) or fd: the limit of a search is the round trip alone")
	}
	if err := generate(f.tree, files); err != nil {
		return nil, fmt.Errorf("generate a tree: %w", err)
	}
	if err := asRepository(f.tree); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("git"); err != nil {
		f.missing = append(f.missing, "git: workspace_open is not measured")
		return f, nil
	}
	f.git = filepath.Join(dir, "git")
	return f, gitProject(ctx, f.git, inGit)
}

// gitProject makes a committed project of so many small files.
func gitProject(ctx context.Context, dir string, files int) error {
	for i := range files {
		path := filepath.Join(dir, fmt.Sprintf("package-%d/part-%d/file-%d.go", i/500, i/50%10, i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make a Git project: %w", err)
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, "package part\n\nconst number = %d\n", i), 0o644); err != nil {
			return fmt.Errorf("make a Git project: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Say what is true.\n"), 0o644); err != nil {
		return fmt.Errorf("make a Git project: %w", err)
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"},
		{"-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "commit", "--quiet", "--no-verify", "--message=all"}} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("make a Git project: git %s: %w", args[0], errors.Join(err, errors.New(said.String())))
		}
	}
	return nil
}
