package status

import (
	"encoding/json"
	"fmt"
	"reflect"
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
		ran := int64(1500)
		o.Status.CompletionTime, o.Status.ElapsedMilliseconds = micro(ago-time.Hour), &ran // the clock was set meanwhile
	}
	o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: status, Message: "The command exited with code 4."}}
	return o
}

// demo is a world with one of everything.
func demo() *World {
	running, failed := operation("running", 5*time.Second, metav1.ConditionUnknown), operation("failed", time.Minute, metav1.ConditionFalse)
	thread := &v1alpha1.Thread{ObjectMeta: born("t", time.Hour), Spec: v1alpha1.ThreadSpec{Title: "Tests", Cwd: "/srv/demo", ProjectRef: v1alpha1.LocalReference{Name: "project-1"}}}
	return &World{
		Projects: []*v1alpha1.Project{{ObjectMeta: born("project-1", time.Hour), Spec: v1alpha1.ProjectSpec{Root: "/srv/demo", DisplayName: "demo", Identity: "directory:/srv/demo"}}},
		Workspaces: []*v1alpha1.Workspace{{ObjectMeta: born("idle", time.Minute)},
			{ObjectMeta: born("w", time.Hour), Spec: v1alpha1.WorkspaceSpec{ThreadRef: v1alpha1.LocalReference{Name: "t"}, Cwd: "/srv/demo"}}},
		Threads:    []*v1alpha1.Thread{thread},
		Runs:       []*v1alpha1.Run{{ObjectMeta: born("run", time.Hour), Spec: v1alpha1.RunSpec{Title: "Tests", ThreadRef: v1alpha1.LocalReference{Name: "t"}}, Status: v1alpha1.RunStatus{StartTime: micro(time.Hour)}}},
		Operations: []*v1alpha1.Operation{&failed, &running},
		Describe:   func(o *v1alpha1.Operation) string { return "about " + o.Name },
	}
}

// Of what a failed call says the document has the beginning, at a character's boundary.
func TestErrorsAreShort(t *testing.T) {
	w := demo()
	w.Operations[0].Status.Conditions[0].Message = strings.Repeat("é", 500)
	for _, c := range w.View(noon).Workspaces[0].RecentCommands {
		if c.Error != strings.Repeat("é", 300) {
			t.Errorf("%d characters: %q", len([]rune(c.Error)), c.Error)
		}
	}
}

func handoff(name string, read bool) *v1alpha1.Handoff {
	h := &v1alpha1.Handoff{ObjectMeta: born(name, time.Minute), Spec: v1alpha1.HandoffSpec{Reason: v1alpha1.HandoffNeedsInput, Summary: "Which?", ThreadRef: v1alpha1.LocalReference{Name: "t"}}}
	if read {
		h.Status.ReadTime = micro(time.Second)
	}
	return h
}

func TestStatusJSON(t *testing.T) {
	w := demo()
	w.Handoffs = []*v1alpha1.Handoff{handoff("unread", false)}
	for i := range ReadHandoffs + 5 {
		w.Handoffs = append(w.Handoffs, handoff(fmt.Sprint("read-", i), true))
	}
	s := w.View(noon)
	if s.WorkspacesCount != 2 || s.ActiveCommandsCount != 1 || s.ProjectsCount != 1 || s.UnreadCount != 1 || len(s.Notifications) != ReadHandoffs+1 {
		t.Errorf("counts: %+v", s)
	}
	first := s.Workspaces[0]
	if first.ID != "w" || first.ProjectID != "project-1" || len(first.ActiveCommands) != 1 || len(first.RecentCommands) != 1 {
		t.Fatalf("the busy workspace is not first: %+v", s.Workspaces)
	}
	if c := first.ActiveCommands[0]; *c.ElapsedMs != 5000 || c.Success != nil || c.CompletedAt != nil {
		t.Errorf("running: %+v", c)
	}
	if c := first.LastCommand; *c.DurationMs != 1500 || *c.Success || c.ElapsedMs != nil || !strings.Contains(c.Error, "code 4") || c.Description != "about failed" {
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
	for _, key := range []string{"version", "startedAt", "uptimeSeconds", "workspacesCount", "activeCommandsCount", "workspaces", "projects", "projectsCount", "notifications", "unreadCount", "leftovers", "tunnels", "clients"} {
		if _, ok := doc[key]; !ok {
			t.Errorf("the status has no %s", key)
		}
	}
	run := doc["projects"].([]any)[0].(map[string]any)["threads"].([]any)[0].(map[string]any)["run"].(map[string]any)
	if run["status"] != "working" || run["completedAt"] != nil || run["summary"] != nil {
		t.Errorf("the run is %v", run)
	}
	if empty, err := json.Marshal((&World{}).View(noon)); err != nil || strings.Contains(string(empty), "null") {
		t.Errorf("an empty status holds null: %s, %v", empty, err)
	}
}

func TestTunnels(t *testing.T) {
	since := metav1.NewTime(noon.Add(-time.Hour))
	poll := metav1.NewMicroTime(noon)
	with := func(name, reason string, status metav1.ConditionStatus) *v1alpha1.Tunnel {
		o := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TunnelSpec{TunnelID: "tunnel_1"}}
		o.Status.Restarts, o.Status.LastPollTime = 2, &poll
		o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "Why.", LastTransitionTime: since}}
		return o
	}
	fresh := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Name: "e", CreationTimestamp: since}}
	w := &World{Tunnels: []*v1alpha1.Tunnel{fresh, with("d", v1alpha1.ReasonClientStarting, metav1.ConditionUnknown), with("c", v1alpha1.ReasonSuspended, metav1.ConditionFalse),
		with("b", v1alpha1.ReasonPollStale, metav1.ConditionFalse), with("a", v1alpha1.ReasonConnected, metav1.ConditionTrue)}}
	at := poll.UnixMilli()
	want := []Tunnel{
		{ID: "a", TunnelID: "tunnel_1", State: "ready", Since: since.UnixMilli(), Reason: "Connected", Message: "Why.", Restarts: 2, LastPollAt: &at},
		{ID: "b", TunnelID: "tunnel_1", State: "degraded", Since: since.UnixMilli(), Reason: "PollStale", Message: "Why.", Restarts: 2, LastPollAt: &at},
		{ID: "c", TunnelID: "tunnel_1", State: "suspended", Since: since.UnixMilli(), Reason: "Suspended", Message: "Why.", Restarts: 2, LastPollAt: &at},
		{ID: "d", TunnelID: "tunnel_1", State: "starting", Since: since.UnixMilli(), Reason: "ClientStarting", Message: "Why.", Restarts: 2, LastPollAt: &at},
		{ID: "e", State: "starting", Since: since.UnixMilli()},
	}
	if got := w.View(noon).Tunnels; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestLeftovers(t *testing.T) {
	w := demo()
	began := metav1.NewTime(noon.Add(-90 * time.Second))
	failed, running := w.Operations[0], w.Operations[1]
	failed.Status.Leftovers = []v1alpha1.Process{{PID: 7, Command: "sleep", BeginTime: &began}, {PID: 8, Command: "old"}}
	failed.Spec.WorkspaceRef.Name, failed.Status.Cwd = "closed", "/srv/demo"
	running.Status.Leftovers = []v1alpha1.Process{{PID: 9}} // it is not over, so nothing is left of it yet
	age := int64(90)
	want := []Leftover{
		{PID: 7, Command: "sleep", AgeSeconds: &age, OperationID: "failed", WorkspaceID: "closed", Description: "about failed", Cwd: "/srv/demo", Stop: "rigctl cancel failed"},
		{PID: 8, Command: "old", OperationID: "failed", WorkspaceID: "closed", Description: "about failed", Cwd: "/srv/demo", Stop: "rigctl cancel failed"},
	}
	if got := w.View(noon).Leftovers; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestSnake(t *testing.T) {
	for in, want := range map[string]string{"NeedsInput": "needs_input", "Completed": "completed", "": ""} {
		if got := Snake(in); got != want {
			t.Errorf("%s is %s", in, got)
		}
	}
}
