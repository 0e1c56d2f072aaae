// Package event keeps what happened lately: Kubernetes Events about our objects, for people and for kubectl's
// describe. The other reconcilers record through NewRecorder, which correlates as client-go does: the same event
// again counts up, many similar ones become one, and one object that is noisy is held back. The reconciler here
// removes events that are older than an hour, and the oldest beyond a thousand.
//
// Invariants:
//   - recording never waits: events are queued and written in the background, and dropped when the queue is full;
//   - an event says that something happened to an object and how it was judged: no command text, no content, no
//     output, no summary;
//   - nothing depends on an event. What lasts is in the status of the object, so events need not survive a restart.
package event
