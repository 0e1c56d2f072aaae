// Command rigctl looks at and steers a running rig-bridge. It is a client of the API like any other: it speaks
// to the daemon's socket, so it needs no token, and prints what the server renders, so that columns exist once.
//
// Its verbs mean what they mean in kubectl, and it exits as kubectl does: 0 when all went well, 1 otherwise.
package main
