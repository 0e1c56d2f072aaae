package garbage

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// again is when an owner that waits for what it owns is looked at if nothing wakes the collector before.
const again = time.Second

// pass is the one request of the queue: each look covers all owners, so that deleting many costs one.
var pass = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Reconciler collects what has lost its owners. All fields but the unexported are required.
type Reconciler struct {
	// Client reads projects, threads and workspaces from the cache and writes to the API; Live reads from the API.
	Client client.Client
	Live   client.WithWatch
	// LookAfter is how long after a start everything is looked at once, for what a crash may have left.
	LookAfter time.Duration

	mu      sync.Mutex
	deleted []*v1alpha1.Thread     // whose runs are still to be removed
	handoff []types.NamespacedName // of runs that were deleted
	all     bool                   // runs and handoffs are to be looked at, each of them
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).
		Named("garbage").
		Watches(&v1alpha1.Project{}, r.changes()).
		Watches(&v1alpha1.Thread{}, r.changes()).
		Watches(&v1alpha1.Workspace{}, r.changes()).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			q.Add(pass)
			go r.lookLater(ctx, q)
			go r.watchRuns(ctx, q)
			return nil
		})).
		Complete(r)
}

// changes wakes the collector when an object is gone or is to go, and after one has come, because its owner may
// have gone before the cache showed it.
func (r *Reconciler) changes() handler.Funcs {
	going := func(o client.Object, q queue) {
		if !o.GetDeletionTimestamp().IsZero() {
			q.Add(pass)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if going(e.Object, q); len(e.Object.GetOwnerReferences()) > 0 {
				q.AddAfter(pass, again)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { going(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if t, ok := e.Object.(*v1alpha1.Thread); ok {
				r.mu.Lock()
				r.deleted = append(r.deleted, t)
				r.mu.Unlock()
			}
			q.Add(pass)
		},
	}
}

// lookLater has everything looked at once, when the start is long over.
func (r *Reconciler) lookLater(ctx context.Context, q queue) {
	select {
	case <-ctx.Done():
	case <-time.After(r.LookAfter):
		r.lookAtAll(q)
	}
}

func (r *Reconciler) lookAtAll(q queue) {
	r.mu.Lock()
	r.all = true
	r.mu.Unlock()
	q.Add(pass)
}

// watchRuns notes the runs that are deleted. The cache holds only those that are working.
func (r *Reconciler) watchRuns(ctx context.Context, q queue) {
	for first := true; ctx.Err() == nil; first = false {
		w, err := r.Live.Watch(ctx, &v1alpha1.RunList{}, client.InNamespace(v1alpha1.Namespace))
		if err == nil {
			if !first { // some may have been missed
				r.lookAtAll(q)
			}
			r.noteRuns(w, q)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func (r *Reconciler) noteRuns(w watch.Interface, q queue) {
	defer w.Stop()
	for e := range w.ResultChan() {
		if run, ok := e.Object.(*v1alpha1.Run); ok && e.Type == watch.Deleted {
			r.mu.Lock()
			r.handoff = append(r.handoff, types.NamespacedName{Namespace: run.Namespace, Name: v1alpha1.HandoffName(run.Name)})
			r.mu.Unlock()
			q.Add(pass)
		}
	}
}

// Reconcile looks at everything that is in the cache, and at what is noted beside.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (res ctrl.Result, err error) {
	r.mu.Lock()
	deleted, handoffs, all := r.deleted, r.handoff, r.all
	r.deleted, r.handoff, r.all = nil, nil, false
	r.mu.Unlock()
	waiting, err := r.collect(ctx, deleted, handoffs, all)
	if err != nil { // nothing noted may be forgotten
		r.mu.Lock()
		r.deleted, r.handoff, r.all = append(deleted, r.deleted...), append(handoffs, r.handoff...), all || r.all
		r.mu.Unlock()
		return res, err
	}
	if waiting {
		res.RequeueAfter = again
	}
	return res, nil
}

// collect does one pass. It says whether an owner waits for what it owns.
func (r *Reconciler) collect(ctx context.Context, deleted []*v1alpha1.Thread, handoffs []types.NamespacedName, all bool) (waiting bool, err error) {
	owners, owned, err := r.cached(ctx)
	if err != nil {
		return false, err
	}
	for uid, dependents := range owned {
		if owners[uid] != nil {
			continue
		}
		for _, o := range dependents {
			if err := r.removeDangling(ctx, o); err != nil {
				return false, err
			}
		}
	}
	for _, h := range handoffs {
		if err := r.remove(ctx, &v1alpha1.Handoff{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name}}); err != nil {
			return false, err
		}
	}
	for _, o := range owners {
		w, err := r.release(ctx, o)
		if err != nil {
			return false, err
		}
		waiting = waiting || w
	}
	for _, t := range deleted {
		if err := r.runsOf(ctx, t, r.removeDanglingRun); err != nil {
			return false, err
		}
	}
	if all {
		return waiting, r.danglingRuns(ctx)
	}
	return waiting, nil
}

// cached returns the owners that the cache holds, by their UID, and what each owner has there.
func (r *Reconciler) cached(ctx context.Context) (owners map[types.UID]client.Object, owned map[types.UID][]client.Object, err error) {
	projects, threads, workspaces := &v1alpha1.ProjectList{}, &v1alpha1.ThreadList{}, &v1alpha1.WorkspaceList{}
	for _, list := range []client.ObjectList{projects, threads, workspaces} {
		if err := r.Client.List(ctx, list, client.InNamespace(v1alpha1.Namespace)); err != nil {
			return nil, nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	owners, owned = map[types.UID]client.Object{}, map[types.UID][]client.Object{}
	note := func(o client.Object) {
		for _, ref := range o.GetOwnerReferences() {
			owned[ref.UID] = append(owned[ref.UID], o)
		}
	}
	for i := range projects.Items {
		owners[projects.Items[i].UID] = &projects.Items[i]
	}
	for i := range threads.Items {
		owners[threads.Items[i].UID] = &threads.Items[i]
		note(&threads.Items[i])
	}
	for i := range workspaces.Items {
		note(&workspaces.Items[i])
	}
	return owners, owned, nil
}
