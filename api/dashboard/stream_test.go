package dashboard

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func TestStreamBeginsWithThePresentAndGoesOn(t *testing.T) {
	e := newEnv(t)
	e.clients = []status.Client{{Name: "claude", Requests: 1}}
	running := newCommand("w", "k1")
	e.create(t, newProject("p"), newThread("t"), newWorkspace("w"), running, newHandoff("h"), newRun("r"))
	lines := e.lines(t, nil)
	seen := until(t, lines, ofType("SYNCED"))
	if seen[0].Type != "HELLO" || seen[0].Version != "1.2.3" || seen[1].Type != "CLIENTS" || seen[1].Clients[0].Name != "claude" {
		t.Errorf("it begins with %v", seen[:2])
	}
	kinds := map[string]int{}
	for _, l := range seen {
		if l.Type != "MODIFIED" {
			continue
		}
		kinds[l.Object.Kind]++
		if l.Object.APIVersion != "rigbridge.dev/v1alpha1" || l.Object.Metadata.ManagedFields != nil {
			t.Errorf("an object is %v", l.Object)
		}
		if l.Object.Kind == "Operation" && l.Description != "about k1" {
			t.Errorf("the operation is described as %q", l.Description)
		}
	}
	for _, kind := range []string{"Project", "Thread", "Workspace", "Operation", "Handoff", "Run"} {
		if kinds[kind] != 1 {
			t.Errorf("%d of %s: %v", kinds[kind], kind, kinds)
		}
	}

	running.Spec.Cancel = true
	if err := e.client.Update(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	until(t, lines, func(l told) bool { return about("Operation", running.Name)(l) && l.Object.Spec.Cancel })
	if err := e.client.Delete(t.Context(), newHandoff("h")); err != nil {
		t.Fatal(err)
	}
	until(t, lines, func(l told) bool { return l.Type == "DELETED" && about("Handoff", "h")(l) })
	e.mu.Lock()
	e.clients = []status.Client{{Name: "codex"}}
	e.mu.Unlock()
	until(t, lines, func(l told) bool { return l.Type == "CLIENTS" && l.Clients[0].Name == "codex" })
}

// A second reader gets the same present as the first has after all changes.
func TestTheViewIsBounded(t *testing.T) {
	e := newEnv(t)
	e.create(t, newWorkspace("w"))
	first := e.lines(t, nil)
	present := until(t, first, ofType("SYNCED"))
	start := time.Now()
	const calls = keptOperations + 5
	for i := range calls {
		op := newCommand("w", fmt.Sprint("k", i))
		e.create(t, op)
		e.finish(t, op, start.Add(time.Duration(i)*time.Second))
	}
	active, left := newCommand("w", "active"), newCommand("w", "left")
	e.create(t, active, left)
	left.Status.Leftovers = []v1alpha1.Process{{PID: 1, Command: "sleep"}}
	e.finish(t, left, start.Add(-time.Hour)) // old, but what it left still runs
	for i := range keptOthers + 3 {
		h := newHandoff(fmt.Sprint("h", i))
		h.Spec.Acknowledged = true
		e.create(t, h)
	}
	e.create(t, newProject("last"))

	known := map[string]bool{}
	note := func(l told) {
		switch key := l.Object.Kind + "/" + l.Object.Metadata.Name; l.Type {
		case "MODIFIED":
			known[key] = true
		case "DELETED":
			delete(known, key)
		}
	}
	for _, l := range present {
		note(l)
	}
	count := func(known map[string]bool, kind string) (n int) {
		for key := range known {
			if len(key) > len(kind) && key[:len(kind)] == kind {
				n++
			}
		}
		return n
	}
	guard := time.After(patience)
	for !known["Project/last"] || count(known, "Operation") != keptOperations+2 || count(known, "Handoff") != keptOthers || !known["Operation/"+active.Name] || !known["Operation/"+left.Name] {
		select {
		case l := <-first:
			note(l)
		case <-guard:
			t.Fatalf("%d operations, %d handoffs", count(known, "Operation"), count(known, "Handoff"))
		}
	}
	for i := range calls {
		if name := v1alpha1.OperationName("w", fmt.Sprint("k", i)); known["Operation/"+name] != (i >= calls-keptOperations) {
			t.Errorf("call %d: %v", i, known["Operation/"+name])
		}
	}
	second := map[string]bool{}
	for _, l := range until(t, e.lines(t, nil), ofType("SYNCED")) {
		if l.Type == "MODIFIED" {
			second[l.Object.Kind+"/"+l.Object.Metadata.Name] = true
		}
	}
	if len(second) != len(known) {
		t.Errorf("a second reader is shown %d objects, the first knows %d", len(second), len(known))
	}
	for key := range known {
		if !second[key] {
			t.Errorf("a second reader is not shown %s", key)
		}
	}
}

// Receipts are kept for ever; the view after a restart holds the newest of them.
func TestTheViewOfAnOldStore(t *testing.T) {
	dir := t.TempDir()
	t.Run("before", func(t *testing.T) {
		e := newEnvIn(t, dir)
		e.create(t, newWorkspace("w"))
		for i := range 3 * keptOperations {
			op := newCommand("w", fmt.Sprint("k", i))
			e.create(t, op)
			e.finish(t, op, time.Now().Add(time.Duration(i)*time.Second))
		}
	})
	e := newEnvIn(t, dir)
	var names []string
	for _, l := range until(t, e.lines(t, nil), ofType("SYNCED")) {
		if l.Object.Kind == "Operation" {
			names = append(names, l.Object.Metadata.Name)
		}
	}
	if len(names) != keptOperations {
		t.Fatalf("%d operations", len(names))
	}
	for i := 2 * keptOperations; i < 3*keptOperations; i++ {
		if !slices.Contains(names, v1alpha1.OperationName("w", fmt.Sprint("k", i))) {
			t.Errorf("call %d is not shown", i)
		}
	}
}

func TestWorkspacesUsedLongAgoMakeRoom(t *testing.T) {
	v := newView(t.Context(), Options{Describe: func(*v1alpha1.Operation) (string, bool) { return "", false }})
	start := time.Now()
	for i := range keptWorkspaces + 10 {
		op := newCommand(fmt.Sprint("w", i), "k")
		op.UID, op.ResourceVersion = uid(op.Name), fmt.Sprint(i+1)
		over(op, start.Add(time.Duration(i)*time.Minute))
		v.put("Operation", op)
	}
	if n := len(v.all()); n > keptWorkspaces+2 || n < keptWorkspaces {
		t.Errorf("%d entries", n)
	}
	if v.groups["Operation/w0"] != nil || v.groups[fmt.Sprint("Operation/w", keptWorkspaces+9)] == nil {
		t.Error("the wrong ones made room")
	}
}

// A reader that does not read is told the latest state of each object once it does, and cut off when too much waits.
func TestChangesOfASlowReaderAreCoalesced(t *testing.T) {
	v := newView(t.Context(), Options{Describe: func(*v1alpha1.Operation) (string, bool) { return "", false }})
	r, _, _ := v.open()
	change := func(name string, version int) {
		p := newProject(name)
		p.UID, p.ResourceVersion = uid(name), fmt.Sprint(version)
		v.put("Project", p)
	}
	for i := range 1000 {
		change("p", i+1)
	}
	change("q", 1001)
	v.remove(uid("q")) // came and went
	lines, ok := r.take()
	if n := countLines(lines); !ok || n != 1 {
		t.Errorf("%d lines: %s", n, lines)
	}
	v.remove(uid("p"))
	if lines, _ := r.take(); countLines(lines) != 1 {
		t.Errorf("gone: %s", lines)
	}
	for i := range maxPending + 1 {
		change(fmt.Sprint("p", i), 2000+i)
	}
	if _, ok := r.take(); ok {
		t.Error("a reader that far behind goes on")
	}
}

func TestStreamsAreBounded(t *testing.T) {
	e := newEnv(t)
	until(t, e.lines(t, nil), ofType("SYNCED"))
	e.view.mu.Lock()
	for len(e.view.readers) < maxReaders {
		e.view.readers[&reader{}] = struct{}{}
	}
	e.view.mu.Unlock()
	if resp, _ := e.ask(t, "GET", "/api/watch", "", nil); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", resp.StatusCode)
	}
	e.view.mu.Lock()
	clear(e.view.readers)
	e.view.mu.Unlock()
}

func uid(name string) types.UID { return types.UID("uid-" + name) }

func countLines(b []byte) int { return bytes.Count(b, []byte("\n")) }
