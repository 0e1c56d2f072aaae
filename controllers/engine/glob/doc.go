// Package glob matches shell-style patterns for find, for the glob argument of grep and for ignore files.
//
// A Path is a whole pattern that may have slashes; it is matched part by part while a walk goes down, so that
// directories in which nothing can match are never read. A Segment is what stands between two slashes.
//
// Matching takes time proportional to pattern times name, whatever the pattern. The package is pure: it does
// not touch the file system.
package glob
