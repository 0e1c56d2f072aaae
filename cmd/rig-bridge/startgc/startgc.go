// Package startgc has garbage collected less often while the process starts: what a start allocates, in the
// initialization of packages above all, stays for the most part, so collections find little and cost a tenth of it.
//
// Of packages that are ready to be initialized the one with the first import path is (see "Program initialization"
// in the specification of Go and the notes of its version 1.21), which is why this one, which imports next to nothing,
// comes before most of what allocates much.
package startgc

import (
	"os"
	"runtime/debug"
)

// percent lets the heap of a start grow without a collection, about.
const percent = 800

func init() { set(percent) }

// End sets the pace for the time after the start (see debug.SetGCPercent). The variable GOGC stands above both.
func End(percent int) { set(percent) }

func set(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
