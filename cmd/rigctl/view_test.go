package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func born(name string, ago time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-ago))}
}

func micro(ago time.Duration) *metav1.MicroTime {
	t := metav1.NewMicroTime(noon.Add(-ago))
	return &t
}

func operation(name string, ago time.Duration, status metav1.ConditionStatus) v1alpha1.Operation {
	o := v1alpha1.Operation{ObjectMeta: born(name, ago), Spec: v1alpha1.OperationSpec{Tool: v1alpha1.ToolBash, WorkspaceRef: v1alpha1.LocalReference{Name: "w"}}}
	o.Status.StartTime = micro(ago)
	if status != metav1.ConditionUnknown {
		o.Status.CompletionTime = micro(ago - 1500*time.Millisecond)
	}
	o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: status, Message: "The command exited with code 4."}}
	return o
}

// demo is a world with one of everything.
func demo() *world {
	w := &world{
		projects:   []v1alpha1.Project{{ObjectMeta: born("project-1", time.Hour), Spec: v1alpha1.ProjectSpec{Root: "/srv/demo", DisplayName: "demo", Identity: "directory:/srv/demo"}}},
		workspaces: []v1alpha1.Workspace{{ObjectMeta: born("idle", time.Minute)}, {ObjectMeta: born("w", time.Hour), Spec: v1alpha1.WorkspaceSpec{ThreadRef: v1alpha1.LocalReference{Name: "t"}, Cwd: "/srv/demo"}}},
		threads:    map[string][]v1alpha1.Thread{},
		runs:       map[string][]v1alpha1.Run{},
		operations: map[string][]v1alpha1.Operation{"w": {operation("running", 5*time.Second, metav1.ConditionUnknown), operation("failed", time.Minute, metav1.ConditionFalse)}},
		projectOf:  map[string]string{"t": "project-1"},
		arguments:  map[string]map[string]any{"running": {"command": "make\x1b[2J\nmake check"}},
	}
	w.threads["project-1"] = []v1alpha1.Thread{{ObjectMeta: born("t", time.Hour), Spec: v1alpha1.ThreadSpec{Title: "Tests", Cwd: "/srv/demo", ProjectRef: v1alpha1.LocalReference{Name: "project-1"}}}}
	w.runs["t"] = []v1alpha1.Run{{ObjectMeta: born("run", time.Hour), Spec: v1alpha1.RunSpec{Title: "Tests", ThreadRef: v1alpha1.LocalReference{Name: "t"}}, Status: v1alpha1.RunStatus{StartTime: micro(time.Hour)}}}
	return w
}

func handoff(name string, read bool) v1alpha1.Handoff {
	h := v1alpha1.Handoff{ObjectMeta: born(name, time.Minute), Spec: v1alpha1.HandoffSpec{Reason: v1alpha1.HandoffNeedsInput, Summary: "Which?", ThreadRef: v1alpha1.LocalReference{Name: "t"}}}
	if read {
		h.Status.ReadTime = micro(time.Second)
	}
	return h
}

func TestStatusJSON(t *testing.T) {
	w := demo()
	w.handoffs = []v1alpha1.Handoff{handoff("unread", false)}
	for i := range readHandoffs + 5 {
		w.handoffs = append(w.handoffs, handoff(fmt.Sprint("read-", i), true))
	}
	s := w.view(noon)
	if s.WorkspacesCount != 2 || s.ActiveCommandsCount != 1 || s.ProjectsCount != 1 || s.UnreadCount != 1 || len(s.Notifications) != readHandoffs+1 {
		t.Errorf("counts: %+v", s)
	}
	first := s.Workspaces[0]
	if first.ID != "w" || first.ProjectID != "project-1" || len(first.ActiveCommands) != 1 || len(first.RecentCommands) != 1 {
		t.Fatalf("the busy workspace is not first: %+v", s.Workspaces)
	}
	if c := first.ActiveCommands[0]; *c.ElapsedMs != 5000 || c.Success != nil || c.CompletedAt != nil {
		t.Errorf("running: %+v", c)
	}
	if c := first.LastCommand; *c.DurationMs != 1500 || *c.Success || c.ElapsedMs != nil || !strings.Contains(c.Error, "code 4") || c.Description != "bash" {
		t.Errorf("last: %+v", c)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"version", "startedAt", "uptimeSeconds", "workspacesCount", "activeCommandsCount", "workspaces", "projects", "projectsCount", "notifications", "unreadCount"} {
		if _, ok := doc[key]; !ok {
			t.Errorf("the status has no %s", key)
		}
	}
	run := doc["projects"].([]any)[0].(map[string]any)["threads"].([]any)[0].(map[string]any)["run"].(map[string]any)
	if run["status"] != "working" || run["completedAt"] != nil || run["summary"] != nil {
		t.Errorf("the run is %v", run)
	}
	if empty, err := json.Marshal((&world{}).view(noon)); err != nil || strings.Contains(string(empty), "null") {
		t.Errorf("an empty status holds null: %s, %v", empty, err)
	}
}

func TestStatusProse(t *testing.T) {
	w := demo()
	for i := range shownThreads + 2 {
		w.threads["project-1"] = append(w.threads["project-1"], v1alpha1.Thread{ObjectMeta: born(fmt.Sprintf("old-%d", i), 48*time.Hour), Spec: v1alpha1.ThreadSpec{Title: "Old", Cwd: "/srv"}})
	}
	s := w.view(noon)
	s.StartedAt, s.UptimeSeconds = noon.Add(-time.Hour).UnixMilli(), 3600
	var out bytes.Buffer
	if err := s.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"up 60m: 1 command running, 1 project, 0 unread\n", "demo  13 threads, 0 unread  /srv/demo  [project-]\n", "  ▶ Tests [t]  WORKING  60m ago  /srv/demo\n",
		"      running for 5s: make·[2J …\n", "      ✗ bash in 1.5s: The command exited with code 4.\n", "  ○ Old [old-0]  IDLE  2d ago  /srv, saved; resume it through MCP\n",
		"  and 3 threads used before; see rigctl get threads\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	w.handoffs = []v1alpha1.Handoff{handoff("unread", false)}
	out.Reset()
	if err := w.view(noon).print(&out); err != nil || !strings.Contains(out.String(), "YOUR TURN · NEEDS INPUT") || !strings.Contains(out.String(), "      Which?\n") {
		t.Errorf("%v:\n%s", err, &out)
	}
}
