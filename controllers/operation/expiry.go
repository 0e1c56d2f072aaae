package operation

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Finished operations of read-only tools leave memory when there are more than maxLookups of them in a
// workspace, or when they are older than lookupAge.
const (
	maxLookups = 1000
	lookupAge  = time.Hour
)

// expiry remembers finished read-only operations by workspace, oldest first.
type expiry struct {
	mu          sync.Mutex
	byWorkspace map[string][]finishedLookup
}

type finishedLookup struct {
	namespace, name string
	uid             types.UID
	at              time.Time
}

// add remembers an operation and returns those that have to go.
func (e *expiry) add(op *v1alpha1.Operation, now time.Time) (gone []finishedLookup) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byWorkspace == nil {
		e.byWorkspace = map[string][]finishedLookup{}
	}
	ws := op.Spec.WorkspaceRef.Name
	e.byWorkspace[ws] = append(e.byWorkspace[ws], finishedLookup{op.Namespace, op.Name, op.UID, now})
	return e.take(now)
}

// due returns those that have to go because of their age.
func (e *expiry) due(now time.Time) []finishedLookup {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.take(now)
}

// take forgets those whose time has come and returns them.
func (e *expiry) take(now time.Time) (gone []finishedLookup) {
	for ws, all := range e.byWorkspace {
		n := 0
		for n < len(all) && (len(all)-n > maxLookups || now.Sub(all[n].at) > lookupAge) {
			n++
		}
		gone = append(gone, all[:n]...)
		if e.byWorkspace[ws] = all[n:]; n == len(all) {
			delete(e.byWorkspace, ws)
		}
	}
	return gone
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
