// Package find lists files by glob. It is what the Operation reconciler runs for the tool "find".
//
// A pattern without a slash is matched on base names at any depth, one with a slash on the path below the
// search root at any depth, one that begins with a slash on the absolute path. A pattern without capitals
// ignores the case of ASCII letters. Names are compared in composed form (NFC), so both spellings of an
// accented letter match. Hidden names count; .git is left out unless the path or the pattern names it.
//
// Rows come sorted by path parts and, with a limit, are the first in that order. A search that runs out of
// time says so and keeps what it has. When nothing is found but ignore files hide a match of a pattern that
// names a path or a file, the answer says that.
package find
