package v1alpha1

import (
	"path/filepath"
	"slices"
)

// Default fills in what a tunnel's author left out, and makes the tunnel wait for its client when it is deleted.
func (t *Tunnel) Default() {
	t.Finalizers = held(t.Finalizers)
	if t.Spec.Watchdog.IntervalSeconds == 0 {
		t.Spec.Watchdog.IntervalSeconds = 10
	}
	if t.Spec.Watchdog.PollTimeoutSeconds == 0 {
		t.Spec.Watchdog.PollTimeoutSeconds = 65
	}
}

// Default fills in what a project's author left out.
func (p *Project) Default() {
	if p.Spec.DisplayName == "" {
		p.Spec.DisplayName = filepath.Base(p.Spec.Root)
	}
}

// Default fills in what a thread's author left out.
func (t *Thread) Default() {
	if t.Spec.Title == "" {
		t.Spec.Title = "Untitled thread"
	}
}

// Default makes the workspace wait for its operations when it is deleted.
func (w *Workspace) Default() { w.Finalizers = held(w.Finalizers) }

// held adds Finalizer unless it is there.
func held(finalizers []string) []string {
	if slices.Contains(finalizers, Finalizer) {
		return finalizers
	}
	return append(finalizers, Finalizer)
}
