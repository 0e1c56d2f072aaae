package project

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// IndexProject is the cache index of threads by the name of their project.
const IndexProject = "spec.projectRef.name"

// How long changes of threads and of handoffs are collected before the project is counted again.
const (
	afterThread  = time.Second
	afterHandoff = 200 * time.Millisecond
)

// Reconciler counts what projects have.
type Reconciler struct {
	// Client reads from the cache and writes to the API.
	Client client.Client
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, m ctrl.Manager) error {
	byProject := func(o client.Object) []string { return []string{o.(*v1alpha1.Thread).Spec.ProjectRef.Name} }
	if err := m.GetFieldIndexer().IndexField(ctx, &v1alpha1.Thread{}, IndexProject, byProject); err != nil {
		return fmt.Errorf("index threads by project: %w", err)
	}
	return ctrl.NewControllerManagedBy(m).
		Named("project").
		For(&v1alpha1.Project{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Thread{}, onChange(r.ofThread, afterThread)).
		Watches(&v1alpha1.Handoff{}, onChange(r.ofHandoff, afterHandoff)).
		Complete(r)
}

// onChange has the project of a changed object counted after a delay.
func onChange(project func(context.Context, client.Object) (types.NamespacedName, bool), delay time.Duration) handler.Funcs {
	later := func(ctx context.Context, o client.Object, q queue) {
		if name, ok := project(ctx, o); ok {
			q.AddAfter(reconcile.Request{NamespacedName: name}, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { later(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { later(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { later(ctx, e.Object, q) },
	}
}

func (r *Reconciler) ofThread(_ context.Context, o client.Object) (types.NamespacedName, bool) {
	t := o.(*v1alpha1.Thread)
	return types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.ProjectRef.Name}, true
}

func (r *Reconciler) ofHandoff(ctx context.Context, o client.Object) (types.NamespacedName, bool) {
	t := &v1alpha1.Thread{}
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.(*v1alpha1.Handoff).Spec.ThreadRef.Name}
	if err := r.Client.Get(ctx, key, t); err != nil {
		return key, false // its thread's own event will come
	}
	return r.ofThread(ctx, t)
}

// Reconcile counts one project.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	cached := &v1alpha1.Project{}
	if err := r.Client.Get(ctx, req.NamespacedName, cached); err != nil {
		return res, client.IgnoreNotFound(err)
	}
	p := cached.DeepCopy()
	if err := r.count(ctx, p); err != nil {
		return res, err
	}
	if apiequality.Semantic.DeepEqual(cached.Status, p.Status) {
		return res, nil
	}
	err = r.Client.Status().Update(ctx, p)
	if apierrors.IsConflict(err) { // the cache is behind
		return ctrl.Result{RequeueAfter: afterHandoff}, nil
	}
	return res, client.IgnoreNotFound(err)
}

func (r *Reconciler) count(ctx context.Context, p *v1alpha1.Project) error {
	threads := &v1alpha1.ThreadList{}
	if err := r.Client.List(ctx, threads, client.InNamespace(p.Namespace), client.MatchingFields{IndexProject: p.Name}); err != nil {
		return fmt.Errorf("list the threads of project %s: %w", p.Name, err)
	}
	handoffs := &v1alpha1.HandoffList{}
	if err := r.Client.List(ctx, handoffs, client.InNamespace(p.Namespace)); err != nil {
		return fmt.Errorf("list the handoffs that nobody has read: %w", err)
	}
	unread := map[string]int32{} // by thread
	for i := range handoffs.Items {
		if h := &handoffs.Items[i]; !h.Spec.Acknowledged {
			unread[h.Spec.ThreadRef.Name]++
		}
	}
	st := v1alpha1.ProjectStatus{ObservedGeneration: p.Generation, Threads: int32(len(threads.Items))}
	for i := range threads.Items {
		t := &threads.Items[i]
		st.UnreadHandoffs += unread[t.Name]
		st.LastUsedTime = later(st.LastUsedTime, t.Status.LastUsedTime)
	}
	p.Status = st
	return nil
}

func later(a, b *metav1.MicroTime) *metav1.MicroTime {
	if a == nil || b != nil && a.Before(b) {
		return b.DeepCopy()
	}
	return a
}
