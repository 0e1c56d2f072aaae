package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// named are the arguments of the tools that act on an operation.
type named struct {
	Workspace   string      `json:"workspace_id"`
	Operation   string      `json:"operation_id"`
	Key         string      `json:"request_key"`
	Cursor      int64       `json:"cursor"`
	WaitSeconds json.Number `json:"wait_seconds"`
}

func (n named) name() string {
	if n.Operation != "" {
		return n.Operation
	}
	return v1alpha1.OperationName(n.Workspace, n.Key)
}

// operation reads the operation that the arguments name, or says why it cannot.
func (c *Calls) operation(ctx context.Context, tool string, raw json.RawMessage) (n named, op *v1alpha1.Operation, _ *mcp.CallToolResult) {
	if err := json.Unmarshal(raw, &n); err != nil {
		return n, nil, c.internal(err, tool)
	}
	op = &v1alpha1.Operation{}
	err := c.Client.Get(ctx, key(n.name()), op)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsBadRequest(err), err == nil && op.Spec.WorkspaceRef.Name != n.Workspace:
		return n, nil, Failure(codeReceiptNotFound, "OperationNotFound",
			"There is no such operation in this workspace. Check operation_id or request_key and workspace_id; a call whose receipt was never made did nothing.", map[string]any{"workspace_id": n.Workspace})
	case err != nil:
		return n, nil, c.internal(err, tool)
	}
	return n, op, nil
}

// codeReceiptNotFound is the contract's code for an unknown operation.
const codeReceiptNotFound = "RECEIPT_NOT_FOUND"

// waitOperation answers operation_wait.
func (c *Calls) waitOperation(ctx context.Context, tool string, raw json.RawMessage) *mcp.CallToolResult {
	n, op, res := c.operation(ctx, tool, raw)
	if res != nil {
		return res
	}
	w := c.waiters.add(op.Name)
	defer c.waiters.drop(w)
	if err := c.Client.Get(ctx, key(op.Name), op); err != nil && !apierrors.IsNotFound(err) {
		return c.internal(err, tool)
	}
	seconds, err := n.WaitSeconds.Float64()
	if err != nil {
		seconds = 45
	}
	if !op.Over() {
		bounded, stop := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
		defer stop()
		if report := transport.Progress(ctx); report != nil {
			go c.report(bounded, op.UID, report)
		}
		done, err := w.await(bounded, op.UID)
		switch {
		case err == nil && done != nil:
			op = done
		case err != nil && ctx.Err() != nil: // the caller has gone; the operation goes on
			return Failure(v1alpha1.CodeExecutionFailed, v1alpha1.ReasonCancelled, "Operation aborted", nil)
		}
	}
	return c.state(ctx, op, n.Cursor)
}

// cancelOperation answers operation_cancel.
func (c *Calls) cancelOperation(ctx context.Context, tool string, raw json.RawMessage) *mcp.CallToolResult {
	n, op, res := c.operation(ctx, tool, raw)
	if res != nil {
		return res
	}
	w := c.waiters.add(op.Name)
	defer c.waiters.drop(w)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true,"cancelledBy":"operation_cancel"}}`))
	target := &v1alpha1.Operation{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: op.Name}}
	for !op.Over() {
		if err := c.Client.Patch(ctx, target, patch); err != nil && !apierrors.IsNotFound(err) {
			return c.internal(err, tool)
		}
		if err := c.Client.Get(ctx, key(op.Name), op); err != nil || op.Over() {
			break
		}
		bounded, stop := context.WithTimeout(ctx, cancelWait)
		done, err := w.await(bounded, op.UID)
		stop()
		if err != nil {
			return Failure(v1alpha1.CodeExecutionFailed, "StillEnding", "The operation was asked to stop and has not ended yet. Call operation_wait to learn when it has.",
				map[string]any{"workspace_id": n.Workspace, "operation_id": op.Name, "effects_may_have_occurred": true})
		}
		if done != nil {
			op = done
		}
	}
	if err := c.stopLeftovers(ctx, w, op); err != nil {
		return c.internal(err, tool)
	}
	return c.state(ctx, op, 0)
}

// stopLeftovers asks for the end of what a finished command left running and waits a moment until it has come.
// What is left then shows in op.
func (c *Calls) stopLeftovers(ctx context.Context, w *waiter, op *v1alpha1.Operation) error {
	if !op.Over() || len(op.Status.Leftovers) == 0 {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":true}}`))
	if err := c.Client.Patch(ctx, op, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	bounded, stop := context.WithTimeout(ctx, cancelWait)
	defer stop()
	for op.Lingering() {
		done, err := w.await(bounded, op.UID)
		if err != nil || done == nil {
			return nil //nolint:nilerr // the time is over, or the operation gone; the answer tells what is left
		}
		done.DeepCopyInto(op)
	}
	return nil
}

// state answers with where an operation stands, and its output from a cursor on.
func (c *Calls) state(ctx context.Context, op *v1alpha1.Operation, cursor int64) *mcp.CallToolResult {
	fields := receipt(op)
	fields["workspace_id"] = op.Spec.WorkspaceRef.Name
	if !op.Over() {
		fields["status"] = "running"
		delete(fields, "effects_may_have_occurred")
		delete(fields, "reason")
		out, _ := c.Exchange.Output(op.UID)
		text := excerpt(fields, out, cursor)
		fields["elapsed_ms"] = soFar(out)
		return Success(text+stillRunning(op.Name, fields["cursor"]), nil, fields)
	}
	if err := c.Durable(context.WithoutCancel(ctx), op.ResourceVersion); err != nil {
		return c.internal(err, string(op.Spec.Tool))
	}
	if op.Status.Code != "" {
		fields["code"] = op.Status.Code
	}
	r, kept := c.Exchange.Replay(op.UID)
	return Success(c.ending(op, fields, r, kept, cursor), nil, fields)
}

// ending is the text for an operation that is over: its output from the cursor on while it lasts, then how it
// ended.
func (c *Calls) ending(op *v1alpha1.Operation, fields map[string]any, r *exchange.Result, kept bool, cursor int64) string {
	fields["cursor"] = cursor
	switch {
	case !kept:
		return op.Succeeded().Message + " Its output is no longer kept."
	case r.Output == nil:
		return r.Text
	}
	var b strings.Builder
	b.WriteString(excerpt(fields, r.Output, cursor))
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString(op.Succeeded().Message)
	if op.Status.FullOutputPath != "" {
		fmt.Fprintf(&b, " Full output: %s", op.Status.FullOutputPath)
	}
	return b.String()
}

// report sends progress of a command's output until ctx is done or the command is over.
func (c *Calls) report(ctx context.Context, uid types.UID, send transport.ProgressFunc) {
	var out exchange.Output
	for ok := false; !ok; out, ok = c.Exchange.Output(uid) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	var cursor int64
	for out.Wait(ctx, cursor) == nil {
		text, next, _ := out.Read(cursor, maxExcerpt)
		if text == "" {
			return
		}
		cursor = next
		send(float64(cursor), 0, lastLine(text))
	}
}

// lastLine is the last line with something in it, cut to what a status line holds.
func lastLine(text string) string {
	const limit = 200
	text = strings.TrimRight(text, "\r\n \t")
	if i := strings.LastIndexAny(text, "\r\n"); i >= 0 {
		text = text[i+1:]
	}
	return clip(text, limit)
}

func clip(text string, limit int) string {
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}
