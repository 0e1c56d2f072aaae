package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkspacePhase is a summary of a workspace's conditions.
// +kubebuilder:validation:Enum=Opening;Ready;NotReady;Closing
type WorkspacePhase string

// The phases of a workspace.
const (
	WorkspaceOpening  WorkspacePhase = "Opening"
	WorkspaceReady    WorkspacePhase = "Ready"
	WorkspaceNotReady WorkspacePhase = "NotReady"
	WorkspaceClosing  WorkspacePhase = "Closing"
)

// Reasons of a Workspace's Ready condition.
const (
	// ReasonOpened: the directory exists and calls are admitted.
	ReasonOpened = "Opened"
	// ReasonDirectoryNotFound: the working directory is gone; make it again or close the workspace.
	ReasonDirectoryNotFound = "DirectoryNotFound"
	// ReasonWorkspaceLimit: too many workspaces are open and none is idle; close one.
	ReasonWorkspaceLimit = "WorkspaceLimit"
	// ReasonClosing: the workspace was deleted and waits for its operations to end.
	ReasonClosing = "Closing"
)

// WorkspaceSpec is an execution handle on a thread's directory.
type WorkspaceSpec struct {
	// threadRef names the thread. It is immutable.
	// +required
	ThreadRef LocalReference `json:"threadRef"`

	// cwd is the absolute working directory, links resolved. It is immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Cwd string `json:"cwd"`
}

// WorkspaceStatus is what was observed of a workspace.
type WorkspaceStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is a summary of the conditions.
	// +optional
	Phase WorkspacePhase `json:"phase,omitempty"`

	// activeOperations is the number of operations that are not over.
	// +optional
	ActiveOperations int32 `json:"activeOperations,omitempty"`

	// lastUsedTime is when the workspace was last used. It is written lazily and may lag behind.
	// +optional
	LastUsedTime *metav1.MicroTime `json:"lastUsedTime,omitempty"`

	// account is the name of the account that runs the daemon.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Account string `json:"account,omitempty"`

	// host is the machine's name.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host,omitempty"`
}

// Workspace is an execution handle: it routes calls to a directory and is the scope of request keys and of
// cancellation. Deleting it closes it: its operations are stopped first. It survives a restart of the daemon.
//
// Ready is True when calls are admitted; False with DirectoryNotFound when the directory is gone, and with
// Closing while it is being deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ws,categories=rig
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.activeOperations`
// +kubebuilder:printcolumn:name="Cwd",type=string,JSONPath=`.spec.cwd`
// +kubebuilder:printcolumn:name="Thread",type=string,priority=1,JSONPath=`.spec.threadRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,priority=1,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Workspace struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the workspace's thread and directory.
	// +required
	Spec WorkspaceSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status WorkspaceStatus `json:"status,omitzero"`
}

// WorkspaceList is a list of workspaces.
//
// +kubebuilder:object:root=true
type WorkspaceList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the workspaces.
	Items []Workspace `json:"items"`
}
