package dashboard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func TestActions(t *testing.T) {
	e := newEnv(t)
	running, finished := newCommand("w", "running"), newCommand("w", "finished")
	e.create(t, newProject("p"), newThread("t"), newWorkspace("w"), newHandoff("h"), running, finished)
	e.finish(t, finished, time.Now())
	long := `{"handoff_id":"` + strings.Repeat("x", maxBody) + `"}`
	for _, c := range []struct {
		path, body string
		status     int
		answer     string
	}{
		{"/api/handoffs/read", `{"handoff_id":"h"}`, 200, `{"ok":true}`},
		{"/api/handoffs/read", `{"handoff_id":"h"}`, 200, `{"ok":true}`},
		{"/api/handoffs/read", `{"handoff_id":"none"}`, 400, `handoff_id`},
		{"/api/handoffs/read", `{"handoff_id":"../projects/p"}`, 400, `handoff_id`},
		{"/api/handoffs/read", `{}`, 400, `handoff_id`},
		{"/api/handoffs/read", `{`, 400, `JSON`},
		{"/api/handoffs/read", `{"handoff_id":7}`, 400, `JSON`},
		{"/api/handoffs/read", long, 413, `4096`},
		{"/api/projects/preferences", `{"project_id":"p","desktop_notifications":true}`, 200, `{"ok":true}`},
		{"/api/projects/preferences", `{"project_id":"p"}`, 400, `desktop_notifications`},
		{"/api/projects/preferences", `{"project_id":"none","desktop_notifications":true}`, 400, `project_id`},
		{"/api/projects/preferences", long, 413, `4096`},
		{"/api/abort", fmt.Sprintf(`{"workspace_id":"other","command_id":%q}`, running.Name), 404, `{"aborted":false}`},
		{"/api/abort", fmt.Sprintf(`{"workspace_id":"w","command_id":%q}`, finished.Name), 404, `{"aborted":false}`},
		{"/api/abort", `{"workspace_id":"w","command_id":"none"}`, 404, `{"aborted":false}`},
		{"/api/abort", `{}`, 404, `{"aborted":false}`},
		{"/api/abort", `[]`, 400, `JSON`},
		{"/api/abort", `{"more":"` + strings.Repeat("x", 2*maxBody) + `","workspace_id":"w","command_id":"none"}`, 404, `{"aborted":false}`},
		{"/api/abort", fmt.Sprintf(`{"workspace_id":"w","command_id":%q}`, running.Name), 200, `{"aborted":true}`},
		{"/api/abort", fmt.Sprintf(`{"workspace_id":"w","command_id":%q}`, running.Name), 200, `{"aborted":true}`},
	} {
		resp, body := e.ask(t, "POST", c.path, c.body, nil)
		if resp.StatusCode != c.status || !strings.Contains(body, c.answer) || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, resp.StatusCode, body)
		}
	}
	e.get(t, "h", &v1alpha1.Handoff{}, func(o client.Object) bool { return o.(*v1alpha1.Handoff).Spec.Acknowledged })
	e.get(t, "p", &v1alpha1.Project{}, func(o client.Object) bool { return o.(*v1alpha1.Project).Spec.Notifications.Desktop })
	e.get(t, running.Name, &v1alpha1.Operation{}, func(o client.Object) bool {
		s := o.(*v1alpha1.Operation).Spec
		return s.Cancel && s.CancelledBy == "person"
	})
	e.get(t, finished.Name, &v1alpha1.Operation{}, func(o client.Object) bool { return !o.(*v1alpha1.Operation).Spec.Cancel })
}

func (e *env) get(t *testing.T, name string, o client.Object, fits func(client.Object) bool) {
	t.Helper()
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.Namespace, Name: name}, o); err != nil || !fits(o) {
		t.Errorf("%T %s: %+v, %v", o, name, o, err)
	}
}

func TestStatusDocument(t *testing.T) {
	e := newEnv(t)
	e.clients = []status.Client{{Name: "claude", LastMethod: "tools/call", LastTool: "bash", Requests: 3}}
	running := newCommand("w", "k")
	e.create(t, newProject("p"), newThread("t"), newWorkspace("w"), newHandoff("h"), running, newRun("r"))
	var s status.Status
	for deadline := time.Now().Add(patience); s.ActiveCommandsCount == 0 && time.Now().Before(deadline); {
		resp, body := e.ask(t, "GET", "/api/status", "", nil)
		if err := json.Unmarshal([]byte(body), &s); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	if s.Version != "1.2.3" || s.StartedAt == 0 || s.WorkspacesCount != 1 || s.ProjectsCount != 1 || s.UnreadCount != 1 || s.ActiveCommandsCount != 1 {
		t.Errorf("%+v", s)
	}
	if c := s.Workspaces[0].ActiveCommands[0]; c.ID != running.Name || c.Description != "about k" || c.ElapsedMs == nil {
		t.Errorf("running: %+v", c)
	}
	if th := s.Projects[0].Threads[0]; th.Run == nil || th.Run.ID != "r" || s.Workspaces[0].ProjectID != "p" {
		t.Errorf("thread: %+v", th)
	}
	if len(s.Clients) != 1 || s.Clients[0].LastTool != "bash" {
		t.Errorf("clients: %+v", s.Clients)
	}
}
