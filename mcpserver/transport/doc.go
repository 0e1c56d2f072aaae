// Package transport carries MCP between a client and the tools: one HTTP
// endpoint and one stdio loop on the same dispatcher, for every protocol
// version from 2024-11-05 to 2026-07-28.
//
// It owns bytes, deadlines, sessions, cancellation and the order of messages.
// It does not know the tools: tools/call goes to Options.Call, everything else,
// and what Call leaves, to the MCP library's HandleMessage. A handler of the
// library sees the client as a session that lasts for the request: it can send
// notifications and, before 2026-07-28, ask the client back. Our tools do
// neither; the conformance suite's fixtures in hack/e2e/conformance do.
//
// # Invariants
//
//   - Each request gets exactly one answer, on its own response, after all of
//     its progress. Nothing of one request is ever written to another's.
//   - A session is never required and never stored. Its id proves itself with a
//     MAC, so ids survive a restart; only ended ones are remembered.
//   - Legacy calls (before 2026-07-28) outlive their connection; modern calls
//     end with it. Both end by cancellation or Shutdown, and a handler can ask
//     CancelCause why.
//   - A slow reader costs its own connection only: every write has a deadline.
//   - A client that is gone, or has closed its half of the connection, is told
//     nothing: the connection is cut, never a success without a body.
//
// # Decisions
//
// Our tools' calls do not pass through HandleMessage. The library scans a body six
// to eight times (125 ms of CPU a megabyte), answers unknown tools and wrong
// arguments with protocol errors that models do not see, and keys running calls
// by an id without its type. What it does around a call is small: the checks of
// 2026-07-28 and the metadata on the result.
//
// Batches are answered as arrays where the version allows them (up to
// 2025-03-26, assumed when no version header is sent) and refused above.
//
// The MCP library's HTTP server is not used: it shares one channel between the
// calls of a session, so progress reaches foreign streams or is lost, and its
// cancellation of calls without a session hits other clients.
package transport
