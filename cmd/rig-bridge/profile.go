//go:build profile

package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

// With the build tag profile the daemon profiles its use of the processor from its start on, and at SIGUSR1 writes
// what it has seen to the file RIG_BRIDGE_PROFILE: hack/bench profile makes of it what the build is optimized by.
func init() {
	path := os.Getenv("RIG_BRIDGE_PROFILE")
	if path == "" {
		return
	}
	// The file has its name once it is complete.
	f, err := os.Create(path + ".part")
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig-bridge: profile:", err)
		os.Exit(1)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		<-asked
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "rig-bridge: profile:", err)
			return
		}
		_ = os.Rename(path+".part", path) // the one who asked waits in vain
	}()
}
