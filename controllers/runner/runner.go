package runner

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Runner runs functions and reports the objects that they concern. The zero value is not usable; call New.
type Runner struct {
	events chan event.GenericEvent
	work   sync.WaitGroup
}

// New returns a runner.
func New() *Runner {
	return &Runner{events: make(chan event.GenericEvent, 1024)}
}

// Go runs fn in the background and afterwards has obj looked at again. fn does not outlive Wait.
func (r *Runner) Go(obj client.Object, fn func()) {
	r.work.Go(func() {
		fn()
		r.Wake(obj)
	})
}

// Wake has obj looked at again.
func (r *Runner) Wake(obj client.Object) {
	r.events <- event.GenericEvent{Object: obj}
}

// Source feeds a controller with the objects to look at again.
func (r *Runner) Source() source.Source {
	return source.Channel(r.events, &handler.EnqueueRequestForObject{})
}

// Wait waits until all work has ended.
func (r *Runner) Wait() { r.work.Wait() }
