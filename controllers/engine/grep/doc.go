// Package grep finds lines by regular expression. It is what the Operation reconciler runs for the tool "grep".
//
// Package pattern says which lines match. Files are found by package walk: hidden ones count, .git does not,
// ignore files are obeyed inside and outside of repositories and the glob argument only narrows, it brings
// nothing back. Files come in order of path parts, and with a limit the first matches in that order are given.
//
// A file is read through one buffer of fixed size for each worker, so neither the size of a file nor the
// length of a line matters. A file met on the way that has a NUL in its first 64 KiB is skipped, a later NUL
// ends its search; a file named by path is searched to its end. UTF-16 with a byte order mark is decoded.
// Links met on the way, FIFOs, sockets and devices are skipped.
package grep
