package goclients

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestStory is one visit through each client: open, read, edit, a command with
// progress, one that is cancelled, a new connection, a repeated call.
func TestStory(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	for name, connect := range connects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			v := &visit{T: t, dir: dir, connect: func() (assistant, error) { return connect(t, d) }}
			v.arrive()
			defer func() { v.leave() }()
			if n, err := v.client.tools(t.Context()); err != nil || n != 15 {
				t.Errorf("%d tools, %v", n, err)
			}
			v.workspace = v.ok("workspace_open", daemon.Args{"cwd": dir}).String("workspace_id")
			change := v.edits()
			v.follows()
			dropped := v.givesUp()
			v.leave()
			v.arrive()
			if r := v.ok("edit", change); !r.Replayed() {
				t.Errorf("the repeated edit: %s", r.Raw)
			}
			if r := v.call("bash", dropped); r.Code() != "COMMAND_CANCELLED" || !r.Replayed() {
				t.Errorf("the repeated command: %s", r.Raw)
			}
			if got := v.content("code.txt"); got != "one\n2\n" {
				t.Errorf("the file is %q", got)
			}
			v.ok("workspace_close", nil)
		})
	}
}

// visit is the stay of one client.
type visit struct {
	*testing.T
	connect   func() (assistant, error)
	client    assistant
	dir       string
	workspace string
}

func (v *visit) arrive() {
	v.Helper()
	var err error
	if v.client, err = v.connect(); err != nil {
		v.Fatal(err)
	}
}

func (v *visit) leave() {
	v.Helper()
	if err := v.client.close(); err != nil {
		v.Errorf("close the connection: %v", err)
	}
}

func (v *visit) content(name string) string {
	v.Helper()
	b, err := os.ReadFile(filepath.Join(v.dir, name))
	if err != nil {
		v.Fatal(err)
	}
	return string(b)
}

// call calls a tool in the workspace.
func (v *visit) call(tool string, args daemon.Args) daemon.Result {
	v.Helper()
	r, err := v.client.call(v.bounded(), tool, v.here(args), nil)
	if err != nil {
		v.Fatal(err)
	}
	return r
}

func (v *visit) ok(tool string, args daemon.Args) daemon.Result {
	v.Helper()
	r := v.call(tool, args)
	if r.IsError || r.String("output") != r.Text() {
		v.Fatalf("%s: %s", tool, r.Raw)
	}
	return r
}

func (v *visit) here(args daemon.Args) daemon.Args {
	out := daemon.Args{}
	for name, value := range args {
		out[name] = value
	}
	if v.workspace != "" {
		out["workspace_id"] = v.workspace
	}
	return out
}

func (v *visit) bounded() context.Context {
	ctx, cancel := context.WithTimeout(v.Context(), 2*time.Minute)
	v.Cleanup(cancel)
	return ctx
}

// edits makes a file, reads it and changes it; it returns the arguments of the
// change.
func (v *visit) edits() daemon.Args {
	v.Helper()
	v.ok("write", daemon.Args{"request_key": daemon.Key(), "path": "code.txt", "content": "1\n2\n", "expected_revision": "missing"})
	read := v.ok("read", daemon.Args{"path": "code.txt"})
	if read.Text() != "1\n2\n" {
		v.Errorf("read %q", read.Text())
	}
	change := daemon.Args{
		"request_key": daemon.Key(), "path": "code.txt", "expected_revision": read.String("revision"),
		"edits": []map[string]string{{"oldText": "1\n", "newText": "one\n"}},
	}
	v.ok("edit", change)
	return change
}

// follows runs a command with progress.
func (v *visit) follows() {
	v.Helper()
	var mu sync.Mutex
	var told []float64
	args := v.here(daemon.Args{"request_key": daemon.Key(), "command": "for i in 1 2 3 4; do echo $i; sleep 0.5; done"})
	r, err := v.client.call(v.bounded(), "bash", args, func(p float64) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p)
	})
	if err != nil || r.Text() != "1\n2\n3\n4\n" {
		v.Fatalf("the command: %v %s", err, r.Raw)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) == 0 || !slices.IsSorted(told) || len(slices.Compact(slices.Clone(told))) != len(told) {
		v.Errorf("progress %v", told)
	}
}

// givesUp cancels a command while it runs and returns its arguments.
func (v *visit) givesUp() daemon.Args {
	v.Helper()
	args := daemon.Args{"request_key": daemon.Key(), "command": "touch begun; sleep 300; touch never"}
	ctx, cancel := context.WithCancel(v.bounded())
	ended := make(chan error, 1)
	go func() {
		_, err := v.client.call(ctx, "bash", v.here(args), nil)
		ended <- err
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(v.dir, "begun")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			v.Fatal("the command has not begun")
		}
	}
	cancel()
	if err := <-ended; err == nil {
		v.Error("the cancelled call was answered")
	}
	if v.client.silent() {
		v.call("operation_cancel", daemon.Args{"request_key": args["request_key"]})
	}
	if r := v.call("bash", args); r.Code() != "COMMAND_CANCELLED" || !strings.Contains(r.Text(), "aborted") {
		v.Errorf("the cancelled command: %s", r.Raw)
	}
	if _, err := os.Stat(filepath.Join(v.dir, "never")); err == nil {
		v.Error("the command went on")
	}
	return args
}
