package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func call(workspace, name string, tool v1alpha1.Tool, code string) *v1alpha1.Operation {
	return &v1alpha1.Operation{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:   v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: workspace}, Tool: tool},
		Status: v1alpha1.OperationStatus{Code: code, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Message: "Because."}}}}
}

func TestRecentCalls(t *testing.T) {
	var r recent
	at := time.Unix(1_700_000_000, 0)
	for i := range maxRecent + 5 {
		op := call("w", fmt.Sprint("op", i), v1alpha1.ToolBash, "")
		r.begin(op, json.RawMessage(fmt.Sprintf(`{"command":"echo %d"}`, i)), at)
		r.begin(op, json.RawMessage(`{"command":"a repetition"}`), at.Add(time.Minute))
		if c, ok := r.about(op.Name); !ok || c.description != fmt.Sprintf("echo %d", i) || !c.at.Equal(at) {
			t.Errorf("a call under way is %+v", c)
		}
		r.end(op, at.Add(1500*time.Millisecond))
		r.end(op, at.Add(time.Hour)) // it is told of once
	}
	calls, used := r.finished("w")
	if len(calls) != maxRecent || calls[0].Description != fmt.Sprintf("echo %d", maxRecent+4) || !used.Equal(at.Add(1500*time.Millisecond)) {
		t.Errorf("%d calls, the latest %+v, used %v", len(calls), calls[0], used)
	}
	if c := calls[0]; *c.DurationMs != 1500 || c.StartedAt != at.UnixMilli() || !*c.Success || c.Error != "" {
		t.Errorf("the latest call is %+v", c)
	}
	failing := call("w", "failing", v1alpha1.ToolRead, "EXECUTION_FAILED")
	r.begin(failing, json.RawMessage(`{"path":"a.txt"}`), at)
	r.end(failing, at)
	if calls, _ = r.finished("w"); *calls[0].Success || calls[0].Error != "Because." || calls[0].Description != "read a.txt" {
		t.Errorf("a failure is %+v", calls[0])
	}
	undo := r.begin(call("w", "refused", v1alpha1.ToolLs, ""), nil, at)
	undo()
	if _, ok := r.about("refused"); ok {
		t.Error("a call that was not made is under way")
	}
	r.end(call("w", "of an earlier life", v1alpha1.ToolLs, ""), at)
	if calls, _ = r.finished("w"); calls[0].ID != "failing" {
		t.Errorf("a call that nobody began here is remembered: %+v", calls[0])
	}
}

func TestRecentIsBounded(t *testing.T) {
	var r recent
	at := time.Unix(1_700_000_000, 0)
	for i := range maxBegun + 10 {
		r.begin(call(fmt.Sprint("w", i), fmt.Sprint("op", i), v1alpha1.ToolLs, ""), nil, at.Add(time.Duration(i)*time.Second))
	}
	if len(r.begun) > maxBegun || len(r.workspaces) > maxRecentWorkspaces {
		t.Errorf("%d calls under way and %d workspaces are remembered", len(r.begun), len(r.workspaces))
	}
	if _, ok := r.about("op0"); ok {
		t.Error("the oldest call was kept")
	}
	if _, ok := r.about(fmt.Sprint("op", maxBegun+9)); !ok {
		t.Error("the newest call was forgotten")
	}
}

func TestDescriptions(t *testing.T) {
	for _, c := range []struct {
		tool       v1alpha1.Tool
		args, want string
	}{
		{v1alpha1.ToolBash, `{"command":"make\ntest"}`, "make\ntest"},
		{v1alpha1.ToolRead, `{"path":"a b.txt"}`, "read a b.txt"},
		{v1alpha1.ToolGrep, `{"pattern":"TO.*DO","path":"src"}`, "TO.*DO src"},
		{v1alpha1.ToolFind, `{"pattern":"*.go"}`, "*.go"},
		{v1alpha1.ToolLs, `{}`, "ls"},
		{v1alpha1.ToolSkillInfo, `{"name":"deploy"}`, "skill_info deploy"},
		{v1alpha1.ToolBash, `{"command":"` + strings.Repeat("x", 5000) + `"}`, strings.Repeat("x", maxDescription) + "…"},
		{v1alpha1.ToolLs, `not JSON`, "ls"},
	} {
		if got := describe(c.tool, json.RawMessage(c.args)); got != c.want {
			t.Errorf("%s %.40s is described as %.80q", c.tool, c.args, got)
		}
	}
}

func TestCursors(t *testing.T) {
	for _, p := range []position{{0, "a"}, {1796084407308123, "11db5483-3ff1-4cc9-89d8-05f881ae3fdb"}, {-5, "early"}} {
		if got, err := parseCursor(p.cursor()); err != nil || *got != p {
			t.Errorf("%+v comes back as %+v, %v", p, got, err)
		}
	}
	if p, err := parseCursor(""); p != nil || err != nil {
		t.Errorf("no cursor is %v, %v", p, err)
	}
	for _, wrong := range []string{"!", "eA", "====", strings.Repeat("A", 1000)} {
		if _, err := parseCursor(wrong); err == nil {
			t.Errorf("%.20q is taken for a cursor", wrong)
		}
	}
}

// The older calls of workspaces that were used long ago make room.
func TestHandlesFit(t *testing.T) {
	room, total := maxRecentBytes, 0
	for range 64 {
		v := &status.Workspace{ID: "w"}
		for range maxRecent {
			v.RecentCommands = append(v.RecentCommands, status.Command{Description: strings.Repeat("x", maxDescription)})
		}
		v.LastCommand = &v.RecentCommands[0]
		b, err := encodeHandle(v, &room)
		if err != nil {
			t.Fatal(err)
		}
		if v.LastCommand == nil || !strings.Contains(string(b), "lastCommand") {
			t.Error("the last call is left out")
		}
		total += len(b)
	}
	if most := maxRecentBytes + 64*(maxDescription+400); total > most {
		t.Errorf("64 busy workspaces take %d bytes, more than %d", total, most)
	}
}

func TestSnake(t *testing.T) {
	for in, want := range map[string]string{"Completed": "completed", "NeedsInput": "needs_input", "": ""} {
		if got := status.Snake(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
