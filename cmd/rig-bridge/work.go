package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/handoff"
	"github.com/rigbridge/rigbridge/controllers/project"
	"github.com/rigbridge/rigbridge/controllers/run"
	"github.com/rigbridge/rigbridge/controllers/thread"
	"github.com/rigbridge/rigbridge/controllers/workspace"
)

// controlWork sets up the reconcilers of projects, threads, runs and handoffs, and ties the others to them. It
// comes after those are made and before the manager starts.
func (d *daemon) controlWork(ctx context.Context, m ctrl.Manager, workspaces *workspace.Reconciler) error {
	threads := &thread.Reconciler{Client: m.GetClient(), Live: d.api.Client, Now: time.Now}
	d.runs = &run.Reconciler{Client: m.GetClient(), Live: d.api.Client, Durable: d.api.WaitDurable,
		Now: time.Now, NewID: uuid.NewString, Used: threads.Used}
	d.operations.Runs = d.runs
	workspaces.Closing = func(ctx context.Context, ws *v1alpha1.Workspace) error {
		return d.runs.Interrupt(ctx, ws.Namespace, ws.Spec.ThreadRef.Name)
	}
	if err := d.runs.SetupWithManager(ctx, m); err != nil {
		return fmt.Errorf("set up the run controller: %w", err)
	}
	if err := threads.SetupWithManager(ctx, m); err != nil {
		return fmt.Errorf("set up the thread controller: %w", err)
	}
	projects := &project.Reconciler{Client: m.GetClient()}
	if err := projects.SetupWithManager(ctx, m); err != nil {
		return fmt.Errorf("set up the project controller: %w", err)
	}
	handoffs := &handoff.Reconciler{Client: m.GetClient(), Durable: d.api.WaitDurable, Notifier: handoff.Desktop{}, Now: time.Now,
		Link: func(thread string) string { return fmt.Sprintf("http://127.0.0.1:%d/#thread=%s", d.port(), thread) }}
	if err := handoffs.SetupWithManager(m); err != nil {
		return fmt.Errorf("set up the handoff controller: %w", err)
	}
	return nil
}
