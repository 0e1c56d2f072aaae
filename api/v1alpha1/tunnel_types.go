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

// Reasons of a Tunnel's Ready condition.
const (
	// ReasonConnected: the client polls the provider with success and says that it is ready.
	ReasonConnected = "Connected"
	// ReasonClientStarting: the client was started and has not polled with success yet.
	ReasonClientStarting = "ClientStarting"
	// ReasonClientNotFound: there is no tunnel client; install it or set spec.clientPath.
	ReasonClientNotFound = "ClientNotFound"
	// ReasonClientUnusable: the tunnel client cannot be started.
	ReasonClientUnusable = "ClientUnusable"
	// ReasonCredentialUnusable: the credential's file is not there, not the owner's alone, or empty.
	ReasonCredentialUnusable = "CredentialUnusable"
	// ReasonClientExited: the client ended by itself; it is started again after a growing pause.
	ReasonClientExited = "ClientExited"
	// ReasonClientUnresponsive: the client runs and does not tell how it is.
	ReasonClientUnresponsive = "ClientUnresponsive"
	// ReasonClientNotReady: the client runs, and says that it cannot reach or use this daemon.
	ReasonClientNotReady = "ClientNotReady"
	// ReasonPollStale: the client runs, and its last successful poll is too long ago.
	ReasonPollStale = "PollStale"
	// ReasonRouteChanged: the default route changed, so the client was started again.
	ReasonRouteChanged = "RouteChanged"
	// ReasonControlPlaneUnreachable: no connection to the provider can be made; the client is started again when
	// one can.
	ReasonControlPlaneUnreachable = "ControlPlaneUnreachable"
	// ReasonClientUnstoppable: a client did not end when killed, so no other is started.
	ReasonClientUnstoppable = "ClientUnstoppable"
	// ReasonSuspended: spec.suspended is set.
	ReasonSuspended = "Suspended"
	// ReasonBridgeStopped: the daemon ended, and the client with it; the tunnel comes back with the daemon.
	ReasonBridgeStopped = "BridgeStopped"
)

// TunnelSpec says which tunnel is to be kept up.
type TunnelSpec struct {
	// tunnelID is the identifier that the tunnel's provider gave, as in tunnel_0123456789abcdef0123456789abcdef.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	TunnelID string `json:"tunnelID"`

	// credential says where the provider's key is found. The key itself is never in an object.
	// +required
	Credential CredentialReference `json:"credential"`

	// controlPlaneURL is the address of the provider's control plane; empty means the client's own default. The
	// client gets it as CONTROL_PLANE_BASE_URL.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ControlPlaneURL string `json:"controlPlaneURL,omitempty"`

	// clientPath is the absolute path of the tunnel client; empty means that tunnel-client is looked for in the
	// daemon's PATH, in ~/.local/bin and ~/bin, and beside the daemon's own program.
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
	// disabled turns the watchdog off: a client is then started again only when it has ended, reachable or not.
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

	// process is the tunnel client's process, which leads a process group and a session.
	// +optional
	Process *Process `json:"process,omitempty"`

	// restarts counts how often the client was started again because it had ended or did not work, since the
	// tunnel was made.
	// +optional
	Restarts int32 `json:"restarts"`

	// lastPollTime is when the client last polled with success. It is written lazily and may lag half a minute.
	// +optional
	LastPollTime *metav1.MicroTime `json:"lastPollTime,omitempty"`

	// logFile is the absolute path of the owner-only file with the latest output of the client.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	LogFile string `json:"logFile,omitempty"`
}

// Tunnel is a supervised tunnel client that lets a hosted assistant reach this daemon. Deleting or suspending it
// stops the client first.
//
// Ready is True while the client polls with success and says that it is ready. It is Unknown with ClientStarting
// until then, the first time. Once it is False it stays so until the tunnel works again, over all restarts: its
// lastTransitionTime says since when the tunnel is degraded, its reason and message why and what to do.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=rig
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.conditions[?(@.type=="Ready")].lastTransitionTime`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Last-Poll",type=date,priority=1,JSONPath=`.status.lastPollTime`
// +kubebuilder:printcolumn:name="PID",type=integer,priority=1,JSONPath=`.status.process.pid`
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
