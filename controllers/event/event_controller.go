package event

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of what is kept.
const (
	// maxAge is how long an event is kept after it was last seen.
	maxAge = time.Hour
	// maxEvents is the number of events of all objects together; beyond it the oldest go. That one object cannot
	// fill them is the recorder's care: it lets 25 through at once and one more every five minutes.
	maxEvents = 1000
)

// Reconciler removes old events. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes to the API.
	Client client.Client
	// Now is the clock.
	Now func() time.Time
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("event").For(&corev1.Event{}).Complete(r)
}

// Reconcile removes an event when its time has come, and makes room for a new one.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	e := &corev1.Event{}
	if err := r.Client.Get(ctx, req.NamespacedName, e); err != nil {
		return res, client.IgnoreNotFound(err)
	}
	if left := maxAge - r.Now().Sub(lastSeen(e)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, r.makeRoom(ctx, e.Namespace)
	}
	return res, r.remove(ctx, e)
}

// makeRoom removes the oldest events beyond the number that is kept.
func (r *Reconciler) makeRoom(ctx context.Context, namespace string) error {
	all := &corev1.EventList{}
	if err := r.Client.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	if len(all.Items) <= maxEvents {
		return nil
	}
	slices.SortFunc(all.Items, func(a, b corev1.Event) int { // the same order each time: the cache shows some that are gone
		return cmp.Or(lastSeen(&a).Compare(lastSeen(&b)), strings.Compare(a.Name, b.Name))
	})
	for i := range all.Items[:len(all.Items)-maxEvents] {
		if err := r.remove(ctx, &all.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// remove removes an event unless it was seen again meanwhile.
func (r *Reconciler) remove(ctx context.Context, e *corev1.Event) error {
	err := r.Client.Delete(ctx, e.DeepCopy(), client.Preconditions{UID: &e.UID, ResourceVersion: &e.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove event %s: %w", e.Name, err)
	}
	return nil
}

// lastSeen is when the event happened for the last time.
func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
