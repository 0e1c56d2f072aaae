//go:build !linux

package main

import (
	"os"
	"syscall"
)

// endWithThread does nothing: this system cannot end a process with another.
func endWithThread(*syscall.SysProcAttr) {}

// flush brings the content of a file to the disk, as the store does.
func flush(f *os.File) error { return f.Sync() }
