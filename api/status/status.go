// Package status is the shape of the status document, of GET /api/status and of rigctl status --json, and makes it
// of objects. It reads nothing by itself: api/dashboard gives it the objects, rigctl decodes what that made.
package status

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// The shapes of the document. Times are milliseconds since 1970, spans seconds or milliseconds as named.
type (
	// Status is the whole document.
	Status struct {
		Version             string      `json:"version"`
		StartedAt           int64       `json:"startedAt"`
		UptimeSeconds       int64       `json:"uptimeSeconds"`
		WorkspacesCount     int         `json:"workspacesCount"`
		ActiveCommandsCount int         `json:"activeCommandsCount"`
		Workspaces          []Workspace `json:"workspaces"`
		Projects            []Project   `json:"projects"`
		ProjectsCount       int         `json:"projectsCount"`
		Notifications       []Handoff   `json:"notifications"`
		UnreadCount         int         `json:"unreadCount"`
		Leftovers           []Leftover  `json:"leftovers"`
		Tunnels             []Tunnel    `json:"tunnels"`
		Clients             []Client    `json:"clients"`
	}
	// Workspace is an open workspace.
	Workspace struct {
		ID             string    `json:"id"`
		ProjectID      string    `json:"projectId"`
		ThreadID       string    `json:"threadId"`
		Cwd            string    `json:"cwd"`
		CreatedAt      int64     `json:"createdAt"`
		LastUsed       int64     `json:"lastUsed"`
		ActiveCommands []Command `json:"activeCommands"`
		LastCommand    *Command  `json:"lastCommand,omitempty"`
		RecentCommands []Command `json:"recentCommands"`
	}
	// Command is one call. It has elapsedMs while the command runs, and the rest when it is over.
	Command struct {
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
	// Leftover is a process that outlived its command, or the daemon, and still runs. Stop is the command that ends
	// it and all others of its operation.
	Leftover struct {
		PID         int32  `json:"pid"`
		Command     string `json:"command"`
		AgeSeconds  *int64 `json:"ageSeconds"`
		OperationID string `json:"operationId"`
		WorkspaceID string `json:"workspaceId"`
		Description string `json:"description"`
		Cwd         string `json:"cwd"`
		Stop        string `json:"stop"`
	}
	// Project has its threads, the latest used first.
	Project struct {
		ID                   string   `json:"id"`
		Identity             string   `json:"identity"`
		Name                 string   `json:"name"`
		Root                 string   `json:"root"`
		CreatedAt            int64    `json:"createdAt"`
		LastUsed             int64    `json:"lastUsed"`
		DesktopNotifications bool     `json:"desktopNotifications"`
		Threads              []Thread `json:"threads"`
	}
	// Thread has its latest run and the last ones, the latest first.
	Thread struct {
		ID        string `json:"id"`
		ProjectID string `json:"projectId"`
		Title     string `json:"title"`
		Cwd       string `json:"cwd"`
		CreatedAt int64  `json:"createdAt"`
		LastUsed  int64  `json:"lastUsed"`
		Run       *Run   `json:"run"`
		Runs      []Run  `json:"runs"`
	}
	// Run is a stretch of work.
	Run struct {
		ID          string  `json:"id"`
		ThreadID    string  `json:"threadId"`
		Title       string  `json:"title"`
		Status      string  `json:"status"`
		StartedAt   int64   `json:"startedAt"`
		CompletedAt *int64  `json:"completedAt"`
		Summary     *string `json:"summary"`
	}
	// Handoff is a report that it is the person's turn.
	Handoff struct {
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
	// Tunnel is a way by which a hosted assistant reaches the daemon. State is ready, starting, degraded or suspended,
	// since then; reason and message say why and what to do.
	Tunnel struct {
		ID         string `json:"id"`
		TunnelID   string `json:"tunnelId"`
		State      string `json:"state"`
		Since      int64  `json:"since"`
		Reason     string `json:"reason"`
		Message    string `json:"message"`
		Restarts   int32  `json:"restarts"`
		LastPollAt *int64 `json:"lastPollAt"`
	}
	// Client is the last that was heard of an MCP client, so that a silent host can be told from a broken bridge.
	// Names are what clients say of themselves.
	Client struct {
		Name       string `json:"name"`
		Version    string `json:"version"`
		UserAgent  string `json:"userAgent"`
		LastTime   int64  `json:"lastTime"`
		LastMethod string `json:"lastMethod"`
		LastTool   string `json:"lastTool"`
		Requests   int64  `json:"requests"`
	}
)

// Bounds of what the document holds.
const (
	RecentCommands = 20 // of a workspace
	RecentRuns     = 20 // of a thread
	ReadHandoffs   = 100
	ErrorLength    = 300 // characters of what a failed call says
)

// World is what the document tells about, in any order.
type World struct {
	Projects   []*v1alpha1.Project
	Workspaces []*v1alpha1.Workspace
	Threads    []*v1alpha1.Thread
	Runs       []*v1alpha1.Run
	Operations []*v1alpha1.Operation
	Handoffs   []*v1alpha1.Handoff
	Tunnels    []*v1alpha1.Tunnel
	// Describe says what an operation is about.
	Describe func(*v1alpha1.Operation) string

	threads    map[string][]*v1alpha1.Thread    // of a project
	runs       map[string][]*v1alpha1.Run       // of a thread, latest first
	operations map[string][]*v1alpha1.Operation // of a workspace, latest first
	projectOf  map[string]string                // of a thread
}

// arrange sorts the objects and groups them by what they belong to.
func (w *World) arrange() {
	slices.SortStableFunc(w.Operations, func(a, b *v1alpha1.Operation) int { return Began(b).Compare(Began(a)) })
	slices.SortStableFunc(w.Runs, func(a, b *v1alpha1.Run) int { return b.Began().Compare(a.Began()) })
	slices.SortStableFunc(w.Handoffs, func(a, b *v1alpha1.Handoff) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	w.threads = groupBy(w.Threads, func(t *v1alpha1.Thread) string { return t.Spec.ProjectRef.Name })
	w.runs = groupBy(w.Runs, func(r *v1alpha1.Run) string { return r.Spec.ThreadRef.Name })
	w.operations = groupBy(w.Operations, func(o *v1alpha1.Operation) string { return o.Spec.WorkspaceRef.Name })
	w.projectOf = map[string]string{}
	for _, t := range w.Threads {
		w.projectOf[t.Name] = t.Spec.ProjectRef.Name
	}
}

func groupBy[T any](items []*T, key func(*T) string) map[string][]*T {
	groups := map[string][]*T{}
	for _, i := range items {
		groups[key(i)] = append(groups[key(i)], i)
	}
	return groups
}

// Began is when an operation's attempt began, or when it was asked for.
func Began(o *v1alpha1.Operation) time.Time {
	if o.Status.StartTime != nil {
		return o.Status.StartTime.Time
	}
	return o.CreationTimestamp.Time
}

// lastUsed is a time of last use in milliseconds since 1970, or when the object was made.
func lastUsed(t *metav1.MicroTime, created metav1.Time) int64 {
	if t != nil {
		return t.UnixMilli()
	}
	return created.UnixMilli()
}

func newestFirst[T any](items []T, used func(T) int64) {
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(used(b), used(a)) })
}

// View shapes the world as the document has it. Version, start and clients are the caller's to fill in.
func (w *World) View(now time.Time) *Status {
	w.arrange()
	s := &Status{Clients: []Client{}, Workspaces: []Workspace{}, Projects: []Project{}, Notifications: []Handoff{}, Leftovers: []Leftover{}, Tunnels: []Tunnel{}}
	for _, o := range w.Operations {
		s.Leftovers = append(s.Leftovers, w.leftovers(o, now)...)
	}
	for _, o := range w.Workspaces {
		v := w.workspace(o, now)
		s.ActiveCommandsCount += len(v.ActiveCommands)
		s.Workspaces = append(s.Workspaces, v)
	}
	newestFirst(s.Workspaces, func(v Workspace) int64 { return v.LastUsed })
	newestFirst(s.Workspaces, func(v Workspace) int64 { return int64(min(len(v.ActiveCommands), 1)) }) // busy ones first
	for _, o := range w.Projects {
		s.Projects = append(s.Projects, w.project(o))
	}
	newestFirst(s.Projects, func(v Project) int64 { return v.LastUsed })
	for _, o := range w.Tunnels {
		s.Tunnels = append(s.Tunnels, tunnel(o))
	}
	slices.SortFunc(s.Tunnels, func(a, b Tunnel) int { return cmp.Compare(a.ID, b.ID) })
	read := 0
	for _, o := range w.Handoffs {
		v := OfHandoff(o, w.projectOf[o.Spec.ThreadRef.Name])
		if v.ReadAt == nil {
			s.UnreadCount++
		} else if read++; read > ReadHandoffs {
			continue
		}
		s.Notifications = append(s.Notifications, v)
	}
	s.WorkspacesCount, s.ProjectsCount = len(s.Workspaces), len(s.Projects)
	return s
}

// OfWorkspace shapes a workspace without its commands.
func OfWorkspace(o *v1alpha1.Workspace, project string) Workspace {
	return Workspace{
		ID: o.Name, ThreadID: o.Spec.ThreadRef.Name, ProjectID: project, Cwd: o.Spec.Cwd,
		CreatedAt: o.CreationTimestamp.UnixMilli(), LastUsed: lastUsed(o.Status.LastUsedTime, o.CreationTimestamp),
		ActiveCommands: []Command{}, RecentCommands: []Command{},
	}
}

func (w *World) workspace(o *v1alpha1.Workspace, now time.Time) Workspace {
	v := OfWorkspace(o, w.projectOf[o.Spec.ThreadRef.Name])
	for _, op := range w.operations[o.Name] {
		if !op.Over() {
			v.ActiveCommands = append(v.ActiveCommands, w.command(op, now))
		} else if len(v.RecentCommands) < RecentCommands {
			v.RecentCommands = append(v.RecentCommands, w.command(op, now))
		}
	}
	if len(v.RecentCommands) > 0 {
		v.LastCommand = &v.RecentCommands[0]
	}
	return v
}

func (w *World) leftovers(o *v1alpha1.Operation, now time.Time) (all []Leftover) {
	if !o.Over() {
		return nil
	}
	for _, p := range o.Status.Leftovers {
		v := Leftover{PID: p.PID, Command: p.Command, OperationID: o.Name, WorkspaceID: o.Spec.WorkspaceRef.Name,
			Description: w.Describe(o), Cwd: o.Status.Cwd, Stop: "rigctl cancel " + o.Name}
		if p.BeginTime != nil {
			age := max(0, int64(now.Sub(p.BeginTime.Time)/time.Second))
			v.AgeSeconds = &age
		}
		all = append(all, v)
	}
	return all
}

func (w *World) command(o *v1alpha1.Operation, now time.Time) Command {
	start := Began(o)
	v := Command{ID: o.Name, Tool: string(o.Spec.Tool), Description: w.Describe(o), StartedAt: start.UnixMilli()}
	if !o.Over() {
		elapsed := now.Sub(start).Milliseconds()
		v.ElapsedMs = &elapsed
		return v
	}
	success := o.Succeeded().Status == metav1.ConditionTrue
	v.Success = &success
	v.CompletedAt, v.DurationMs = Milliseconds(o.Status.CompletionTime), new(int64)
	if ran := o.Status.ElapsedMilliseconds; ran != nil {
		*v.DurationMs = *ran
	}
	if !success {
		v.Error = beginning(o.Succeeded().Message)
	}
	return v
}

// OfProject shapes a project without its threads.
func OfProject(o *v1alpha1.Project) Project {
	return Project{
		ID: o.Name, Identity: o.Spec.Identity, Name: o.Spec.DisplayName, Root: o.Spec.Root, DesktopNotifications: o.Spec.Notifications.Desktop,
		CreatedAt: o.CreationTimestamp.UnixMilli(), LastUsed: lastUsed(o.Status.LastUsedTime, o.CreationTimestamp), Threads: []Thread{},
	}
}

// beginning is the first ErrorLength characters of a text.
func beginning(s string) string {
	n := 0
	for i := range s {
		if n++; n > ErrorLength {
			return s[:i]
		}
	}
	return s
}

func (w *World) project(o *v1alpha1.Project) Project {
	v := OfProject(o)
	for _, t := range w.threads[o.Name] {
		v.Threads = append(v.Threads, w.thread(t))
	}
	newestFirst(v.Threads, func(t Thread) int64 { return t.LastUsed })
	return v
}

// OfThread shapes a thread without its runs.
func OfThread(o *v1alpha1.Thread) Thread {
	return Thread{
		ID: o.Name, ProjectID: o.Spec.ProjectRef.Name, Title: o.Spec.Title, Cwd: o.Spec.Cwd, Runs: []Run{},
		CreatedAt: o.CreationTimestamp.UnixMilli(), LastUsed: lastUsed(o.Status.LastUsedTime, o.CreationTimestamp),
	}
}

func (w *World) thread(o *v1alpha1.Thread) Thread {
	v := OfThread(o)
	for i, r := range w.runs[o.Name] {
		if i == RecentRuns {
			break
		}
		v.Runs = append(v.Runs, OfRun(r))
	}
	if len(v.Runs) > 0 {
		v.Run = &v.Runs[0]
	}
	return v
}

// OfRun shapes a run.
func OfRun(o *v1alpha1.Run) Run {
	phase := o.Status.Phase
	if phase == "" {
		phase = v1alpha1.RunWorking
	}
	v := Run{ID: o.Name, ThreadID: o.Spec.ThreadRef.Name, Title: o.Spec.Title, Status: Snake(string(phase)),
		StartedAt: o.Began().UnixMilli(), CompletedAt: Milliseconds(o.Status.CompletionTime)}
	if o.Status.Summary != "" {
		v.Summary = &o.Status.Summary
	}
	return v
}

func tunnel(o *v1alpha1.Tunnel) Tunnel {
	v := Tunnel{ID: o.Name, TunnelID: o.Spec.TunnelID, State: "starting", Since: o.CreationTimestamp.UnixMilli(),
		Restarts: o.Status.Restarts, LastPollAt: Milliseconds(o.Status.LastPollTime)}
	c := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return v
	}
	v.Since, v.Reason, v.Message = c.LastTransitionTime.UnixMilli(), c.Reason, c.Message
	switch {
	case c.Status == metav1.ConditionTrue:
		v.State = "ready"
	case c.Reason == v1alpha1.ReasonSuspended:
		v.State = "suspended"
	case c.Status == metav1.ConditionFalse:
		v.State = "degraded"
	}
	return v
}

// OfHandoff shapes a handoff.
func OfHandoff(o *v1alpha1.Handoff, project string) Handoff {
	v := Handoff{
		ID: o.Name, ThreadID: o.Spec.ThreadRef.Name, ProjectID: project, RunID: o.Spec.RunRef.Name,
		Reason: Snake(string(o.Spec.Reason)), Summary: o.Spec.Summary, CreatedAt: o.CreationTimestamp.UnixMilli(),
		ReadAt: Milliseconds(o.Status.ReadTime), DesktopDelivery: Snake(string(o.Status.Delivery.Phase)),
	}
	if v.DesktopDelivery == "" {
		v.DesktopDelivery = Snake(string(v1alpha1.DeliveryPending))
	}
	if o.Status.Delivery.Error != "" {
		v.DeliveryError = &o.Status.Delivery.Error
	}
	return v
}

// Milliseconds is a time as MCP clients know it, since 1970; nil stays nil.
func Milliseconds(t *metav1.MicroTime) *int64 {
	if t == nil {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// Snake turns NeedsInput into needs_input, as MCP clients know it.
func Snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
