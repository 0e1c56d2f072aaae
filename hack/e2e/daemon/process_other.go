//go:build !linux

package daemon

import "syscall"

// endWithThread does nothing: this system cannot end a process with another. A test that dies leaves its daemon.
func endWithThread(*syscall.SysProcAttr) {}
