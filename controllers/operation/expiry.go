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
	name string
	uid  types.UID
	at   time.Time
}

// add remembers an operation and returns those that have to go.
func (e *expiry) add(op *v1alpha1.Operation, now time.Time) (gone []finishedLookup) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byWorkspace == nil {
		e.byWorkspace = map[string][]finishedLookup{}
	}
	ws := op.Spec.WorkspaceRef.Name
	e.byWorkspace[ws] = append(e.byWorkspace[ws], finishedLookup{op.Name, op.UID, now})
	for name, all := range e.byWorkspace {
		n := 0
		for n < len(all) && (len(all)-n > maxLookups || now.Sub(all[n].at) > lookupAge) {
			n++
		}
		if n == 0 {
			continue
		}
		gone = append(gone, all[:n]...)
		if e.byWorkspace[name] = all[n:]; n == len(all) {
			delete(e.byWorkspace, name)
		}
	}
	return gone
}

// expire forgets the finished read-only operations whose time has come.
func (r *Reconciler) expire(ctx context.Context, op *v1alpha1.Operation) {
	for _, old := range r.expiry.add(op, r.Now()) {
		o := &v1alpha1.Operation{}
		o.Namespace, o.Name = op.Namespace, old.name
		// Gone already, or made anew under the same name: either is right.
		_ = r.Client.Delete(ctx, o, client.Preconditions{UID: &old.uid})
	}
}
