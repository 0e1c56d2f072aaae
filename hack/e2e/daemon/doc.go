// Package daemon starts the real rig-bridge as a process of its own and talks to it as a client would:
// over HTTP, with the bearer from the token file. End-to-end tests, the kill test and the benchmark are
// built on it.
//
// In a test, one line is enough:
//
//	d := daemon.Start(t, daemon.Options{})
//	ws := d.Client().Open(t, dir)
//	r := d.Client().OK(t, "read", daemon.Args{"workspace_id": ws, "path": "a.txt"})
//
// The daemon gets a state directory and a home of its own and any free port, so tests run beside each
// other. It is stopped at the end of the test, and its log is shown when the test fails. Outside tests,
// Launch does the same and returns errors.
//
// The client is deliberately plain: no MCP library, so that a fault in one cannot hide in both.
package daemon
