// Package thread shows where each thread stands: its latest run, its state and when it was last used.
//
// States: Idle without a run; Working while a call is under way or one was made within Quiet; AwaitingHandoff
// when the run goes on and nothing has been called since; Interrupted and YourTurn as the latest run says.
//
// Invariants: calls cost a thread no write of their own; its status is written when the state changes, and its
// last use no more than once in Lag otherwise.
package thread
