//go:build hops && !failpoints

package failpoint

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Enabled says whether the build has failpoints.
const Enabled = false

// noted are the steps since the last answer, a line each: its name, and the monotonic clock's nanoseconds, which
// all processes share.
var noted struct {
	sync.Mutex
	lines bytes.Buffer
}

// Hit notes when the process has come to a step. What was noted goes to the file RIG_BRIDGE_HOPS once a call is
// answered.
func Hit(name string) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every system that can be built for has this clock
	}
	noted.Lock()
	defer noted.Unlock()
	fmt.Fprintf(&noted.lines, "%s %d\n", name, now.Nano())
	if name != Written {
		return
	}
	f, err := os.OpenFile(os.Getenv("RIG_BRIDGE_HOPS"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return // nobody asks for it
	}
	_, _ = noted.lines.WriteTo(f) // the reader misses what is not there
	_ = f.Close()
}
