package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperationName derives the name of a keyed operation from its workspace and request key, so that creating it
// is the atomic claim of the key.
func OperationName(workspace, requestKey string) string {
	sum := sha256.Sum256([]byte(workspace + "\x00" + requestKey))
	return "op-" + hex.EncodeToString(sum[:20])
}

// Succeeded returns the operation's Succeeded condition, or one with status Unknown if it is not set yet.
func (o *Operation) Succeeded() metav1.Condition {
	if c := apimeta.FindStatusCondition(o.Status.Conditions, ConditionSucceeded); c != nil {
		return *c
	}
	return metav1.Condition{Type: ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: ReasonPending}
}

// Over says whether the operation has reached its outcome.
func (o *Operation) Over() bool {
	return o.Succeeded().Status != metav1.ConditionUnknown
}

// Lingering says whether the operation is over and somebody wants what its command left running to be stopped.
func (o *Operation) Lingering() bool {
	return o.Over() && (o.Spec.Cancel || !o.DeletionTimestamp.IsZero()) && len(o.Status.Leftovers) > 0
}

// Active says whether anything of the operation still runs: the call itself, or what its command left behind.
func (o *Operation) Active() bool { return !o.Over() || len(o.Status.Leftovers) > 0 }

// Ready says whether the workspace admits calls.
func (w *Workspace) Ready() bool {
	return w.DeletionTimestamp.IsZero() && apimeta.IsStatusConditionTrue(w.Status.Conditions, ConditionReady)
}
