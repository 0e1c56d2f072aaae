// Package ls lists one directory.
//
// Every entry is shown, dangling links and names that are not UTF-8 included (the latter with U+FFFD). Entries
// are sorted as the reference does, by the root collation of their lower-cased names; only the ones shown are
// looked at any closer, so that a directory of 100,000 entries costs one pass over it.
//
// The Operation reconciler calls Run through controllers/runner.
package ls
