// Package workspace opens and closes Workspaces. Opening checks that the directory is there; closing, which is
// deletion, stops the workspace's operations and lets it go when they are over. At most Max workspaces are
// open: the least recently used idle one makes room for a new one.
//
// Invariants: a closing workspace admits nothing; one with an active operation is never reclaimed.
package workspace
