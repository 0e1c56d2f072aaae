// Package project counts: how many threads a project has, how many handoffs nobody has read, and when it was
// last used.
//
// Invariant: the counts follow within a second or two and cost one pass over the project's threads, however many
// changes came meanwhile.
package project
