package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/mark3labs/mcp-go/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// openWorkspace answers workspace_open: an operation whose reconciler makes the project, the thread and the
// workspace and gathers what the assistant should know.
func (c *Calls) openWorkspace(ctx context.Context, tool string, raw json.RawMessage) *mcp.CallToolResult {
	id := uuid.NewString()
	op := &v1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: "open-" + id},
		Spec:       v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: id}, Tool: v1alpha1.ToolWorkspaceOpen},
	}
	done, answer, res := c.ask(ctx, op, raw)
	if res != nil {
		return res
	}
	if err := c.Durable(context.WithoutCancel(ctx), done.ResourceVersion); err != nil {
		return c.internal(err, tool)
	}
	return c.render(done, map[string]any{}, answer)
}

// closeWorkspace answers workspace_close: it deletes the workspace and waits until its operations have ended.
func (c *Calls) closeWorkspace(ctx context.Context, tool string, raw json.RawMessage) *mcp.CallToolResult {
	var a arguments
	if err := json.Unmarshal(raw, &a); err != nil {
		return c.internal(err, tool)
	}
	ws := &v1alpha1.Workspace{}
	found, err := c.get(ctx, a.Workspace, ws)
	if err != nil {
		return c.internal(err, tool)
	}
	if !found {
		return Success("The workspace is not open; nothing to close.", nil, map[string]any{"workspace_id": a.Workspace, "closed": true})
	}
	if err := c.Client.Delete(ctx, ws.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return c.internal(err, tool)
	}
	if err := c.awaitGone(ctx, a.Workspace); err != nil {
		return Failure(v1alpha1.CodeExecutionFailed, "StillClosing",
			"The workspace is closing, but its commands have not ended yet. Call workspace_close again to wait for them.", map[string]any{"workspace_id": a.Workspace, "effects_may_have_occurred": true})
	}
	return Success("Workspace closed: "+ws.Spec.Cwd, nil, map[string]any{"workspace_id": a.Workspace, "cwd": ws.Spec.Cwd, "closed": true})
}

// closeWait is how long a close waits: the time that a command is given to end, and room to spare.
const closeWait = 15 * time.Second

// awaitGone waits until a workspace that was deleted is gone, durably.
func (c *Calls) awaitGone(ctx context.Context, name string) error {
	ctx, stop := context.WithTimeout(ctx, closeWait)
	defer stop()
	w, err := c.Client.Watch(ctx, &v1alpha1.WorkspaceList{}, client.InNamespace(v1alpha1.Namespace),
		client.MatchingFields{"metadata.name": name})
	if err != nil {
		return err
	}
	defer w.Stop()
	ws := &v1alpha1.Workspace{}
	if err := c.Client.Get(ctx, key(name), ws); err != nil {
		return client.IgnoreNotFound(err)
	}
	for {
		select {
		case e, open := <-w.ResultChan():
			gone, ok := e.Object.(*v1alpha1.Workspace)
			if !open || !ok {
				return fmt.Errorf("watch workspace %s: it ended", name)
			}
			if e.Type == watch.Deleted {
				return c.Durable(ctx, gone.ResourceVersion)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
