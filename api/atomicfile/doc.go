// Package atomicfile writes small files whole: secrets, addresses, units, programs.
//
// A reader sees the old content or the new one, also after a crash or a power cut, and what was written without an error
// stays. A new file is its owner's alone until it has its name; then it has the mode that was asked for, whatever the umask.
// What a crash leaves of an attempt is removed by a later one.
//
// Both sides of the daemon may use it. Files of projects are another matter: controllers/engine/replace.
package atomicfile
