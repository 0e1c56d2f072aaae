package mcpserver

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

const (
	// maxRecent is the number of finished calls that are remembered for a workspace.
	maxRecent = 20
	// maxDescription bounds what is remembered of a call's arguments, in code points.
	maxDescription = 1000
	// maxError bounds what is remembered of a failure, in code points.
	maxError = 300
	// maxBegun and maxRecentWorkspaces bound the memory; beyond them the oldest is forgotten.
	maxBegun            = 2048
	maxRecentWorkspaces = 128
)

// recent remembers what the calls of workspaces were about: in memory only, because descriptions hold command
// text. The zero value is ready.
type recent struct {
	mu         sync.Mutex
	begun      map[string]begunCall // by operation
	workspaces map[string]*recentCalls
}

type begunCall struct {
	tool, description string
	at                time.Time
}

type recentCalls struct {
	used  time.Time
	calls []status.Command // the latest first
}

// begin notes a call whose operation is about to be made; undo takes that back if it was not. A call that
// repeats one under way changes nothing.
func (r *recent) begin(op *v1alpha1.Operation, arguments json.RawMessage, now time.Time) (undo func()) {
	if op.Spec.Tool == v1alpha1.ToolWorkspaceOpen || op.Spec.Tool.ManagesWork() {
		return func() {}
	}
	call := begunCall{string(op.Spec.Tool), describe(op.Spec.Tool, arguments), now}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun == nil {
		r.begun, r.workspaces = map[string]begunCall{}, map[string]*recentCalls{}
	}
	if _, repeated := r.begun[op.Name]; repeated {
		return func() {}
	}
	if len(r.begun) >= maxBegun { // ends were missed, or very many calls are under way
		oldest := op.Name
		for name, c := range r.begun {
			if c.at.Before(call.at) && (oldest == op.Name || c.at.Before(r.begun[oldest].at)) {
				oldest = name
			}
		}
		delete(r.begun, oldest)
	}
	r.begun[op.Name] = call
	r.of(op.Spec.WorkspaceRef.Name).used = now
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.begun, op.Name)
	}
}

// of returns a workspace's calls; the one that was not used for longest makes room for a new one.
func (r *recent) of(workspace string) *recentCalls {
	if c := r.workspaces[workspace]; c != nil {
		return c
	}
	if len(r.workspaces) >= maxRecentWorkspaces {
		oldest := ""
		for name, c := range r.workspaces {
			if oldest == "" || c.used.Before(r.workspaces[oldest].used) {
				oldest = name
			}
		}
		delete(r.workspaces, oldest)
	}
	c := &recentCalls{}
	r.workspaces[workspace] = c
	return c
}

// end notes that a call's operation is over. One that was not begun here is left alone.
func (r *recent) end(op *v1alpha1.Operation, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call, ok := r.begun[op.Name]
	if !ok {
		return
	}
	delete(r.begun, op.Name)
	completed, ran, success := now.UnixMilli(), now.Sub(call.at).Milliseconds(), op.Status.Code == ""
	done := status.Command{ID: op.Name, Tool: call.tool, Description: call.description, StartedAt: call.at.UnixMilli(),
		CompletedAt: &completed, DurationMs: &ran, Success: &success}
	if !success {
		done.Error = clip(op.Succeeded().Message, maxError)
	}
	c := r.of(op.Spec.WorkspaceRef.Name)
	c.used = now
	c.calls = slices.Insert(c.calls, 0, done)
	c.calls = c.calls[:min(len(c.calls), maxRecent)]
}

// about returns what is known of an operation under way.
func (r *recent) about(operation string) (begunCall, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.begun[operation]
	return c, ok
}

// description says what an operation is about while it is remembered: under way, or among its workspace's last.
func (r *recent) description(op *v1alpha1.Operation) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.begun[op.Name]; ok {
		return c.description, true
	}
	if c := r.workspaces[op.Spec.WorkspaceRef.Name]; c != nil {
		for i := range c.calls {
			if c.calls[i].ID == op.Name {
				return c.calls[i].Description, true
			}
		}
	}
	return "", false
}

// finished returns a workspace's finished calls, the latest first, and when it was last used.
func (r *recent) finished(workspace string) ([]status.Command, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.workspaces[workspace]
	if c == nil {
		return nil, time.Time{}
	}
	return slices.Clone(c.calls), c.used
}

// describe says what a call is about: the command, or the tool and what it looks at.
func describe(tool v1alpha1.Tool, arguments json.RawMessage) string {
	var a struct{ Command, Path, Pattern, Name string }
	if err := json.Unmarshal(arguments, &a); err != nil {
		return string(tool)
	}
	text := string(tool)
	switch tool {
	case v1alpha1.ToolBash:
		return clip(a.Command, maxDescription)
	case v1alpha1.ToolFind, v1alpha1.ToolGrep:
		text = a.Pattern
	case v1alpha1.ToolSkillInfo:
		if a.Name != "" {
			text += " " + a.Name
		}
	}
	if a.Path != "" {
		text += " " + a.Path
	}
	return clip(text, maxDescription)
}
