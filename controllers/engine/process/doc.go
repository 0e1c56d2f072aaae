// Package process starts, finds and stops the processes of a command.
//
// A command's processes are its family: the leader, which has a session and a process group of its own, and
// all that descend from it, wherever they went. They are found again, also by a later daemon, from two values
// that may be stored: the group's number, and an opaque text of boot, start time of the leader and a random
// marker that every descendant inherits in its environment.
//
// Invariants:
//   - nothing is signalled that cannot be shown to be of the family: a number that the kernel gave to somebody
//     else, or that was noted before a reboot, matches nothing;
//   - the leader stays a zombie, and its number reserved, until Reap;
//   - only names of commands are read, never their arguments;
//   - a family without survivors costs no walk through the process table, once the daemon is a subreaper.
//
// package bash starts families; the runner finds and stops what they left behind.
package process
