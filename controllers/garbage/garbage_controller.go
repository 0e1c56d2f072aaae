package garbage

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// pass is the one request of the queue: each covers all that is noted, so that deleting many costs one.
var pass = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Reconciler collects what has lost its owners. All fields but the unexported are required.
type Reconciler struct {
	// Client reads projects, threads and workspaces from the cache and writes to the API; Live reads from the API.
	Client client.Client
	Live   client.WithWatch
	// LookAfter is how long after a start everything is looked at once, for what a crash may have left.
	LookAfter time.Duration

	mu    sync.Mutex
	noted noted
}

// noted is what is to be looked at. Making and closing things costs a look at them and at nothing else.
type noted struct {
	came     []client.Object             // have owners, which may have gone before the cache showed them
	going    map[types.UID]client.Object // owners that are marked as deleted
	threads  []*v1alpha1.Thread          // were deleted: their workspaces and runs are to go
	projects bool                        // some were deleted: their threads are to go
	handoffs []types.NamespacedName      // of runs that were deleted
	all      bool                        // runs and handoffs, each of them
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
			go r.lookLater(ctx, q)
			go r.watchRuns(ctx, q)
			return nil
		})).
		Complete(r)
}

// changes notes what has come, what is to go and what is gone.
func (r *Reconciler) changes() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			r.note(q, func(n *noted) bool {
				if len(e.Object.GetOwnerReferences()) > 0 {
					n.came = append(n.came, e.Object)
				}
				return n.goes(e.Object) || len(e.Object.GetOwnerReferences()) > 0
			})
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			r.note(q, func(n *noted) bool { return n.goes(e.ObjectNew) })
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.note(q, func(n *noted) bool {
				switch o := e.Object.(type) {
				case *v1alpha1.Project:
					n.projects = true
				case *v1alpha1.Thread:
					n.threads = append(n.threads, o)
				default: // it owned nothing, but an owner may wait for its end
					return len(n.going) > 0
				}
				return true
			})
		},
	}
}

// goes notes an owner that is marked as deleted.
func (n *noted) goes(o client.Object) bool {
	if _, ownsNothing := o.(*v1alpha1.Workspace); ownsNothing || o.GetDeletionTimestamp().IsZero() {
		return false
	}
	if n.going == nil {
		n.going = map[types.UID]client.Object{}
	}
	n.going[o.GetUID()] = o
	return true
}

// note changes what is noted, and has it looked at if that is worth it.
func (r *Reconciler) note(q queue, change func(*noted) (worth bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change(&r.noted) {
		q.Add(pass)
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
	r.note(q, func(n *noted) bool {
		n.all = true
		return true
	})
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
			r.note(q, func(n *noted) bool {
				n.handoffs = append(n.handoffs, types.NamespacedName{Namespace: run.Namespace, Name: v1alpha1.HandoffName(run.Name)})
				return true
			})
		}
	}
}

// Reconcile looks at what is noted.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (res ctrl.Result, err error) {
	r.mu.Lock()
	n := r.noted
	r.noted = noted{}
	r.mu.Unlock()
	waiting, err := r.collect(ctx, n)
	if err != nil { // nothing noted may be forgotten
		waiting = n
	}
	r.mu.Lock()
	r.noted = waiting.and(r.noted)
	r.mu.Unlock()
	if len(waiting.going) > 0 {
		res.RequeueAfter = again
	}
	return res, err
}

// and returns both together.
func (n noted) and(more noted) noted {
	if n.going == nil {
		n.going = map[types.UID]client.Object{}
	}
	maps.Copy(n.going, more.going)
	return noted{came: append(n.came, more.came...), going: n.going, threads: append(n.threads, more.threads...),
		projects: n.projects || more.projects, handoffs: append(n.handoffs, more.handoffs...), all: n.all || more.all}
}

// collect does one pass. It returns the owners that wait for what they own.
func (r *Reconciler) collect(ctx context.Context, n noted) (waiting noted, err error) {
	for _, o := range n.came {
		if err := r.removeDangling(ctx, o); err != nil {
			return waiting, err
		}
	}
	if n.projects {
		if err := r.danglingCached(ctx, &v1alpha1.ThreadList{}); err != nil {
			return waiting, err
		}
	}
	if len(n.threads) > 0 {
		if err := r.danglingCached(ctx, &v1alpha1.WorkspaceList{}); err != nil {
			return waiting, err
		}
	}
	for _, h := range n.handoffs {
		if err := r.remove(ctx, &v1alpha1.Handoff{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name}}); err != nil {
			return waiting, err
		}
	}
	for uid, o := range n.going {
		wait, err := r.release(ctx, o)
		if err != nil {
			return waiting, err
		}
		if wait {
			waiting = waiting.and(noted{going: map[types.UID]client.Object{uid: o}})
		}
	}
	if err := r.runsOfDeleted(ctx, n.threads); err != nil {
		return waiting, err
	}
	if n.all {
		return waiting, r.danglingRuns(ctx)
	}
	return waiting, nil
}

// danglingCached removes what the cache has of a kind and whose owners are gone. What it does not show yet is looked
// at when it does.
func (r *Reconciler) danglingCached(ctx context.Context, list client.ObjectList) error {
	if err := r.Client.List(ctx, list, client.InNamespace(v1alpha1.Namespace)); err != nil {
		return fmt.Errorf("list %T: %w", list, err)
	}
	return meta.EachListItem(list, func(o runtime.Object) error { return r.removeDangling(ctx, o.(client.Object)) })
}
