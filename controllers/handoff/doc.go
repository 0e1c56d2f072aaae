// Package handoff notes when a handoff was read, and tells the person on the desktop that it is their turn.
//
// A handoff is read when its spec.acknowledged is set, by whom ever; the first time is kept.
//
// Delivery: Disabled when the project's desktop notifications were off as the handoff was made; else Pending,
// Sending, then Sent or Failed with an error in plain words. Sending is on the disk before anything is shown, so a
// notification is shown at most once: one that the daemon died over is Unknown and never sent again, and a Pending
// one is sent after the restart. One is sent at a time, in the background.
package handoff
