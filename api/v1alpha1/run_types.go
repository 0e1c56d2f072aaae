package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunPhase is where a run stands.
// +kubebuilder:validation:Enum=Working;Interrupted;Completed;NeedsInput;Blocked;Failed;Cancelled
type RunPhase string

// The phases of a run. The last five are those of the handoff that ended it.
const (
	RunWorking     RunPhase = "Working"
	RunInterrupted RunPhase = "Interrupted"
	RunCompleted   RunPhase = "Completed"
	RunNeedsInput  RunPhase = "NeedsInput"
	RunBlocked     RunPhase = "Blocked"
	RunFailed      RunPhase = "Failed"
	RunCancelled   RunPhase = "Cancelled"
)

// RunSpec is a stretch of work in a thread.
type RunSpec struct {
	// threadRef names the thread. It is immutable.
	// +required
	ThreadRef LocalReference `json:"threadRef"`

	// title is the name that people see.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Title string `json:"title,omitempty"`
}

// RunStatus is what was observed of a run.
type RunStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is where the run stands.
	// +optional
	Phase RunPhase `json:"phase,omitempty"`

	// startTime is when the run began.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the run was handed off.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// summary is the handoff's summary.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Summary string `json:"summary,omitempty"`

	// handoffRef names the handoff that ended the run.
	// +optional
	HandoffRef *LocalReference `json:"handoffRef,omitempty"`
}

// Run is a stretch of work: it starts with the first call after a handoff and ends with the next handoff. A
// daemon that dies leaves it Interrupted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=rig
// +kubebuilder:printcolumn:name="Thread",type=string,JSONPath=`.spec.threadRef.name`
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Handoff",type=string,priority=1,JSONPath=`.status.handoffRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Run struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the run's thread and title.
	// +required
	Spec RunSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status RunStatus `json:"status,omitzero"`
}

// RunList is a list of runs.
//
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the runs.
	Items []Run `json:"items"`
}
