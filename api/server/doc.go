// Package server assembles the API: the Kubernetes-style endpoints over HTTP, the client that calls them in
// process, and informers on the store's own watch. It is called by cmd/rig-bridge and by tests; controllers and
// mcpserver get no more of it than controller-runtime's client and cache interfaces.
//
// Invariants:
//   - every write, from HTTP or in process, passes the same strategy and the same store;
//   - who may call is decided before a request gets here; the API itself knows one owner;
//   - objects that come from a watch or a cache are shared: who changes one copies it first.
package server
