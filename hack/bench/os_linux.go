package main

import (
	"os"
	"syscall"
)

// endWithThread has the kernel end a process with the thread that starts it.
func endWithThread(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// flush brings the content of a file to the disk, as the store does.
func flush(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
