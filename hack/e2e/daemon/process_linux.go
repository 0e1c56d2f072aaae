package daemon

import "syscall"

// endWithThread has the kernel end a process with the thread that starts it.
func endWithThread(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
