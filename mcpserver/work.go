package mcpserver

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// free says whether the receipt of a call that had no effect leaves its key to the next one. A refused call that
// begins or hands off a run stores nothing, so its key is free for any call; a call that a crash kept from
// starting may be made again as it was.
func (k *claim) free(op *v1alpha1.Operation) bool {
	switch {
	case !op.Over():
		return false
	case op.Spec.Tool.ManagesWork():
		return op.Status.Code != ""
	}
	return op.Succeeded().Reason == v1alpha1.ReasonNotStarted && op.Spec.ArgumentsDigest == k.digest
}

// managed answers run_start or work_handoff from its operation, which is over, and from what that has made. The
// answer is the same for every repetition, after a restart too: it shows the run as it began and the handoff as
// it was made.
func (k *claim) managed(ctx context.Context, op *v1alpha1.Operation, replayed bool) *mcp.CallToolResult {
	c := k.calls
	ctx = context.WithoutCancel(ctx)
	if cond := op.Succeeded(); op.Status.Code != "" {
		if err := k.clear(ctx, op); err != nil { // the next use of the key clears it
			c.Log.V(1).Info("A refused call could not be removed", "operation", op.Name, "err", err.Error())
		}
		return Failure(op.Status.Code, cond.Reason, cond.Message, k.fields(map[string]any{"effects_may_have_occurred": false}))
	}
	if err := c.Durable(ctx, op.ResourceVersion); err != nil {
		return c.internal(err, string(k.tool))
	}
	failpoint.Hit(failpoint.BeforeAnswer)
	fields, err := c.made(ctx, op)
	if err != nil {
		return c.internal(err, string(k.tool))
	}
	fields["workspace_id"] = k.Workspace
	text := "The run has started. It ends with work_handoff."
	if k.tool == v1alpha1.ToolWorkHandoff {
		text = "It is the user's turn now: your summary was passed on. This does not prove that they have seen it. Go on to your final reply."
	}
	if replayed {
		fields["replayed"] = true
		text = "This call was made before and was not made again; this is its first answer. " + text
	}
	return Success(text, nil, fields)
}

// made reads what an operation has made.
func (c *Calls) made(ctx context.Context, op *v1alpha1.Operation) (map[string]any, error) {
	fields := map[string]any{}
	project := &v1alpha1.Project{}
	if ref := op.Spec.ThreadRef; ref != nil {
		fields["thread_id"] = ref.Name
		thread := &v1alpha1.Thread{}
		found, err := c.get(ctx, ref.Name, thread)
		if err != nil {
			return nil, err
		}
		if found {
			fields["project_id"] = thread.Spec.ProjectRef.Name
			if err := c.existing(ctx, thread.Spec.ProjectRef.Name, project); err != nil {
				return nil, err
			}
		}
	}
	run := &v1alpha1.Run{}
	if ref := op.Status.RunRef; ref != nil {
		fields["run_id"] = ref.Name
		if err := c.existing(ctx, ref.Name, run); err != nil {
			return nil, err
		}
	}
	if ref := op.Status.HandoffRef; ref != nil {
		h := &v1alpha1.Handoff{}
		fields["handoff_id"] = ref.Name
		if err := c.existing(ctx, ref.Name, h); err != nil {
			return nil, err
		}
		fields["handoff"] = handoffFields(h, run, project)
		return fields, nil
	}
	if run.UID == "" {
		return fields, nil
	}
	r := runFields(run, nil)
	r.Status, r.CompletedAt, r.Summary = "working", nil, nil
	fields["run"] = r
	return fields, nil
}

// existing reads an object; of one that the user has removed since the name is left.
func (c *Calls) existing(ctx context.Context, name string, obj client.Object) error {
	err := c.Client.Get(ctx, key(name), obj)
	if apierrors.IsNotFound(err) {
		obj.SetName(name)
		return nil
	}
	return err
}

// runFields shows a run. h is its handoff if that may be ahead of the run's own status.
func runFields(r *v1alpha1.Run, h *v1alpha1.Handoff) status.Run {
	v := status.OfRun(r)
	if h != nil && !r.HandedOff() {
		at := h.CreationTimestamp.UnixMilli()
		v.Status, v.Summary, v.CompletedAt = status.Snake(string(h.Spec.Reason)), &h.Spec.Summary, &at
	}
	return v
}

// handoffFields shows a handoff as it was made. The run knows the time more exactly than the handoff's own
// metadata, which counts in seconds.
func handoffFields(h *v1alpha1.Handoff, run *v1alpha1.Run, project *v1alpha1.Project) status.Handoff {
	v := status.OfHandoff(h, project.Name)
	if at := status.Milliseconds(run.Status.CompletionTime); at != nil {
		v.CreatedAt = *at
	}
	v.ReadAt, v.DesktopDelivery, v.DeliveryError = nil, "pending", nil
	if phase := h.Status.Delivery.Phase; phase == v1alpha1.DeliveryDisabled || phase == "" && !project.Spec.Notifications.Desktop {
		v.DesktopDelivery = "disabled"
	}
	return v
}
