package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rigbridge/rigbridge/cmd/internal/searchpath"
)

// searchPath asks the daemon where commands find programs.
func (c *connection) searchPath(ctx context.Context) (r searchpath.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*answerWithin) // the daemon may still be asking the login shell
	defer cancel()
	return r, c.ask(ctx, http.MethodGet, searchpath.Route, nil, &r)
}

// lookAtPath tells where commands find programs, each directory with the lists that it came from.
func (c *connection) lookAtPath(ctx context.Context) finding {
	r, err := c.searchPath(ctx)
	if err != nil {
		return finding{err: fmt.Errorf("where commands find programs is not known: %w", err)}
	}
	var told strings.Builder
	if r.Problem != "" {
		fmt.Fprintf(&told, "the login shell gave no PATH, so what it alone knows is missing: %s\n    ", r.Problem)
	} else {
		fmt.Fprintf(&told, "the login shell is %s; ", r.Shell)
	}
	fmt.Fprintf(&told, "commands find programs in %s, in this order:", count(len(r.Parts), "place"))
	for _, p := range r.Parts {
		from := make([]string, len(p.Sources))
		for i, source := range p.Sources {
			from[i] = string(source)
		}
		fmt.Fprintf(&told, "\n    %s (%s)", p.Dir, strings.Join(from, ", "))
	}
	if len(r.Dropped) > 0 {
		fmt.Fprintf(&told, "\n    not in: %s (relative)", strings.Join(r.Dropped, ", "))
	}
	if r.Problem != "" {
		return finding{lack: told.String()}
	}
	return finding{good: told.String()}
}

// lookFor checks that commands find a program that the tools use, too.
func (c *connection) lookFor(program, without string) func(context.Context) finding {
	return func(ctx context.Context) finding {
		dirs, whose := os.Getenv("PATH"), "your PATH"
		if r, err := c.searchPath(ctx); err == nil {
			dirs, whose = r.Path(), "the PATH of commands"
		}
		for _, dir := range filepath.SplitList(dirs) {
			if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
				return finding{good: fmt.Sprintf("%s is %s", program, path)}
			}
		}
		return finding{lack: fmt.Sprintf("%s is not in %s, so %s: install it", program, whose, without)}
	}
}
