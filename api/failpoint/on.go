//go:build failpoints

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Enabled says whether the build has failpoints.
const Enabled = true

// point is what RIG_BRIDGE_FAILPOINT asks for.
type point struct {
	name string
	nth  int64  // kill at this hit
	gate string // or wait for this file
	hits atomic.Int64
}

var armed = parse(os.Getenv("RIG_BRIDGE_FAILPOINT"))

func parse(text string) *point {
	if name, file, ok := strings.Cut(text, "="); ok {
		return &point{name: name, gate: file}
	}
	name, nth, counted := strings.Cut(text, ":")
	p := &point{name: name, nth: 1}
	if counted {
		n, err := strconv.ParseInt(nth, 10, 64)
		if err != nil || n < 1 {
			panic("RIG_BRIDGE_FAILPOINT: " + text + " is not name, name:n or name=file")
		}
		p.nth = n
	}
	return p
}

// Hit says that the process has come to a step. It does not return if the step is the one to die at.
func Hit(name string) {
	switch {
	case name != armed.name:
	case armed.gate != "":
		for _, err := os.Stat(armed.gate); err != nil; _, err = os.Stat(armed.gate) {
			time.Sleep(time.Millisecond)
		}
	case armed.hits.Add(1) == armed.nth:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // a process may always signal itself
		select {}
	}
}
