// Package project counts: how many threads a project has, how many handoffs nobody has read, and when it was
// last used.
//
// Invariants: the counts follow within a second or two, and what they cost does not grow with the threads: they are
// kept as changes come. A project's last use is not taken back when the thread that was used is removed, unless Rig
// Bridge is restarted.
package project
