// Package bash runs one shell command, keeps its output within bounds and says exactly how it ended.
//
// Invariants:
//   - a command ends when its shell ends, not when a background child lets go of the pipe; what still runs is
//     named in the answer and keeps a reader, so that it does not die of a closed pipe;
//   - how a command ended follows from our own state and from the kernel, never from its output;
//   - it is asked to end (SIGTERM) before it is killed, with all that descends from it;
//   - memory is bounded whatever it prints, and printing never slows it down.
//
// The Operation reconciler starts commands through controllers/runner; nothing else does.
package bash
