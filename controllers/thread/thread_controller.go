package thread

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
	"github.com/rigbridge/rigbridge/controllers/lastuse"
)

const (
	// Quiet is how long after its last call a thread still counts as working.
	Quiet = 10 * time.Second
	// Lag is how far the last use in status may be behind.
	Lag = time.Minute

	// settle is how long a call is left alone before its thread is looked at: most are over by then.
	settle = 500 * time.Millisecond
)

// indexOperations is the cache index of active operations by the name of their thread.
const indexOperations = "spec.threadRef.name"

// Reconciler shows where threads stand. All fields but the unexported are required.
type Reconciler struct {
	// Client reads from the cache and writes to the API; Live reads from the API.
	Client client.Client
	Live   client.Reader
	// Now is the clock.
	Now func() time.Time

	used lastuse.Times
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, m ctrl.Manager) error {
	byThread := func(o client.Object) []string {
		if ref := o.(*v1alpha1.Operation).Spec.ThreadRef; ref != nil && !o.(*v1alpha1.Operation).Over() {
			return []string{ref.Name}
		}
		return nil
	}
	if err := m.GetFieldIndexer().IndexField(ctx, &v1alpha1.Operation{}, indexOperations, byThread); err != nil {
		return fmt.Errorf("index operations by thread: %w", err)
	}
	ofRun := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{request(o.GetNamespace(), o.(*v1alpha1.Run).Spec.ThreadRef.Name)}
	})
	return ctrl.NewControllerManagedBy(m).
		Named("thread").
		For(&v1alpha1.Thread{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}, unsettled())).
		Watches(&v1alpha1.Run{}, ofRun).
		Watches(&v1alpha1.Operation{}, handler.Funcs{CreateFunc: afterCall}).
		Complete(r)
}

// unsettled passes over the threads that a start finds as they should be: they may be very many, and each look reads a
// run.
func unsettled() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !settled(e.Object.(*v1alpha1.Thread)) }}
}

// settled says whether a thread's status is that of its latest run, by itself. That of a run that may still change is
// not: it may have, right before a crash.
func settled(t *v1alpha1.Thread) bool {
	if t.Status.ObservedGeneration != t.Generation {
		return false
	}
	switch current := t.Status.CurrentRunRef; t.Status.State {
	case v1alpha1.ThreadIdle:
		return current == nil && len(t.Status.Runs) == 0
	case v1alpha1.ThreadYourTurn:
		return current != nil && len(t.Status.Runs) > 0 && *current == t.Status.Runs[0]
	}
	return false
}

// afterCall has the thread of a new call looked at a little later; calls meanwhile are looked at with it.
func afterCall(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if ref := e.Object.(*v1alpha1.Operation).Spec.ThreadRef; ref != nil {
		q.AddAfter(request(e.Object.GetNamespace(), ref.Name), settle)
	}
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// Used notes that a thread was used. It is written to status lazily.
func (r *Reconciler) Used(name string) { r.used.Note(name, r.Now()) }

// Reconcile looks at one thread.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	stored := &v1alpha1.Thread{}
	if err := r.Live.Get(ctx, req.NamespacedName, stored); err != nil {
		if apierrors.IsNotFound(err) {
			r.used.Forget(req.Name)
		}
		return res, client.IgnoreNotFound(err)
	}
	o, err := r.observe(ctx, stored)
	if err != nil {
		return res, err
	}
	t := stored.DeepCopy()
	judge(t, o)
	if worthWriting(&stored.Status, &t.Status) {
		err := r.Client.Status().Update(ctx, t)
		if apierrors.IsConflict(err) { // a run was named meanwhile
			return ctrl.Result{RequeueAfter: settle}, nil
		}
		if err != nil {
			return res, client.IgnoreNotFound(err)
		}
	} else if !t.Status.LastUsedTime.Equal(stored.Status.LastUsedTime) {
		res.RequeueAfter = Lag
	}
	if t.Status.State == v1alpha1.ThreadWorking {
		res.RequeueAfter = max(settle, Quiet-o.now.Sub(o.lastUse))
	}
	return res, nil
}

// observed is what judge looks at.
type observed struct {
	latest  *v1alpha1.Run // nil: the thread has none
	active  bool          // a call is under way
	lastUse time.Time
	now     time.Time
}

func (r *Reconciler) observe(ctx context.Context, t *v1alpha1.Thread) (o observed, err error) {
	o.lastUse, o.now = r.used.Of(t, t.Status.LastUsedTime), r.Now()
	if o.latest, err = r.latest(ctx, t); err != nil || o.latest == nil || !o.latest.Working() {
		return o, err
	}
	ops := &v1alpha1.OperationList{}
	if err := r.Client.List(ctx, ops, client.InNamespace(t.Namespace), client.MatchingFields{indexOperations: t.Name}); err != nil {
		return o, fmt.Errorf("list the calls of thread %s: %w", t.Name, err)
	}
	o.active = len(ops.Items) > 0
	return o, nil
}

// latest returns the thread's latest run, or nil if it has none.
func (r *Reconciler) latest(ctx context.Context, t *v1alpha1.Thread) (*v1alpha1.Run, error) {
	for _, ref := range t.Status.Runs {
		run := &v1alpha1.Run{}
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}, run)
		if err == nil {
			return run, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the runs of thread %s: %w", t.Name, err)
		}
	}
	return nil, nil
}

// judge sets the thread's status.
func judge(t *v1alpha1.Thread, o observed) {
	t.Status.ObservedGeneration = t.Generation
	t.Status.State = state(o)
	t.Status.CurrentRunRef = nil
	if o.latest != nil {
		t.Status.CurrentRunRef = &v1alpha1.LocalReference{Name: o.latest.Name}
	}
	at := metav1.NewMicroTime(o.lastUse.Truncate(time.Microsecond))
	t.Status.LastUsedTime = &at
}

// state is pure.
func state(o observed) v1alpha1.ThreadState {
	switch {
	case o.latest == nil:
		return v1alpha1.ThreadIdle
	case o.latest.HandedOff():
		return v1alpha1.ThreadYourTurn
	case !o.latest.Working():
		return v1alpha1.ThreadInterrupted
	case o.active, o.now.Sub(o.lastUse) < Quiet:
		return v1alpha1.ThreadWorking
	}
	return v1alpha1.ThreadAwaitingHandoff
}

// worthWriting says whether more has changed than that the thread was used again a short while later.
func worthWriting(before, after *v1alpha1.ThreadStatus) bool {
	if before.LastUsedTime == nil || after.LastUsedTime.Sub(before.LastUsedTime.Time) >= Lag {
		return true
	}
	a, b := *before, *after
	a.LastUsedTime, b.LastUsedTime = nil, nil
	return !apiequality.Semantic.DeepEqual(a, b)
}
