package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// clockIsKept says whether the kernel holds the clock for synchronised with others; one that cannot tell is believed.
func clockIsKept() bool {
	const unsynchronised = 0x40 // STA_UNSYNC of adjtimex(2)
	var t unix.Timex
	_, err := unix.Adjtimex(&t)
	return err != nil || t.Status&unsynchronised == 0
}

// lookAtBus looks for the desktop's bus, over which handoffs are shown.
func lookAtBus(ctx context.Context) finding {
	const without = "handoffs are not shown on the desktop; they are in rigctl inbox and on the dashboard"
	address := os.Getenv("DBUS_SESSION_BUS_ADDRESS")
	if address == "" {
		address = "unix:path=" + filepath.Join("/run/user", fmt.Sprint(os.Getuid()), "bus")
	}
	path, ok := strings.CutPrefix(address, "unix:path=")
	if !ok {
		return finding{good: "the desktop's bus is " + address}
	}
	path, _, _ = strings.Cut(path, ",")
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return finding{lack: fmt.Sprintf("no desktop's bus answers at %s, so %s: log in to a desktop, and start the daemon there", path, without)}
	}
	_ = conn.Close()
	return finding{good: "the desktop's bus answers at " + path}
}
