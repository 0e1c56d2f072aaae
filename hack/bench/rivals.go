package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// rival is a search program to compare with.
type rival struct {
	name string // rg or fd
	path string
	args func(q query, dir string) []string
	rows func(out []byte) int
}

// rivals are those that this machine has.
type rivals struct{ rg, fd *rival }

// findRivals takes the given programs, or looks for them on PATH.
func findRivals(rg, fd string) rivals {
	var r rivals
	if path := lookUp(rg, "rg"); path != "" {
		r.rg = &rival{"rg", path, rgArgs, countMatches}
	}
	if path := lookUp(fd, "fd", "fdfind"); path != "" {
		r.fd = &rival{"fd", path, fdArgs, countLines}
	}
	return r
}

func lookUp(given string, names ...string) string {
	if given != "" {
		names = []string{given}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func (r rivals) of(tool string) *rival {
	if tool == "find" {
		return r.fd
	}
	return r.rg
}

func (r rivals) missing() (names []string) {
	if r.rg == nil {
		names = append(names, "ripgrep (rg): grep is not measured")
	}
	if r.fd == nil {
		names = append(names, "fd (fd or fdfind): find is not measured")
	}
	return names
}

// versions are the first lines that the programs print of themselves.
func (r rivals) versions(ctx context.Context) (lines []string) {
	for _, program := range []*rival{r.rg, r.fd} {
		if program == nil {
			continue
		}
		out, err := exec.CommandContext(ctx, program.path, "--version").Output()
		if err != nil {
			out = []byte(program.name + " of unknown version")
		}
		line, _, _ := strings.Cut(string(out), "\n")
		lines = append(lines, line)
	}
	return lines
}

// rgArgs ask for what grep does: hidden files, ignore rules, rows with numbers.
func rgArgs(q query, dir string) []string {
	args := []string{"--json", "--line-number", "--color=never", "--hidden"}
	if q.Fold {
		args = append(args, "--ignore-case")
	}
	if q.Literal {
		args = append(args, "--fixed-strings")
	}
	if q.Glob != "" {
		args = append(args, "--glob", q.Glob)
	}
	return append(args, "--", q.Pattern, dir)
}

// fdArgs ask for what find does: hidden files, ignore rules, a pattern with a slash on the whole path.
func fdArgs(q query, dir string) []string {
	args := []string{"--glob", "--color=never", "--hidden", "--max-results", fmt.Sprint(searchLimits["find"])}
	pattern := q.Pattern
	if strings.Contains(pattern, "/") {
		args = append(args, "--full-path")
		if !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "**/") {
			pattern = "**/" + pattern
		}
	}
	return append(args, "--", pattern, dir)
}

func countMatches(out []byte) int { return bytes.Count(out, []byte(`{"type":"match",`)) }

func countLines(out []byte) int { return bytes.Count(out, []byte("\n")) }

// command is the program as a process. The account's own configuration has no part in it.
func (r *rival) command(ctx context.Context, q query, dir string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.path, r.args(q, dir)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent", "RIPGREP_CONFIG_PATH=")
	return cmd
}

// run runs the program and counts its rows.
func (r *rival) run(ctx context.Context, q query, dir string) (int, error) {
	cmd := r.command(ctx, q, dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 && stderr.Len() == 0 {
		err = nil // nothing found
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", r.name, err, stderr.Bytes())
	}
	return r.rows(out), nil
}
