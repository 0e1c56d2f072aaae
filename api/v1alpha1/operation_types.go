package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Tool is the name of a tool.
// +kubebuilder:validation:Enum=workspace_open;read;ls;find;grep;skill_info;write;edit;bash;run_start;work_handoff
type Tool string

// The tools whose calls are operations.
const (
	ToolWorkspaceOpen Tool = "workspace_open"
	ToolRead          Tool = "read"
	ToolLs            Tool = "ls"
	ToolFind          Tool = "find"
	ToolGrep          Tool = "grep"
	ToolSkillInfo     Tool = "skill_info"
	ToolWrite         Tool = "write"
	ToolEdit          Tool = "edit"
	ToolBash          Tool = "bash"
	ToolRunStart      Tool = "run_start"
	ToolWorkHandoff   Tool = "work_handoff"
)

// Keyed says whether a call of the tool needs a retry key and leaves a durable receipt. The operations of all
// other tools are volatile: they live in memory, and a lost one is simply asked again.
func (t Tool) Keyed() bool {
	switch t {
	case ToolWrite, ToolEdit, ToolBash, ToolRunStart, ToolWorkHandoff:
		return true
	}
	return false
}

// ManagesWork says whether the tool begins or hands off a run. Its effect is objects of ours alone, so a failed
// call has had none, and its key is free again.
func (t Tool) ManagesWork() bool { return t == ToolRunStart || t == ToolWorkHandoff }

// Known says whether the tool is one of this version's.
func (t Tool) Known() bool {
	switch t {
	case ToolWorkspaceOpen, ToolRead, ToolLs, ToolFind, ToolGrep, ToolSkillInfo:
		return true
	}
	return t.Keyed()
}

// OperationPhase is a summary of an operation's condition.
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Cancelled;Uncertain
type OperationPhase string

// The phases of an operation.
const (
	OperationPending   OperationPhase = "Pending"
	OperationRunning   OperationPhase = "Running"
	OperationSucceeded OperationPhase = "Succeeded"
	OperationFailed    OperationPhase = "Failed"
	OperationCancelled OperationPhase = "Cancelled"
	OperationUncertain OperationPhase = "Uncertain"
)

// OperationSpec is one call of a tool: what was asked, without the arguments themselves.
type OperationSpec struct {
	// workspaceRef names the workspace, the scope of requestKey. It is immutable.
	// +required
	WorkspaceRef LocalReference `json:"workspaceRef"`

	// threadRef names the workspace's thread. It is immutable.
	// +optional
	ThreadRef *LocalReference `json:"threadRef,omitempty"`

	// tool is the tool called. It is immutable.
	// +required
	Tool Tool `json:"tool"`

	// requestKey is the caller's retry key; required for tools that change something. Together with
	// the workspace it gives the operation its name. It is immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	RequestKey string `json:"requestKey,omitempty"`

	// argumentsDigest is "hmac-sha256:" and the hex HMAC of the canonical arguments under the daemon's
	// own key; required with requestKey. It is immutable.
	// +optional
	// +kubebuilder:validation:Pattern=`^hmac-sha256:[0-9a-f]{64}$`
	ArgumentsDigest string `json:"argumentsDigest,omitempty"`

	// paths are the absolute paths that the call names. They are immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=4096
	Paths []string `json:"paths,omitempty"`

	// expectedRevision is the revision that the caller expects of the file: "sha256:" and hex, or "missing".
	// It is immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	ExpectedRevision string `json:"expectedRevision,omitempty"`

	// timeoutSeconds is the time after which a command is ended, in seconds, rounded up. It is immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// payloadRef is the key of the call's arguments in the daemon's memory; they are never in the store. It is
	// immutable, and of no use after a restart.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	PayloadRef string `json:"payloadRef,omitempty"`

	// cancel asks the operation to stop, and what its command left running. It can be set and not be taken back.
	// +optional
	Cancel bool `json:"cancel,omitempty"`

	// cancelledBy says who asked, for the receipt: for instance "client", "workspace_close" or "person".
	// It can be set together with cancel.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CancelledBy string `json:"cancelledBy,omitempty"`
}

// OperationAttempt is recorded, durably, before an effect may start.
type OperationAttempt struct {
	// id is the attempt's UUID; the temporary file is named after it.
	// +required
	// +kubebuilder:validation:MaxLength=36
	ID string `json:"id"`

	// number counts from 1.
	// +required
	Number int32 `json:"number"`

	// plannedRevision is the revision that the file will have if the effect happens.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	PlannedRevision string `json:"plannedRevision,omitempty"`

	// expectedRevision is the revision that the file has if the effect does not happen.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	ExpectedRevision string `json:"expectedRevision,omitempty"`

	// path is the canonical path of the file, links resolved.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`

	// process is the command's process group, as soon as it exists.
	// +optional
	Process *Process `json:"process,omitempty"`
}

// OperationStatus is what became of a call. Once it is over it is the call's receipt.
type OperationStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Succeeded: Unknown while the operation is active, then True or False with a reason.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// phase is a summary of the condition.
	// +optional
	Phase OperationPhase `json:"phase,omitempty"`

	// code is the contract's code of a failure, for instance REVISION_CONFLICT.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code,omitempty"`

	// attempt is the attempt under way or the last one.
	// +optional
	Attempt *OperationAttempt `json:"attempt,omitempty"`

	// startTime is when the attempt began.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the operation ended.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// elapsedMilliseconds is how long the tool ran, by the monotonic clock, which nobody can set; absent if it
	// did not run or a crash hid its end.
	// +optional
	ElapsedMilliseconds *int64 `json:"elapsedMilliseconds,omitempty"`

	// cwd is the directory in which the call ran.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Cwd string `json:"cwd,omitempty"`

	// exitCode is the exit code of a command that exited.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// signal is the name of the signal that ended a command, for instance SIGKILL.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Signal string `json:"signal,omitempty"`

	// revision is the file's revision after a write or an edit.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Revision string `json:"revision,omitempty"`

	// changedPaths are the files that the call changed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=4096
	ChangedPaths []string `json:"changedPaths,omitempty"`

	// fullOutputPath is the owner-only file that holds the whole output of a command whose answer was cut.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	FullOutputPath string `json:"fullOutputPath,omitempty"`

	// effectsMayHaveOccurred is true when the call failed and something may have changed all the same.
	// +optional
	EffectsMayHaveOccurred bool `json:"effectsMayHaveOccurred,omitempty"`

	// cancelledBy says who ended the operation before its own end: "client" (by notification), "disconnect",
	// "workspace_close", "operation_cancel", "person" (kubectl, rigctl, the dashboard), "deletion", "shutdown", or
	// "timeout".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CancelledBy string `json:"cancelledBy,omitempty"`

	// leftovers are the processes of the command that outlived it, or the daemon, and still run. They are looked
	// at every second, and stopped when cancel is set or the operation is deleted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Leftovers []Process `json:"leftovers,omitempty"`

	// runRef names the run that the call belongs to or made.
	// +optional
	RunRef *LocalReference `json:"runRef,omitempty"`

	// handoffRef names the handoff that the call made.
	// +optional
	HandoffRef *LocalReference `json:"handoffRef,omitempty"`
}

// Operation is one call of a tool. Finished operations of tools that change something are kept as receipts
// until they are pruned; those of read-only tools live in memory only.
//
// Succeeded is Unknown with Pending or Running while active. It is True with Succeeded, or with
// RecoveredAfterCrash when a crash hid the answer but the file proves the effect. It is False with the cause:
// read the message, it says what to do. With OutcomeUncertain inspect what the command may have changed before
// doing it again under another key.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=op,categories=rig
// +kubebuilder:printcolumn:name="Workspace",type=string,JSONPath=`.spec.workspaceRef.name`
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.spec.tool`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Phase",type=string,priority=1,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Attempts",type=integer,priority=1,JSONPath=`.status.attempt.number`
// +kubebuilder:printcolumn:name="Exit",type=integer,priority=1,JSONPath=`.status.exitCode`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Operation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what was asked. It is immutable except cancel and cancelledBy.
	// +required
	Spec OperationSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status OperationStatus `json:"status,omitzero"`
}

// OperationList is a list of operations.
//
// +kubebuilder:object:root=true
type OperationList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the operations.
	Items []Operation `json:"items"`
}
