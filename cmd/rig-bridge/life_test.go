package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/workspace"
	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// eventually waits for a state that is on its way.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// begun waits until a command has made the file "begun".
func begun(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "the command has begun", func() bool {
		_, err := os.Stat(filepath.Join(dir, "begun"))
		return err == nil
	})
}

func receipt(t *testing.T, d *daemon, ws, key string) *v1alpha1.Operation {
	t.Helper()
	op := &v1alpha1.Operation{}
	if err := d.api.Client.Get(t.Context(), server.Key(v1alpha1.OperationName(ws, key)), op); err != nil {
		t.Fatal(err)
	}
	return op
}

// Closing a workspace stops its commands, settles their callers and leaves receipts that answer afterwards.
func TestCloseStopsCommands(t *testing.T) {
	d, c := running(t, &settings{})
	w := open(t, c, t.TempDir())
	args := e2e.Args{"workspace_id": w, "request_key": "k", "command": "sleep 600"}
	answered := make(chan e2e.Result, 1)
	go func() {
		res, err := c.Call(t.Context(), "bash", args)
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	eventually(t, "the command runs", func() bool { return d.operations.Active() == 1 })
	if res := call(t, c, "workspace_close", e2e.Args{"workspace_id": w}); res.IsError {
		t.Fatal(res.Text())
	}
	res := <-answered
	if !res.IsError || res.Structured["code"] != v1alpha1.CodeCommandCancelled {
		t.Errorf("the caller got %v: %s", res.Structured["code"], res.Text())
	}
	if op := receipt(t, d, w, "k"); op.Status.CancelledBy != "workspace_close" || op.Status.Phase != v1alpha1.OperationCancelled || len(op.Finalizers) > 0 {
		t.Errorf("receipt: %+v, finalizers %v", op.Status, op.Finalizers)
	}
	if res := call(t, c, "bash", args); res.Structured["replayed"] != true || res.Structured["code"] != v1alpha1.CodeCommandCancelled {
		t.Errorf("retry after the close: %v", res.Structured)
	}
	if res := call(t, c, "read", e2e.Args{"workspace_id": w, "path": "x"}); res.Structured["code"] != v1alpha1.CodeWorkspaceExpired {
		t.Errorf("read after the close: %v", res.Structured)
	}
	if res := call(t, c, "workspace_close", e2e.Args{"workspace_id": w}); res.IsError {
		t.Errorf("closing again: %s", res.Text())
	}
}

// The API's own cancel, which kubectl and rigctl set, ends a command and says who asked.
func TestCancelOverTheAPI(t *testing.T) {
	d, c := running(t, &settings{})
	dir := t.TempDir()
	w := open(t, c, dir)
	go func() {
		begun(t, dir)
		op := &v1alpha1.Operation{}
		op.Namespace, op.Name = v1alpha1.Namespace, v1alpha1.OperationName(w, "k")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`))
		if err := d.api.Client.Patch(t.Context(), op, patch); err != nil {
			t.Error(err)
		}
	}()
	res := call(t, c, "bash", e2e.Args{"workspace_id": w, "request_key": "k", "command": "trap 'echo bye; exit 0' TERM; touch begun; sleep 600 & wait"})
	if res.Structured["code"] != v1alpha1.CodeCommandCancelled || !strings.Contains(res.Text(), "bye") {
		t.Errorf("%v: %s", res.Structured["code"], res.Text())
	}
	if op := receipt(t, d, w, "k"); op.Status.CancelledBy != "person" {
		t.Errorf("cancelled by %q", op.Status.CancelledBy)
	}
}

// Deleting a running operation stops it; then it is gone.
func TestDeleteRunningOperation(t *testing.T) {
	d, c := running(t, &settings{})
	dir := t.TempDir()
	w := open(t, c, dir)
	go func() {
		begun(t, dir)
		if err := d.api.Client.Delete(t.Context(), receipt(t, d, w, "k")); err != nil {
			t.Error(err)
		}
	}()
	res := call(t, c, "bash", e2e.Args{"workspace_id": w, "request_key": "k", "command": "touch begun; sleep 600; touch ended"})
	if !res.IsError {
		t.Errorf("succeeded: %s", res.Text())
	}
	eventually(t, "the operation is gone", func() bool {
		err := d.api.Client.Get(t.Context(), server.Key(v1alpha1.OperationName(w, "k")), &v1alpha1.Operation{})
		return client.IgnoreNotFound(err) == nil && err != nil
	})
}

// Calls with one key that come together are one call.
func TestOneKeyManyCalls(t *testing.T) {
	_, c := running(t, &settings{})
	dir := t.TempDir()
	w := open(t, c, dir)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			res, err := c.Call(t.Context(), "bash", e2e.Args{"workspace_id": w, "request_key": "k", "command": "echo x >> log; sleep 0.3"})
			if err != nil || res.IsError {
				t.Errorf("%v %s", err, res.Text())
			}
		})
	}
	all.Wait()
	if b, err := os.ReadFile(filepath.Join(dir, "log")); string(b) != "x\n" {
		t.Errorf("log holds %q, %v", b, err)
	}
}

// The same thread opened many times at once is one workspace, also after the daemon was started anew.
func TestResumeIsShared(t *testing.T) {
	_, c := running(t, &settings{})
	first := call(t, c, "workspace_open", e2e.Args{"cwd": t.TempDir(), "title": "shared"})
	thread := first.Structured["thread_id"]
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			res, err := c.Call(t.Context(), "workspace_open", e2e.Args{"thread_id": thread})
			if err != nil || res.Structured["workspace_id"] != first.Structured["workspace_id"] {
				t.Errorf("%v: another workspace: %v", err, res.Structured["workspace_id"])
			}
		})
	}
	all.Wait()
}

// Above the limit the workspace that was idle for longest makes room, and never one with a running command.
func TestReclaim(t *testing.T) {
	d, c := running(t, &settings{})
	dir := t.TempDir()
	busy := open(t, c, dir)
	go func() {
		_, _ = c.Call(t.Context(), "bash", e2e.Args{"workspace_id": busy, "request_key": "k", "command": "sleep 600", "wait_seconds": 300})
	}()
	eventually(t, "the command runs", func() bool { return d.operations.Active() == 1 })
	idle := open(t, c, dir)
	for range workspace.Max {
		open(t, c, dir)
	}
	all := &v1alpha1.WorkspaceList{}
	eventually(t, "the limit is kept", func() bool {
		if err := d.api.Client.List(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		return len(all.Items) <= workspace.Max
	})
	left := map[string]bool{}
	for _, ws := range all.Items {
		left[ws.Name] = true
	}
	if !left[busy] {
		t.Error("the workspace with a running command was reclaimed")
	}
	if left[idle] {
		t.Error("the longest idle workspace was kept")
	}
}

// A workspace whose directory went away says so, and nothing is run somewhere else.
func TestDirectoryGone(t *testing.T) {
	_, c := running(t, &settings{})
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := open(t, c, dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	for i, tool := range []string{"bash", "ls", "write"} {
		args := e2e.Args{"workspace_id": w}
		switch tool {
		case "bash":
			args["command"] = "pwd"
		case "write":
			args["path"], args["content"], args["expected_revision"] = "../../nowhere/x/../y", "x", "sha256:"+strings.Repeat("0", 64)
		}
		if tool != "ls" {
			args["request_key"] = fmt.Sprint("k", i)
		}
		if res := call(t, c, tool, args); !res.IsError {
			t.Errorf("%s succeeded: %s", tool, res.Text())
		}
	}
}

// A command that is not over when the caller's patience is goes on, and is waited for by cursor.
func TestLongCommand(t *testing.T) {
	_, c := running(t, &settings{})
	dir := t.TempDir()
	w := open(t, c, dir)
	res := call(t, c, "bash", e2e.Args{"workspace_id": w, "request_key": "k", "wait_seconds": 1,
		"command": "echo first; while [ ! -e go ]; do sleep 0.05; done; echo second; exit 3"})
	if res.IsError || res.Structured["status"] != "running" || !strings.HasPrefix(res.Text(), "first\n") {
		t.Fatalf("%v: %s", res.Structured, res.Text())
	}
	id, cursor := res.Structured["operation_id"], res.Structured["cursor"]
	res = call(t, c, "operation_wait", e2e.Args{"workspace_id": w, "operation_id": id, "cursor": cursor, "wait_seconds": 0})
	if res.Structured["status"] != "running" {
		t.Errorf("status %v", res.Structured["status"])
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	res = call(t, c, "operation_wait", e2e.Args{"workspace_id": w, "operation_id": id, "cursor": cursor})
	if res.Structured["status"] != "failed" || res.Structured["exit_code"] != 3.0 || !strings.HasPrefix(res.Text(), "second\n") {
		t.Errorf("%v: %s", res.Structured, res.Text())
	}
	if res = call(t, c, "operation_cancel", e2e.Args{"workspace_id": w, "request_key": "k"}); res.Structured["status"] != "failed" {
		t.Errorf("cancel of a finished operation: %v", res.Structured)
	}
}

// A file that another call holds is waited for, and then the answer names who holds it; nothing was done.
func TestBusyFile(t *testing.T) {
	d, c := running(t, &settings{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.txt")
	w := open(t, c, dir)
	release, _, err := d.operations.Locks.Acquire(t.Context(), path, "op-of-somebody")
	if err != nil {
		t.Fatal(err)
	}
	args := e2e.Args{"workspace_id": w, "request_key": "k", "path": "a.txt", "content": "x", "expected_revision": "missing"}
	answered := make(chan e2e.Result, 1)
	go func() {
		res, err := c.Call(t.Context(), "write", args)
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	op := &v1alpha1.Operation{}
	eventually(t, "the operation says whom it waits for", func() bool {
		return d.api.Client.Get(t.Context(), server.Key(v1alpha1.OperationName(w, "k")), op) == nil && op.Succeeded().Reason == v1alpha1.ReasonWaitingForFile
	})
	if got, want := op.Succeeded().Message, "Waits for "+path+", which operation op-of-somebody is changing."; got != want || op.Over() {
		t.Errorf("while it waits: %q, want %q", got, want)
	}
	res := <-answered
	if res.Structured["code"] != v1alpha1.CodeFileBusy || !strings.Contains(res.Text(), "op-of-somebody") || res.Structured["effects_may_have_occurred"] != false {
		t.Errorf("%v: %s", res.Structured, res.Text())
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was written")
	}
	time.AfterFunc(100*time.Millisecond, release)
	args["request_key"] = "k2"
	if res := call(t, c, "write", args); res.IsError {
		t.Errorf("after the release: %s", res.Text())
	}
}
