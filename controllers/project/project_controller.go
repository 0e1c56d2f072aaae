package project

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// How long changes of threads and of handoffs are collected before the project is counted again.
const (
	afterThread  = time.Second
	afterHandoff = 200 * time.Millisecond
)

// Reconciler counts what projects have.
type Reconciler struct {
	// Client reads from the cache and writes to the API.
	Client client.Client

	tally tally
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).
		Named("project").
		For(&v1alpha1.Project{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Thread{}, onChange(r.thread)).
		Watches(&v1alpha1.Handoff{}, onChange(r.handoff)).
		Complete(r)
}

// onChange notes a changed object and has its project looked at after a delay.
func onChange(note func(o client.Object, gone bool) (project string, delay time.Duration)) handler.Funcs {
	later := func(o client.Object, gone bool, q queue) {
		if project, delay := note(o, gone); project != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: project}}, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { later(e.Object, false, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { later(e.ObjectNew, false, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { later(e.Object, true, q) },
	}
}

func (r *Reconciler) thread(o client.Object, gone bool) (project string, delay time.Duration) {
	t := o.(*v1alpha1.Thread)
	if gone {
		r.tally.withoutThread(t.Name)
	} else {
		r.tally.thread(t)
	}
	return t.Spec.ProjectRef.Name, afterThread
}

func (r *Reconciler) handoff(o client.Object, gone bool) (project string, delay time.Duration) {
	h := o.(*v1alpha1.Handoff)
	if gone { // or read: the cache has those that are not
		r.tally.withoutHandoff(h)
	} else {
		r.tally.handoff(h)
	}
	return r.tally.projectOf(h.Spec.ThreadRef.Name), afterHandoff // of a thread that is not known yet its own event tells
}

// Reconcile counts one project.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	cached := &v1alpha1.Project{}
	if err := r.Client.Get(ctx, req.NamespacedName, cached); err != nil {
		if apierrors.IsNotFound(err) {
			r.tally.forget(req.Name)
		}
		return res, client.IgnoreNotFound(err)
	}
	p := cached.DeepCopy()
	p.Status = r.tally.status(p.Name)
	p.Status.ObservedGeneration = p.Generation
	if apiequality.Semantic.DeepEqual(cached.Status, p.Status) {
		return res, nil
	}
	err = r.Client.Status().Update(ctx, p)
	if apierrors.IsConflict(err) { // the cache is behind
		return ctrl.Result{RequeueAfter: afterHandoff}, nil
	}
	return res, client.IgnoreNotFound(err)
}
