package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// programPages is how much of the program's file is in this process's memory, in KB.
func programPages(t *testing.T) (kb int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own := false
	for in := bufio.NewScanner(f); in.Scan(); {
		var start, end uint64
		var resident int
		if n, _ := fmt.Sscanf(in.Text(), "%x-%x", &start, &end); n == 2 {
			own = strings.HasSuffix(in.Text(), exe)
		}
		if n, _ := fmt.Sscanf(in.Text(), "Rss: %d kB", &resident); n == 1 && own {
			kb += resident
		}
	}
	return kb
}

// TestPagesOfTheStartAreLeft: the program's file leaves the memory, and all goes on.
func TestPagesOfTheStartAreLeft(t *testing.T) {
	before := programPages(t)
	if before < 8<<10 {
		t.Fatalf("only %d KB of the program are in memory", before)
	}
	if err := leavePages(); err != nil {
		t.Fatal(err)
	}
	if after := programPages(t); after > before/2 {
		t.Errorf("%d KB of %d are still in memory", after, before)
	}
	_, c := running(t, &settings{})
	open(t, c, t.TempDir())
}

// TestChangedPagesStay: what the process has changed of a mapping before it was made read-only is not in the file.
func TestChangedPagesStay(t *testing.T) {
	const size = 1 << 16
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b) //nolint:errcheck // the test is over
	b[size/2] = 7
	if err := unix.Mprotect(b, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := leaveFile(path); err != nil {
		t.Fatal(err)
	}
	if b[size/2] != 7 {
		t.Error("a page that the process had changed was read again from the file")
	}
}
