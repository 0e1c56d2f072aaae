// Package walk goes through directory trees in parallel and hands back what it finds in one fixed order.
//
// The order is that of path parts compared byte by byte, a directory before what is in it. Work is taken up
// in nearly that order too, and finished work is merged back into it, so a limited search ends as soon as its
// first rows are known, without a walk of the whole tree, and gives the same rows on every run.
//
// Ignore files are obeyed, links are never followed, so each file is met once, and pseudo file systems such
// as proc are not entered unless the search begins in one. Each directory costs one open, one stat and its
// getdents calls; its entries cost no system call.
//
// Decision: an own walker instead of a library. Context: rows must come in one order, a limit must end the walk
// early and give the first rows, and ignore files must be known before the entries beside them are judged.
// Choice: directories are read whole, sorted, and put in place of their slot in a linked list of results; idle
// workers take the earliest slot. Rejected: callbacks in order of arrival with a sort at the end, as the usual
// parallel walkers have it, since a limit then needs the whole walk.
//
// Find and grep are the callers. Each gives a Visitor that names the entries it wants and turns them into
// results.
package walk
