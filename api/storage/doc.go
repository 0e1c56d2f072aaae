// Package storage keeps API objects: an implementation of the apiserver
// library's storage.Interface over badger, for one process and one directory.
//
// Invariants:
//   - One revision counter serves every resource and both tiers. It never goes
//     back, not even after a crash that loses an unsynced tail.
//   - One writer at a time. A revision is published together with its event, so
//     whoever sees an event can read the state it tells of.
//   - The watchers of a resource see its events in revision order, durable and
//     volatile objects interleaved, none left out; one that cannot keep up is
//     told 410 Gone.
//   - An object lives in one tier for life: on disk, or in memory only.
//   - A write is durable when WaitDurable says so, not before.
//   - Data that cannot be read is copied or left aside, never deleted.
//
// The package knows no kind by name. api/server opens the one DB of a process
// and asks it for a Store per resource. DESIGN.md has the key layout and the
// reasons.
package storage
