// Package read returns a range of lines of a text file, or an image, together with the file's revision.
//
// The file is passed over once: the digest, the count of lines and the wanted range all come from the same
// bytes, and what is kept in memory does not depend on the size of the file or of its lines. Should the file
// change meanwhile, the pass is repeated, so that revision and text belong to one state of it. Only images are
// held whole, at most MaxFileSize each, and decoded within one budget of memory for the whole process.
//
// Lines end at LF. Unlike the reference a final LF opens no further line, in any count.
//
// The Operation reconciler calls Run through controllers/runner.
package read
