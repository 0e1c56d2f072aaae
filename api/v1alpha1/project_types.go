package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProjectSpec is what makes a project one project.
type ProjectSpec struct {
	// root is the absolute path of the project's top directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Root string `json:"root"`

	// identity is "git:" and the git common directory, which subdirectories and worktrees share, or
	// "directory:" and the directory itself. It is immutable.
	// +required
	// +kubebuilder:validation:Pattern=`^(git|directory):/`
	// +kubebuilder:validation:MaxLength=4200
	Identity string `json:"identity"`

	// displayName is the name that people see.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	DisplayName string `json:"displayName,omitempty"`

	// notifications says how the person is told that it is their turn.
	// +optional
	Notifications ProjectNotifications `json:"notifications,omitzero"`
}

// ProjectNotifications are a project's alert settings.
type ProjectNotifications struct {
	// desktop turns desktop notifications on.
	// +optional
	Desktop bool `json:"desktop,omitempty"`
}

// ProjectStatus is what was observed of a project.
type ProjectStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastUsedTime is when a workspace of the project was last used.
	// +optional
	LastUsedTime *metav1.MicroTime `json:"lastUsedTime,omitempty"`

	// threads is the number of threads.
	// +optional
	Threads int32 `json:"threads,omitempty"`

	// unreadHandoffs is the number of handoffs that nobody acknowledged.
	// +optional
	UnreadHandoffs int32 `json:"unreadHandoffs,omitempty"`
}

// Project groups the threads of one git repository or one directory.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=proj,categories=rig
// +kubebuilder:printcolumn:name="Display",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Root",type=string,JSONPath=`.spec.root`
// +kubebuilder:printcolumn:name="Threads",type=integer,JSONPath=`.status.threads`
// +kubebuilder:printcolumn:name="Unread",type=integer,JSONPath=`.status.unreadHandoffs`
// +kubebuilder:printcolumn:name="Identity",type=string,priority=1,JSONPath=`.spec.identity`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the project's identity and settings.
	// +required
	Spec ProjectSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status ProjectStatus `json:"status,omitzero"`
}

// ProjectList is a list of projects.
//
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the projects.
	Items []Project `json:"items"`
}
