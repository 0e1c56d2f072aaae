package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// leavePages takes the program's own file out of this process's memory: what its start has read of it is mostly not
// needed again. What is comes back from the system's cache at its next use. Only what cannot be written is left, so
// nothing is lost, even if the file has been replaced or removed meanwhile.
func leavePages() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the program's file: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		var start, end uintptr
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &start, &end, &mode); err != nil {
			return fmt.Errorf("read what is mapped: %w", err)
		}
		if mode != "r--p" && mode != "r-xp" || !strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+exe) {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("leave pages: %w", errno)
		}
	}
	return nil
}
