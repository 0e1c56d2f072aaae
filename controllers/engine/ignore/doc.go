// Package ignore decides which entries of a directory tree the ignore files hide, by the rules of git.
//
// A Scope holds the rules that are in force in one directory; find and grep make one for the search root and
// derive one for each directory that has ignore files of its own. Precedence from high to low: the tool's own
// file (.fdignore or .rgignore), .ignore, .gitignore, info/exclude of the repository, the account's ignore
// file. Within one kind the nearer directory wins, within one file the later line.
//
// Inside a repository the .gitignore files from the repository's root down count, and they end at a nested
// repository. Outside of any repository all of them count. An ignored directory is never entered, so nothing
// below it can be brought back. The search root itself is never ignored.
//
// A Scope is immutable once made and safe for concurrent use.
package ignore
