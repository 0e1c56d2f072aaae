package operation

import "github.com/rigbridge/rigbridge/api/v1alpha1"

// action is the next step for an operation.
type action string

const (
	actNothing     action = "Nothing"     // over, or somebody works on it
	actAdmit       action = "Admit"       // check that it can run, begin
	actStart       action = "Start"       // prepared: record the attempt, then let the effect happen
	actStop        action = "Stop"        // ask what runs to end
	actNoteWait    action = "NoteWait"    // record whom it waits for
	actNoteProcess action = "NoteProcess" // record the command's process group
	actRecord      action = "Record"      // record the outcome
	actCancel      action = "Cancel"      // end it without effect
	actRecover     action = "Recover"     // judge what an earlier life of the daemon left
	actSweep       action = "Sweep"       // stop what the command of a finished operation left running
	actTend        action = "Tend"        // look whether that still runs
)

// observed is what decide looks at.
type observed struct {
	over      bool  // the operation has its outcome
	left      bool  // and left processes running
	lingering bool  // which are to be stopped
	unwanted  bool  // cancelled, deleted, or the daemon ends
	attempted bool  // status has an attempt
	processed bool  // status has the attempt's process
	stage     stage // of this life's task
	stopping  bool  // the task has been asked to end
	process   bool  // the task's command has a process
	waiting   bool  // the task waits for a file, and status does not say so
}

func observe(s *scope, draining bool) observed {
	o := observed{
		over:      s.op.Over(),
		left:      s.op.Over() && s.op.Active(),
		lingering: s.op.Lingering(),
		unwanted:  s.op.Spec.Cancel || !s.op.DeletionTimestamp.IsZero() || draining,
		attempted: s.op.Status.Attempt != nil,
		processed: s.op.Status.Attempt != nil && s.op.Status.Attempt.Process != nil,
	}
	if s.task != nil {
		o.stage, o.stopping, o.process = s.task.look()
		wait := s.task.waitsFor()
		o.waiting = wait != "" && wait != s.op.Succeeded().Message
	}
	return o
}

// decide chooses the next step. It is pure.
func decide(o observed) action {
	switch {
	case o.over && o.lingering:
		return actSweep
	case o.over && o.left:
		return actTend
	case o.over || o.stage == stageRecorded:
		return actNothing
	case o.stage == stageFinished:
		return actRecord
	case o.stage == stageNone && o.attempted:
		return actRecover
	case o.stage == stageNone && o.unwanted:
		return actCancel
	case o.stage == stageNone:
		return actAdmit
	case o.unwanted && !o.stopping:
		return actStop
	case o.stage == stagePreparing && o.waiting:
		return actNoteWait
	case o.stage == stagePrepared:
		return actStart
	case o.stage == stageRunning && o.process && !o.processed:
		return actNoteProcess
	}
	return actNothing
}

// cancelledBy says who wants the operation to end.
func cancelledBy(op *v1alpha1.Operation) string {
	switch {
	case op.Spec.CancelledBy != "":
		return op.Spec.CancelledBy
	case op.Spec.Cancel:
		return "person"
	case !op.DeletionTimestamp.IsZero():
		return "deletion"
	}
	return byShutdown
}

// Who ended an operation, when it was nobody's wish: the daemon's end, or the call's own timeout.
const (
	byShutdown = "shutdown"
	byTimeout  = "timeout"
)
