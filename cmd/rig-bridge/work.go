package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/garbage"
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
		Now: time.Now, NewID: uuid.NewString, Used: threads.Used, Events: d.events}
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
	if err := projects.SetupWithManager(m); err != nil {
		return fmt.Errorf("set up the project controller: %w", err)
	}
	if err := (&garbage.Reconciler{Client: m.GetClient(), Live: d.api.Client, LookAfter: 10 * time.Minute}).SetupWithManager(m); err != nil {
		return fmt.Errorf("set up the garbage collector: %w", err)
	}
	handoffs := &handoff.Reconciler{Client: m.GetClient(), Durable: d.api.WaitDurable, Notifier: &handoff.Desktop{}, Now: time.Now, Events: d.events,
		Link: func(thread string) string { return d.dashboard.Address("thread=" + thread) },
		Open: func(thread string) string { return d.dashboard.Link("thread=" + thread) }}
	if err := handoffs.SetupWithManager(m); err != nil {
		return fmt.Errorf("set up the handoff controller: %w", err)
	}
	return nil
}
