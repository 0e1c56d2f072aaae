package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// running starts a daemon in this process and returns a client of it.
func running(t testing.TB, s *settings) (*daemon, *e2e.Client) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("RIG_BRIDGE_CHECK_OUTPUTS", "1")
	if s.StateDir == "" {
		s.StateDir = t.TempDir()
	}
	s.TokenFile = filepath.Join(s.StateDir, "http-token")
	d, err := start(s, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		defer cancel()
		if err := d.stop(ctx); err != nil {
			t.Logf("stop: %v", err)
		}
	})
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	return d, e2e.NewClient(d.url(), strings.TrimSpace(string(token)))
}

func call(t testing.TB, c *e2e.Client, tool string, args e2e.Args) e2e.Result {
	t.Helper()
	res, err := c.Call(t.Context(), tool, args)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

func open(t testing.TB, c *e2e.Client, dir string) (workspace string) {
	t.Helper()
	res := call(t, c, "workspace_open", e2e.Args{"cwd": dir})
	if res.IsError {
		t.Fatal(res.Text())
	}
	return res.Structured["workspace_id"].(string)
}

// A durable mutation waits for the store's disk twice: for the record of the attempt, and for the outcome. A
// read-only call never does.
func TestWaitsForTheDisk(t *testing.T) {
	var syncs atomic.Int64
	_, c := running(t, &settings{syncStore: func(f *os.File) error {
		syncs.Add(1)
		return f.Sync()
	}})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("alpha\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := open(t, c, dir)
	revision := call(t, c, "read", e2e.Args{"workspace_id": w, "path": "a.txt"}).Structured["revision"]
	for _, step := range []struct {
		name, tool string
		args       e2e.Args
		want       int64
	}{
		{"write", "write", e2e.Args{"request_key": "k1", "path": "b.txt", "content": "x", "expected_revision": "missing"}, 2},
		{"the same again", "write", e2e.Args{"request_key": "k1", "path": "b.txt", "content": "x", "expected_revision": "missing"}, 0},
		{"edit", "edit", e2e.Args{"request_key": "k2", "path": "a.txt", "expected_revision": revision, "edits": []any{map[string]any{"oldText": "alpha", "newText": "beta"}}}, 2},
		{"bash", "bash", e2e.Args{"request_key": "k3", "command": "true"}, 2},
		{"read", "read", e2e.Args{"path": "a.txt"}, 0},
		{"ls", "ls", nil, 0},
		{"find", "find", e2e.Args{"pattern": "*.txt"}, 0},
		{"grep", "grep", e2e.Args{"pattern": "x"}, 0},
		{"skill_info", "skill_info", nil, 0},
	} {
		t.Run(step.name, func(t *testing.T) {
			args := e2e.Args{"workspace_id": w}
			for k, v := range step.args {
				args[k] = v
			}
			before := syncs.Load()
			if res := call(t, c, step.tool, args); res.IsError {
				t.Fatal(res.Text())
			}
			if got := syncs.Load() - before; got != step.want {
				t.Errorf("%d waits for the disk, want %d", got, step.want)
			}
		})
	}
}

// What cannot be recorded is not done, nobody waits for ever for it, and the daemon says why it ends.
func TestFailedStore(t *testing.T) {
	var broken atomic.Bool
	d, c := running(t, &settings{syncStore: func(f *os.File) error {
		if broken.Load() {
			return unix.EIO
		}
		return f.Sync()
	}})
	dir := t.TempDir()
	w := open(t, c, dir)
	broken.Store(true)
	go func() {
		err := <-d.failed
		t.Logf("the daemon says: %v", err)
		_ = d.mcp.Shutdown(t.Context()) // as serve does
	}()
	res := call(t, c, "write", e2e.Args{"workspace_id": w, "request_key": "k1", "path": "b.txt", "content": "x", "expected_revision": "missing"})
	if !res.IsError {
		t.Errorf("succeeded: %s", res.Text())
	}
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); err == nil {
		t.Error("the file was written although its attempt could not be recorded")
	}
}
