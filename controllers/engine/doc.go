// Package engine holds what the tools share: limits, truncation of text, paths and typed errors.
//
// An engine is a pure tool: it knows the file system and processes, and neither Kubernetes nor MCP nor a
// logger. Each tool has a package of its own below this one. The Operation reconciler calls them through
// controllers/runner; nothing else does.
//
// Invariants:
//   - a read-only tool never writes, and never blocks on a device, a FIFO or a socket;
//   - a mutating tool is split into a prepare step without effect and a commit step;
//   - memory is bounded whatever the size of the file or of the output;
//   - every failure is an *Error with a Reason and a sentence that says what to do next.
package engine
