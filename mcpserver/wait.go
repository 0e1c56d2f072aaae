package mcpserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// waiters tells callers when their operations are over. One watch serves them all; when it breaks the
// operations are read again, so no end is missed.
type waiters struct {
	client client.WithWatch
	log    logr.Logger
	over   func(*v1alpha1.Operation) // is told of each operation that ends; optional

	mu     sync.Mutex
	byName map[string]map[*waiter]struct{}
}

// waiter is one caller that waits for an operation by name.
type waiter struct {
	name string
	over chan *v1alpha1.Operation // holds the last operation of that name that is over, or nil when it is gone
}

func newWaiters(c client.WithWatch, log logr.Logger) *waiters {
	return &waiters{client: c, log: log, byName: map[string]map[*waiter]struct{}{}}
}

// add begins to wait for the operation of a name. Call it before the operation is made, and drop afterwards.
func (ws *waiters) add(name string) *waiter {
	w := &waiter{name: name, over: make(chan *v1alpha1.Operation, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byName[name] == nil {
		ws.byName[name] = map[*waiter]struct{}{}
	}
	ws.byName[name][w] = struct{}{}
	return w
}

func (ws *waiters) drop(w *waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.byName[w.name], w)
	if len(ws.byName[w.name]) == 0 {
		delete(ws.byName, w.name)
	}
}

// tell gives an operation to those that wait for its name. Only the last one is kept for each.
func (ws *waiters) tell(name string, op *v1alpha1.Operation) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.byName[name] {
		select {
		case <-w.over:
		default:
		}
		w.over <- op
	}
}

// await returns the operation with the given UID once it is over. It returns nil if it was deleted, and ctx's
// cause when ctx ends first.
func (w *waiter) await(ctx context.Context, uid types.UID) (*v1alpha1.Operation, error) {
	for {
		select {
		case op := <-w.over:
			if op == nil || op.UID == uid {
				failpoint.Hit(failpoint.Told)
				return op, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// run watches until ctx is done.
func (ws *waiters) run(ctx context.Context) {
	rv := ""
	for ctx.Err() == nil {
		next, err := ws.follow(ctx, rv)
		if err == nil || ctx.Err() != nil {
			rv = next
			continue
		}
		ws.log.V(1).Info("Watch of operations ended", "reason", err.Error())
		rv = ""
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// follow watches from a resourceVersion on; without one it begins with the present and reads what is waited
// for. It returns where it has come.
func (ws *waiters) follow(ctx context.Context, rv string) (string, error) {
	if rv == "" {
		list := &v1alpha1.OperationList{}
		if err := ws.client.List(ctx, list, client.InNamespace(v1alpha1.Namespace), client.Limit(1)); err != nil {
			return "", fmt.Errorf("list operations: %w", err)
		}
		rv = list.ResourceVersion
	}
	w, err := ws.client.Watch(ctx, &v1alpha1.OperationList{}, client.InNamespace(v1alpha1.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true}})
	if err != nil {
		return "", fmt.Errorf("watch operations: %w", err)
	}
	defer w.Stop()
	ws.catchUp(ctx)
	for e := range w.ResultChan() {
		op, ok := e.Object.(*v1alpha1.Operation)
		if !ok {
			return "", fmt.Errorf("watch operations: %v", e.Object)
		}
		rv = op.ResourceVersion
		switch {
		case e.Type == watch.Deleted && !op.Over():
			ws.tell(op.Name, nil)
		case e.Type != watch.Bookmark && op.Over():
			if ws.over != nil && e.Type != watch.Deleted {
				ws.over(op)
			}
			ws.tell(op.Name, op)
		}
	}
	return rv, nil
}

// catchUp reads the operations that are waited for.
func (ws *waiters) catchUp(ctx context.Context) {
	ws.mu.Lock()
	names := make([]string, 0, len(ws.byName))
	for name := range ws.byName {
		names = append(names, name)
	}
	ws.mu.Unlock()
	for _, name := range names {
		op := &v1alpha1.Operation{}
		if err := ws.client.Get(ctx, key(name), op); err == nil && op.Over() {
			ws.tell(name, op)
		}
	}
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: v1alpha1.Namespace, Name: name}
}
