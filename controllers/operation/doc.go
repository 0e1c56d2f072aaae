// Package operation drives Operations to their outcome.
//
// Life of an operation that changes something:
//
//	Pending   admit: workspace ready, arguments here; then, for a file, lock its canonical path and prepare
//	          (read only: the new bytes and the planned revision)
//	Running   the attempt is recorded with what a restart needs to judge it; once that is durable the effect starts
//	over      the outcome is recorded; its text goes back through the exchange
//
// An operation of a read-only tool is Pending until it is over.
//
// Invariants:
//   - no effect before the record of its attempt is durable, and none after a cancel that was seen first;
//   - an attempt of an earlier life of the daemon is never run again: a file decides by its revision, a command
//     is OutcomeUncertain;
//   - what a command left running stays in status.leftovers as long as it runs, and is stopped when its operation is
//     cancelled or deleted, over or not, in whatever life of the daemon: the family of processes is in the record of
//     the attempt, or is found by the attempt's id, which its processes carry;
//   - in memory there is only what status can rebuild or a restart may lose: tasks, locks, arguments, texts;
//   - conditions and phase are set in _status.go alone, and never carry content, output or command text.
package operation
