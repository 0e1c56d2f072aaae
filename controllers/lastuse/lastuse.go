// Package lastuse remembers when objects were last used, so that a call costs them no write: their reconcilers write
// it to status lazily.
//
// Invariant: what is remembered is never older than what status tells; after a restart status alone is known.
package lastuse

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Times are of the objects of one kind, by name. The zero value is ready.
type Times struct {
	mu sync.Mutex
	at map[string]time.Time
}

// Note says that an object is used now.
func (t *Times) Note(name string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil {
		t.at = map[string]time.Time{}
	}
	t.at[name] = now
}

// Of returns when an object was last used: as noted, else as its status tells, else when it was made.
func (t *Times) Of(o metav1.Object, status *metav1.MicroTime) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.at[o.GetName()]; ok {
		return at
	}
	if status != nil {
		return status.Time
	}
	return o.GetCreationTimestamp().Time
}

// Forget is called when an object is gone.
func (t *Times) Forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.at, name)
}
