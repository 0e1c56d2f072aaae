package bash

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// namedLeftovers is how many processes the notice names.
const namedLeftovers = 10

// Details is the tool's metadata of an output that was cut.
type Details struct {
	Truncation     *engine.Truncation `json:"truncation"`
	FullOutputPath string             `json:"fullOutputPath,omitempty"`
}

// Outcome is how a command ended. Everything but ExitCode, Signal and Err follows from what we did and saw.
type Outcome struct {
	// Result has the complete text and details, also of a failure.
	Result *engine.Result
	// Err is nil after exit code 0; its reason is ExitedNonZero, KilledBySignal, TimedOut or Cancelled and its
	// message is the complete text.
	Err *engine.Error
	// ExitCode is nil if the command was stopped or ended by a signal.
	ExitCode *int
	// Signal is the name of the signal that ended the shell, as "SIGTERM", or empty.
	Signal string
	// TimedOut is set if the timeout stopped the command and nobody cancelled it.
	TimedOut bool
	// Cancelled is why the command was stopped from outside, or empty.
	Cancelled Cause
	// Elapsed runs from the start of the shell until the outcome was known, by the monotonic clock.
	Elapsed time.Duration
	// FullOutputPath is the file of the full output if the text was cut, or empty.
	FullOutputPath string
	// HeadText is the start of the output if the text was cut, at most HeadBytes.
	HeadText string
	// Leftovers are descendants that still run.
	Leftovers []process.Info
}

// conclude makes the outcome. It runs once, when the output is closed.
func (c *Command) conclude(state *os.ProcessState, waitErr error, left []process.Info) *Outcome {
	o := &Outcome{Leftovers: left}
	c.mu.Lock()
	o.Cancelled = c.cancelled
	o.TimedOut = c.timedOut && c.cancelled == ""
	c.mu.Unlock()
	if state != nil {
		if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			o.Signal = signalName(ws.Signal())
		} else if code := state.ExitCode(); code >= 0 && o.Cancelled == "" && !o.TimedOut {
			o.ExitCode = &code
		}
	}
	cut := c.output.summarize()
	o.Result = &engine.Result{Text: cut.text}
	if cut.truncation != nil {
		o.FullOutputPath, o.HeadText = c.output.full.path, cut.head
		o.Result.Text += "\n\n" + rangeNotice(cut, c.output.full.notice())
		o.Result.Details = &Details{Truncation: cut.truncation, FullOutputPath: o.FullOutputPath}
	}
	c.judge(o, waitErr)
	o.Elapsed = time.Since(c.begun)
	return o
}

// judge adds to the text how the command ended and sets Err.
func (c *Command) judge(o *Outcome, waitErr error) {
	reason, status := engine.Reason(""), ""
	switch {
	case o.Cancelled != "":
		reason, status = engine.Cancelled, "Command aborted"
	case o.TimedOut:
		reason, status = engine.TimedOut, "Command timed out after "+c.args.timeoutText()+" seconds"
	case o.Signal != "":
		reason, status = engine.KilledBySignal, "Command killed by signal "+o.Signal
	case o.ExitCode == nil:
		reason, status = engine.InputOutput, fmt.Sprintf("The end of the command could not be observed: %v", waitErr)
	case *o.ExitCode != 0:
		reason, status = engine.ExitedNonZero, fmt.Sprintf("Command exited with code %d", *o.ExitCode)
	}
	stopped := o.Cancelled != "" || o.TimedOut
	if o.Result.Text == "" && !stopped {
		o.Result.Text = "(no output)"
	}
	o.Result.Text = paragraphs(o.Result.Text, status, leftoverNotice(o.Leftovers))
	if reason != "" {
		o.Err = &engine.Error{Reason: reason, Message: o.Result.Text, Details: o.Result.Details,
			EffectsMayHaveOccurred: true, Err: waitErr}
	}
}

// paragraphs joins what is not empty with an empty line between.
func paragraphs(part ...string) string {
	return strings.Join(slices.DeleteFunc(part, func(s string) bool { return s == "" }), "\n\n")
}

func (a Args) timeoutText() string {
	if a.TimeoutText != "" {
		return a.TimeoutText
	}
	_, text, _ := ParseTimeout(a.Timeout.Seconds())
	return text
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}

// rangeNotice says which part of the output the text shows.
func rangeNotice(cut summary, full string) string {
	t := cut.truncation
	switch {
	case t.LastLinePartial:
		return fmt.Sprintf("[Showing last %s of line %d (line is %s). %s]",
			engine.FormatSize(int64(t.OutputBytes)), t.TotalLines, engine.FormatSize(cut.lastLine), full)
	case t.TruncatedBy == engine.ByBytes:
		return fmt.Sprintf("[Showing lines %d-%d of %d (%s limit). %s]", t.TotalLines-t.OutputLines+1, t.TotalLines,
			t.TotalLines, engine.FormatSize(engine.MaxBytes), full)
	default:
		return fmt.Sprintf("[Showing lines %d-%d of %d. %s]", t.TotalLines-t.OutputLines+1, t.TotalLines, t.TotalLines, full)
	}
}

// leftoverNotice names what still runs and how to stop it.
func leftoverNotice(left []process.Info) string {
	if len(left) == 0 {
		return ""
	}
	var named, groups []string
	for i, p := range left {
		if i < namedLeftovers {
			named = append(named, fmt.Sprintf("pid %d (%s), %d s", p.PID, p.Command, int(p.Age.Seconds())))
		}
		if g := fmt.Sprintf("-%d", p.PGID); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	if more := len(left) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("[Still running: %s. Stop with bash: kill -- %s]", strings.Join(named, "; "), strings.Join(groups, " "))
}
