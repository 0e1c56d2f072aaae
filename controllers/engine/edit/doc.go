// Package edit is the edit tool: it replaces texts in a file and leaves every other byte as it is.
//
// # How a text is found
//
// The file is looked at through a view in which CR LF and a lone CR are LF; oldText and newText are seen the same way.
// A byte order mark is set aside and kept. An oldText that occurs exactly once there is what is replaced, even if
// something else looks alike. One that occurs more than once, overlapping places counted, is TextAmbiguous. One that does
// not occur is looked for in normalised form: compatibility composition (NFKC), no blanks at the ends of lines, curly
// quotes, dashes and special spaces made plain. If that is unique it is replaced, and the answer says so. All edits of
// a call refer to the file as it was; none is applied unless all can be.
//
// # What is written
//
// Only the matched bytes are replaced. Line ends of newText take the form that the matched range has at that place,
// else that of the line they are put into. A normalised match is replaced as a whole; a character of which it
// covers only a part (one f of a ligature) keeps the rest of it in normalised form. So mixed line ends, lone CR, byte
// order mark, bytes that are not UTF-8 and a missing final newline outside the ranges stay. The outcome is viewed
// again and compared with what was meant before a plan is made.
//
// # What is refused
//
// UTF-16 and files with a NUL are refused, and so is text beyond ASCII for a file in a legacy encoding: it would mix two
// encodings. Refusals name the line, the difference and what to do next.
//
// The Operation reconciler calls Prepare and commits the plan.
package edit
