// Package runner runs work outside of reconcile workers. A reconciler hands it a function and is asked to look
// again when the function returns; it never blocks a worker itself.
//
// It also holds the path locks: in process, by canonical path, fair, with a bounded wait. They die with the
// process, so no stale lock can exist.
package runner
