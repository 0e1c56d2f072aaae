package v1alpha1

import (
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Active says whether somebody has still to read the handoff, or its reconciler to note that it was read or to
// deliver it. The controllers' cache holds those only.
func (h *Handoff) Active() bool {
	switch h.Status.Delivery.Phase {
	case "", DeliveryPending, DeliverySending:
		return true
	}
	return !h.Spec.Acknowledged || h.Status.ReadTime == nil
}

// AnnotationOperation names, by UID, the operation that made a handoff.
const AnnotationOperation = GroupName + "/operation"

// HandoffName derives the name of a run's handoff from the run's name, so that creating it is the atomic claim of
// the run's end: a run has at most one.
func HandoffName(run string) string { return derived("handoff", run) }

// RunName derives the name of the run that an operation makes from the operation's UID.
func RunName(operationUID string) string { return derived("run", operationUID) }

func derived(kind, from string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(GroupName+"/"+kind+"/"+from)).String()
}

// Owner is a kind that owns others.
//
// +kubebuilder:object:generate=false
type Owner interface {
	metav1.Object
	*Project | *Thread
}

// OwnedBy returns the owner reference of what belongs to an object; it goes when that goes.
func OwnedBy[O Owner](owner O) metav1.OwnerReference {
	kind := "Project"
	if _, ok := any(owner).(*Thread); ok {
		kind = "Thread"
	}
	return metav1.OwnerReference{APIVersion: GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}
}

// Working says whether the run goes on: it was neither interrupted nor handed off.
func (r *Run) Working() bool { return r.Status.Phase == "" || r.Status.Phase == RunWorking }

// HandedOff says whether the run has ended with a handoff.
func (r *Run) HandedOff() bool { return !r.Working() && r.Status.Phase != RunInterrupted }

// Began is when the run started. The time of creation, which counts in seconds, stands in at its latest for a
// status that is not written yet.
func (r *Run) Began() time.Time {
	if r.Status.StartTime != nil {
		return r.Status.StartTime.Time
	}
	return r.CreationTimestamp.Add(time.Second - time.Microsecond)
}
