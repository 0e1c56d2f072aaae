package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// render makes the tool result of an operation that is over, from its receipt and its full answer.
func (c *Calls) render(op *v1alpha1.Operation, fields map[string]any, r *exchange.Result) *mcp.CallToolResult {
	maps.Copy(fields, r.Fields)
	tool := op.Spec.Tool
	if r.Path != "" {
		fields["path"] = r.Path
	}
	if tool != v1alpha1.ToolWorkspaceOpen && tool != v1alpha1.ToolSkillInfo {
		fields["details"] = details(r.Details)
	}
	if op.Status.RunRef != nil {
		fields["run_id"] = op.Status.RunRef.Name
	}
	if op.Status.Revision != "" {
		fields["revision"] = op.Status.Revision
	}
	if tool == v1alpha1.ToolWrite || tool == v1alpha1.ToolEdit {
		if len(op.Status.ChangedPaths) > 0 {
			fields["changed_paths"] = op.Status.ChangedPaths
		}
	}
	if tool == v1alpha1.ToolBash {
		fields["exit_code"] = op.Status.ExitCode
		fields["elapsed_ms"] = elapsed(op)
		fields["operation_id"] = op.Name
	}
	cond := op.Succeeded()
	if op.Status.Code == "" {
		if cond.Reason == v1alpha1.ReasonRecoveredAfterCrash {
			fields["reason"] = cond.Reason
		}
		images := make([]Image, 0, len(r.Images))
		for _, i := range r.Images {
			images = append(images, Image{Data: i.Data, MIMEType: i.MIMEType})
		}
		return Success(r.Text, images, fields)
	}
	fields["effects_may_have_occurred"] = op.Status.EffectsMayHaveOccurred
	if tool == v1alpha1.ToolBash {
		return FailureWithOutput(op.Status.Code, cond.Reason, cond.Message, r.Text, fields)
	}
	return Failure(op.Status.Code, cond.Reason, r.Text, fields)
}

func details(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

func (k *claim) fields(more map[string]any) map[string]any {
	f := map[string]any{"workspace_id": k.Workspace}
	if k.scope != nil {
		f = k.scope.fields()
	}
	maps.Copy(f, more)
	return f
}

// settled answers with an outcome once it is durable.
func (k *claim) settled(ctx context.Context, op *v1alpha1.Operation, r *exchange.Result, more map[string]any) *mcp.CallToolResult {
	if err := k.calls.Durable(context.WithoutCancel(ctx), op.ResourceVersion); err != nil {
		return Failure(v1alpha1.CodeExecutionFailed, v1alpha1.ReasonStoreUnavailable,
			"The call is over, but its outcome could not be recorded: the state directory cannot be written. Free disk space, then repeat the call with the same request_key to learn its outcome.",
			k.fields(map[string]any{"operation_id": op.Name, "effects_may_have_occurred": true}))
	}
	failpoint.Hit(failpoint.BeforeAnswer)
	fields := k.fields(more)
	if k.scope == nil && op.Status.Cwd != "" {
		fields["cwd"] = op.Status.Cwd
	}
	return k.calls.render(op, fields, r)
}

// replay answers with what is known of an operation that was over before this call: the full result while it
// lasts, else the receipt.
func (k *claim) replay(ctx context.Context, op *v1alpha1.Operation) *mcp.CallToolResult {
	if op.Spec.Tool.ManagesWork() {
		return k.managed(ctx, op, true)
	}
	replayed := map[string]any{"replayed": true}
	if r, ok := k.calls.Exchange.Replay(op.UID); ok {
		return k.settled(ctx, op, r, replayed)
	}
	cond := op.Succeeded()
	text := "This call was made before and is not made again. " + cond.Message + " Its output is no longer kept; the receipt has the rest."
	code := v1alpha1.CodeRecordedOutcome
	if op.Status.Phase == v1alpha1.OperationUncertain {
		code, text = v1alpha1.CodeOutcomeUncertain, cond.Message // says what to inspect
	}
	fields := k.fields(receipt(op))
	fields["replayed"] = true
	if err := k.calls.Durable(context.WithoutCancel(ctx), op.ResourceVersion); err != nil {
		return k.calls.internal(err, string(k.tool))
	}
	if op.Status.Code == "" {
		fields["code"] = code
		return Success(text, nil, fields)
	}
	fields["original_code"] = op.Status.Code
	return Failure(code, cond.Reason, text, fields)
}

// receipt is all that is recorded of an operation.
func receipt(op *v1alpha1.Operation) map[string]any {
	st := op.Status
	f := map[string]any{
		"operation_id": op.Name, "tool": string(op.Spec.Tool), "cwd": st.Cwd, "paths": append([]string{}, op.Spec.Paths...),
		"status": receiptStatus(op), "reason": op.Succeeded().Reason,
		"effects_may_have_occurred": st.EffectsMayHaveOccurred,
	}
	if op.Spec.Tool == v1alpha1.ToolBash {
		f["exit_code"] = st.ExitCode
	}
	for name, value := range map[string]string{"signal": st.Signal, "revision": st.Revision, "full_output_path": st.FullOutputPath, "cancelled_by": st.CancelledBy} {
		if value != "" {
			f[name] = value
		}
	}
	if len(st.ChangedPaths) > 0 {
		f["changed_paths"] = st.ChangedPaths
	}
	if st.StartTime != nil {
		f["started"] = st.StartTime.UTC().Format(time.RFC3339Nano)
	}
	if st.CompletionTime != nil {
		f["updated"] = st.CompletionTime.UTC().Format(time.RFC3339Nano)
	}
	if st.ElapsedMilliseconds != nil && op.Spec.Tool == v1alpha1.ToolBash {
		f["elapsed_ms"] = *st.ElapsedMilliseconds
	}
	if st.RunRef != nil {
		f["run_id"] = st.RunRef.Name
	}
	if len(st.Leftovers) > 0 {
		left := make([]map[string]any, 0, len(st.Leftovers))
		for _, p := range st.Leftovers {
			one := map[string]any{"pid": p.PID, "command": p.Command}
			if p.BeginTime != nil {
				one["age_seconds"] = max(0, int64(time.Since(p.BeginTime.Time)/time.Second))
			}
			left = append(left, one)
		}
		f["still_running"] = left
	}
	if a := st.Attempt; a != nil && a.Process != nil {
		f["process_group"], f["process_group_alive"] = a.Process.PID, !op.Over() || len(st.Leftovers) > 0
	}
	return f
}

func receiptStatus(op *v1alpha1.Operation) string {
	switch {
	case op.Status.Phase == v1alpha1.OperationUncertain:
		return "uncertain"
	case op.Status.Code == "":
		return "completed"
	}
	return "failed"
}

// running answers for a command that is not over when the caller's patience is.
func (k *claim) running(ctx context.Context, op *v1alpha1.Operation) *mcp.CallToolResult {
	fields := k.fields(map[string]any{"status": "running", "operation_id": op.Name, "exit_code": nil, "details": nil})
	out, _ := k.calls.Exchange.Output(op.UID)
	text := excerpt(fields, out, 0)
	fields["elapsed_ms"] = soFar(out)
	if now := k.calls.present(ctx, op); now.Status.RunRef != nil {
		fields["run_id"] = now.Status.RunRef.Name
	}
	return Success(text+stillRunning(op.Name, fields["cursor"]), nil, fields)
}

// excerpt reads output from a cursor on, notes in fields where to go on, and returns the text.
func excerpt(fields map[string]any, out exchange.Output, cursor int64) string {
	fields["cursor"] = cursor
	if out == nil {
		return ""
	}
	var b strings.Builder
	for b.Len() < maxExcerpt {
		text, next, missed := out.Read(cursor, maxExcerpt-b.Len())
		if missed > 0 {
			fmt.Fprintf(&b, "\n[%d bytes of output left out here]\n", missed)
			total, _ := fields["missed_bytes"].(int64)
			fields["missed_bytes"] = total + missed
		}
		if text == "" {
			break
		}
		b.WriteString(text)
		cursor = next
	}
	fields["cursor"] = cursor
	return b.String()
}

// maxExcerpt bounds the output in one answer, in bytes.
const maxExcerpt = 40 << 10

// stillRunning says how to go on with an operation that is not over.
func stillRunning(name string, cursor any) string {
	return fmt.Sprintf("\n\n[Still running. Go on with operation_wait {operation_id: %q, cursor: %v}, or stop it with operation_cancel. Do not start it again.]", name, cursor)
}

// present is the operation as it stands now, or as it was if that cannot be read.
func (c *Calls) present(ctx context.Context, op *v1alpha1.Operation) *v1alpha1.Operation {
	now := &v1alpha1.Operation{}
	if found, err := c.get(ctx, op.Name, now); err != nil || !found {
		return op
	}
	return now
}

// elapsed is how long the tool of an operation that is over ran, in milliseconds; 0 if it did not.
func elapsed(op *v1alpha1.Operation) int64 {
	if op.Status.ElapsedMilliseconds == nil {
		return 0
	}
	return *op.Status.ElapsedMilliseconds
}

// soFar is how long a command has been running, in milliseconds; 0 if it has not been started.
func soFar(out exchange.Output) int64 {
	if out == nil {
		return 0
	}
	return out.Elapsed().Milliseconds()
}

// age is how long an operation has been running, by its own record.
func age(op *v1alpha1.Operation) time.Duration {
	if op.Status.StartTime != nil {
		return time.Since(op.Status.StartTime.Time)
	}
	return time.Since(op.CreationTimestamp.Time)
}

func expired(workspace string) *mcp.CallToolResult {
	return Failure(v1alpha1.CodeWorkspaceExpired, v1alpha1.ReasonWorkspaceExpired, fmt.Sprintf(
		"There is no open workspace %q. Open one with workspace_open, with thread_id to go on with a thread; nothing was done.", shorten(workspace)), nil)
}

func tooMuch(err error) *mcp.CallToolResult {
	return Failure(CodeTooManyCalls, "TooManyCalls", "Nothing was done: "+err.Error()+".", nil)
}

// internal answers for a fault of our own, and logs it. A store that takes no writes says itself why and what to do.
func (c *Calls) internal(err error, tool string) *mcp.CallToolResult {
	var status apierrors.APIStatus
	if errors.As(err, &status) && apierrors.IsServiceUnavailable(err) {
		c.Log.V(1).Info("Call refused by the store", "tool", tool, "err", err.Error())
		return Failure(v1alpha1.CodeExecutionFailed, v1alpha1.ReasonStoreUnavailable,
			"Nothing was done: "+status.Status().Message+". Repeat the call with the same arguments then; reading works meanwhile.", nil)
	}
	c.Log.Error(err, "Call failed", "tool", tool)
	return Failure(v1alpha1.CodeExecutionFailed, v1alpha1.ReasonInternalError,
		"The call could not be carried out by a fault of Rig Bridge itself; nothing was started. Try again with the same arguments; if it stays, see the daemon's log.", nil)
}
