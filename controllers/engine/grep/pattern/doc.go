// Package pattern finds the lines of a text that match a regular expression.
//
// The syntax is that of ripgrep: no look-around and no back-references, Unicode classes and case folding,
// class set operations, ^ and $ at line ends. A pattern is translated to the syntax of regexp/syntax, whose
// parser and compiler do the rest, and is run as a deterministic automaton that is built while it is used.
// One byte of ASCII text costs one table look-up. A literal that every match must contain, if there is one,
// is searched first and decides which lines the automaton sees at all.
//
// Only "does this line match" is answered, never where. Lines end at LF; a CR before it belongs to the line
// end unless the pattern itself speaks of CR.
//
// Decision: an own automaton instead of package regexp. Context: a search goes over hundreds of megabytes, and
// the standard matcher does some ten megabytes a second on patterns without a literal prefix, thirty times less
// than this one; its \b and its classes are those of ASCII, too. Choice: keep the standard parser and
// compiler, replace the matcher only. Rejected: backtracking engines, since their time has no bound.
//
// A Matcher is immutable. Each goroutine takes a Scanner of its own.
package pattern
