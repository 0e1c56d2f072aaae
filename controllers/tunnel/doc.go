// Package tunnel keeps the tunnel clients that Tunnel objects ask for running.
//
// The client is OpenAI's tunnel-client, a program of its own that long-polls its control plane and passes calls on
// to this daemon's MCP endpoint. It is never downloaded.
//
// Invariants:
//   - A tunnel never has two clients. In one life of the daemon the next is started only when all processes of the
//     one before are gone; at the beginning of a life those of earlier lives are stopped first, also one that died
//     with the daemon before it was recorded: clients carry the tunnel's UID in their environment.
//   - Ready is True only while a client runs, says that it is ready, and polled with success no longer ago than the
//     watchdog allows. An earlier life's True does not survive its end: see Adopt.
//   - A client that ended is started again after a pause that grows; one that does not work, or whose default route
//     is another now, is stopped and started again. All of that waits until a connection to the control plane can
//     be made. What decides is decide, which is pure.
//   - The key and the bearer are given to the client as names of files. Neither they nor anything that the client
//     says is in an object or in the daemon's log. The client's output goes to an owner-only file of bounded size,
//     at a bounded rate, without the two.
//
// The daemon calls Adopt before its manager starts and Drain when it ends; cmd/rig-bridge makes the objects.
package tunnel
