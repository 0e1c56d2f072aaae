package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// IndexThread is the cache index that this reconciler makes of working runs and of workspaces, by the name of
// their thread.
const IndexThread = "spec.threadRef.name"

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, m ctrl.Manager) error {
	for _, index := range []struct {
		of    client.Object
		value client.IndexerFunc
	}{
		{&v1alpha1.Run{}, func(o client.Object) []string { return []string{o.(*v1alpha1.Run).Spec.ThreadRef.Name} }},
		{&v1alpha1.Workspace{}, func(o client.Object) []string { return []string{o.(*v1alpha1.Workspace).Spec.ThreadRef.Name} }},
	} {
		if err := m.GetFieldIndexer().IndexField(ctx, index.of, IndexThread, index.value); err != nil {
			return fmt.Errorf("index %T by thread: %w", index.of, err)
		}
	}
	return ctrl.NewControllerManagedBy(m).
		Named("run").
		For(&v1alpha1.Run{}). // the cache has the working ones
		Watches(&v1alpha1.Workspace{}, handler.EnqueueRequestsFromMapFunc(r.ofWorkspace), builder.WithPredicates(onlyDeletes())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Complete(r)
}

// ofWorkspace returns the runs that a workspace that is gone leaves without one.
func (r *Reconciler) ofWorkspace(ctx context.Context, o client.Object) (all []reconcile.Request) {
	runs := &v1alpha1.RunList{}
	thread := o.(*v1alpha1.Workspace).Spec.ThreadRef.Name
	if err := r.Client.List(ctx, runs, client.InNamespace(o.GetNamespace()), client.MatchingFields{IndexThread: thread}); err != nil {
		return nil // the cache ends
	}
	for i := range runs.Items {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs.Items[i])})
	}
	return all
}

func onlyDeletes() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// Adopt brings what an earlier life of the daemon left working to its end. Call it once the cache is there and
// before the first call is admitted.
func (r *Reconciler) Adopt(ctx context.Context) error {
	var errs []error
	runs := &v1alpha1.RunList{}
	if err := r.Client.List(ctx, runs, client.InNamespace(v1alpha1.Namespace)); err != nil {
		return fmt.Errorf("list the runs that are working: %w", err)
	}
	for i := range runs.Items {
		errs = append(errs, r.look(ctx, &runs.Items[i]))
	}
	return errors.Join(errs...)
}

// Reconcile looks at one run.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	run := &v1alpha1.Run{}
	err = r.Client.Get(ctx, req.NamespacedName, run)
	switch {
	case apierrors.IsNotFound(err):
		return res, r.forget(ctx, req.NamespacedName)
	case err != nil:
		return res, err
	}
	return res, r.look(ctx, run)
}

// look brings a run to its end if nobody works on it. run is the cache's.
func (r *Reconciler) look(ctx context.Context, run *v1alpha1.Run) error {
	l, err := r.lock(ctx, run.Namespace, run.Spec.ThreadRef.Name)
	if err != nil {
		return err
	}
	defer l.mu.Unlock()
	if l.latest == nil || l.latest.Name != run.Name {
		return r.close(ctx, run.DeepCopy())
	}
	if l.working() {
		open := &v1alpha1.WorkspaceList{}
		err := r.Client.List(ctx, open, client.InNamespace(run.Namespace), client.MatchingFields{IndexThread: run.Spec.ThreadRef.Name})
		if err != nil {
			return fmt.Errorf("list the workspaces of thread %s: %w", run.Spec.ThreadRef.Name, err)
		}
		if len(open.Items) > 0 {
			return nil
		}
	}
	return r.close(ctx, l.latest)
}

// forget has the line of a run that was deleted read again. Most runs that leave the cache are only over.
func (r *Reconciler) forget(ctx context.Context, run types.NamespacedName) error {
	err := r.Live.Get(ctx, run, &v1alpha1.Run{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	r.mu.Lock()
	lines := slices.Collect(maps.Values(r.lines))
	r.mu.Unlock()
	for _, l := range lines {
		l.mu.Lock()
		if l.latest != nil && l.latest.Name == run.Name {
			l.loaded = false
		}
		l.mu.Unlock()
	}
	return nil
}
