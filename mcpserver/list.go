package mcpserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Bounds of one page of workspace_list. The first that is reached ends the page; a page has one thread at least.
const (
	maxThreads     = 100
	maxThreadBytes = 48 << 10
	// maxRecentBytes bounds the finished calls of all open workspaces together; those used last come first.
	maxRecentBytes = 32 << 10
)

// indexWorkspace is the cache index of active operations by the name of their workspace; the controllers make it.
const indexWorkspace = "spec.workspaceRef.name"

// listWorkspaces answers workspace_list from the threads that the page shows and their runs, each read by its name.
func (c *Calls) listWorkspaces(ctx context.Context, tool string, raw json.RawMessage) *mcp.CallToolResult {
	var a struct {
		Cursor string `json:"cursor"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return c.internal(err, tool)
	}
	after, err := parseCursor(a.Cursor)
	if err != nil {
		return Failure(CodeInvalidArguments, "InvalidCursor", "cursor: must be a next_cursor of workspace_list. Leave it out to begin with what was used last.", nil)
	}
	l := &listing{calls: c, now: time.Now(), after: after}
	if err := l.readHandles(ctx); err != nil {
		return c.internal(err, tool)
	}
	projects, next, err := l.page(ctx)
	if err != nil {
		return c.internal(err, tool)
	}
	fields := map[string]any{"projects": projects, "handles": l.handles, "threads_total": l.threads}
	text := fmt.Sprintf("%s, %s and %s are known.", count(l.projects, "project"), count(l.threads, "thread"), count(len(l.handles), "open workspace"))
	if next != "" {
		fields["next_cursor"] = next
		text += " More threads were used earlier: call again with cursor " + next + "."
	}
	return Success(text, nil, fields)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// position is a thread's place in the order of the list: the latest used first.
type position struct {
	used int64 // microseconds since 1970
	name string
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(q.used, p.used), strings.Compare(p.name, q.name))
}

// cursor says where the next page begins: after p. It stays good whatever is used meanwhile.
func (p position) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.used, 36) + "." + p.name))
}

func parseCursor(s string) (*position, error) {
	if s == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	used, name, whole := strings.Cut(string(b), ".")
	if !whole {
		return nil, errors.New("it names no thread")
	}
	at, err := strconv.ParseInt(used, 36, 64)
	return &position{at, name}, err
}

// listing is one call of workspace_list.
type listing struct {
	calls    *Calls
	now      time.Time
	after    *position // where the page begins; nil: with the latest
	threads  int
	projects int
	handles  []json.RawMessage
	opened   map[string]time.Time // last use of the threads that have an open workspace
}

// moved returns the threads that have an open workspace in the place that its last use gives them.
func (l *listing) moved() (all []candidate) {
	for name, at := range l.opened {
		if c, ok := l.calls.order.get(name); ok {
			c.used = max(c.used, at.UnixMicro())
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return a.compare(b.position) })
	return all
}

// page makes the page, and the cursor of the next one if there is more.
func (l *listing) page(ctx context.Context) (projects []*projectView, next string, err error) {
	known := &v1alpha1.ProjectList{}
	if err := l.calls.Cache.List(ctx, known, client.InNamespace(v1alpha1.Namespace)); err != nil {
		return nil, "", fmt.Errorf("list projects: %w", err)
	}
	l.projects = len(known.Items)
	byName := make(map[string]*projectView, len(known.Items))
	for i := range known.Items {
		u := l.calls.order.of(known.Items[i].Name)
		v := &projectView{Project: status.OfProject(&known.Items[i]), Threads: []json.RawMessage{}, used: u.threads > 0}
		v.LastUsed = max(v.LastUsed, u.last/1000)
		byName[known.Items[i].Name] = v
	}
	moved := l.moved()
	for _, c := range moved {
		if v := byName[c.thread.Spec.ProjectRef.Name]; v != nil {
			v.LastUsed = max(v.LastUsed, c.used/1000)
		}
	}
	tree, total := l.calls.order.snapshot()
	l.threads = total
	projects = []*projectView{}
	last, size, n := position{}, 0, -1
	for c := range from(tree, l.after, moved) {
		n++
		text, err := l.thread(ctx, c)
		if err != nil {
			return nil, "", err
		}
		if size += len(text); n > 0 && (n == maxThreads || size > maxThreadBytes) {
			return projects, last.cursor(), nil
		}
		last = c.position
		v := byName[c.thread.Spec.ProjectRef.Name]
		if v == nil { // removed by the user
			continue
		}
		if len(v.Threads) == 0 {
			projects = append(projects, v)
		}
		v.Threads = append(v.Threads, text)
	}
	for i := range known.Items { // the last page has those without threads
		if v := byName[known.Items[i].Name]; !v.used {
			projects = append(projects, v)
		}
	}
	return projects, "", nil
}

func lastUsed(t *v1alpha1.Thread) time.Time {
	if t.Status.LastUsedTime != nil {
		return t.Status.LastUsedTime.Time
	}
	return t.CreationTimestamp.Time
}

// projectView is a project with those of its threads that a page shows.
type projectView struct {
	status.Project
	Threads []json.RawMessage `json:"threads"` // instead of the project's own

	used bool // it has threads
}

// thread shows a thread with its latest run and the last runs, the latest first.
func (l *listing) thread(ctx context.Context, c candidate) (json.RawMessage, error) {
	t := c.thread
	v := status.OfThread(t)
	v.LastUsed = c.used / 1000
	now := &v1alpha1.Thread{} // the cache may not show a run that a caller was just told of
	if err := l.calls.Client.Get(ctx, key(t.Name), now); err != nil {
		if apierrors.IsNotFound(err) {
			return json.Marshal(v)
		}
		return nil, fmt.Errorf("read thread %s: %w", t.Name, err)
	}
	for _, ref := range now.Status.Runs {
		r := &v1alpha1.Run{}
		err := l.calls.Client.Get(ctx, key(ref.Name), r)
		if apierrors.IsNotFound(err) { // not made, or removed by the user
			continue
		}
		var h *v1alpha1.Handoff
		if err == nil && len(v.Runs) == 0 {
			h, err = l.handoff(ctx, r)
		}
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", ref.Name, err)
		}
		v.Runs = append(v.Runs, runFields(r, h))
	}
	if len(v.Runs) > 0 {
		v.Run = &v.Runs[0]
	}
	return json.Marshal(v)
}

// handoff returns the handoff of a thread's latest run whose own status does not show it yet: the two change
// together for those who read them here.
func (l *listing) handoff(ctx context.Context, r *v1alpha1.Run) (*v1alpha1.Handoff, error) {
	if r.HandedOff() {
		return nil, nil
	}
	h := &v1alpha1.Handoff{}
	err := l.calls.Client.Get(ctx, key(v1alpha1.HandoffName(r.Name)), h)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return h, err
}

// readHandles shows the open workspaces: busy ones first, then those used last.
func (l *listing) readHandles(ctx context.Context) error {
	open := &v1alpha1.WorkspaceList{}
	if err := l.calls.Cache.List(ctx, open, client.InNamespace(v1alpha1.Namespace)); err != nil {
		return fmt.Errorf("list workspaces: %w", err)
	}
	var views []*status.Workspace
	l.opened = map[string]time.Time{}
	for i := range open.Items {
		ws := &open.Items[i]
		if !ws.DeletionTimestamp.IsZero() {
			continue
		}
		v, err := l.handle(ctx, ws)
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b *status.Workspace) int {
		return cmp.Or(cmp.Compare(min(1, len(b.ActiveCommands)), min(1, len(a.ActiveCommands))), cmp.Compare(b.LastUsed, a.LastUsed), strings.Compare(a.ID, b.ID))
	})
	l.handles = make([]json.RawMessage, 0, len(views))
	room := maxRecentBytes
	for _, v := range views {
		b, err := encodeHandle(v, &room)
		if err != nil {
			return err
		}
		l.handles = append(l.handles, b)
	}
	return nil
}

// encodeHandle leaves out the older of the finished calls when there is no room for all.
func encodeHandle(v *status.Workspace, room *int) (json.RawMessage, error) {
	for i := range v.RecentCommands {
		b, err := json.Marshal(v.RecentCommands[i])
		if err != nil {
			return nil, fmt.Errorf("encode a finished call: %w", err)
		}
		if *room -= len(b); *room < 0 {
			v.RecentCommands = v.RecentCommands[:i]
			break
		}
	}
	return json.Marshal(v)
}

func (l *listing) handle(ctx context.Context, ws *v1alpha1.Workspace) (*status.Workspace, error) {
	project, name := "", ws.Spec.ThreadRef.Name
	thread := &v1alpha1.Thread{}
	if found, err := l.calls.get(ctx, name, thread); err != nil {
		return nil, fmt.Errorf("read thread %s: %w", name, err)
	} else if found {
		project = thread.Spec.ProjectRef.Name
	}
	v := status.OfWorkspace(ws, project)
	used := time.UnixMilli(v.LastUsed)
	recents, at := l.calls.recent.finished(ws.Name)
	if at.After(used) {
		used = at
	}
	v.LastUsed, l.opened[name] = used.UnixMilli(), used
	if len(recents) > 0 {
		v.RecentCommands, v.LastCommand = recents, &recents[0]
	}
	ops := &v1alpha1.OperationList{}
	if err := l.calls.Cache.List(ctx, ops, client.InNamespace(v1alpha1.Namespace), client.MatchingFields{indexWorkspace: ws.Name}); err != nil {
		return nil, fmt.Errorf("list the calls of workspace %s: %w", ws.Name, err)
	}
	for i := range ops.Items {
		if op := &ops.Items[i]; !op.Over() && !op.Spec.Tool.ManagesWork() {
			v.ActiveCommands = append(v.ActiveCommands, l.active(op))
		}
	}
	slices.SortFunc(v.ActiveCommands, func(a, b status.Command) int { return cmp.Compare(a.StartedAt, b.StartedAt) })
	return &v, nil
}

// active shows a call under way. After a restart nobody knows any more what it is about.
func (l *listing) active(op *v1alpha1.Operation) status.Command {
	description, begun := string(op.Spec.Tool), l.now.Add(-age(op))
	if call, ok := l.calls.recent.about(op.Name); ok {
		description, begun = call.description, call.at
	}
	elapsed := max(0, l.now.Sub(begun).Milliseconds())
	return status.Command{ID: op.Name, Tool: string(op.Spec.Tool), Description: description, StartedAt: begun.UnixMilli(), ElapsedMs: &elapsed}
}
