package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// tool is one kind of call to measure.
type tool struct {
	name   string
	bounds []string // limits that the tool cannot beat
	// prepare opens what the callers need and returns the call.
	prepare func(ctx context.Context, s *server, callers int) (func(ctx context.Context, caller int) error, error)
}

var (
	asking   = []string{limitHTTP}
	changing = []string{limitHTTP, limitFlush}
	running  = []string{limitHTTP, limitFlush, limitFork}
)

var tools = []tool{
	{"read 2 KB", asking, same("read", daemon.Args{"path": "dir-1/file-1.txt"})},
	{"read 50 KB", asking, same("read", daemon.Args{"path": "large.txt"})},
	{"ls", asking, same("ls", daemon.Args{"path": "dir-1"})},
	{"find", asking, same("find", daemon.Args{"pattern": "*-7.txt"})},
	{"grep", asking, same("grep", daemon.Args{"pattern": "needle \\d+"})},
	{"write", changing, writing},
	{"edit", changing, editing},
	{"bash", running, keyed("bash", daemon.Args{"command": "true"})},
}

// makeProject makes 400 small files in 20 directories and one of 50 KB.
func makeProject(dir string) error {
	write := func(name, text string) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o644)
	}
	line := "The quick brown fox jumps over the lazy dog.\n"
	err := write("large.txt", strings.Repeat(line, 50_000/len(line)))
	for i := range 400 {
		text := strings.Repeat(line, 2000/len(line)) + fmt.Sprintf("straw %d\n", i)
		if i%20 == 7 {
			text += fmt.Sprintf("needle %d\n", i)
		}
		if err == nil {
			err = write(fmt.Sprintf("dir-%d/file-%d.txt", i/20, i%20), text)
		}
	}
	if err != nil {
		return fmt.Errorf("make the project: %w", err)
	}
	return nil
}

func open(ctx context.Context, s *server) (string, error) {
	r, err := call(ctx, s, "workspace_open", daemon.Args{"cwd": s.files})
	return r.String("workspace_id"), err
}

// call counts a failed tool as an error.
func call(ctx context.Context, s *server, name string, args daemon.Args) (daemon.Result, error) {
	r, err := s.client.Call(ctx, name, args)
	if err == nil && r.IsError {
		err = fmt.Errorf("%s: %s: %s", name, r.Code(), r.Text())
	}
	return r, err
}

type prepare = func(context.Context, *server, int) (func(context.Context, int) error, error)

// same makes all callers send the same call.
func same(name string, args daemon.Args) prepare {
	return func(ctx context.Context, s *server, _ int) (func(context.Context, int) error, error) {
		workspace, err := open(ctx, s)
		return func(ctx context.Context, _ int) error {
			_, err := call(ctx, s, name, with(args, workspace))
			return err
		}, err
	}
}

// keyed gives each call a key of its own.
func keyed(name string, args daemon.Args) prepare {
	return func(ctx context.Context, s *server, _ int) (func(context.Context, int) error, error) {
		workspace, err := open(ctx, s)
		return func(ctx context.Context, _ int) error {
			_, err := call(ctx, s, name, withKey(args, workspace))
			return err
		}, err
	}
}

// writing makes a new file with each call.
func writing(ctx context.Context, s *server, _ int) (func(context.Context, int) error, error) {
	workspace, err := open(ctx, s)
	return func(ctx context.Context, caller int) error {
		args := withKey(daemon.Args{"content": strings.Repeat("x", 200), "expected_revision": "missing"}, workspace)
		args["path"] = fmt.Sprintf("written/%d/%s", caller, args["request_key"])
		_, err := call(ctx, s, "write", args)
		return err
	}, err
}

// editing gives each caller a file and turns one word of it back and forth.
func editing(ctx context.Context, s *server, callers int) (func(context.Context, int) error, error) {
	workspace, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	words := [2]string{"ping", "pong"}
	revisions, turns := make([]string, callers), make([]int, callers)
	stem := rand.Text()
	path := func(caller int) string { return fmt.Sprintf("edited/%s-%d", stem, caller) }
	for i := range callers {
		args := withKey(daemon.Args{"path": path(i), "content": "first\n" + words[0] + "\nlast\n", "expected_revision": "missing"}, workspace)
		r, err := call(ctx, s, "write", args)
		if err != nil {
			return nil, err
		}
		revisions[i] = r.String("revision")
	}
	return func(ctx context.Context, caller int) error {
		from, to := words[turns[caller]%2], words[(turns[caller]+1)%2]
		r, err := call(ctx, s, "edit", withKey(daemon.Args{"path": path(caller), "expected_revision": revisions[caller],
			"edits": []daemon.Args{{"oldText": from, "newText": to}}}, workspace))
		if err == nil {
			revisions[caller] = r.String("revision")
			turns[caller]++
		}
		return err
	}, nil
}

func with(args daemon.Args, workspace string) daemon.Args {
	out := daemon.Args{"workspace_id": workspace}
	for k, v := range args {
		out[k] = v
	}
	return out
}

func withKey(args daemon.Args, workspace string) daemon.Args {
	out := with(args, workspace)
	out["request_key"] = rand.Text()
	return out
}
