package handoff

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Reconciler notes what became of handoffs. The cache shows it those that are active.
type Reconciler struct {
	// Client reads from the cache and writes to the API.
	Client client.Client
	// Now is the clock of the times in status.
	Now func() time.Time
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("handoff").For(&v1alpha1.Handoff{}).Complete(r)
}

// Reconcile looks at one handoff.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	cached := &v1alpha1.Handoff{}
	if err := r.Client.Get(ctx, req.NamespacedName, cached); err != nil {
		return res, client.IgnoreNotFound(err) // read, or gone
	}
	h := cached.DeepCopy()
	judge(h, metav1.NewMicroTime(r.Now()))
	if apiequality.Semantic.DeepEqual(cached.Status, h.Status) {
		return res, nil
	}
	err = r.Client.Status().Update(ctx, h)
	if apierrors.IsConflict(err) { // the cache is behind; its next event comes
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return res, client.IgnoreNotFound(err)
}

// judge sets the handoff's status.
func judge(h *v1alpha1.Handoff, now metav1.MicroTime) {
	h.Status.ObservedGeneration = h.Generation
	if h.Spec.Acknowledged && h.Status.ReadTime == nil {
		h.Status.ReadTime = &now
	}
	if h.Status.Delivery.Phase == "" {
		h.Status.Delivery.Phase = v1alpha1.DeliveryDisabled
	}
}
