package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// What happened is where kubectl's users look for it: describe, events, get events.
func TestKubectlEvents(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	k := newKubectl(t, d)
	c := d.Client()
	opened := c.OK(t, "workspace_open", daemon.Args{"cwd": t.TempDir()})
	workspace := opened.String("workspace_id")
	begun := c.OK(t, "run_start", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "title": "secret title"})
	over := c.OK(t, "work_handoff", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "reason": "completed", "summary": "secret summary"})

	k.eventually(t, []string{"describe", "ws", workspace}, `^ +Normal +Opened +\S+ +rig-bridge +Calls are admitted`)
	k.eventually(t, []string{"describe", "run", begun.String("run_id")}, `^ +Normal +Started +`, `^ +Normal +HandedOff +.*Completed`)
	k.eventually(t, []string{"events", "--for", "run/" + begun.String("run_id")}, `Normal +HandedOff +Run/`+begun.String("run_id"))
	k.run(t, "patch", "handoff", over.String("handoff_id"), "--type=merge", "--patch", `{"spec":{"acknowledged":true}}`)
	k.eventually(t, []string{"get", "ev"}, `^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE$`, `Normal +Opened +workspace/`+workspace, `Acknowledged +handoff/`+over.String("handoff_id"))
	k.eventually(t, []string{"get", "events", "-o", "wide", "--field-selector", "reason=Started"}, `^LAST SEEN .* SOURCE .* COUNT +NAME$`, ` rig-bridge .* 1 +run-|rig-bridge`)
	wants(t, "explain", k.run(t, "explain", "event.involvedObject"), `The object that this event is about`, `resourceVersion`)
	wants(t, "api-resources", k.run(t, "api-resources", "--api-group="), `^events +ev +v1 +true +Event$`)
	wants(t, "an event of no kind", k.fails(t, "create", "--validate=false", "-f", k.file(t, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"x","namespace":"default"},"involvedObject":{"namespace":"other"},"type":"Odd"}`)),
		`involvedObject.namespace`, `reason: Required`, `"Odd": supported values: "Normal", "Warning"`)
	if all := k.run(t, "get", "events", "-o", "yaml"); strings.Contains(all, "secret") {
		t.Errorf("events tell what the assistant wrote:\n%s", all)
	}

	d.Kill()
	d.Revive(t)
	k = newKubectl(t, d) // the port is another
	if all := k.run(t, "get", "events", "-o", "name"); strings.Contains(all, "event/"+begun.String("run_id")) {
		t.Errorf("events of an earlier life are back:\n%s", all)
	}
}

// eventually repeats a question until its answer matches.
func (k *kubectl) eventually(t *testing.T, args []string, patterns ...string) {
	t.Helper()
	for range 100 {
		if out, err := k.command(t.Context(), args...).CombinedOutput(); err == nil && matchesAll(string(out), patterns) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	wants(t, strings.Join(args, " "), k.run(t, args...), patterns...)
}

func matchesAll(text string, patterns []string) bool {
	return !slices.ContainsFunc(patterns, func(p string) bool { return !regexp.MustCompile("(?m)" + p).MatchString(text) })
}

// file writes a manifest.
func (k *kubectl) file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
