package runner

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Runner runs functions and has the objects that they concern looked at by one controller. The zero value is ready
// to use.
type Runner struct {
	queue atomic.Pointer[queueOf]
	work  sync.WaitGroup
}

type queueOf struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
}

// New returns a runner.
func New() *Runner { return &Runner{} }

// Go runs fn in the background and afterwards has obj looked at again. fn does not outlive Wait.
func (r *Runner) Go(obj client.Object, fn func()) {
	r.work.Go(func() {
		fn()
		r.Wake(obj)
	})
}

// Wake has obj looked at again. Before the controller has started there is nobody to look.
func (r *Runner) Wake(obj client.Object) {
	if q := r.queue.Load(); q != nil {
		q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}
}

// Source makes the controller that has it the one that looks: the runner puts its objects straight into the
// controller's queue, since a channel between them would only add a goroutine and a wait.
func (r *Runner) Source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		r.queue.Store(&queueOf{q})
		return nil
	})
}

// Wait waits until all work has ended.
func (r *Runner) Wait() { r.work.Wait() }
