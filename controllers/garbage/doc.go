// Package garbage removes what belongs to an object that is gone, as Kubernetes' own collector does: by owner
// references. A project owns its threads; a thread owns its workspaces, its runs and their handoffs. On a real
// Kubernetes API this reconciler is not needed, the cluster's collector does the same.
//
// What deleting does:
//   - a project or a thread goes at once, and what it owns follows in the background (--cascade=background);
//     with --cascade=foreground it stays, marked as deleted, until all that is gone; with --cascade=orphan what it
//     owned loses its owner reference and stays;
//   - a workspace's own finalizer still stops its operations and interrupts its run first;
//   - a run's handoff goes with its run;
//   - operations have no owner. They are receipts: a retry of a request key is recognised whatever was deleted, and
//     only rigctl prune removes them;
//   - what has no owner reference belongs to nobody and stays, as in Kubernetes: what was orphaned, and what was made
//     by somebody who gave none, like Rig Bridge itself before it had them. It is not adopted, because nothing tells
//     the two apart and a collector must not guess; whoever wants it gone deletes it by name or by a field selector
//     (spec.threadRef.name=NAME).
//
// Invariants:
//   - an object is deleted only if each of its owners is gone: not there under that name with that UID, by the API
//     and not by the cache alone;
//   - making and closing costs a look at what was made: nothing is listed, however many threads there are;
//   - a crash loses nothing for good: what dangles after a restart is found by a look at everything, threads and
//     workspaces at the start and runs and handoffs, which may be very many, some minutes later and page by page.
package garbage
