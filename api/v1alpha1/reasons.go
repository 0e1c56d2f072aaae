package v1alpha1

// Reasons of an Operation's Succeeded condition, beside those of the engines (controllers/engine), which are
// used as they are.
const (
	// ReasonPending: accepted, waits for its turn.
	ReasonPending = "Pending"
	// ReasonWaitingForFile: another call changes the file; the message names it.
	ReasonWaitingForFile = "WaitingForFile"
	// ReasonRunning: the attempt is recorded and the tool runs.
	ReasonRunning = "Running"
	// ReasonSucceeded: the call did what it was asked.
	ReasonSucceeded = "Succeeded"
	// ReasonRecoveredAfterCrash: the daemon died before the answer, and the file has the planned revision.
	ReasonRecoveredAfterCrash = "RecoveredAfterCrash"
	// ReasonNotStarted: the daemon died before any effect; the same call with the same key runs now.
	ReasonNotStarted = "NotStarted"
	// ReasonOutcomeUncertain: the daemon died while the effect may have been under way.
	ReasonOutcomeUncertain = "OutcomeUncertain"
	// ReasonFileBusy: another call held the file for too long.
	ReasonFileBusy = "FileBusy"
	// ReasonCancelled: ended on request.
	ReasonCancelled = "Cancelled"
	// ReasonWorkspaceExpired: the workspace is unknown, closed or closing.
	ReasonWorkspaceExpired = "WorkspaceExpired"
	// ReasonStoreUnavailable: the outcome could not be recorded, so nothing was started.
	ReasonStoreUnavailable = "StoreUnavailable"
	// ReasonInvalidWorkspace: the directory to open is not there or is not a directory.
	ReasonInvalidWorkspace = "InvalidWorkspace"
	// ReasonInvalidProjectRoot: the directory to open is not inside the given project root.
	ReasonInvalidProjectRoot = "InvalidProjectRoot"
	// ReasonProjectNotFound and ReasonThreadNotFound: unknown ids.
	ReasonProjectNotFound = "ProjectNotFound"
	ReasonThreadNotFound  = "ThreadNotFound"
	// ReasonThreadConflict: a thread was resumed with another directory or project than its own.
	ReasonThreadConflict = "ThreadConflict"
	// ReasonRunActive: a run was to be started while one is working; hand that off first.
	ReasonRunActive = "RunActive"
	// ReasonRunConflict: a handoff named another run than the thread's latest.
	ReasonRunConflict = "RunConflict"
	// ReasonRunFinished: the run was handed off already.
	ReasonRunFinished = "RunFinished"
	// ReasonWorkActive: calls of the workspace are under way; wait for them.
	ReasonWorkActive = "WorkActive"
	// ReasonInternalError: a fault of the daemon itself.
	ReasonInternalError = "InternalError"
)

// Reasons of Events, beside those of conditions: what happened to an object.
const (
	// EventReclaimed: a workspace was closed to make room for another.
	EventReclaimed = "Reclaimed"
	// EventClosed: a workspace was closed and its calls are over.
	EventClosed = "Closed"
	// EventStarted: a run began.
	EventStarted = "Started"
	// EventInterrupted: a run ended without a handoff.
	EventInterrupted = "Interrupted"
	// EventHandedOff: a run was handed off to the person.
	EventHandedOff = "HandedOff"
	// EventNotificationSent, EventNotificationFailed and EventNotificationUnknown: what became of a handoff's
	// notification.
	EventNotificationSent    = "NotificationSent"
	EventNotificationFailed  = "NotificationFailed"
	EventNotificationUnknown = "NotificationUnknown"
	// EventAcknowledged: the person has read a handoff.
	EventAcknowledged = "Acknowledged"
	// EventStillRunning: a command has ended and left processes that run on.
	EventStillRunning = "StillRunning"
)

// Codes of the contract that clients see in structuredContent.code.
const (
	CodeInvalidArguments   = "INVALID_ARGUMENTS"
	CodeUnknownTool        = "UNKNOWN_TOOL"
	CodeBridgeStopped      = "BRIDGE_STOPPED"
	CodeWorkspaceExpired   = "WORKSPACE_EXPIRED"
	CodeInvalidWorkspace   = "INVALID_WORKSPACE"
	CodeInvalidProjectRoot = "INVALID_PROJECT_ROOT"
	CodeProjectNotFound    = "PROJECT_NOT_FOUND"
	CodeThreadNotFound     = "THREAD_NOT_FOUND"
	CodeThreadConflict     = "THREAD_CONFLICT"
	CodeWorkspaceLimit     = "WORKSPACE_LIMIT"
	CodeRunActive          = "RUN_ACTIVE"
	CodeRunConflict        = "RUN_CONFLICT"
	CodeRunFinished        = "RUN_FINISHED"
	CodeWorkActive         = "WORK_ACTIVE"
	CodeRequestKeyConflict = "REQUEST_KEY_CONFLICT"
	CodeOutcomeUncertain   = "OUTCOME_UNCERTAIN"
	CodeRecordedOutcome    = "RECORDED_OUTCOME"
	CodeRevisionConflict   = "REVISION_CONFLICT"
	CodeFileBusy           = "FILE_BUSY"
	CodeInvalidPath        = "INVALID_PATH"
	CodeUnsupportedFile    = "UNSUPPORTED_FILE"
	CodeFileTooLarge       = "FILE_TOO_LARGE"
	CodeSkillNotFound      = "SKILL_NOT_FOUND"
	CodeCommandFailed      = "COMMAND_FAILED"
	CodeCommandTimeout     = "COMMAND_TIMEOUT"
	CodeCommandCancelled   = "COMMAND_CANCELLED"
	CodeExecutionFailed    = "EXECUTION_FAILED"
)

var codeOfReason = map[string]string{
	"RevisionConflict":        CodeRevisionConflict,
	"InvalidPath":             CodeInvalidPath,
	"UnsupportedFile":         CodeUnsupportedFile,
	"FileTooLarge":            CodeFileTooLarge,
	"SkillNotFound":           CodeSkillNotFound,
	"ExitedNonZero":           CodeCommandFailed,
	"KilledBySignal":          CodeCommandFailed,
	"SpawnFailed":             CodeCommandFailed,
	"TimedOut":                CodeCommandTimeout,
	"InvalidTimeout":          CodeInvalidArguments,
	ReasonInvalidWorkspace:    CodeInvalidWorkspace,
	ReasonInvalidProjectRoot:  CodeInvalidProjectRoot,
	ReasonProjectNotFound:     CodeProjectNotFound,
	ReasonThreadNotFound:      CodeThreadNotFound,
	ReasonThreadConflict:      CodeThreadConflict,
	ReasonWorkspaceLimit:      CodeWorkspaceLimit,
	ReasonRunActive:           CodeRunActive,
	ReasonRunConflict:         CodeRunConflict,
	ReasonRunFinished:         CodeRunFinished,
	ReasonWorkActive:          CodeWorkActive,
	ReasonFileBusy:            CodeFileBusy,
	ReasonOutcomeUncertain:    CodeOutcomeUncertain,
	ReasonWorkspaceExpired:    CodeWorkspaceExpired,
	ReasonStoreUnavailable:    CodeExecutionFailed,
	ReasonNotStarted:          CodeExecutionFailed,
	ReasonInternalError:       CodeExecutionFailed,
	ReasonRecoveredAfterCrash: "",
	ReasonSucceeded:           "",
}

// CodeFor returns the contract's code for the reason of a failed call of a tool. Every reason that is not in
// the table is an EXECUTION_FAILED, so that clients of the reference understand it.
func CodeFor(tool Tool, reason string) string {
	if reason == ReasonCancelled {
		if !tool.Keyed() {
			return CodeExecutionFailed
		}
		return CodeCommandCancelled
	}
	if code, ok := codeOfReason[reason]; ok {
		return code
	}
	return CodeExecutionFailed
}
