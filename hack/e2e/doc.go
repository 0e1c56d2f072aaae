// Package e2e holds the end-to-end tests: the real daemon as a process of its own, driven over HTTP by
// public MCP clients, by the golden vectors, and by hand-made requests that no client would send.
//
// "hack/test e2e" installs what the tests need and runs them. Run by themselves (go test ./hack/e2e/...)
// they use what is there and skip, by name, what is not.
package e2e
