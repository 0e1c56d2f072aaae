package operation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
)

// recover judges an attempt that an earlier life of the daemon left without an outcome.
func (r *Reconciler) recover(ctx context.Context, s *scope) error {
	a := s.op.Status.Attempt
	if s.op.Spec.Tool.ManagesWork() {
		return r.manage(ctx, s, s.op.Status.Cwd)
	}
	if a.PlannedRevision == "" {
		return r.settle(ctx, s, recoverCommand(s.op, r.Env.OutputDir))
	}
	replace.Sweep(tempPath(a))
	verdict, err := replace.Decide(a.Path, a.PlannedRevision, a.ExpectedRevision)
	if err != nil {
		verdict = replace.Other
	}
	return r.settle(ctx, s, recoverChange(a, verdict))
}

func tempPath(a *v1alpha1.OperationAttempt) string {
	return (&replace.Plan{Path: filepath.Clean(a.Path)}).TempPath(a.ID)
}

// recoverChange decides a write or an edit by the file's revision.
func recoverChange(a *v1alpha1.OperationAttempt, verdict replace.Verdict) *outcome {
	switch verdict {
	case replace.Planned:
		text := fmt.Sprintf("Rig Bridge was interrupted after %s was changed as asked and before it could answer. The file has the revision %s.", a.Path, a.PlannedRevision)
		return &outcome{reason: v1alpha1.ReasonRecoveredAfterCrash, revision: a.PlannedRevision, changed: []string{a.Path},
			message: "Interrupted before the answer; the file has the planned revision.",
			answer:  &exchange.Result{Text: text, Path: a.Path}}
	case replace.Expected:
		return refused(v1alpha1.ReasonNotStarted,
			"Rig Bridge was interrupted before the file was changed; nothing was done. Call again with the same request_key.")
	}
	o := refused(v1alpha1.ReasonOutcomeUncertain, "Rig Bridge was interrupted, and the file has since been changed by somebody else. Read "+
		clip(a.Path)+" to see whether the change is in it before you make it again under a new request_key.")
	o.effects = true
	return o
}

// recoverCommand says of a command that it may have run, and what is left of it to inspect. It notes the family of
// what still runs in the record of the attempt.
func recoverCommand(op *v1alpha1.Operation, outputDir string) *outcome {
	a := op.Status.Attempt
	if a.Process == nil { // the daemon died before it noted the family
		if pgid, start, left := process.Marked(a.ID); len(left) > 0 {
			a.Process = &v1alpha1.Process{PID: int32(pgid), StartTime: start, Command: "bash"}
		}
	}
	left := survivors(op)
	text := "Rig Bridge was interrupted while the command may have been running; it is not run again. Inspect what it may have changed in " +
		clip(op.Status.Cwd) + " before you run anything like it under a new request_key."
	switch {
	case len(left) > 0:
		text += fmt.Sprintf(" After the restart processes of it were still running (%d, process group %d); operation_cancel stops them.", len(left), a.Process.PID)
	case a.Process != nil:
		text += fmt.Sprintf(" After the restart nothing of its process group %d was running any more.", a.Process.PID)
	default:
		text += " After the restart nothing of it was running."
	}
	path := bash.FullOutputPath(outputDir, a.ID)
	if _, err := os.Stat(path); err != nil {
		path = ""
	} else {
		text += " What it had printed by then is in " + clip(path) + "."
	}
	o := refused(v1alpha1.ReasonOutcomeUncertain, text)
	o.effects, o.leftovers, o.fullOutputPath = true, processes(left), path
	return o
}
