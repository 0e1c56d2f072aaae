package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// outcome is how a call ended: facts for status, and the answer, which status never sees.
type outcome struct {
	failed  bool
	reason  string
	message string // for the condition: no content, no output, no command text
	effects bool   // something may have changed although it failed
	by      string // who ended it early

	exitCode       *int32
	signal         string
	revision       string
	changed        []string
	fullOutputPath string
	leftovers      []v1alpha1.Process
	elapsed        *time.Duration // nil if the tool did not run, or a crash hid its end

	answer *exchange.Result
}

// succeeded is the outcome of a call that did what it was asked.
func succeeded(res *engine.Result, fields map[string]any) *outcome {
	return &outcome{
		reason: v1alpha1.ReasonSucceeded, message: "The call did what it was asked.",
		revision: res.Revision, changed: res.ChangedPaths,
		answer: answer(res, fields),
	}
}

func answer(res *engine.Result, fields map[string]any) *exchange.Result {
	a := &exchange.Result{Text: res.Text, Path: res.Path, Fields: fields, Details: encodeDetails(res.Details)}
	for _, i := range res.Images {
		a.Images = append(a.Images, exchange.Image{MIMEType: i.MIMEType, Data: i.Data})
	}
	return a
}

func encodeDetails(details any) json.RawMessage {
	if details == nil {
		return nil
	}
	b, err := json.Marshal(details)
	if err != nil || string(b) == "null" {
		return nil
	}
	return b
}

// failed is the outcome of a call that an engine refused or gave up.
func failed(err error, by string) *outcome {
	var e *engine.Error
	switch status := apierrors.APIStatus(nil); {
	case errors.As(err, &e):
	case errors.As(err, &status) && apierrors.IsServiceUnavailable(err): // it says why and what to do
		e = &engine.Error{Reason: v1alpha1.ReasonStoreUnavailable, Message: "Nothing was done: " + status.Status().Message + ".", Err: err}
	default:
		e = &engine.Error{Reason: engine.InputOutput, Message: "The call failed by a fault of Rig Bridge itself. Try again; if it stays, see the daemon's log.", Err: err}
	}
	o := &outcome{
		failed: true, reason: string(e.Reason), message: describe(e), effects: e.EffectsMayHaveOccurred,
		answer: &exchange.Result{Text: e.Message, Path: e.Path, Details: encodeDetails(e.Details)},
	}
	if e.CurrentRevision != "" {
		o.answer.Fields = map[string]any{"current_revision": e.CurrentRevision}
	}
	if e.Reason == engine.Cancelled {
		o.by = by
	}
	return o
}

// describe says in the condition what went wrong, without anything that was read or written.
func describe(e *engine.Error) string {
	text, ok := reasonTexts[e.Reason]
	if !ok {
		text = "The call failed."
	}
	if e.Path != "" {
		text += " File: " + clip(e.Path)
	}
	return text
}

var reasonTexts = map[engine.Reason]string{
	engine.FileNotFound:             "The file or directory does not exist.",
	engine.PermissionDenied:         "The account may not do this to the file.",
	engine.NotADirectory:            "A part of the path is not a directory.",
	engine.IsADirectory:             "The path is a directory.",
	engine.UnsupportedFile:          "The path is not a regular file.",
	engine.FileTooLarge:             "The file is too large for the tool.",
	engine.InvalidPath:              "The path cannot be used.",
	engine.InvalidPattern:           "The pattern is not valid.",
	engine.OffsetBeyondEnd:          "The offset lies beyond the end of the file.",
	engine.RevisionConflict:         "The file is not in the revision that the call expected; nothing was changed.",
	engine.TextNotFound:             "The text to replace is not in the file; nothing was changed.",
	engine.TextAmbiguous:            "The text to replace is in the file more than once; nothing was changed.",
	engine.EditsOverlap:             "Two edits overlap; nothing was changed.",
	engine.NoChange:                 "The edits would change nothing.",
	engine.InvalidEdit:              "An edit is not valid; nothing was changed.",
	engine.UnsupportedEncoding:      "The file's encoding is not supported; nothing was changed.",
	engine.NoSpace:                  "There is no space left on the device; nothing was changed.",
	engine.ReadOnlyFileSystem:       "The file system is read-only.",
	engine.TooManyLinks:             "The path has too many symbolic links.",
	engine.InputOutput:              "The operating system reported an error.",
	engine.ExitedNonZero:            "The command failed.",
	engine.KilledBySignal:           "A signal ended the command.",
	engine.TimedOut:                 "The command was ended at its timeout.",
	engine.Cancelled:                "The call was cancelled.",
	engine.SpawnFailed:              "The command could not be started.",
	engine.SkillNotFound:            "There is no such skill.",
	v1alpha1.ReasonStoreUnavailable: "The state directory cannot be written, so nothing was started.",
	v1alpha1.ReasonFileBusy:         "Another call held the file for too long; nothing was changed.",
}

// commandOutcome is the outcome of a command that was started.
func commandOutcome(b *bash.Outcome, by string) *outcome {
	o := &outcome{reason: v1alpha1.ReasonSucceeded, message: "The command exited with code 0.",
		signal: b.Signal, fullOutputPath: b.FullOutputPath, leftovers: processes(b.Leftovers)}
	if b.ExitCode != nil {
		code := int32(*b.ExitCode)
		o.exitCode = &code
	}
	fields := map[string]any{"exit_code": b.ExitCode}
	if b.Signal != "" {
		fields["signal"] = b.Signal
	}
	if b.HeadText != "" {
		fields["output_head"] = b.HeadText
	}
	if b.FullOutputPath != "" {
		fields["full_output_path"] = b.FullOutputPath
	}
	if len(b.Leftovers) > 0 {
		fields["still_running"] = stillRunning(b.Leftovers)
	}
	o.answer = answer(b.Result, fields)
	o.elapsed = &b.Elapsed
	if b.Err == nil {
		return o
	}
	o.failed, o.reason, o.effects, o.message = true, string(b.Err.Reason), true, reasonTexts[b.Err.Reason]
	switch b.Err.Reason {
	case engine.ExitedNonZero:
		o.message = fmt.Sprintf("The command exited with code %d.", *o.exitCode)
	case engine.KilledBySignal:
		o.message = fmt.Sprintf("The command was killed by %s.", b.Signal)
	case engine.TimedOut:
		o.by = byTimeout
	case engine.Cancelled:
		o.by = by
		o.message = "The command was stopped by " + by + "."
	}
	return o
}

func processes(infos []process.Info) []v1alpha1.Process {
	const most = 64
	var all []v1alpha1.Process
	for _, i := range infos[:min(len(infos), most)] {
		began := metav1.NewTime(time.Now().Add(-i.Age))
		all = append(all, v1alpha1.Process{PID: int32(i.PID), StartTime: i.StartTime, Command: i.Command, BeginTime: &began})
	}
	return all
}

func stillRunning(infos []process.Info) []map[string]any {
	var all []map[string]any
	for _, i := range infos {
		all = append(all, map[string]any{"pid": i.PID, "command": i.Command, "age_seconds": int64(i.Age / time.Second)})
	}
	return all
}

// refused is an outcome of our own making, before any effect.
func refused(reason, message string) *outcome {
	return &outcome{failed: true, reason: reason, message: message, answer: &exchange.Result{Text: message}}
}

func cancelledBeforeStart(by string, draining bool) *outcome {
	o := refused(v1alpha1.ReasonCancelled, "Cancelled by "+by+" before anything was done.")
	o.by = by
	if draining && by == byShutdown {
		o.reason = v1alpha1.ReasonNotStarted
		o.message = "Rig Bridge was stopped before anything was done. Call again with the same request_key."
		o.answer.Text = o.message
	}
	return o
}

// clip bounds a path in a message.
func clip(s string) string {
	const limit = 500
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
