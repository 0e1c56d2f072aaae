package v1alpha1

import "path/filepath"

// Default fills in what a tunnel's author left out.
func (t *Tunnel) Default() {
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
func (w *Workspace) Default() {
	for _, f := range w.Finalizers {
		if f == Finalizer {
			return
		}
	}
	w.Finalizers = append(w.Finalizers, Finalizer)
}
