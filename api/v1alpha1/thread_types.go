package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ThreadState is where a thread stands.
// +kubebuilder:validation:Enum=Idle;Working;AwaitingHandoff;Interrupted;YourTurn
type ThreadState string

// The states of a thread.
const (
	ThreadIdle            ThreadState = "Idle"
	ThreadWorking         ThreadState = "Working"
	ThreadAwaitingHandoff ThreadState = "AwaitingHandoff"
	ThreadInterrupted     ThreadState = "Interrupted"
	ThreadYourTurn        ThreadState = "YourTurn"
)

// ThreadSpec is one conversation's line of work.
type ThreadSpec struct {
	// projectRef names the project. It is immutable.
	// +required
	ProjectRef LocalReference `json:"projectRef"`

	// cwd is the absolute working directory, links resolved. It is immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Cwd string `json:"cwd"`

	// title is the name that people see.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Title string `json:"title,omitempty"`
}

// ThreadStatus is what was observed of a thread.
type ThreadStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastUsedTime is when a workspace of the thread was last used.
	// +optional
	LastUsedTime *metav1.MicroTime `json:"lastUsedTime,omitempty"`

	// currentRunRef names the latest run.
	// +optional
	CurrentRunRef *LocalReference `json:"currentRunRef,omitempty"`

	// runs names the last runs, the latest first. A run is named here before it is made, so one that was made
	// is always found; a name without a run is one that was not made, or was deleted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Runs []LocalReference `json:"runs,omitempty"`

	// state is where the thread stands.
	// +optional
	State ThreadState `json:"state,omitempty"`
}

// Thread is a titled line of work in a fixed directory of a project. It outlives the workspaces opened on it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=rig
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Cwd",type=string,JSONPath=`.spec.cwd`
// +kubebuilder:printcolumn:name="Project",type=string,priority=1,JSONPath=`.spec.projectRef.name`
// +kubebuilder:printcolumn:name="Run",type=string,priority=1,JSONPath=`.status.currentRunRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Thread struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the thread's project, directory and title.
	// +required
	Spec ThreadSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status ThreadStatus `json:"status,omitzero"`
}

// ThreadList is a list of threads.
//
// +kubebuilder:object:root=true
type ThreadList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the threads.
	Items []Thread `json:"items"`
}
