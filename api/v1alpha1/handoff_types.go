package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HandoffReason is why it is the person's turn.
// +kubebuilder:validation:Enum=Completed;NeedsInput;Blocked;Failed;Cancelled
type HandoffReason string

// The reasons of a handoff.
const (
	HandoffCompleted  HandoffReason = "Completed"
	HandoffNeedsInput HandoffReason = "NeedsInput"
	HandoffBlocked    HandoffReason = "Blocked"
	HandoffFailed     HandoffReason = "Failed"
	HandoffCancelled  HandoffReason = "Cancelled"
)

// DeliveryPhase is where a desktop notification stands.
// +kubebuilder:validation:Enum=Disabled;Pending;Sending;Sent;Failed;Unknown
type DeliveryPhase string

// The phases of a delivery. Unknown means that the daemon died while sending; it is never sent again.
const (
	DeliveryDisabled DeliveryPhase = "Disabled"
	DeliveryPending  DeliveryPhase = "Pending"
	DeliverySending  DeliveryPhase = "Sending"
	DeliverySent     DeliveryPhase = "Sent"
	DeliveryFailed   DeliveryPhase = "Failed"
	DeliveryUnknown  DeliveryPhase = "Unknown"
)

// HandoffSpec is the assistant's report that it is the person's turn.
type HandoffSpec struct {
	// threadRef names the thread. It is immutable.
	// +required
	ThreadRef LocalReference `json:"threadRef"`

	// runRef names the run that ends. It is immutable.
	// +required
	RunRef LocalReference `json:"runRef"`

	// reason is why it is the person's turn. It is immutable.
	// +required
	Reason HandoffReason `json:"reason"`

	// summary is what the person is told. It is immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	Summary string `json:"summary"`

	// acknowledged is set when the person has read it. It can be set and not be taken back.
	// +optional
	Acknowledged bool `json:"acknowledged,omitempty"`
}

// HandoffDelivery is where the desktop notification stands.
type HandoffDelivery struct {
	// phase is where it stands.
	// +optional
	Phase DeliveryPhase `json:"phase,omitempty"`

	// error says in plain words why it failed.
	// +optional
	// +kubebuilder:validation:MaxLength=1000
	Error string `json:"error,omitempty"`
}

// HandoffStatus is what was observed of a handoff.
type HandoffStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// readTime is when the person first acknowledged it.
	// +optional
	ReadTime *metav1.MicroTime `json:"readTime,omitempty"`

	// delivery is where the desktop notification stands.
	// +optional
	Delivery HandoffDelivery `json:"delivery,omitzero"`
}

// Handoff is the assistant's «your turn». Acknowledge it by setting spec.acknowledged.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=rig
// +kubebuilder:printcolumn:name="Thread",type=string,JSONPath=`.spec.threadRef.name`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Acknowledged",type=boolean,JSONPath=`.spec.acknowledged`
// +kubebuilder:printcolumn:name="Delivery",type=string,priority=1,JSONPath=`.status.delivery.phase`
// +kubebuilder:printcolumn:name="Run",type=string,priority=1,JSONPath=`.spec.runRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Handoff struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the report.
	// +required
	Spec HandoffSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status HandoffStatus `json:"status,omitzero"`
}

// HandoffList is a list of handoffs.
//
// +kubebuilder:object:root=true
type HandoffList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the handoffs.
	Items []Handoff `json:"items"`
}
