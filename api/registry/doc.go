// Package registry holds one strategy per kind: what is filled in, what is checked, which fields may change on
// which endpoint, and what can be selected by. The API server serves each kind through it, and so does the
// in-process client; there is no other way to the store.
//
// Invariants:
//   - a new object starts with an empty status, and spec and status change on separate endpoints only;
//   - generation counts changes of spec;
//   - a durable Operation carries a finalizer while it is active and loses it with its outcome, so that
//     deleting a running one stops it first and the receipt is gone only afterwards.
package registry
