package operation

import (
	"container/list"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Finished operations of read-only tools leave memory when there are more than maxLookups of them in a workspace or
// maxAllLookups in all, or when they are older than lookupAge. The bound for all holds for workspaces that are
// closed, too.
const (
	maxLookups    = 1000
	maxAllLookups = 4000
	lookupAge     = time.Hour
)

// expiry remembers finished read-only operations.
type expiry struct {
	mu          sync.Mutex
	all         list.List                  // of finishedLookup, oldest first
	byWorkspace map[string][]*list.Element // the same, oldest first in each
}

type finishedLookup struct {
	workspace, namespace, name string
	uid                        types.UID
	at                         time.Time
}

// add remembers an operation and returns those that have to go.
func (e *expiry) add(op *v1alpha1.Operation, now time.Time) (gone []finishedLookup) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byWorkspace == nil {
		e.byWorkspace = map[string][]*list.Element{}
	}
	ws := op.Spec.WorkspaceRef.Name
	e.byWorkspace[ws] = append(e.byWorkspace[ws], e.all.PushBack(finishedLookup{ws, op.Namespace, op.Name, op.UID, now}))
	if len(e.byWorkspace[ws]) > maxLookups {
		gone = append(gone, e.take(ws))
	}
	return append(gone, e.takeDue(now)...)
}

// due returns those that have to go because of their age.
func (e *expiry) due(now time.Time) []finishedLookup {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.takeDue(now)
}

// takeDue forgets those that are too old or too many and returns them.
func (e *expiry) takeDue(now time.Time) (gone []finishedLookup) {
	for e.all.Len() > 0 {
		oldest := e.all.Front().Value.(finishedLookup)
		if e.all.Len() <= maxAllLookups && now.Sub(oldest.at) <= lookupAge {
			break
		}
		gone = append(gone, e.take(oldest.workspace))
	}
	return gone
}

// take forgets the oldest of a workspace and returns it.
func (e *expiry) take(workspace string) finishedLookup {
	its := e.byWorkspace[workspace]
	if e.byWorkspace[workspace] = its[1:]; len(its) == 1 {
		delete(e.byWorkspace, workspace)
	}
	return e.all.Remove(its[0]).(finishedLookup)
}

// expire forgets finished read-only operations.
func (r *Reconciler) expire(ctx context.Context, gone []finishedLookup) {
	for _, old := range gone {
		o := &v1alpha1.Operation{}
		o.Namespace, o.Name = old.namespace, old.name
		// Gone already, or made anew under the same name: either is right.
		_ = r.Client.Delete(ctx, o, client.Preconditions{UID: &old.uid})
	}
}

// expireByAge looks every minute for read-only operations that are too old. It returns when ctx is done.
func (r *Reconciler) expireByAge(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Minute):
			r.expire(ctx, r.expiry.due(r.Now()))
		}
	}
}
