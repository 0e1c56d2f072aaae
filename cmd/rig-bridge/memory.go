package main

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/rigbridge/rigbridge/cmd/rig-bridge/startgc"
)

const (
	// gcPercent lets the heap grow to three times what is in use before it is collected: a call makes some 100 KB of
	// garbage, and what is in use is small. The variable GOGC stands above it (see package runtime).
	gcPercent = 200
	// quietFor is how long nobody may have asked for anything before memory is given back.
	quietFor = 3 * time.Second
)

// returnMemory gives the memory that the heap does not use back to the system whenever the daemon has come to rest,
// after its start too. It ends with ctx.
func (d *daemon) returnMemory(ctx context.Context) {
	startgc.End(gcPercent)
	d.activity.change(0) // the start was work
	tick := time.NewTicker(quietFor)
	defer tick.Stop()
	for last := (time.Time{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if rest := d.activity.restingSince(); rest != last && time.Since(rest) >= quietFor {
			debug.FreeOSMemory()
			if last.IsZero() {
				if err := leavePages(); err != nil {
					d.log.V(1).Info("The pages of the start stay", "err", err.Error())
				}
			}
			last = rest
		}
	}
}
