package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LocalReference names an object of a known kind in the same namespace.
// +structType=atomic
type LocalReference struct {
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Process identifies a process or a process group beyond the reuse of its number.
// +structType=atomic
type Process struct {
	// pid is the process number; for a group, that of its leader.
	// +required
	PID int32 `json:"pid"`

	// startTime is the kernel's start time of the process together with the boot it belongs to, an opaque
	// string. A process whose start time differs is another one.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	StartTime string `json:"startTime,omitempty"`

	// command is the short name of the program, never its arguments.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Command string `json:"command,omitempty"`

	// beginTime is when the process began, by the machine's clock, to the second.
	// +optional
	BeginTime *metav1.Time `json:"beginTime,omitempty"`
}

// Finalizer keeps an object until its reconciler has ended what it owns.
const Finalizer = "rigbridge.dev/owned"

// Condition types.
const (
	// ConditionReady says whether a Workspace or a Tunnel can be used.
	ConditionReady = "Ready"
	// ConditionSucceeded says how an Operation ended; Unknown while it is active.
	ConditionSucceeded = "Succeeded"
)
