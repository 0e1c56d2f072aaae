package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/api/status"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestStatusProse(t *testing.T) {
	ago := func(d time.Duration) int64 { return noon.Add(-d).UnixMilli() }
	long, no, old := int64(1500), false, int64(300)
	left := []status.Leftover{{PID: 41, Command: "server\x1b", AgeSeconds: &old, OperationID: "op-1", Description: "make serve", Cwd: "/srv/demo", Stop: "rigctl cancel op-1"}}
	for pid := range shownLeftovers + 1 {
		left = append(left, status.Leftover{PID: int32(50 + pid), Command: "sleep", OperationID: "op-2", Description: "bash", Cwd: "/srv", Stop: "rigctl cancel op-2"})
	}
	failed := status.Command{Description: "bash", DurationMs: &long, Success: &no, Error: "The command exited with code 4.\nMore."}
	working := status.Run{Status: "working"}
	threads := []status.Thread{{ID: "t", Title: "Tests", Cwd: "/srv/demo", LastUsed: ago(time.Hour), Run: &working}}
	for i := range shownThreads + 2 {
		threads = append(threads, status.Thread{ID: fmt.Sprintf("old-%d", i), Title: "Old", Cwd: "/srv", LastUsed: ago(48 * time.Hour)})
	}
	s := &status.Status{
		StartedAt: ago(time.Hour), UptimeSeconds: 3600, ActiveCommandsCount: 1, ProjectsCount: 1,
		Projects: []status.Project{{ID: "project-1", Name: "demo", Root: "/srv/demo", Threads: threads}},
		Workspaces: []status.Workspace{{ID: "w", ThreadID: "t", LastCommand: &failed,
			ActiveCommands: []status.Command{{Description: "make\x1b[2J\nmake check", StartedAt: ago(5 * time.Second)}}}},
		Leftovers: left,
		Clients:   []status.Client{{Name: "claude", Version: "2.1", LastMethod: "tools/call", LastTool: "bash", LastTime: ago(time.Minute), Requests: 3}, {UserAgent: "stdio", LastMethod: "initialize", LastTime: ago(time.Hour), Requests: 1}},
	}
	proseHas(t, s,
		"up 60m: 1 command running, 1 project, 0 unread, 7 left running\n", "demo  13 threads, 0 unread  /srv/demo  [project-]\n", "  ▶ Tests [t]  WORKING  60m ago  /srv/demo\n",
		"      running for 5s: make·[2J …\n", "      ✗ bash in 1.5s: The command exited with code 4.\n", "  ○ Old [old-0]  IDLE  2d ago  /srv, saved; resume it through MCP\n",
		"  and 2 threads used before; see rigctl get threads\n", "Dashboard at http://127.0.0.1:1/, log in with: rigctl dashboard\n",
		"\nLeft running\n  make serve in /srv/demo\n      pid 41 server·, 5m\n      stop: rigctl cancel op-1\n  bash in /srv\n      pid 50 sleep\n", "      and 1 more\n      stop: rigctl cancel op-2\n",
		"Last heard of claude 2.1: tools/call bash 60s ago, 3 requests\n", "Last heard of stdio: initialize 60m ago, 1 request\n",
	)
	s.Notifications = []status.Handoff{{ThreadID: "t", Reason: "needs_input", Summary: "Which?"}}
	proseHas(t, s, "YOUR TURN · NEEDS INPUT", "      Which?\n")
}

func proseHas(t *testing.T, s *status.Status, lines ...string) {
	t.Helper()
	text := strings.Join(statusPage(s, "http://127.0.0.1:1/", noon, size{}, false), "\n") + "\n"
	for _, want := range lines {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestStatusFitsTheScreen: what is idle makes room, what happens and what waits for the person stays.
func TestStatusFitsTheScreen(t *testing.T) {
	threads := []status.Thread{{ID: "t", Title: "Urgent", Cwd: "/srv/demo"}}
	for i := range 30 {
		threads = append([]status.Thread{{ID: fmt.Sprintf("old-%d", i), Title: "Old", Cwd: "/srv/" + strings.Repeat("deep/", 40)}}, threads...)
	}
	s := &status.Status{ProjectsCount: 1, Projects: []status.Project{{Name: "demo", Threads: threads}},
		Notifications: []status.Handoff{{ThreadID: "t", Reason: "blocked", Summary: strings.Repeat("line\n", 50)}},
		Leftovers:     []status.Leftover{{PID: 41, OperationID: "op-1", Stop: "rigctl cancel op-1"}}}
	for rows := 24; rows > 13; rows-- {
		lines := statusPage(s, "", noon, size{rows, 60}, true)
		text := strings.Join(lines, "\n")
		if len(lines) > rows || !strings.Contains(text, "Urgent") || !strings.Contains(text, "BLOCKED") || !strings.Contains(text, "rigctl cancel op-1") || !strings.Contains(text, "used before") {
			t.Errorf("%d rows: %d lines\n%s", rows, len(lines), text)
		}
	}
	lines := statusPage(s, "", noon, size{5, 60}, false)
	if len(lines) != 5 || !strings.HasPrefix(lines[4], "… and ") || !strings.HasSuffix(lines[4], "lines more: rigctl status | less") {
		t.Errorf("five rows: %q", lines)
	}
}
