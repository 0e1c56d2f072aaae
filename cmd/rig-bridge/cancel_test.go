package main

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// victim is a command under way, and the client that asked for it.
type victim struct {
	d         *daemon
	other     *e2e.Client // somebody else
	workspace string
	key       string
	leave     context.CancelFunc // closes the connection that the call came on
	session   *e2e.Client        // that connection's
}

func (v *victim) operation() *v1alpha1.Operation {
	op := &v1alpha1.Operation{}
	op.Namespace, op.Name = v1alpha1.Namespace, v1alpha1.OperationName(v.workspace, v.key)
	return op
}

const victimID = 4711 // of the request

// sides are those from which a call can be ended early, by what the receipt says of them.
var sides = map[string]struct {
	timeout float64
	modern  bool // as protocol version 2026-07-28
	stop    func(t *testing.T, v *victim)
}{
	"client": {stop: func(t *testing.T, v *victim) {
		if err := v.session.Notify(t.Context(), "notifications/cancelled", map[string]any{"requestId": victimID}); err != nil {
			t.Fatal(err)
		}
	}},
	"disconnect": {modern: true, stop: func(_ *testing.T, v *victim) { v.leave() }},
	"workspace_close": {stop: func(t *testing.T, v *victim) {
		call(t, v.other, "workspace_close", e2e.Args{"workspace_id": v.workspace})
	}},
	"operation_cancel": {stop: func(t *testing.T, v *victim) {
		call(t, v.other, "operation_cancel", e2e.Args{"workspace_id": v.workspace, "request_key": v.key})
	}},
	"person": {stop: func(t *testing.T, v *victim) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`)) // as kubectl does
		if err := v.d.api.Client.Patch(t.Context(), v.operation(), patch); err != nil {
			t.Fatal(err)
		}
	}},
	"shutdown": {stop: func(t *testing.T, v *victim) {
		if err := v.d.operations.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}},
	"timeout": {timeout: 1, stop: func(*testing.T, *victim) {}},
}

// another is a client with a connection and a session of its own.
func another(t *testing.T, d *daemon) *e2e.Client {
	t.Helper()
	token, err := os.ReadFile(d.settings.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	return e2e.NewClient(d.url(), strings.TrimSpace(string(token)))
}

// TestCancelFromEverySide: the command ends, its caller is settled, and the receipt says who ended it and that it
// may have had effects.
func TestCancelFromEverySide(t *testing.T) {
	for by, side := range sides {
		t.Run(by, func(t *testing.T) {
			d, other := running(t, &settings{})
			dir := t.TempDir()
			v := &victim{d: d, other: other, workspace: open(t, other, dir), key: "k", session: another(t, d)}
			params := map[string]any{"name": "bash", "arguments": e2e.Args{"workspace_id": v.workspace, "request_key": v.key,
				"command": "touch begun; sleep 600; touch ended", "timeout": cmp.Or(side.timeout, 900)}}
			if side.modern {
				v.session.Header = http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"bash"}}
				params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
					"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "victim", "version": "1"},
					"io.modelcontextprotocol/clientCapabilities": map[string]any{}}
			} else if _, err := v.session.Initialize(t.Context(), "2025-11-25"); err != nil {
				t.Fatal(err)
			}
			var ctx context.Context
			ctx, v.leave = context.WithTimeout(t.Context(), time.Minute)
			defer v.leave()
			settled := make(chan struct{})
			go func() {
				defer close(settled)
				_, _ = v.session.RequestID(ctx, victimID, "tools/call", params) // what it is told depends on the side
			}()
			begun(t, dir)
			side.stop(t, v)
			<-settled
			eventually(t, "the command is over", func() bool { return receipt(t, d, v.workspace, v.key).Over() })
			op := receipt(t, d, v.workspace, v.key)
			if op.Status.CancelledBy != by || !op.Status.EffectsMayHaveOccurred || op.Status.ExitCode != nil {
				t.Errorf("receipt: %+v", op.Status)
			}
			if side.timeout == 0 && (op.Status.Phase != v1alpha1.OperationCancelled || op.Succeeded().Message != "The command was stopped by "+by+".") {
				t.Errorf("receipt: %s, %q", op.Status.Phase, op.Succeeded().Message)
			}
			if _, err := os.Stat(filepath.Join(dir, "ended")); err == nil {
				t.Error("the command went on")
			}
		})
	}
}

// A call that waits for its turn and is cancelled has had no effect, and has none later.
func TestCancelInTheQueue(t *testing.T) {
	d, c := running(t, &settings{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, path := open(t, c, dir), filepath.Join(dir, "a.txt")
	release, _, err := d.operations.Locks.Acquire(t.Context(), path, "op-of-somebody")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan e2e.Result, 1)
	go func() {
		res, err := c.Call(t.Context(), "write", e2e.Args{"workspace_id": w, "request_key": "k", "path": "a.txt", "content": "x", "expected_revision": "missing"})
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	op := &v1alpha1.Operation{}
	op.Namespace, op.Name = v1alpha1.Namespace, v1alpha1.OperationName(w, "k")
	eventually(t, "the call waits", func() bool {
		err := d.api.Client.Get(t.Context(), client.ObjectKeyFromObject(op), op)
		return err == nil && op.Succeeded().Reason == v1alpha1.ReasonWaitingForFile
	})
	if res := call(t, c, "operation_cancel", e2e.Args{"workspace_id": w, "operation_id": op.Name}); res.IsError {
		t.Error(res.Text())
	}
	release()
	if res := <-answered; res.Structured["code"] != v1alpha1.CodeCommandCancelled || res.Structured["effects_may_have_occurred"] != false {
		t.Errorf("%v: %s", res.Structured, res.Text())
	}
	op = receipt(t, d, w, "k")
	if op.Status.CancelledBy != "operation_cancel" || op.Status.Phase != v1alpha1.OperationCancelled || op.Status.EffectsMayHaveOccurred || op.Status.Attempt != nil {
		t.Errorf("receipt: %+v", op.Status)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was written")
	}
	if holder := d.operations.Locks.Holder(path); holder != "" {
		t.Errorf("%s holds the file", holder)
	}
}
