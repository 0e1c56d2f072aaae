package main

import (
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// The shapes of status --json. Times are milliseconds since 1970, spans seconds or milliseconds as named.
type (
	statusView struct {
		Version             string          `json:"version"`
		StartedAt           int64           `json:"startedAt"`
		UptimeSeconds       int64           `json:"uptimeSeconds"`
		WorkspacesCount     int             `json:"workspacesCount"`
		ActiveCommandsCount int             `json:"activeCommandsCount"`
		Workspaces          []workspaceView `json:"workspaces"`
		Projects            []projectView   `json:"projects"`
		ProjectsCount       int             `json:"projectsCount"`
		Notifications       []handoffView   `json:"notifications"`
		UnreadCount         int             `json:"unreadCount"`
	}
	workspaceView struct {
		ID             string        `json:"id"`
		ProjectID      string        `json:"projectId"`
		ThreadID       string        `json:"threadId"`
		Cwd            string        `json:"cwd"`
		CreatedAt      int64         `json:"createdAt"`
		LastUsed       int64         `json:"lastUsed"`
		ActiveCommands []commandView `json:"activeCommands"`
		LastCommand    *commandView  `json:"lastCommand,omitempty"`
		RecentCommands []commandView `json:"recentCommands"`
	}
	// commandView has elapsedMs while the command runs, and the rest when it is over.
	commandView struct {
		ID          string `json:"id"`
		Tool        string `json:"tool"`
		Description string `json:"description"`
		StartedAt   int64  `json:"startedAt"`
		ElapsedMs   *int64 `json:"elapsedMs,omitempty"`
		CompletedAt *int64 `json:"completedAt,omitempty"`
		DurationMs  *int64 `json:"durationMs,omitempty"`
		Success     *bool  `json:"success,omitempty"`
		Error       string `json:"error,omitempty"`
	}
	projectView struct {
		ID                   string       `json:"id"`
		Identity             string       `json:"identity"`
		Name                 string       `json:"name"`
		Root                 string       `json:"root"`
		CreatedAt            int64        `json:"createdAt"`
		LastUsed             int64        `json:"lastUsed"`
		DesktopNotifications bool         `json:"desktopNotifications"`
		Threads              []threadView `json:"threads"`
	}
	threadView struct {
		ID        string    `json:"id"`
		ProjectID string    `json:"projectId"`
		Title     string    `json:"title"`
		Cwd       string    `json:"cwd"`
		CreatedAt int64     `json:"createdAt"`
		LastUsed  int64     `json:"lastUsed"`
		Run       *runView  `json:"run"`
		Runs      []runView `json:"runs"`
	}
	runView struct {
		ID          string  `json:"id"`
		ThreadID    string  `json:"threadId"`
		Title       string  `json:"title"`
		Status      string  `json:"status"`
		StartedAt   int64   `json:"startedAt"`
		CompletedAt *int64  `json:"completedAt"`
		Summary     *string `json:"summary"`
	}
	handoffView struct {
		ID              string  `json:"id"`
		ProjectID       string  `json:"projectId"`
		ThreadID        string  `json:"threadId"`
		RunID           string  `json:"runId"`
		Reason          string  `json:"reason"`
		Summary         string  `json:"summary"`
		CreatedAt       int64   `json:"createdAt"`
		ReadAt          *int64  `json:"readAt"`
		DesktopDelivery string  `json:"desktopDelivery"`
		DeliveryError   *string `json:"deliveryError"`
	}
)

// view shapes the world as status --json has it.
func (w *world) view(now time.Time) *statusView {
	s := &statusView{Workspaces: []workspaceView{}, Projects: []projectView{}, Notifications: []handoffView{}}
	for i := range w.workspaces {
		v := w.workspace(&w.workspaces[i], now)
		s.ActiveCommandsCount += len(v.ActiveCommands)
		s.Workspaces = append(s.Workspaces, v)
	}
	newestFirst(s.Workspaces, func(v workspaceView) int64 { return v.LastUsed })
	newestFirst(s.Workspaces, func(v workspaceView) int64 { return int64(min(len(v.ActiveCommands), 1)) }) // busy ones first
	for i := range w.projects {
		s.Projects = append(s.Projects, w.project(&w.projects[i]))
	}
	newestFirst(s.Projects, func(v projectView) int64 { return v.LastUsed })
	read := 0
	for i := range w.handoffs {
		v := w.handoff(&w.handoffs[i])
		if v.ReadAt == nil {
			s.UnreadCount++
		} else if read++; read > readHandoffs {
			continue
		}
		s.Notifications = append(s.Notifications, v)
	}
	s.WorkspacesCount, s.ProjectsCount = len(s.Workspaces), len(s.Projects)
	return s
}

func (w *world) workspace(o *v1alpha1.Workspace, now time.Time) workspaceView {
	v := workspaceView{
		ID: o.Name, ThreadID: o.Spec.ThreadRef.Name, ProjectID: w.projectOf[o.Spec.ThreadRef.Name], Cwd: o.Spec.Cwd,
		CreatedAt: o.CreationTimestamp.UnixMilli(), LastUsed: lastUsed(o.Status.LastUsedTime, o.CreationTimestamp).UnixMilli(),
		ActiveCommands: []commandView{}, RecentCommands: []commandView{},
	}
	for i := range w.operations[o.Name] {
		op := &w.operations[o.Name][i]
		if !op.Over() {
			v.ActiveCommands = append(v.ActiveCommands, w.command(op, now))
		} else if len(v.RecentCommands) < recentCommands {
			v.RecentCommands = append(v.RecentCommands, w.command(op, now))
		}
	}
	if len(v.RecentCommands) > 0 {
		v.LastCommand = &v.RecentCommands[0]
	}
	return v
}

func (w *world) command(o *v1alpha1.Operation, now time.Time) commandView {
	start := began(o)
	v := commandView{ID: o.Name, Tool: string(o.Spec.Tool), Description: describeCall(o, w.arguments[o.Name]), StartedAt: start.UnixMilli()}
	if !o.Over() {
		elapsed := now.Sub(start).Milliseconds()
		v.ElapsedMs = &elapsed
		return v
	}
	success := o.Succeeded().Status == metav1.ConditionTrue
	v.Success = &success
	if end := o.Status.CompletionTime; end != nil {
		at, took := end.UnixMilli(), end.Sub(start).Milliseconds()
		v.CompletedAt, v.DurationMs = &at, &took
	}
	if !success {
		v.Error = o.Succeeded().Message
	}
	return v
}

func (w *world) project(o *v1alpha1.Project) projectView {
	v := projectView{
		ID: o.Name, Identity: o.Spec.Identity, Name: o.Spec.DisplayName, Root: o.Spec.Root, DesktopNotifications: o.Spec.Notifications.Desktop,
		CreatedAt: o.CreationTimestamp.UnixMilli(), LastUsed: lastUsed(o.Status.LastUsedTime, o.CreationTimestamp).UnixMilli(), Threads: []threadView{},
	}
	for i := range w.threads[o.Name] {
		v.Threads = append(v.Threads, w.thread(&w.threads[o.Name][i]))
	}
	newestFirst(v.Threads, func(t threadView) int64 { return t.LastUsed })
	return v
}

func (w *world) thread(o *v1alpha1.Thread) threadView {
	v := threadView{
		ID: o.Name, ProjectID: o.Spec.ProjectRef.Name, Title: o.Spec.Title, Cwd: o.Spec.Cwd, Runs: []runView{},
		CreatedAt: o.CreationTimestamp.UnixMilli(), LastUsed: lastUsed(o.Status.LastUsedTime, o.CreationTimestamp).UnixMilli(),
	}
	for i := range w.runs[o.Name] {
		if i == recentRuns {
			break
		}
		v.Runs = append(v.Runs, run(&w.runs[o.Name][i]))
	}
	if len(v.Runs) > 0 {
		v.Run = &v.Runs[0]
	}
	return v
}

func run(o *v1alpha1.Run) runView {
	phase := o.Status.Phase
	if phase == "" {
		phase = v1alpha1.RunWorking
	}
	v := runView{ID: o.Name, ThreadID: o.Spec.ThreadRef.Name, Title: o.Spec.Title, Status: snake(string(phase)),
		StartedAt: o.Began().UnixMilli(), CompletedAt: milliseconds(o.Status.CompletionTime)}
	if o.Status.Summary != "" {
		v.Summary = &o.Status.Summary
	}
	return v
}

func (w *world) handoff(o *v1alpha1.Handoff) handoffView {
	v := handoffView{
		ID: o.Name, ThreadID: o.Spec.ThreadRef.Name, ProjectID: w.projectOf[o.Spec.ThreadRef.Name], RunID: o.Spec.RunRef.Name,
		Reason: snake(string(o.Spec.Reason)), Summary: o.Spec.Summary, CreatedAt: o.CreationTimestamp.UnixMilli(),
		ReadAt: milliseconds(o.Status.ReadTime), DesktopDelivery: snake(string(o.Status.Delivery.Phase)),
	}
	if v.DesktopDelivery == "" {
		v.DesktopDelivery = snake(string(v1alpha1.DeliveryPending))
	}
	if o.Status.Delivery.Error != "" {
		v.DeliveryError = &o.Status.Delivery.Error
	}
	return v
}

func milliseconds(t *metav1.MicroTime) *int64 {
	if t == nil {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// snake turns NeedsInput into needs_input, as MCP clients know it.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
