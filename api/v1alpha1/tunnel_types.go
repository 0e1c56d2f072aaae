package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TunnelPhase is a summary of a tunnel's conditions.
// +kubebuilder:validation:Enum=Pending;Starting;Ready;Degraded;Suspended
type TunnelPhase string

// The phases of a tunnel.
const (
	TunnelPending   TunnelPhase = "Pending"
	TunnelStarting  TunnelPhase = "Starting"
	TunnelReady     TunnelPhase = "Ready"
	TunnelDegraded  TunnelPhase = "Degraded"
	TunnelSuspended TunnelPhase = "Suspended"
)

// TunnelSpec says which tunnel is to be kept up.
type TunnelSpec struct {
	// tunnelID is the identifier that the tunnel's provider gave.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	TunnelID string `json:"tunnelID"`

	// credential says where the provider's key is found. The key itself is never in an object.
	// +required
	Credential CredentialReference `json:"credential"`

	// clientPath is the absolute path of the tunnel client; empty means that it is looked for.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ClientPath string `json:"clientPath,omitempty"`

	// watchdog restarts a tunnel that is up but passes no traffic.
	// +optional
	Watchdog TunnelWatchdog `json:"watchdog,omitzero"`

	// suspended stops the tunnel without forgetting it.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
}

// CredentialReference names a file that holds a secret.
// +structType=atomic
type CredentialReference struct {
	// file is the absolute path of an owner-only file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	File string `json:"file"`
}

// TunnelWatchdog are the watchdog's settings.
type TunnelWatchdog struct {
	// disabled turns the watchdog off.
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// intervalSeconds is the time between two checks, in seconds.
	// +optional
	// +default=10
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	IntervalSeconds int32 `json:"intervalSeconds,omitempty"`

	// pollTimeoutSeconds is the age of the last successful poll at which the client is restarted, in seconds.
	// +optional
	// +default=65
	// +kubebuilder:default=65
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	PollTimeoutSeconds int32 `json:"pollTimeoutSeconds,omitempty"`
}

// TunnelStatus is what was observed of a tunnel.
type TunnelStatus struct {
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
	Phase TunnelPhase `json:"phase,omitempty"`

	// process is the tunnel client's process.
	// +optional
	Process *Process `json:"process,omitempty"`

	// restarts counts restarts of the client since the tunnel was made.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`

	// lastPollTime is when the client last polled with success.
	// +optional
	LastPollTime *metav1.MicroTime `json:"lastPollTime,omitempty"`
}

// Tunnel is a supervised tunnel client that lets a hosted assistant reach this daemon.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=rig
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Tunnel",type=string,priority=1,JSONPath=`.spec.tunnelID`
// +kubebuilder:printcolumn:name="Phase",type=string,priority=1,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Tunnel struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says which tunnel is to be kept up.
	// +required
	Spec TunnelSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status TunnelStatus `json:"status,omitzero"`
}

// TunnelList is a list of tunnels.
//
// +kubebuilder:object:root=true
type TunnelList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the tunnels.
	Items []Tunnel `json:"items"`
}
