package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// What a person wants to know of the work is told by describe, rigctl's and kubectl's: opened, interrupted by a close
// and by a crash, handed off, notification failed.
func TestDescribeTellsOfTheWork(t *testing.T) {
	d := daemon.Start(t, daemon.Options{Env: []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere"}})
	c, dir := d.Client(), t.TempDir()
	opened := c.OK(t, "workspace_open", daemon.Args{"cwd": dir})
	id := opened.String("workspace_id")
	merge(t, d, "projects/"+opened.String("project_id"), `{"spec":{"notifications":{"desktop":true}}}`)
	closed := c.OK(t, "ls", daemon.Args{"workspace_id": id}).String("run_id")
	describes(t, d, "workspace/"+id, `Normal +Opened `)
	c.OK(t, "workspace_close", daemon.Args{"workspace_id": id})
	describes(t, d, "run/"+closed, `Normal +Started `, `Warning +Interrupted `)

	again := c.OK(t, "workspace_open", daemon.Args{"thread_id": opened.String("thread_id")})
	in := daemon.Args{"workspace_id": again.String("workspace_id")}
	crashed := c.OK(t, "ls", in).String("run_id")
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	d.Revive(t)
	describes(t, d, "run/"+crashed, `Warning +Interrupted `)

	over := c.OK(t, "work_handoff", daemon.Args{"workspace_id": again.String("workspace_id"), "request_key": "k", "reason": "blocked", "summary": "secret words"})
	describes(t, d, "run/"+crashed, `Normal +HandedOff `)
	all := describes(t, d, "handoff/"+over.String("handoff_id"), `Warning +NotificationFailed .*not shown`)
	if _, events, _ := strings.Cut(all, "Events:"); strings.Contains(events, "secret") {
		t.Errorf("events tell what the assistant wrote:\n%s", all)
	}
}

// describes asks rigctl, and kubectl where it is there, until both tell it, and returns rigctl's words.
func describes(t *testing.T, d *daemon.Daemon, what string, patterns ...string) (text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if text = rigctl(t, d, "describe", what); matchesAll(text, patterns) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("rigctl describe %s does not tell %v:\n%s", what, patterns, text)
		}
	}
	_, err := exec.LookPath("kubectl")
	if _, built := os.Stat(filepath.Join(daemon.Root(), ".tools", "bin", "kubectl")); err == nil || built == nil {
		newKubectl(t, d).eventually(t, []string{"describe", what}, patterns...)
	}
	return text
}

func rigctl(t *testing.T, d *daemon.Daemon, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "rigctl", append(args, "--state-dir", d.StateDir())...).CombinedOutput() // TestMain put it into PATH
	if err != nil {
		t.Fatalf("rigctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// merge changes an object as the dashboard does.
func merge(t *testing.T, d *daemon.Daemon, path, patch string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, d.Base()+"/apis/rigbridge.dev/v1alpha1/namespaces/default/"+path, strings.NewReader(patch))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", d.Authorization())
	r.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
}
