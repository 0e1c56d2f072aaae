// Package run keeps the runs of threads: it begins one with a thread's first execution call, makes the one that
// run_start asks for, ends one with its handoff, and interrupts what nobody goes on with.
//
// What moves a run:
//
//	(none) → Working       Begin, by the first call after a handoff or an interruption; Start, by run_start
//	Working → Interrupted  the thread's workspace was closed or reclaimed, or the daemon that began it is gone
//	Working, Interrupted → the handoff's reason, once the Handoff of that run exists
//
// Invariants:
//   - a thread's latest run alone can be Working, and only one that this life of the daemon began;
//   - the Handoff is the one commit point of a run's end: its name follows from the run's, so a run has at most
//     one, and its summary and reason are all that finishing the run needs. Whatever dies afterwards, the
//     operation that made it finishes the run from it, and until then readers who join the two see both;
//   - an interrupted run stays so until it is handed off; the next call begins a new one, because nobody knows
//     what the old one was about to do;
//   - beginning a run costs a call no wait for the disk. The record of a later effect covers it, and for
//     read-only calls it becomes durable in the background.
//
// The run's status has no other writer than this package. The Operation reconciler calls Begin, Start, HandOff
// and Finish; the Workspace reconciler calls Interrupt before it lets a workspace go.
package run
