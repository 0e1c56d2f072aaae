package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// leavePages takes the program's own file out of this process's memory: what its start has read of it is mostly not
// needed again. What is comes back from the system's cache at its next use.
func leavePages() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the program's file: %w", err)
	}
	return leaveFile(exe)
}

// leaveFile leaves the pages of a file that is mapped and cannot be written. They can be read again from the file, even
// if another has its name by now, unless the process has changed its copy of them before it made that read-only, as the
// loader does with the relocations of a position-independent program: such a mapping stays.
func leaveFile(path string) error {
	f, err := os.Open("/proc/self/smaps") // see proc_pid_smaps(5)
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	defer f.Close()
	var start, end uintptr // of the mapping that the lines are about, if it may be left
	for in := bufio.NewScanner(f); in.Scan(); {
		line := in.Text()
		var from, to uintptr
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n == 3 {
			start, end = 0, 0
			if (mode == "r--p" || mode == "r-xp") && strings.HasSuffix(line, " "+path) {
				start, end = from, to
			}
			continue
		}
		if end == 0 || strings.Join(strings.Fields(line), " ") != "Anonymous: 0 kB" {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("leave pages: %w", errno)
		}
	}
	return nil
}
