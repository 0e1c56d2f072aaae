package operation

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// judgeWaiting says for which file the operation waits.
func judgeWaiting(op *v1alpha1.Operation, wait string) {
	condition(op, metav1.ConditionUnknown, v1alpha1.ReasonWaitingForFile, wait)
	op.Status.Phase = v1alpha1.OperationPending
}

// judgeRunning says that an attempt is under way.
func judgeRunning(op *v1alpha1.Operation, attempt v1alpha1.OperationAttempt, now metav1.MicroTime) {
	op.Status.Attempt = &attempt
	op.Status.StartTime = &now
	condition(op, metav1.ConditionUnknown, v1alpha1.ReasonRunning, "The attempt is recorded and the tool runs.")
	op.Status.Phase = v1alpha1.OperationRunning
}

// judge records the outcome of an operation.
func judge(op *v1alpha1.Operation, o *outcome, now metav1.MicroTime) {
	st := &op.Status
	if st.StartTime != nil && now.Before(st.StartTime) { // the clock was set back meanwhile
		now = *st.StartTime
	}
	st.CompletionTime = &now
	if o.elapsed != nil {
		ms := o.elapsed.Milliseconds()
		st.ElapsedMilliseconds = &ms
	}
	st.ExitCode, st.Signal = o.exitCode, o.signal
	st.Revision, st.ChangedPaths = o.revision, o.changed
	st.FullOutputPath, st.Leftovers = o.fullOutputPath, o.leftovers
	st.EffectsMayHaveOccurred, st.CancelledBy = o.effects, o.by
	status := metav1.ConditionTrue
	if o.failed {
		status = metav1.ConditionFalse
		st.Code = v1alpha1.CodeFor(op.Spec.Tool, o.reason)
	}
	condition(op, status, o.reason, o.message)
	st.Phase = phase(o)
}

func phase(o *outcome) v1alpha1.OperationPhase {
	switch {
	case !o.failed:
		return v1alpha1.OperationSucceeded
	case o.reason == v1alpha1.ReasonOutcomeUncertain:
		return v1alpha1.OperationUncertain
	case o.reason == v1alpha1.ReasonCancelled:
		return v1alpha1.OperationCancelled
	}
	return v1alpha1.OperationFailed
}

func condition(op *v1alpha1.Operation, status metav1.ConditionStatus, reason, message string) {
	op.Status.ObservedGeneration = op.Generation
	apimeta.SetStatusCondition(&op.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionSucceeded, Status: status, Reason: reason, Message: message,
		ObservedGeneration: op.Generation,
	})
}
